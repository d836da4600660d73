"""Chains of halves: which processors get them, and how much their sums err."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from dlas.lowering.kernels.convolutions import ConvolutionKernel, make_kernel
from dlas.schedules.loops.halves import LONGEST_CHAIN
from dlas.schedules.spatial_pack import SpatialPack
from dlas.stack import Conv, Target
from tests.fixtures.assembly import assembly
from tests.fixtures.convolutions import SQUARE, pruned
from tests.fixtures.targets import ARMV82, AVX512, NEON

LAYER = replace(SQUARE, input_type="float16", weight_type="float16")
HALVES, SINGLES = (re.compile(rf"\sfmla\s+v\d+\.{lanes}[, ]") for lanes in ("8h", "4s"))
STORED = 2.0**-11
"""Most that storing a number as a half changes it by, relative to the number."""


def kernel_of(target: Target, conv: Conv = LAYER, layout: str = "blocked") -> ConvolutionKernel:
    weight = pruned(conv, 0.0).astype(np.float16)
    return make_kernel(SpatialPack(layout=layout), conv, weight, "main", target=target)  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", ["blocked", "nchw"])
def test_armv8_2_multiplies_vectors_of_halves_and_rows_say_so(layout: str) -> None:
    kernel = kernel_of(ARMV82, layout=layout)
    text = assembly(kernel, ARMV82)
    assert len(HALVES.findall(text)) >= 8 and not SINGLES.search(text)
    assert kernel.requested and kernel.describe()["types"] == {
        "input": "float16",
        "weight": "float16",
        "accumulator": "float32",
        "first_sums": "float16",
        "output": "float32",
    }


def test_other_processors_and_types_add_in_float32() -> None:
    for target, conv in ((NEON, LAYER), (AVX512, LAYER), (ARMV82, SQUARE)):
        kernel = kernel_of(target, conv)
        assert type(kernel.algorithm) is SpatialPack and "first_sums" not in kernel.describe()["types"]
    few = replace(LAYER, c=3)
    assert type(kernel_of(ARMV82, few).algorithm) is SpatialPack, "a chain of three is not worth its addition"


def rounded_sums(products: np.ndarray) -> np.ndarray:
    """Return sums along the last axis, rounded to halves after each product."""
    return np.add.accumulate(products, axis=-1, dtype=np.float16)[..., -1]


def test_chains_err_as_little_as_stored_halves_and_whole_sums_too_much() -> None:
    products = np.random.default_rng(0).standard_normal((200, 4608)).astype(np.float16)
    exact = products.sum(axis=1, dtype=np.float64)
    chains = rounded_sums(products.reshape(200, -1, LONGEST_CHAIN)).sum(axis=1, dtype=np.float32)

    def error(sums: np.ndarray) -> float:
        return float(np.sqrt(np.mean((sums - exact) ** 2) / np.mean(exact**2)))

    predicted = [STORED * np.sqrt(terms / 6) for terms in (LONGEST_CHAIN, 4608)]
    assert 0.4 * predicted[0] < error(chains) < predicted[0] < 2 * STORED
    assert predicted[1] > 20 * STORED
    assert 0.4 * predicted[1] < error(rounded_sums(products).astype(np.float64)) < predicted[1]
