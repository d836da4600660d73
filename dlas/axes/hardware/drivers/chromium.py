"""WebAssembly in a page of a headless Chromium, timed by the page's own clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dlas.axes.hardware.engines import WebAssemblyEngine
from dlas.bench.engines.chromium import Chromium
from dlas.stack.engine import Engine


@dataclass(frozen=True)
class ChromiumEngine(WebAssemblyEngine):
    """WebAssembly in a browser without a window or a network, which ends with the process that measures."""

    engine: ClassVar[type[Engine]] = Chromium

    def start(self) -> Engine:
        """Start the browser, and open a page."""
        return Chromium()
