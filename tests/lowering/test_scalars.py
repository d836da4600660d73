"""Formulas of elementwise operators, against PyTorch in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from dlas.lowering.graph.scalars import FORMULAS
from dlas.lowering.operators.schedule import schedule_operators
from dlas.stack import Target
from tests.fixtures.elementwise import code, computed, legal
from tests.fixtures.gpu_code import check_compiles
from tests.fixtures.targets import AVX2, AVX512, CUDA, NEON, OPENCL

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relax.erf": torch.erf,
    "relax.exp": torch.exp,
    "relax.tanh": torch.tanh,
    "relax.sigmoid": torch.sigmoid,
    "relax.nn.silu": F.silu,
    "relax.nn.gelu": F.gelu,
    "relax.nn.gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
}
"""What PyTorch computes for each operator that has a formula."""
ENDS = np.array([np.nan, np.inf, -np.inf, 0, 1e-20, -1e-20, 1e30, -1e30, 88.7, -90], np.float32)


@pytest.mark.parametrize("operator", sorted(FORMULAS))
def test_formulas_are_exact_to_rounding_and_at_their_ends(operator: str) -> None:
    most = 86.8 if operator == "relax.exp" else 30.0
    x = np.concatenate([ENDS, np.linspace(-most, most, 6006, dtype=np.float32)])
    expected = FUNCTIONS[operator](torch.from_numpy(x.astype(np.float64))).numpy()
    actual = computed(operator, x)
    # Infinity times zero is NaN, in PyTorch too; its gelu of infinity in float32 depends on the processor.
    ends = FUNCTIONS[operator](torch.from_numpy(ENDS).double()).float().numpy()
    np.testing.assert_allclose(actual[: len(ENDS)], ends, rtol=1e-6, atol=1e-37)
    sums = operator in ("relax.nn.gelu", "relax.nn.gelu_tanh")  # 1 + erf x cancels where x is negative
    atol = 1e-6 if sums else 2e-38
    np.testing.assert_allclose(actual[len(ENDS) :], expected[len(ENDS) :], rtol=1e-6, atol=atol)


@pytest.mark.parametrize(
    ("target", "register"), [(AVX512, "zmm"), (AVX2, "ymm"), (NEON, ".4s")], ids=["avx512", "avx2", "neon"]
)
@pytest.mark.parametrize("operator", ["relax.nn.gelu", "relax.nn.silu"])
def test_formulas_are_vectors_without_calls(operator: str, target: Target, register: str) -> None:
    text = code(operator, target, (256,)).inspect_source("asm")
    assert register in text
    assert not any(f"{name}f" in text for name in ("exp", "tanh", "erf"))


@pytest.mark.usefixtures("nvrtc")
def test_formulas_are_right_on_gpus(opencl: Any) -> None:
    x = np.linspace(-20, 20, 512, dtype=np.float32)
    for operator in ("relax.nn.gelu", "relax.nn.silu"):
        check_compiles(schedule_operators(legal(operator, x.shape), CUDA), CUDA)
        actual = opencl.run(schedule_operators(legal(operator, x.shape), OPENCL), [x], OPENCL)
        expected = FUNCTIONS[operator](torch.from_numpy(x).double()).numpy()
        np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=5e-6)
