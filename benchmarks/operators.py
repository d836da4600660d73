"""Do the times of a network's layers add up to its latency? ``python -m benchmarks.operators``.

In each round the whole network is timed, then its layers, then the network again, so that a machine that
changes speed affects both alike.  The ratio is that of the layers' sum to the network's median,
before :mod:`dlas.sweep.rows.layer_times` corrects what rows hold.  On a machine with other work to do the
ratio is too small: a short operator is seldom interrupted, the network nearly always.

Other compilers are measured by their names: ``--compilers torch_eager onnxruntime``.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlas.axes.models.torchvision import Torchvision
from dlas.schedules.spatial_pack import SpatialPack
from dlas.stack import Backend, Facts, Hardware, Images, Layer, Network, Program
from dlas.sweep.study import parts
from dlas.testing.networks import random_images

NETWORKS = ("resnet18", "mobilenet_v2", "googlenet")
SHAPE, CLASSES = (3, 224, 224), 1000
RUNS = 10
"""Runs of the whole network before and after its layers."""
SHOWN = 4
"""Kinds of operators that are printed, those that take most time."""


@dataclass(frozen=True)
class Round:
    """One round: the network's median latency in seconds, and its layers."""

    latency_s: float
    layers: Sequence[Layer]

    @property
    def ratio(self) -> float:
        """Sum of the layers over the network's latency."""
        return sum(layer["latency_s"] or 0.0 for layer in self.layers) / self.latency_s


def main() -> None:
    """Measure every network with every compiler, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--compilers", nargs="+", default=["torch_eager"])
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    device: Hardware = parts.make("hardware", "local_cpu", {"threads": 1})
    device.prepare()
    print("| compiler | network | layers | network, ms | sum / network | lowest to highest | most time |")
    print("|---|---|---|---|---|---|---|")
    for compiler in given.compilers:
        for name in given.networks:
            network = Torchvision(name).construct(Facts(SHAPE, CLASSES), seed=0)
            with tempfile.TemporaryDirectory() as folder:
                program, operators = built(
                    parts.make("compiler", compiler, {}), network, device, Path(folder)
                )
                found = rounds(program, random_images(1, SHAPE), given.rounds)
                print(line(compiler, name, found, operators), flush=True)


def built(
    compiler: Backend, network: Network, device: Hardware, folder: Path
) -> tuple[Program, Mapping[str, str]]:
    """Return a network's program for one image, and the operators of its layers as far as the build tells."""
    build = compiler.build(network, lambda: SpatialPack(layout="blocked"), device.target(), 1, folder)
    operators = {layer["name"]: layer.get("operator") or "unknown" for layer in build.layers}
    return compiler.load(folder, lambda: network, device.target()), operators


def rounds(program: Program, images: Images, count: int) -> list[Round]:
    """Return so many rounds; a first one, which warms up, is left out."""
    run = program.bind(images)
    found = []
    for _ in range(count + 1):
        before, layers, after = timed(run), program.layers(images, RUNS), timed(run)
        found.append(Round(statistics.median(before + after), layers or []))
    return found[1:]


def timed(run: Callable[[], object]) -> list[float]:
    """Return the seconds of each of :data:`RUNS` runs."""
    seconds = []
    for _ in range(RUNS):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return seconds


def line(compiler: str, name: str, found: Sequence[Round], operators: Mapping[str, str]) -> str:
    """Return a line of the table."""
    ratios = sorted(each.ratio for each in found)
    latency_s = statistics.median(each.latency_s for each in found)
    shares: defaultdict[str, float] = defaultdict(float)
    for layer in found[0].layers:
        kind = layer.get("operator") or operators.get(layer["name"], "unknown")
        shares[kind] += (layer["latency_s"] or 0.0) / found[0].latency_s
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    most = ", ".join(f"{kind} {share:.0%}" for kind, share in ranked[:SHOWN])
    return (
        f"| {compiler} | {name} | {len(found[0].layers)} | {latency_s * 1e3:.2f} | "
        f"{statistics.median(ratios):.3f} | {ratios[0]:.3f} to {ratios[-1]:.3f} | {most} |"
    )


if __name__ == "__main__":
    main()
