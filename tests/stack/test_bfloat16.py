"""bfloat16 in arrays: how numbers are rounded, at the edges too."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from dlas.stack import BFLOAT16_BITS, BFLOAT16_STEP, from_bfloat16, stored_type, to_bfloat16
from tests.fixtures.rounding import ROUNDED


@pytest.mark.parametrize(("single", "half"), ROUNDED.items(), ids=[f"{bits:08x}" for bits in ROUNDED])
def test_the_nearest_number_is_taken_the_even_one_of_two(single: int, half: int) -> None:
    given = np.array([single], np.uint32).view(np.float32)
    found = to_bfloat16(given)
    assert found.dtype == BFLOAT16_BITS and int(found[0]) == half
    assert np.isnan(from_bfloat16(found)[0]) == np.isnan(given[0])


def test_all_numbers_are_rounded_as_by_an_independent_library() -> None:
    draw = np.random.default_rng(0)
    given = draw.integers(0, 2**32, 100_000, np.uint32).view(np.float32)
    given = given[~np.isnan(given)]
    expected = given.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(to_bfloat16(given), expected.view(np.uint16))
    np.testing.assert_array_equal(from_bfloat16(to_bfloat16(given)), expected.astype(np.float32))


def test_numbers_in_bfloat16_stay_as_they_are_in_arrays_of_any_order() -> None:
    every = np.arange(2**16, dtype=np.uint16).reshape(256, 256)
    numbers = ~np.isnan(from_bfloat16(every))
    for bits in (every, every.T, every[::2, ::-3], every[0, 0]):
        assert from_bfloat16(bits).shape == bits.shape == to_bfloat16(from_bfloat16(bits)).shape
    np.testing.assert_array_equal(to_bfloat16(from_bfloat16(every))[numbers], every[numbers])
    assert from_bfloat16(to_bfloat16(np.ones((), np.float32)) + np.uint16(1)) == 1 + BFLOAT16_STEP


def test_only_bfloat16_is_stored_in_another_type() -> None:
    assert stored_type("bfloat16") == BFLOAT16_BITS
    assert [stored_type(name) for name in ("float16", "float32", "int8")] == ["float16", "float32", "int8"]
