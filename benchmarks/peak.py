"""The most multiply-adds that this machine's vectors do: what the fractions in tables are fractions of."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

TERMS, ROUNDS = 2048, 16
SAMPLES = 15


def measure_peak(threads: int) -> float:
    """Return floating-point operations a second of independent multiply-adds in registers.

    Measured in a process of its own, because a runtime's threads outlive their work.
    """
    command = [sys.executable, __file__, str(threads)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _measure_here(threads: int) -> float:
    from dlas.machine import use_threads

    use_threads(threads)
    import numpy as np
    import tvm
    from tvm import s_tir, te
    from tvm.target import codegen

    from dlas.schedules._registers import vector_unit
    from dlas.stack import Target

    description = {"kind": "llvm", "mcpu": str(codegen.llvm_get_system_cpu()), "num-cores": threads}
    unit = vector_unit(Target(description, threads))
    vectors = unit.registers // 2 - 2
    # Sums and first factors stay in registers; one second factor a term comes from the nearest cache.
    x = te.placeholder((threads, vectors, unit.lanes), "float32", "x")
    scale = te.placeholder((TERMS,), "float32", "scale")
    again, term = te.reduce_axis((0, ROUNDS), "again"), te.reduce_axis((0, TERMS), "term")
    sums = te.compute(
        x.shape,
        lambda thread, vector, lane: te.sum(x[thread, vector, lane] * scale[term], axis=[again, term]),
        name="sums",
    )
    schedule = s_tir.Schedule(te.create_prim_func([x, scale, sums]).with_attr("global_symbol", "main"))
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
    run = tvm.tirx.build(schedule.mod["main"], target=tvm.target.Target(description))["main"]
    arguments = [
        tvm.runtime.tensor(array)
        for array in (
            np.full((threads, vectors, unit.lanes), 0.5, np.float32),
            np.full(TERMS, 0.5, np.float32),
            np.zeros((threads, vectors, unit.lanes), np.float32),
        )
    ]
    run(*arguments)
    seconds = []
    for _ in range(SAMPLES):
        start_s = time.perf_counter()
        run(*arguments)
        seconds.append(time.perf_counter() - start_s)
    return 2.0 * TERMS * ROUNDS * threads * vectors * unit.lanes / statistics.median(seconds)


if __name__ == "__main__":
    print(_measure_here(int(sys.argv[1])))
