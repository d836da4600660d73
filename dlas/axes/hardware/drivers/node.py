"""WebAssembly in Node, whose engine V8 compiles a function quickly at first, and well while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dlas.axes.hardware.engines import WebAssemblyEngine
from dlas.bench.engines.node import NodeJs
from dlas.stack.engine import Engine


@dataclass(frozen=True)
class NodeEngine(WebAssemblyEngine):
    """WebAssembly in Node, a process that ends with the one that measures."""

    engine: ClassVar[type[Engine]] = NodeJs

    def start(self) -> Engine:
        """Start Node."""
        return NodeJs(self.relaxed_simd)
