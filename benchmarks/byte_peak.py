"""The machine's peak rate of multiply-adds of bytes: dot products in vector registers."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from benchmarks.peak import ROUNDS, TERMS, processor, run_alone, tile, time_kernel
from dlas.stack import Conv

BYTES = Conv("bytes", 1, 4, 1, 1, 16, 1, 1, input_type="uint8", weight_type="int8", accumulator_type="int32")


def measure_byte_peak(threads: int) -> float:
    """Return operations a second of independent dot products of bytes; NaN where there are none.

    Measured in a process of its own, because a runtime's threads outlive their work.
    """
    return float(run_alone("benchmarks.byte_peak", threads))


def _measure_here(threads: int) -> float:
    from dlas.measuring.machine import use_threads

    use_threads(threads)
    from dlas.schedules.loops.dot_products import dot_products

    dots = dot_products(BYTES, processor(threads))
    if dots is None:
        return math.nan
    # Sums and weights stay in registers; two inputs a term come from the nearest cache.
    inputs = np.ones((TERMS, 2, dots.terms), dots.read)
    weights = np.ones((threads, tile()[0] // 2, tile()[1], dots.terms), np.int8)
    sums = np.zeros((threads, *tile()), np.int32)
    seconds = time_kernel(_kernel(dots, threads), [inputs, weights, sums], threads)
    return 2.0 * TERMS * ROUNDS * dots.terms * threads * math.prod(tile()) / seconds


def _kernel(dots: Any, threads: int) -> Any:
    """Return the scheduled function of (inputs, weights, sums)."""
    from tvm import s_tir, te

    from dlas.schedules.loops.dot_intrinsics import sum_dot_products

    vectors, lanes = tile()
    x = te.placeholder((TERMS, 2, dots.terms), dots.read, "x")
    weight = te.placeholder((threads, vectors // 2, lanes, dots.terms), "int8", "weight")
    _, term, byte = axes = [te.reduce_axis((0, extent)) for extent in (ROUNDS, TERMS, dots.terms)]

    def element(thread: Any, vector: Any, lane: Any) -> Any:
        value, factor = x[term, vector % 2, byte], weight[thread, vector // 2, lane, byte]
        return te.sum(value.astype("int32") * factor.astype("int32"), axis=axes)

    sums = te.compute((threads, vectors, lanes), element, name="sums")
    output = te.compute(sums.shape, lambda *at: sums(*at), name="output")
    function = te.create_prim_func([x, weight, output]).with_attr("global_symbol", "main")
    schedule = s_tir.Schedule(function)
    block, written = schedule.get_sblock("sums"), schedule.get_sblock("output")
    thread = schedule.get_loops(written)[0]
    schedule.compute_at(block, thread, preserve_unit_loops=True)
    schedule.set_scope(block, 0, "local")
    schedule.parallel(thread)
    sum_dot_products(schedule, block, 1, dots, processor(threads))
    schedule.vectorize(schedule.get_loops(written)[-1])
    return schedule.mod["main"]


if __name__ == "__main__":
    print(_measure_here(int(sys.argv[1])))
