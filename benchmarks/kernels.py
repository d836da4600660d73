"""Are the kernels that compilers tell those that run?  ``python -m benchmarks.kernels``.

A network's kernels are told before anything is built: from its operators (ONNX Runtime, PyTorch's eager mode)
or by TVM's lowering up to fusion.  Then the network is built, its layers are timed, and the two are matched.
Other compilers and networks are measured by their names: ``--compilers onnxruntime --networks resnet18``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from dlas.axes.models.torchvision import Torchvision
from dlas.networks.operators import at_batch
from dlas.schedules.spatial_pack import SpatialPack
from dlas.stack import Backend, Facts, Hardware, Layer, Network, Operator
from dlas.sweep.engine.row import merged_layers
from dlas.sweep.study import parts
from dlas.testing.kernels import KernelMatch, Key, match
from dlas.testing.networks import random_images

NETWORKS = (
    *("alexnet", "densenet161", "googlenet", "inception_v3", "mnasnet1_0", "mobilenet_v2", "resnet18"),
    *("resnet50", "shufflenet_v2_x1_0", "squeezenet1_0", "vgg16"),
)
COMPILERS = ("onnxruntime", "torch_eager", "hand")
SIDE, SIDES = 224, {"inception_v3": 299}
"""Of the images that networks are for."""
CLASSES = 1000
REPEATS = 3


def main() -> None:
    """Tell, measure and match the kernels of every network with every compiler."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--compilers", nargs="+", default=COMPILERS)
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    given = parser.parse_args()
    device: Hardware = parts.make("hardware", "local_cpu", {"threads": 1})
    device.prepare()
    print("| compiler | network | told | ran | matched, % of time | told in, ms | ran and was not told |")
    print("|---|---|---|---|---|---|---|")
    for name in given.networks:
        shape = (3, SIDES.get(name, SIDE), SIDES.get(name, SIDE))
        network = Torchvision(name).construct(Facts(shape, CLASSES), seed=0)
        operators = at_batch(network.operators(), 1)
        for compiler in given.compilers:
            part = parts.make("compiler", compiler, {})
            told, seconds = tell(part, network, operators, device)
            ran = measured(part, network, device)
            print(line(compiler, name, told, seconds, ran), flush=True)


def tell(
    compiler: Backend, network: Network, operators: list[Operator], device: Hardware
) -> tuple[list[Layer], float]:
    """Return the kernels that a compiler tells for one image, and the seconds that it takes."""
    started = time.perf_counter()
    algorithm = SpatialPack(layout="blocked")
    told = compiler.kernels(lambda: network, operators, lambda: algorithm, device.target(), 1)
    return told, time.perf_counter() - started


def measured(compiler: Backend, network: Network, device: Hardware) -> list[Layer]:
    """Return the layers of a network's program with their times, as rows have them."""
    with tempfile.TemporaryDirectory() as folder:
        target, algorithm = device.target(), SpatialPack(layout="blocked")
        build = compiler.build(network, lambda: algorithm, target, 1, Path(folder))
        program = compiler.load(Path(folder), lambda: network, target)
        return merged_layers(
            build.layers, program.layers(random_images(1, network.facts.shape), REPEATS) or []
        )


def line(compiler: str, name: str, told: list[Layer], seconds: float, ran: list[Layer]) -> str:
    """Return a line of the table."""
    found: KernelMatch = match(told, ran)
    return (
        f"| {compiler} | {name} | {len(told)} | {len(ran)} | {found.share:.2%} | {seconds * 1e3:.1f} | "
        f"{shown(found.missing)} |"
    )


def shown(missing: Counter[Key]) -> str:
    """Return the kinds of kernels that were not told, the most frequent first."""
    kinds: Counter[str] = Counter()
    for key, count in missing.items():
        kinds[str(key[0])] += count
    return ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(3))


if __name__ == "__main__":
    main()
