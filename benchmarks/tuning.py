"""Cost and results of searches: the algorithm's own space against TVM's default rules.

Three layers of ResNet-18 as spatial pack computes them.  Trials a second include
the start of the workers.  The selected schedules are then timed in turns, so that
changes of the machine's speed cancel out; the machine should be otherwise idle.

    python -m benchmarks.tuning [--smoke]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from dlas.bench.processes.workers import WorkerPool
from dlas.face.console import terminal
from dlas.lowering.kernels.convolutions import ConvolutionKernel, make_kernel
from dlas.lowering.kernels.tail import ConvolutionTail, EpilogueStep
from dlas.lowering.tuning.local_runner import LocalRunner
from dlas.lowering.tuning.tuner import SearchSettings, TuningResult, tune
from dlas.stack import Bench, Conv, Hardware, Workspace
from dlas.sweep.study import parts

SAME = (1, 1, 1, 1)
LAYERS = (
    Conv("64x56x56, 3x3", 1, 64, 56, 56, 64, 3, 3, padding=SAME),
    Conv("128x28x28, 3x3 / 2", 1, 64, 56, 56, 128, 3, 3, strides=(2, 2), padding=SAME),
    Conv("256x14x14, 3x3", 1, 256, 14, 14, 256, 3, 3, padding=SAME),
)
BIAS_AND_RELU = (
    EpilogueStep("relax.add", (("value", 0), ("operand", 0))),
    EpilogueStep("relax.nn.relu", (("value", 1),)),
)
FULL = {"own": 32, "rules": 256, "seeds": 5, "rounds": 15}
SMOKE = {"own": 3, "rules": 2, "seeds": 2, "rounds": 3}
LIMIT_S = 120.0
COLUMNS = (
    "layer",
    "own: trials a second",
    "rules: trials a second",
    "own / rules",
    "own / best guess",
    "own / minimal",
    "spread over seeds",
)


def main(size: dict[str, int]) -> None:
    """Print cost and results of both spaces for each layer; ``size`` holds trials and repetitions."""
    hardware: Hardware = parts.make("hardware", "local_cpu", {})
    table = Table(*COLUMNS, box=None)
    for conv in LAYERS:
        kernel = _kernel(conv)
        seeds = range(size["seeds"])
        runs = [_tuned(kernel, hardware, "algorithm", size["own"], seed) for seed in seeds]
        own, own_rate = zip(*runs, strict=True)
        rules, rules_rate = _tuned(kernel, hardware, "rules", size["rules"], 0)
        guess = {"decisions": own[0].records.candidates[0]["decisions"]}
        candidates = [guess, {"trace": rules.trace}, *({"trace": result.trace} for result in own)]
        seconds = _timed_in_turns(own[0], hardware, candidates, size["rounds"])
        best_guess, of_rules, *of_own = seconds
        median = statistics.median(of_own)
        baseline = own[0].records.baseline
        assert baseline is not None
        table.add_row(
            conv.name,
            f"{statistics.median(own_rate):.2f}",
            f"{rules_rate:.2f}",
            f"{of_rules / median:.2f}",
            f"{best_guess / median:.2f}",
            f"{min(baseline.run_s) / median:.1f}",
            f"{max(of_own) / min(of_own) - 1:.1%} of {len(of_own)}",
        )
    trials = f"{size['own']} trials in the own space, {size['rules']} with the rules"
    terminal.console().print(
        f"{trials}; speeds are relative: above 1 the own space's schedule is faster", table, sep="\n"
    )


def _kernel(conv: Conv) -> ConvolutionKernel:
    draw = np.random.default_rng(0)
    weight = draw.standard_normal((conv.k, conv.c, conv.r, conv.s)).astype(np.float32)
    bias = np.ones((conv.k, 1, 1), np.float32)
    algorithm = parts.make("algorithm", "spatial_pack", {"layout": "blocked"})
    return make_kernel(algorithm, conv, weight, "layer", ConvolutionTail(BIAS_AND_RELU, [bias]))


def _tuned(
    kernel: ConvolutionKernel, hardware: Hardware, space: Any, trials: int, seed: int
) -> tuple[TuningResult, float]:
    """Return the result of a search without records, and its trials a second."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(hardware, Path(folder) / "records", Workspace(seed, Path(folder), lambda _: None))
        start = time.monotonic()
        (result,) = tune([kernel], SearchSettings(space, trials, seed=seed), bench)
        return result, result.count / (time.monotonic() - start)


def _timed_in_turns(
    tuned: TuningResult, hardware: Hardware, candidates: Sequence[dict[str, Any]], rounds: int
) -> list[float]:
    """Return the median seconds of each candidate, timed in turns in one process."""
    workload = tuned.task.workload
    samples: list[list[float]] = [[] for _ in candidates]
    with (
        tempfile.TemporaryDirectory() as folder,
        WorkerPool(1, lambda: LocalRunner([workload], hardware, Path(folder)).handlers()) as pool,
    ):
        pool.call(0, LIMIT_S, do="reference", workload=0)
        for number, candidate in enumerate(candidates):
            pool.call(0, LIMIT_S, do="build", workload=0, candidate=candidate, number=number)
        for _ in range(rounds):
            for number, seconds in enumerate(samples):
                seconds += pool.call(0, LIMIT_S, do="sample", workload=0, number=number)["run_s"]
    return [statistics.median(seconds) for seconds in samples]


if __name__ == "__main__":
    smoke = sys.argv[1:] == ["--smoke"]
    if sys.argv[1:] and not smoke:
        sys.exit(__doc__)
    main(SMOKE if smoke else FULL)
