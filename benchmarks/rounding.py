"""How far is PyTorch's own float32 from float64, in networks?  ``python -m benchmarks.rounding``.

An error of a build cannot be expected to be smaller, as long as PyTorch says what is right.
"""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

import numpy as np
import torch

from dlas.networks.torch.network import TorchNetwork
from dlas.stack import Workspace
from dlas.sweep.study import parts

NETWORKS = {
    32: ("cifar_resnet18", "cifar_mobilenet_v1", "cifar_mobilenet_v2", "cifar_vgg16"),
    96: ("squeezenet1_1", "shufflenet_v2_x1_0", "mnasnet1_0"),
    224: ("mobilenet_v2", "efficientnet_b0", "resnet18"),
}
"""The networks of ``experiments/devices``, by the size of their images; untrained."""
IMAGES = 8


def main() -> None:
    """Print a line for each network."""
    print("| network | size | off by, millionths of the largest output |\n|---|---|---|")
    for size, names in NETWORKS.items():
        for name in names:
            print(f"| {name} | {size} | {1e6 * off_by(name, size):.1f} |", flush=True)


def off_by(name: str, size: int) -> float:
    """Return the largest difference of outputs in float32 from those in float64, by the largest output."""
    data = parts.make("dataset", "random", {"size": size, "images": IMAGES}).load()
    with tempfile.TemporaryDirectory() as folder:
        network = parts.make("model", name, {"recipe": "none"}).build(data, Workspace(0, Path(folder), print))
    assert isinstance(network, TorchNetwork)
    images, _ = data.test[range(IMAGES)]
    with torch.inference_mode():
        right = copy.deepcopy(network.module).double()(torch.from_numpy(images).double()).numpy()
    return float(np.abs(network.reference(images) - right).max() / np.abs(right).max())


if __name__ == "__main__":
    main()
