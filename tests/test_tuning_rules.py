"""TVM's default rules, searched with our own workers and records."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dlas import parts
from dlas.stack import Hardware
from dlas.tuning.rules import Evolution, _without_intrinsics
from dlas.tuning.tuner import Settings, tune
from dlas.tuning.workers import Failed
from dlas.tuning.workload import Workload, short_form
from tests.test_tuning import one
from tests.tiled import CONV, Tiled, bench, kernel

FOUR = Settings("rules", trials=4, per_round=2)


@pytest.fixture
def cpu() -> Hardware:
    device: Hardware = parts.make("hardware", "local_cpu", {"threads": 1})
    return device


def test_rules_are_searched_and_the_search_goes_on_in_another_process(tmp_path: Path, cpu: Hardware) -> None:
    short = one(tmp_path, cpu, Tiled(), replace(FOUR, trials=1))
    assert (short.count, short.records.rounds) == (1, [2])
    long = one(tmp_path, cpu, Tiled(), FOUR)
    assert (long.count, long.records.rounds) == (4, [2, 2])
    assert long.records.trials[0] == short.records.trials[0]
    assert len({str(candidate) for candidate in long.records.candidates}) == 4
    assert long.records.valid
    summary = long.summary()
    assert summary["space"] == "rules"
    assert summary["decisions"].startswith("tile ")


def test_an_algorithm_without_a_space_of_its_own_falls_back_on_the_rules(
    tmp_path: Path, cpu: Hardware
) -> None:
    spaced, bare = kernel(Tiled()), kernel(Tiled(sizes=0), "bare", replace(CONV, k=4))
    first, second = tune([spaced, bare], Settings("algorithm", 2, per_round=2), bench(tmp_path, cpu))
    assert (first.task.space, second.task.space) == ("algorithm", "rules")
    assert second.summary()["space"] == "rules"


def test_evolution_proposes_what_was_not_tried_and_follows_from_the_seed(cpu: Hardware) -> None:
    workload = Workload.of(kernel(Tiled()))
    first = Evolution([workload], cpu.target(), threads=1).propose(0, 0, [], [0, 0], 3)["traces"]
    assert len(first) == 3
    same = Evolution([workload], cpu.target(), threads=1)
    assert same.propose(0, 0, [], [0, 0], 3)["traces"] == first
    results = [(trace, 1e-3 * (number + 1)) for number, trace in enumerate(first[:2])] + [(first[2], None)]
    second = same.propose(0, 0, results, [0, 1], 3)["traces"]
    assert len(second) == 3
    assert not any(trace in first for trace in second)
    resumed = Evolution([workload], cpu.target(), threads=1).propose(0, 0, results, [0, 1], 3)["traces"]
    assert resumed == second
    with pytest.raises(Failed, match="knows 3"):
        same.propose(0, 7, [], [0, 2], 3)
    assert all(isinstance(short_form(trace), str) for trace in first)


def test_no_intrinsics_are_loaded_or_left_behind() -> None:
    name = "tvm.s_tir.tensor_intrin"
    assert name not in sys.modules
    with _without_intrinsics():
        assert name in sys.modules
    assert name not in sys.modules
