"""The machine's peak rates of multiply-adds of narrow types: dot products in vector registers."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import numpy as np

from benchmarks.peak import ROUNDS, TERMS, processor, run_alone, tile, time_kernel
from dlas.stack import BFLOAT16, Conv

TYPES: dict[str, dict[str, Any]] = {
    "int8": {"input_type": "uint8", "weight_type": "int8", "accumulator_type": "int32"},
    BFLOAT16: {"input_type": BFLOAT16, "weight_type": BFLOAT16},
}
"""Types of convolutions that dot products compute, by the type of their weights."""


def measure_dot_peaks(threads: int) -> dict[str, float]:
    """Return operations a second of independent dot products, by the type of weights that has such.

    Measured in a process of its own, because a runtime's threads outlive their work.
    """
    rates: dict[str, float] = json.loads(run_alone("benchmarks.dot_peak", threads))
    return rates


def _measure_here(threads: int) -> dict[str, float]:
    from dlas.bench.measuring.machine import use_threads

    use_threads(threads)
    from dlas.schedules.loops.dot_products import dot_products

    rates = {}
    for kind, types in TYPES.items():
        dots = dot_products(Conv(kind, 1, 4, 1, 1, 16, 1, 1, **types), processor(threads))
        if dots is not None:
            rates[kind] = _rate(dots, threads)
    return rates


def _rate(dots: Any, threads: int) -> float:
    """Return operations a second of one kind of dot products."""
    # Sums and weights stay in registers; two inputs a term come from the nearest cache.
    inputs = np.ones((TERMS, 2, dots.terms), dots.read)
    weights = np.ones((threads, tile()[0] // 2, tile()[1], dots.terms), dots.weights)
    sums = np.zeros((threads, *tile()), dots.sums)
    seconds = time_kernel(_kernel(dots, threads), [inputs, weights, sums], threads)
    operations = 2.0 * TERMS * ROUNDS * threads * math.prod(tile())
    return operations * int(dots.terms) / seconds


def _kernel(dots: Any, threads: int) -> Any:
    """Return the scheduled function of (inputs, weights, sums)."""
    from tvm import s_tir, te

    from dlas.schedules.loops.dot_intrinsics import sum_dot_products
    from dlas.schedules.loops.numbers import converted

    vectors, lanes = tile()
    x = te.placeholder((TERMS, 2, dots.terms), dots.read, "x")
    weight = te.placeholder((threads, vectors // 2, lanes, dots.terms), dots.weights, "weight")
    _, term, place = axes = [te.reduce_axis((0, extent)) for extent in (ROUNDS, TERMS, dots.terms)]

    def element(thread: Any, vector: Any, lane: Any) -> Any:
        value, factor = x[term, vector % 2, place], weight[thread, vector // 2, lane, place]
        return te.sum(converted(value, dots.sums) * converted(factor, dots.sums), axis=axes)

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
    print(json.dumps(_measure_here(int(sys.argv[1]))))
