"""Tables of the DLAS paper as rows, for tests of what reads rows.

The winner tables name who is fastest, not by how much.  The rows made from them
have times that put every point in an order which agrees with all winners of a
line; the times themselves mean nothing.

References
----------
Gibson et al., DLAS: An Exploration and Assessment of the Deep Learning
Acceleration Stack, Tables 2 to 6.
"""

from __future__ import annotations

import graphlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dlas.rows.results import Row
from tests.rows import failing, row

ALGORITHMS = {"G": "gemm", "D": "direct", "S": "spatial_pack"}
COMPRESSIONS = {"N": "none", "W": "weight_pruning", "C": "channel_pruning", "8": "int8", "6": "float16"}
ORDER = "NWC86"
"""The columns of the left half: dense, weight pruning, channel pruning, int8, float16."""
BITS = {"int8": 8, "float16": 16}
TUNED = {"name": "metaschedule", "trials": 20_000}

# Platform, tuned or not; then a line a model: fastest algorithm for each of ORDER, fastest compression
# for GEMM, direct and spatial pack, and the fastest of all.
CIFAR_CPU = """
hikey_970_cpu untuned
mobilenet_v2  GGGGD WWW WG
resnet18      GGGDD W8N WG
vgg16         GGGDD W8N 8D
mobilenet_v1  GGGDD W88 WG
intel_i7_8700 untuned
mobilenet_v2  DGGGG W8W WG
resnet18      DGGGD 88N 8G
vgg16         DGGGD 88N 8G
mobilenet_v1  DGGGG 88N 8G
hikey_970_cpu tuned
mobilenet_v2  SDDDD NWN WD
resnet18      SDDDS NWN WD
vgg16         DDDDS NWN WD
mobilenet_v1  SDDGS NWN WD
intel_i7_8700 tuned
mobilenet_v2  SDDGS NWN NS
resnet18      SDDDS NWN WD
vgg16         SDDGD 8WN WD
mobilenet_v1  SDDDD NWN WD
"""
CIFAR_GPU = """
hikey_970_gpu untuned
mobilenet_v2  GSSGD 66W 6D
resnet18      SSSDG 68C 8D
vgg16         SSSGG 88C CS
mobilenet_v1  GSSDD N8W 8D
agx_xavier_gpu untuned
mobilenet_v2  DDDDD 888 8D
resnet18      DSSDD 888 8D
vgg16         DSDDD 888 8D
mobilenet_v1  DDDDD 888 8D
hikey_970_gpu tuned
mobilenet_v2  D--DG 6N6 6G
resnet18      D--SD 866 6D
vgg16         G--DS N86 8D
mobilenet_v1  D--SD 888 8S
agx_xavier_gpu tuned
mobilenet_v2  D--DD 888 8D
resnet18      D--DD 888 8D
vgg16         D--DD 888 8D
mobilenet_v1  D--DD 888 8D
"""
IMAGENET = """
hikey_970_cpu untuned
mobilenet_v2    GGGGD W8N WG
resnet50        GGGGG W88 WG
densenet161     GGG-G WWN WG
efficientnet_b0 GGGGD W8N WG
intel_i7_8700 untuned
mobilenet_v2    DGGGG 88N 8G
resnet50        GGGGG W8N WG
densenet161     GGG-G WNN WG
efficientnet_b0 DGGGG WNN WG
intel_i7_8700 tuned
mobilenet_v2    SDDDS NNN NS
resnet50        SDDGS NNN NS
densenet161     SDD-S NWN WD
efficientnet_b0 SDDGS NNN NS
hikey_970_gpu untuned
mobilenet_v2    GSDDG 688 6G
resnet50        DSSDD W8W WS
densenet161     DSS-G WWW WS
efficientnet_b0 GSSDG 688 8D
agx_xavier_gpu untuned
mobilenet_v2    DSSDD 666 6D
resnet50        SSSDD 888 8D
densenet161     SSS-D W6W WS
efficientnet_b0 DSSDD 666 6D
"""

