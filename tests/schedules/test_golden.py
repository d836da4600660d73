"""What each algorithm's kernels look like, so that a change of a schedule shows as a diff.

``pytest tests/schedules/test_golden.py --update-golden`` writes the files anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dlas.lowering.kernels.convolutions import make_kernel
from dlas.lowering.kernels.kernel import schedule_kernel
from dlas.lowering.kernels.tail import ConvolutionTail, EpilogueStep
from dlas.stack import Conv, Target
from dlas.sweep.study import parts

GOLDEN = Path(__file__).parent / "golden"
TARGET = Target({"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 4}, threads=4)
BIAS_AND_RELU = (
    EpilogueStep("relax.add", (("value", 0), ("operand", 0))),
    EpilogueStep("relax.nn.relu", (("value", 1),)),
)
CONVOLUTIONS = {
    "padded": Conv("padded", 1, 16, 14, 14, 32, 3, 3, padding=(1, 1, 1, 1)),
    "depthwise": Conv("depthwise", 2, 8, 9, 9, 8, 3, 3, strides=(2, 2), padding=(1, 1, 1, 1), groups=8),
}


def computes(name: str) -> bool:
    """Whether an algorithm has kernels of its own, and is not one that only chooses among others."""
    part = parts.make("algorithm", name, {})
    return all(part.for_layer(conv, TARGET) is part for conv in CONVOLUTIONS.values())


ALGORITHMS = list(filter(computes, parts.names("algorithm")))


@pytest.mark.parametrize("convolution", CONVOLUTIONS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_kernel_is_the_golden_one(algorithm: str, convolution: str, update_golden: bool) -> None:
    conv = CONVOLUTIONS[convolution]
    part = parts.make("algorithm", algorithm, {})
    reason = part.supports(conv)
    if reason is not None:
        script = f"# declined: {reason}\n"
    else:
        weight = np.ones((conv.k, conv.c // conv.groups, conv.r, conv.s), np.float32)
        weight[-1, -1, -1, -1] = 0  # algorithms for sparse weights leave others to dense ones
        bias = np.ones((1, conv.k, 1, 1), np.float32)
        tail = ConvolutionTail(BIAS_AND_RELU, [bias])
        kernel = make_kernel(part, conv, weight, convolution, tail, TARGET)
        script = schedule_kernel(kernel, TARGET).script() + "\n"
    path = GOLDEN / f"{algorithm}.{convolution}.txt"
    if update_golden:
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(script)
    assert path.exists(), f"{path.name} is missing: run pytest --update-golden and read what it writes"
    assert script == path.read_text()


def test_no_golden_file_is_left_over() -> None:
    wanted = {f"{algorithm}.{name}.txt" for algorithm in ALGORITHMS for name in CONVOLUTIONS}
    assert {path.name for path in GOLDEN.iterdir()} == wanted
