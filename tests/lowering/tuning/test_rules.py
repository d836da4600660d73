"""TVM's default rules, searched with our own workers and records."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlas.bench.processes.workers import Reply, WorkerPool
from dlas.lowering.tuning import rules
from dlas.lowering.tuning.rules import Evolution, without_intrinsics
from dlas.lowering.tuning.search import NoSchedule
from dlas.lowering.tuning.tuner import SearchSettings, tune
from dlas.lowering.tuning.workload import Workload, short_form
from dlas.stack import Conv, Hardware
from dlas.sweep.study import parts
from tests.fixtures.tiled import CONV, Tiled, bench, kernel, tune_one

FOUR = SearchSettings("rules", trials=4, per_round=2)


@pytest.fixture
def cpu() -> Hardware:
    device: Hardware = parts.make("hardware", "local_cpu", {"threads": 1})
    return device


def test_rules_are_searched_and_the_search_goes_on_in_another_process(tmp_path: Path, cpu: Hardware) -> None:
    short = tune_one(tmp_path, cpu, Tiled(), replace(FOUR, trials=1))
    assert (short.count, short.records.rounds) == (1, [2])
    long = tune_one(tmp_path, cpu, Tiled(), FOUR)
    assert (long.count, long.records.rounds) == (4, [2, 2])
    assert long.records.trials[0] == short.records.trials[0]
    assert len({str(candidate) for candidate in long.records.candidates}) == 4
    assert long.records.valid
    summary = long.summary()
    assert summary["space"] == "rules"
    assert str(summary["decisions"]).startswith("tile ")


def test_an_algorithm_without_a_space_of_its_own_falls_back_on_the_rules(
    tmp_path: Path, cpu: Hardware
) -> None:
    spaced, bare = kernel(Tiled()), kernel(Tiled(sizes=0), "bare", replace(CONV, k=4))
    first, second = tune([spaced, bare], SearchSettings("algorithm", 2, per_round=2), bench(tmp_path, cpu))
    assert (first.task.space, second.task.space) == ("algorithm", "rules")
    assert second.summary()["space"] == "rules"


def test_evolution_proposes_what_was_not_tried_and_follows_from_the_seed(cpu: Hardware) -> None:
    workload = Workload.of(kernel(Tiled()))

    def proposed(workers: WorkerPool, sent: int, results: list[Any], number: int) -> Reply:
        message = {"do": "propose", "workload": 0, "sent": sent, "results": results}
        return workers.call(0, 100, **message, seed=[0, number], count=3)

    def evolution() -> WorkerPool:
        return WorkerPool(1, lambda: Evolution([workload], cpu.target(), threads=1).handlers())

    with evolution() as one, evolution() as other:
        first = proposed(one, 0, [], 0)["traces"]
        assert len(first) == 3
        assert proposed(other, 0, [], 0)["traces"] == first
        results = [(trace, 1e-3 * (number + 1)) for number, trace in enumerate(first[:2])] + [
            (first[2], None)
        ]
        second = proposed(one, 0, results, 1)["traces"]
        assert len(second) == 3
        assert not any(trace in first for trace in second)
        with evolution() as resumed:
            assert proposed(resumed, 0, results, 1)["traces"] == second
        assert "has 3" in proposed(one, 7, [], 2)["words"]
    assert all(isinstance(short_form(trace), str) for trace in first)


def test_rules_that_propose_nothing_in_their_time_end_the_search_with_a_reason(
    tmp_path: Path, cpu: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Workers are forked, so what is replaced here is replaced in them.
    monkeypatch.setattr(rules, "PROPOSE_S", 0.5)
    monkeypatch.setattr(Evolution, "propose", lambda *_arguments, **_named: time.sleep(3600))
    with pytest.raises(NoSchedule, match=r"^conv: TVM's rules propose nothing: took longer than 0\.5 s"):
        tune_one(tmp_path, cpu, Tiled(), FOUR)


def test_no_intrinsics_are_loaded_or_left_behind() -> None:
    name = "tvm.s_tir.tensor_intrin"
    assert name not in sys.modules
    with without_intrinsics():
        assert name in sys.modules
    assert name not in sys.modules


@pytest.mark.slow
def test_more_trials_of_the_rules_leave_the_minimal_schedule_behind(tmp_path: Path, cpu: Hardware) -> None:
    layer = kernel(Tiled(), "conv", Conv("conv", 1, 32, 14, 14, 32, 3, 3, padding=(1, 1, 1, 1)))
    for trials in (16, 40):
        (tuned,) = tune([layer], SearchSettings("rules", trials), bench(tmp_path, cpu))
        assert tuned.count == trials and len(tuned.records.valid) > trials / 2
        assert tuned.records.baseline is not None
        assert tuned.summary()["tuned_s"] < min(tuned.records.baseline.run_s) / 2
    assert len({str(candidate) for candidate in tuned.records.candidates}) == 48