# Parameters and multiply-adds in millions; accuracy in percent, dense, then with the ratio in percent under
# weight pruning and channel pruning, then in float16 and int8.
NETWORKS = {
    "cifar10": {
        "mobilenet_v2": (2.3, 98, 93.2, (92.7, 95), (89.3, 50), 93.2, 91.7),
        "resnet18": (11.2, 557, 94.3, (94.7, 95), (89.0, 80), 94.3, 93.2),
        "vgg16": (14.7, 314, 92.9, (93.1, 95), (85.7, 80), 92.9, 92.0),
        "mobilenet_v1": (3.2, 48, 91.3, (90.9, 95), (86.9, 50), 91.3, 89.6),
    },
    "imagenet": {
        "mobilenet_v2": (3.5, 327, 71.9, (58.4, 80), (49.9, 50), 71.9, 65.3),
        "resnet50": (25.6, 4100, 76.1, (67.3, 95), (46.6, 80), 76.1, 73.1),
        "densenet161": (27.7, 7800, 77.1, (74.3, 95), (62.7, 80), 77.1, 75.2),
        "efficientnet_b0": (5.3, 415, 77.7, (65.3, 80), (54.9, 50), 77.6, 0.4),
    },
}
"""Tables 2 and 5."""


@dataclass(frozen=True)
class Case:
    """One line of a winner table."""

    dataset: str
    hardware: str
    tuned: bool
    model: str
    algorithms: str
    compressions: str
    overall: str

    @property
    def compiler(self) -> str:
        """The label of the compiler."""
        return f"metaschedule(trials={TUNED['trials']})" if self.tuned else "untuned"

    def order(self) -> list[tuple[str, str]]:
        """Return (compression, algorithm) from the fastest to the slowest, as far as the table tells."""
        sorter: graphlib.TopologicalSorter[tuple[str, str]] = graphlib.TopologicalSorter()
        there = [compression for compression, best in zip(ORDER, self.algorithms, strict=True) if best != "-"]
        points = [(compression, algorithm) for compression in there for algorithm in ALGORITHMS]
        for point in points:
            best = dict(zip(ORDER, self.algorithms, strict=True))[point[0]]
            least = dict(zip(ALGORITHMS, self.compressions, strict=True))[point[1]]
            before = {(point[0], best), (least, point[1]), (self.overall[0], self.overall[1])} - {point}
            sorter.add(point, *before)
        return list(sorter.static_order())


def cases(table: str, dataset: str) -> Iterator[Case]:
    """Yield the lines of a winner table."""
    hardware, tuned = "", False
    for line in table.strip().splitlines():
        words = line.split()
        if len(words) == 2:
            hardware, tuned = words[0], words[1] == "tuned"
        else:
            yield Case(dataset, hardware, tuned, *words)


def winner_rows(case: Case) -> list[Row]:
    """Return a row for each point of a line of a winner table."""
    return [
        row(
            1.3**place,
            spread=0.001,
            dataset=case.dataset,
            model=case.model,
            hardware=case.hardware,
            device={},
            compression=COMPRESSIONS[compression],
            algorithm=spelt(compression, algorithm),
            compiler=TUNED if case.tuned else "untuned",
            **network(case.dataset, case.model, COMPRESSIONS[compression]),
        )
        for place, (compression, algorithm) in enumerate(case.order())
    ]


def spelt(compression: str, algorithm: str) -> str:
    """Return the name of an algorithm: pruned networks take its version on compressed rows."""
    return f"csr_{ALGORITHMS[algorithm]}" if compression in "WC" else ALGORITHMS[algorithm]


def network(dataset: str, model: str, compression: str) -> dict[str, Any]:
    """Return what Tables 2 and 5 say of a network, in the units of a row."""
    parameters, macs, dense, weights, channels, half, integer = NETWORKS[dataset][model]
    accuracy = {
        "none": dense, "weight_pruning": weights[0], "channel_pruning": channels[0], "float16": half,
        "int8": integer,
    }[compression]  # fmt: skip
    reached: dict[str, float] = {}
    if compression in BITS:
        reached = {"bits": BITS[compression]}
    elif compression != "none":
        reached = {"ratio": (weights if compression == "weight_pruning" else channels)[1] / 100}
    return {
        "accuracy": accuracy / 100, "parameters": round(parameters * 1e6), "macs": round(macs * 1e6),
        "reached": reached, "expected_speedup": None,
    }  # fmt: skip


def network_rows(dataset: str) -> list[Row]:
    """Return a row without a time for each network of Tables 2 and 5."""
    return [
        failing(
            "unsupported", dataset=dataset, model=model, compression=compression, hardware="hikey_970_cpu",
            **network(dataset, model, compression),
        )
        for model in NETWORKS[dataset]
        for compression in COMPRESSIONS.values()
    ]  # fmt: skip
