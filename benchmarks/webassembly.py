"""Our modules beside onnxruntime-web in the same engine, one thread of a process each, in turns.

    npm install --prefix FOLDER onnxruntime-web
    python -m benchmarks.webassembly FOLDER/node_modules/onnxruntime-web/dist [--engine chromium]

Outputs of both are compared with torch's.  Both have SIMD; ours without relaxed SIMD, unless `--relaxed`.
"""

from __future__ import annotations

import base64
import statistics
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.peers import Ratio
from benchmarks.studies import chosen
from dlas.axes.compilers.programs.webassembly import settled
from dlas.bench.engines import node
from dlas.bench.engines.chromium import Chromium
from dlas.bench.engines.javascript import HOST, PIECE, JavaScriptEngine
from dlas.bench.engines.node import NodeJs
from dlas.bench.engines.process import PipedProgram
from dlas.lowering.webassembly.writing import CODE, PARAMETERS, read_module
from dlas.stack import Facts
from dlas.stack.hardware import EngineHardware
from dlas.sweep.study import parts

NETWORKS: dict[str, dict[str, Any]] = {
    "cifar_resnet18": {"width": 0.25},
    "mobilenet_v2": {},
    "efficientnet_b0": {},
    "resnet18": {},
    "squeezenet1_1": {},
    "shufflenet_v2_x1_0": {},
    "mnasnet1_0": {},
    "convnext_tiny": {},
}
SIZE = 128
"""Height and width of images, but for CIFAR's."""
TURNS, TURN_S = 12, 0.25
SCRIPT = Path(__file__).with_name("onnxruntime_web.js")


class OnnxRuntimeWeb:
    """A model in onnxruntime-web, in an engine that has its script and this package's.

    Parameters
    ----------
    engine : JavaScriptEngine
    folder : Path
        onnxruntime-web's folder ``dist``.
    alone : bool
        Whether the engine reads no files, so that they are sent there.
    """

    def __init__(self, engine: JavaScriptEngine, folder: Path, alone: bool) -> None:
        self._engine, self.close = engine, engine.close
        if alone:
            self._send((folder / "ort-wasm-simd-threaded.wasm").read_bytes())
            starts = (folder / "ort-wasm-simd-threaded.mjs").read_text()
            self.version = str(engine.ask("onnxRuntime", script=starts))
        else:
            self.version = str(engine.ask("onnxRuntime", folder=str(folder.resolve())))

    def load(self, model: Path, images: np.ndarray) -> None:
        """Load a model, and give it its images."""
        self._send(model.read_bytes())
        data = base64.b64encode(images.tobytes()).decode()
        self._engine.ask("onnxModel", shape=list(images.shape), data=data)

    def run(self, runs: int) -> float:
        """Return the seconds of so many inferences."""
        return float(self._engine.ask("onnxRun", runs=runs))

    def output(self) -> np.ndarray:
        """Return what the last inference gave."""
        return np.array(self._engine.ask("onnxOutput"), np.float32)

    def _send(self, data: bytes) -> None:
        for start in range(0, len(data), PIECE):
            self._engine.ask("piece", data=base64.b64encode(data[start : start + PIECE]).decode())


class _Node(NodeJs):
    """Node with the messages of ``onnxruntime_web.js``."""

    def __init__(self) -> None:
        source = HOST.read_text() + node.SCRIPT.read_text() + SCRIPT.read_text()
        self._program = PipedProgram([node.NODE, "--eval", source], b"\n")


class _Page(Chromium):
    """A page with onnxruntime-web's library and the messages of ``onnxruntime_web.js``."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        for script in (folder / "ort.wasm.min.js", SCRIPT):
            self._evaluate(f"{script.read_text()}\n0")


PEERS: dict[str, Callable[[Path], OnnxRuntimeWeb]] = {
    "node": lambda folder: OnnxRuntimeWeb(_Node(), folder, alone=False),
    "chromium": lambda folder: OnnxRuntimeWeb(_Page(folder), folder, alone=True),
}
"""onnxruntime-web in each engine."""


def main(
    ort: Annotated[Path, typer.Argument(help="The folder dist of the npm package onnxruntime-web.")],
    engine: Annotated[str, typer.Option(help=f"One of {', '.join(PEERS)}.")] = "node",
    networks: Annotated[str | None, typer.Option(help="Some of the networks, with commas.")] = None,
    relaxed: Annotated[bool, typer.Option("--relaxed", help="Ours with relaxed SIMD.")] = False,
) -> None:
    """Print a table of times and ratios."""
    (which,) = chosen(engine, PEERS, "engine")
    device = parts.make("hardware", which, {"relaxed_simd": relaxed})
    names = chosen(networks, NETWORKS, "network") if networks else list(NETWORKS)
    table = Table("network", "ours", "onnxruntime-web", "its time over ours", "error", "its error")
    ratios, version = [], ""
    for name in names:
        cells, median, version = _compared(name, device, lambda: PEERS[which](ort))
        ratios.append(median)
        table.add_row(name, *cells)
        Console().print(name, *cells)
    mean = statistics.geometric_mean(ratios)
    table.title = f"{device.describe()['engine']}, onnxruntime-web {version}"
    table.caption = f"milliseconds, medians of {TURNS} turns; geometric mean of the ratios {mean:.2f}"
    Console(width=110).print(table)


def _compared(
    name: str, device: EngineHardware, peer_of: Callable[[], OnnxRuntimeWeb]
) -> tuple[list[str], float, str]:
    """Return the cells of a network, the median ratio, and the version of onnxruntime-web."""
    size, classes = (32, 10) if name.startswith("cifar") else (SIZE, 1000)
    network = parts.make("model", name, NETWORKS[name]).construct(Facts((3, size, size), classes), 0)
    images = np.random.default_rng(0).standard_normal((1, 3, size, size)).astype(np.float32)
    right = network.reference(images)
    with tempfile.TemporaryDirectory() as scratch:
        folder, model = Path(scratch, "ours"), Path(scratch, "onnx")
        algorithm = parts.make("algorithm", "blocked", {})
        parts.make("compiler", "hand", {}).build(network, lambda: algorithm, device.target(), 1, folder)
        runtime = parts.make("compiler", "onnxruntime", {})
        runtime.build(network, lambda: None, parts.make("hardware", "local_cpu", {}).target(), 1, model)
        (exported,) = model.glob("*.onnx")
        with closing(device.started()) as ours, closing(peer_of()) as peer:
            module = read_module(folder)
            ours.load(module, folder / CODE, folder / PARAMETERS)
            ours.write(module.inputs[0], images)
            peer.load(exported, images)
            mine, theirs = settled(ours.run), settled(peer.run)
            errors = [
                float(np.abs(np.float32(found).ravel() - right.ravel()).max() / np.abs(right).max())
                for found in (ours.read(module.output), peer.output())
            ]
            turns = [
                [
                    engine.run(runs) / runs
                    for engine, once in ((ours, mine), (peer, theirs))
                    for runs in [max(1, round(TURN_S / once))]
                ]
                for _ in range(TURNS)
            ]
            version = peer.version
    shares = [other / own for own, other in turns]
    low, middle, high = statistics.quantiles(shares, n=4)
    times = [f"{1e3 * statistics.median(column):.2f}" for column in zip(*turns, strict=True)]
    cells = [*times, str(Ratio(middle, (high - low) / 2)), *(f"{error:.1e}" for error in errors)]
    return cells, middle, version


if __name__ == "__main__":
    typer.run(main)
