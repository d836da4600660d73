"""Costs of time and memory, worked by hand, and columns at batch sizes that were not written down."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from dlas.prediction.learning.features import FAMILIES, columns, matrix
from dlas.prediction.learning.features.costs import costs, costs_by_class
from dlas.prediction.learning.features.kernels import COLUMNS, kernel_features
from dlas.prediction.learning.features.memory_costs import memory_costs
from dlas.stack import Computation, Layer, Operator
from tests.fixtures.training_rows import operators


def conv(c: int, k: int, groups: int = 1, r: int = 3, n: int = 2, size: int = 4) -> Operator:
    sizes: Computation = {"n": n, "c": c, "h": size, "w": size, "k": k, "r": r, "s": r, "p": size, "q": size}
    return {
        "name": "conv",
        "operator": "Conv",
        **sizes,
        "groups": groups,
        "macs": n * k * c // groups * r * r * size * size,
        "inputs": [[n, c, size, size]],
        "output": [n, k, size, size],
    }


def follower(operator: str, k: int, size: int = 4) -> Operator:
    return {"name": "f", "operator": operator, "inputs": [[2, k, 4, 4]], "output": [2, k, size, size]}


def test_a_training_step_holds_what_the_backward_pass_needs() -> None:
    network = [conv(3, 8), follower("Relu", 8), follower("MaxPool", 8, size=2), conv(8, 4, size=2)]
    found = memory_costs(network)
    weights, image, first, pooled, last = 3 * 8 * 9 + 8 * 4 * 9, 2 * 3 * 16, 2 * 8 * 16, 2 * 8 * 4, 2 * 4 * 4
    # The relu works in place, and the pool keeps indices of 64 bits beside its output.
    assert found["kept"] == first + 3 * pooled + last
    assert found["weights"] == weights
    steps = [
        2 * weights + first + weights + image + first,
        2 * weights + first + 8 * 4 * 9 + first + first,
        2 * weights + first + 3 * pooled + 8 * 4 * 9 + first + pooled,
        2 * weights + first + 3 * pooled + last + 8 * 4 * 9 + pooled + last,
        3 * weights,
    ]
    assert np.max(found["step"]) == max(steps)
    assert np.max(found["copied_step"]) == max(steps[0] + image + first, steps[3] + pooled + last, *steps)
    assert np.max(found["im2col"]) == max(2 * 16 * 3 * 9, 2 * 4 * 8 * 9)


def test_activations_that_read_their_input_again_keep_it() -> None:
    plain = [conv(3, 8), follower("Relu", 8)]
    clipped = [conv(3, 8), follower("Clip", 8)]
    assert np.subtract(memory_costs(clipped)["kept"], memory_costs(plain)["kept"]) == 2 * 8 * 16


def test_narrow_convolutions_have_a_rate_of_their_own() -> None:
    dense, depthwise, linear = conv(8, 8), conv(8, 8, groups=8), operators((8,), 2)[-1]
    found = costs([dense, depthwise, linear])
    assert found["macs"] == dense["macs"] + linear["macs"]
    assert found["narrow_macs"] == depthwise["macs"]
    assert found["operators"] == 3 and found["once"] == 1


@pytest.mark.parametrize(("channels", "whole"), [(8, 8), (9, 16), (5, 8)])
def test_kernels_compute_whole_blocks_of_channels(channels: int, whole: int) -> None:
    layers = [conv(3, 8), conv(channels, channels), conv(channels, channels, groups=channels)]
    found = costs_by_class(layers)
    assert found["conv_padded_macs"] == pytest.approx(layers[1]["macs"] * (whole / channels) ** 2)
    assert found["depthwise_padded_macs"] == pytest.approx(layers[2]["macs"] * whole / channels)
    assert found["first_macs"] == layers[0]["macs"]


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_two_batch_sizes_tell_the_columns_at_any_other(family: str) -> None:
    widths = (8, 16, 12)
    known = {batch: operators(widths, batch) for batch in (1, 2)}
    for batch in (1, 7, 64):
        (told,) = matrix((family,), [known], [batch])
        (direct,) = matrix((family,), [{batch: operators(widths, batch)}], [batch])
        np.testing.assert_allclose(told, direct, rtol=1e-12)
    assert len(told) == len(columns((family,)))


@pytest.mark.parametrize(
    ("algorithm", "share"),
    [("csr_direct", 0.125), ("spatial_pack", 1.0), ("library", 1.0), ("removed_since", 1.0)],
)
def test_kernels_that_skip_zeros_have_the_multiply_adds_that_are_left(algorithm: str, share: float) -> None:
    layer = cast(Layer, {**conv(32, 64), "algorithm": algorithm, "nonzeros": 32 * 64 * 9 // 8})
    found = dict(zip(COLUMNS, kernel_features([layer])[0], strict=True))
    assert found["macs"] == found["padded_macs"] == share * layer["macs"]
    assert found["density"] == 0.125
