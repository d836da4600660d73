"""The machine's peak rate of multiply-adds in vector registers."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dlas.stack import Target

ROOT = Path(__file__).parents[1]
TERMS, ROUNDS = 2048, 16
SAMPLES = 15


def measure_peak(threads: int) -> float:
    """Return floating-point operations a second of independent multiply-adds in registers.

    Measured in a process of its own, because a runtime's threads outlive their work.
    """
    return float(run_alone("benchmarks.peak", threads))


def run_alone(module: str, threads: int) -> str:
    """Return what a module prints for a number of threads, run in a process of its own."""
    command = [sys.executable, "-m", module, str(threads)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return done.stdout


def _measure_here(threads: int) -> float:
    from dlas.bench.measuring.machine import use_threads

    use_threads(threads)
    from tvm import te

    vectors, lanes = tile()
    scale = te.placeholder((TERMS, 2), "float32", "scale")
    # Sums and first factors stay in registers; two second factors a term come from the nearest cache.
    x = te.placeholder((threads, vectors // 2, lanes), "float32", "x")
    seconds = time_sums(
        threads,
        (ROUNDS, TERMS),
        (x, scale),
        lambda thread, vector, lane, again, term: x[thread, vector // 2, lane] * scale[term, vector % 2],
    )
    return 2.0 * TERMS * ROUNDS * threads * math.prod(tile()) / seconds


def tile() -> tuple[int, int]:
    """Return how many vectors of sums a kernel keeps in registers, an even number, and a vector's lanes.

    A first factor for every two of them and two second factors have registers too.
    """
    from dlas.schedules.loops.vectors import vector_unit

    unit = vector_unit(processor(1))
    return min(unit.sums // 2, (unit.registers - 2) // 3) * 2, unit.lanes


def time_sums(
    threads: int, extents: tuple[int, int], factors: Sequence[Any], product: Callable[..., Any]
) -> float:
    """Return the seconds in which each thread adds products to one tile of sums in registers.

    Parameters
    ----------
    extents : pair of int
        How often, and of how many terms.
    factors : sequence of te.Tensor
        Tensors that are read; arrays are aligned to cache lines.
    product : callable
        Maps (thread, vector, lane, again, term) to the summand.
    """
    from tvm import s_tir, te

    again, term = (te.reduce_axis((0, extent)) for extent in extents)
    sums = te.compute(
        (threads, *tile()), lambda *at: te.sum(product(*at, again, term), axis=[again, term]), name="sums"
    )
    function = te.create_prim_func([*factors, sums]).with_attr("global_symbol", "main")
    schedule = s_tir.Schedule(function)
    block = schedule.get_sblock("sums")
    output = schedule.cache_write(block, 0, "local")
    thread, vector, lane, again_loop, term_loop = schedule.get_loops(block)
    schedule.reorder(thread, again_loop, term_loop, vector, lane)
    schedule.reverse_compute_at(output, thread)
    schedule.parallel(thread)
    schedule.unroll(vector)
    schedule.vectorize(lane)
    start = schedule.decompose_reduction(block, again_loop)
    schedule.vectorize(schedule.get_loops(start)[-1])
    schedule.unroll(schedule.get_loops(start)[-2])
    shapes = [tuple(map(int, tensor.shape)) for tensor in (*factors, sums)]
    return time_kernel(schedule.mod["main"], [np.full(shape, 0.5, np.float32) for shape in shapes], threads)


def time_kernel(function: Any, arrays: Sequence[npt.NDArray[Any]], threads: int) -> float:
    """Return the median seconds of a scheduled function, its output the last array."""
    import tvm

    target = tvm.target.Target(dict(processor(threads).description))
    run = tvm.tirx.build(function, target=target)["main"]
    arguments = [tvm.runtime.tensor(array) for array in arrays]
    run(*arguments)
    seconds = []
    for _ in range(SAMPLES):
        started = time.perf_counter()
        run(*arguments)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def processor(threads: int) -> Target:
    """Return this machine's processor as a target."""
    from tvm.target import codegen  # once the number of threads is set

    mcpu = str(codegen.llvm_get_system_cpu())
    return Target({"kind": "llvm", "mcpu": mcpu, "num-cores": threads}, threads)


if __name__ == "__main__":
    print(_measure_here(int(sys.argv[1])))
