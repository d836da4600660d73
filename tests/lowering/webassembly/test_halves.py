"""Halves in WebAssembly are converted as numpy converts them, to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te

from dlas.bench.engines.wasmtime import Wasmtime
from dlas.lowering.webassembly.writing import write_kernel
from dlas.stack import Array
from dlas.testing.engines import loaded
from tests.fixtures.webassembly import TARGET, needs_wasmtime

pytestmark = needs_wasmtime
EVERY_HALF = np.arange(2**16, dtype=np.uint16).view(np.float16)


def converted(numbers: Array, dtype: str, folder: Path) -> Array:
    """Return numbers in another type, as a kernel of vectors converts them."""
    given = te.placeholder(numbers.shape, str(numbers.dtype), name="given")
    result = te.compute(numbers.shape, lambda i: given[i].astype(dtype), name="result")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([given, result]))
    (loop,) = schedule.get_loops(schedule.get_sblock("result"))
    schedule.vectorize(schedule.split(loop, [None, 8])[1])
    module = write_kernel(schedule.mod["main"], TARGET, folder)
    engine = loaded(module, folder, Wasmtime())
    engine.write(module.inputs[0], numbers)
    engine.run(1)
    return engine.read(module.output)


def test_every_half_is_widened(tmp_path: Path) -> None:
    widened = converted(EVERY_HALF, "float32", tmp_path)
    assert np.array_equal(widened, EVERY_HALF.astype(np.float32), equal_nan=True)


def test_numbers_are_rounded_to_the_nearest_half(tmp_path: Path) -> None:
    bits = EVERY_HALF.astype(np.float32).view(np.uint32)
    between = (bits[:, None] + np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x3000], np.uint32)).ravel()
    drawn = np.random.default_rng(0).integers(0, 2**32, 2**16, dtype=np.uint32)
    numbers = np.concatenate([between, drawn]).view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        right: Any = numbers.astype(np.float16)
    narrowed = converted(numbers, "float16", tmp_path)
    same = (narrowed.view(np.uint16) == right.view(np.uint16)) | (np.isnan(narrowed) & np.isnan(right))
    assert same.all(), f"{numbers[~same][:3]} become {narrowed[~same][:3]}, not {right[~same][:3]}"


@pytest.mark.parametrize("largest", [True, False])
def test_maxima_of_maxima_are_found(tmp_path: Path, largest: bool) -> None:
    """LLVM comes to no end with these as they stand."""
    choose = te.max if largest else te.min
    numbers = np.random.default_rng(0).standard_normal(34).astype(np.float16)
    given = te.placeholder(numbers.shape, "float16", name="given")
    result = te.compute((32,), lambda i: choose(choose(given[i], given[i + 1]), given[i + 2]), name="result")
    module = write_kernel(te.create_prim_func([given, result]), TARGET, tmp_path)
    engine = loaded(module, tmp_path, Wasmtime())
    engine.write(module.inputs[0], numbers)
    engine.run(1)
    windows = np.lib.stride_tricks.sliding_window_view(numbers, 3)
    assert np.array_equal(engine.read(module.output), windows.max(1) if largest else windows.min(1))
