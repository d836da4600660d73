"""Our modules beside onnxruntime-web in the same version of V8, one thread of Node each, in turns.

    npm install --prefix FOLDER onnxruntime-web
    python -m benchmarks.webassembly FOLDER/node_modules/onnxruntime-web/dist [--networks mobilenet_v2]

Outputs of both are compared with torch's.  Both have SIMD; ours without relaxed SIMD, unless `--relaxed`.
"""

from __future__ import annotations

import base64
import json
import statistics
import tempfile
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
from dlas.bench.engines.javascript import value_of
from dlas.bench.engines.node import NodeJs
from dlas.bench.engines.process import PipedProgram
from dlas.lowering.webassembly.writing import CODE, PARAMETERS, read_module
from dlas.stack import Facts
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
    """A model in onnxruntime-web.

    Parameters
    ----------
    folder : Path
        Its package's folder ``dist``.
    """

    def __init__(self, folder: Path) -> None:
        self._program = PipedProgram([node.NODE, str(SCRIPT), str(folder.resolve())], b"\n")

    def ask(self, name: str, **given: Any) -> Any:
        """Return the answer to a message."""
        self._program.send(json.dumps({"name": name, **given}).encode())
        return value_of(json.loads(self._program.receive()))

    def load(self, model: Path, images: np.ndarray) -> None:
        """Load a model, and give it its images."""
        data = base64.b64encode(images.tobytes()).decode()
        self.ask("load", model=str(model), shape=list(images.shape), data=data)

    def run(self, runs: int) -> float:
        """Return the seconds of so many inferences."""
        return float(self.ask("run", runs=runs))

    def close(self) -> None:
        """End it."""
        self._program.close()


def main(
    ort: Annotated[Path, typer.Argument(help="The folder dist of the npm package onnxruntime-web.")],
    networks: Annotated[str | None, typer.Option(help="Some of the networks, with commas.")] = None,
    relaxed: Annotated[bool, typer.Option("--relaxed", help="Ours with relaxed SIMD.")] = False,
) -> None:
    """Print a table of times and ratios."""
    names = chosen(networks, NETWORKS, "network") if networks else list(NETWORKS)
    table = Table("network", "ours", "onnxruntime-web", "its time over ours", "error", "its error")
    ratios, version = [], ""
    for name in names:
        cells, median, version = _compared(name, ort, relaxed)
        ratios.append(median)
        table.add_row(name, *cells)
        Console().print(name, *cells)
    mean = statistics.geometric_mean(ratios)
    table.title = f"Node {node.versions()['node']}, V8 {node.versions()['v8']}, onnxruntime-web {version}"
    table.caption = f"milliseconds, medians of {TURNS} turns; geometric mean of the ratios {mean:.2f}"
    Console(width=110).print(table)


def _compared(name: str, ort: Path, relaxed: bool) -> tuple[list[str], float, str]:
    """Return the cells of a network, the median ratio, and the version of onnxruntime-web."""
    size, classes = (32, 10) if name.startswith("cifar") else (SIZE, 1000)
    network = parts.make("model", name, NETWORKS[name]).construct(Facts((3, size, size), classes), 0)
    images = np.random.default_rng(0).standard_normal((1, 3, size, size)).astype(np.float32)
    right = network.reference(images)
    device = parts.make("hardware", "node", {"relaxed_simd": relaxed})
    with tempfile.TemporaryDirectory() as scratch:
        folder, model = Path(scratch, "ours"), Path(scratch, "onnx")
        algorithm = parts.make("algorithm", "blocked", {})
        parts.make("compiler", "hand", {}).build(network, lambda: algorithm, device.target(), 1, folder)
        runtime = parts.make("compiler", "onnxruntime", {})
        runtime.build(network, lambda: None, parts.make("hardware", "local_cpu", {}).target(), 1, model)
        (exported,) = model.glob("*.onnx")
        ours, peer = NodeJs(relaxed), OnnxRuntimeWeb(ort)
        try:
            module = read_module(folder)
            ours.load(module, folder / CODE, folder / PARAMETERS)
            ours.write(module.inputs[0], images)
            peer.load(exported, images)
            mine, theirs = settled(ours.run), settled(peer.run)
            errors = [
                float(np.abs(np.float32(found).ravel() - right.ravel()).max() / np.abs(right).max())
                for found in (ours.read(module.output), peer.ask("output"))
            ]
            turns = []
            for _ in range(TURNS):
                pair = [
                    engine.run(runs) / runs
                    for engine, once in ((ours, mine), (peer, theirs))
                    for runs in [max(1, round(TURN_S / once))]
                ]
                turns.append(pair)
            version = str(peer.ask("version"))
        finally:
            ours.close()
            peer.close()
    shares = [other / own for own, other in turns]
    low, middle, high = statistics.quantiles(shares, n=4)
    times = [f"{1e3 * statistics.median(column):.2f}" for column in zip(*turns, strict=True)]
    cells = [*times, str(Ratio(middle, (high - low) / 2)), *(f"{error:.1e}" for error in errors)]
    return cells, middle, version


if __name__ == "__main__":
    typer.run(main)
