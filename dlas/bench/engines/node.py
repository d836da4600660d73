"""WebAssembly in Node: V8, the engine of Chromium, without a page around it."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from dlas.bench.engines.javascript import HOST, JavaScriptEngine, value_of
from dlas.bench.engines.process import PipedProgram

NODE = "node"
SCRIPT = Path(__file__).with_name("node.js")
TELLS_S = 20.0
FLAG = "--experimental-wasm-relaxed-simd"
"""What versions before 21 need for vectors with relaxed rounding; later ones do not know it."""
HAS_RELAXED = 21


class NodeJs(JavaScriptEngine):
    """Starts Node.

    Parameters
    ----------
    relaxed : bool
        Whether modules have vectors with relaxed rounding.
    """

    def __init__(self, relaxed: bool) -> None:
        flags = [FLAG] if relaxed and int(versions()["node"].partition(".")[0]) < HAS_RELAXED else []
        source = HOST.read_text() + SCRIPT.read_text()
        self._program = PipedProgram([NODE, *flags, "--eval", source], b"\n")

    @classmethod
    def missing(cls) -> str | None:
        """Return that it is not installed, or None."""
        return None if shutil.which(NODE) else "node is not on the PATH; install Node.js 18 or newer"

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """Return the versions of Node and of V8."""
        told = versions()
        return {"engine": f"node {told['node']}", "v8": told["v8"]}

    def ask(self, name: str, **given: Any) -> Any:
        """Return the answer to one of the messages of ``host.js``."""
        self._program.send(json.dumps({"name": name, **given}).encode())
        return value_of(json.loads(self._program.receive()))

    def close(self) -> None:
        """End Node."""
        self._program.close()


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Node and of its parts.

    Raises
    ------
    OSError, subprocess.SubprocessError, ValueError
        If Node does not tell them.
    """
    command = [NODE, "--print", "JSON.stringify(process.versions)"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=TELLS_S, check=True)
    told: dict[str, str] = json.loads(ran.stdout)
    return told
