"""Searches of tiny convolutions, with real workers."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tvm

from dlas.bench.measuring.comparing import difference
from dlas.errors import Unsupported
from dlas.lowering.kernels.convolutions import make_kernel
from dlas.lowering.tuning import measurers
from dlas.lowering.tuning.record_files import read_sections
from dlas.lowering.tuning.records import Records, Trial
from dlas.lowering.tuning.search import NoSchedule
from dlas.lowering.tuning.tuner import SearchSettings, make_tasks, tune
from dlas.lowering.tuning.workload import Workload
from dlas.stack import Hardware
from dlas.sweep.study import parts
from tests.fixtures.engine import in_fork
from tests.fixtures.stubs import StubHardware
from tests.fixtures.tiled import CONV, EIGHT, Broken, Tiled, bench, kernel, tune_one
from tests.fixtures.webassembly import needs_wasmtime


@pytest.fixture
def cpu() -> Hardware:
    device: Hardware = parts.make("hardware", "local_cpu", {"threads": 1})
    return device


def on_file(folder: Path) -> Records:
    """Return the records of the one workload."""
    (path,) = (folder / "records").glob("*.jsonl")
    (records,) = read_sections(path)
    return records


def test_the_whole_of_a_small_space_is_tried_and_the_choice_computes_the_convolution(
    tmp_path: Path, cpu: Hardware
) -> None:
    said: list[str] = []
    layers = [kernel(Tiled()), kernel(Tiled(), "again"), kernel(Tiled(), "other", replace(CONV, k=4))]
    equal, other = tune(layers, replace(EIGHT, trials=100), bench(tmp_path, cpu, said))
    assert (equal.task.layers, other.task.layers) == (["conv", "again"], ["other"])
    assert (equal.count, len(equal.records.valid)) == (8, 8)
    assert equal.records.candidates[0] == {"decisions": {"part": 2, "loop": "k"}}
    assert "conv (1 of 2): trial 8 of 100, best" in said[7]
    summary = equal.summary()
    assert summary["decisions"] == equal.records.candidates[equal.selection.number]["decisions"]
    assert summary["tuned_s"] > 0 and summary["space"] == "algorithm"
    workload = equal.task.workload
    function = workload.finish(workload.replay(equal.trace), cpu.target())
    assert np.allclose(computed(function, workload), computed(workload.module["main"], workload), atol=1e-5)


def computed(function: tvm.tirx.PrimFunc, workload: Workload) -> np.ndarray:
    arguments = [tvm.runtime.tensor(array) for array in workload.arguments()]
    tvm.tirx.build(function.with_attr("global_symbol", "main"), target="llvm")["main"](*arguments)
    return np.asarray(arguments[-1].numpy())


@pytest.mark.parametrize(
    ("trouble", "failed", "words"),
    [
        ("raise", "build", "ValueError: this point cannot be scheduled"),
        ("crash", "crash", "killed by SIGABRT (abort)"),
        pytest.param("hang", "hang", "took longer than 5 s", marks=pytest.mark.slow),
        pytest.param("wrong", "wrong", "off by", marks=pytest.mark.slow),
    ],
)
def test_candidates_in_trouble_are_counted_and_contained(
    tmp_path: Path, cpu: Hardware, trouble: str, failed: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trouble == "hang":
        monkeypatch.setattr(measurers, "BUILD_S", 5.0)
    tuned = tune_one(tmp_path, cpu, Tiled(trouble=trouble))
    bad = [trial for trial in tuned.records.trials.values() if not trial.valid]
    assert {tuned.records.candidates[trial.number]["decisions"]["part"] for trial in bad} == {4}
    assert [trial.failed for trial in bad] == [failed] * 2
    assert all(words in (trial.words or "") for trial in bad)
    assert (tuned.count, tuned.summary()["valid_trials"]) == (8, 6)


def test_no_valid_candidate_is_an_error_in_the_words_of_most(tmp_path: Path, cpu: Hardware) -> None:
    words = "conv: none of 8 candidates is valid: 8 x build: ValueError: no point can be scheduled"
    for _ in range(2):
        with pytest.raises(NoSchedule, match=words):
            tune_one(tmp_path, cpu, Broken())
    assert len(on_file(tmp_path).trials) == 8


def test_what_is_on_record_is_not_tried_again(tmp_path: Path, cpu: Hardware) -> None:
    trace = tmp_path / "trace"
    first = tune_one(tmp_path / "a", cpu, Tiled(trace=str(trace)))
    applied = Counter(trace.read_text().splitlines())
    assert len(applied) == 8
    content = on_file(tmp_path / "a")
    again = tune_one(tmp_path / "a", cpu, Tiled(trace=str(trace)))
    assert (again.selection, again.seconds) == (first.selection, first.seconds)
    assert on_file(tmp_path / "a") == content
    assert Counter(trace.read_text().splitlines()) == applied


@pytest.mark.slow
def test_few_trials_choose_alike_whether_many_are_on_record_or_not(tmp_path: Path, cpu: Hardware) -> None:
    few, many = replace(EIGHT, trials=3), replace(EIGHT, trials=8)
    tune_one(tmp_path, cpu, Tiled(), many)
    after = tune_one(tmp_path, cpu, Tiled(), few)
    assert after.count == 3
    assert set(after.selection.finalists) <= {"0", "1", "2"}
    # The selection is on record now: the one of the many does not replace it, and it is not made again.
    tune_one(tmp_path, cpu, Tiled(), many)
    assert tune_one(tmp_path, cpu, Tiled(), few).selection == after.selection
    assert [selection.trials for selection in on_file(tmp_path).selections] == [8, 3]
    # What comes first is the same where nobody has tried many.
    alone = tune_one(tmp_path / "alone", cpu, Tiled(), few)
    assert alone.records.candidates[:3] == after.records.candidates[:3]
    assert len(alone.records.trials) == 3


@pytest.mark.slow
def test_a_longer_search_goes_on_where_a_shorter_one_ended(tmp_path: Path, cpu: Hardware) -> None:
    short = tune_one(tmp_path, cpu, Tiled(), replace(EIGHT, trials=3))
    long = tune_one(tmp_path, cpu, Tiled(), EIGHT)
    assert [long.records.trials[n] for n in range(3)] == [short.records.trials[n] for n in range(3)]
    assert len(long.records.trials) == 8


def test_seeds_and_threads_and_rounds_have_records_of_their_own(tmp_path: Path, cpu: Hardware) -> None:
    keys = set()
    two = parts.make("hardware", "local_cpu", {})
    for settings, device in (
        (EIGHT, cpu),
        (replace(EIGHT, seed=1), cpu),
        (replace(EIGHT, per_round=8), cpu),
        (replace(EIGHT, space="rules"), cpu),
        (EIGHT, replace(two, threads=2)),
    ):
        (task,) = make_tasks([kernel(Tiled())], settings, bench(tmp_path, device))
        keys.add(task.header.key)
        (same,) = make_tasks([kernel(Tiled(), "elsewhere")], settings, bench(tmp_path, device))
        assert same.header.key == task.header.key
    (shorter,) = make_tasks([kernel(Tiled(sizes=3))], EIGHT, bench(tmp_path, cpu))
    (longer,) = make_tasks([kernel(Tiled())], replace(EIGHT, trials=99, early_stop=5), bench(tmp_path, cpu))
    assert longer.header.key in keys
    assert len(keys | {shorter.header.key}) == 6


def test_names_do_not_tell_workloads_apart_and_tails_and_shapes_do() -> None:
    digests = {
        Workload.of(kernel(Tiled(), name, conv)).digest
        for name in ("one", "two")
        for conv in (CONV, replace(CONV, h=8), replace(CONV, padding=(0, 0, 0, 0)))
    }
    assert len(digests) == 3
    bare = kernel(Tiled())
    without_tail = make_kernel(bare.algorithm, CONV, bare.weight, "conv")
    assert Workload.of(without_tail).digest not in digests


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0.2, 0.5, 0.8])
def test_a_killed_search_goes_on_with_nothing_lost_or_tried_twice(
    tmp_path: Path, cpu: Hardware, moment: float
) -> None:
    trace = tmp_path / "trace"
    algorithm = Tiled(trace=str(trace))
    pid = in_fork(lambda: tune_one(tmp_path, cpu, algorithm))
    _wait_for_trials(tmp_path, int(8 * moment))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    before = dict(on_file(tmp_path).trials)
    assert before
    trace.unlink()
    tuned = tune_one(tmp_path, cpu, algorithm)
    assert {number: tuned.records.trials[number] for number in before} == before
    assert len(tuned.records.trials) == 8
    again = set(trace.read_text().split()) if trace.exists() else set()
    finalists = {int(number) for number in tuned.selection.finalists}
    points = [candidate["decisions"] for candidate in tuned.records.candidates]
    names = {f"{point['part']}{point['loop']}": number for number, point in enumerate(points)}
    assert {names[name] for name in again} & set(before) <= finalists


def _wait_for_trials(folder: Path, count: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        paths = list((folder / "records").glob("*.jsonl"))
        if paths and paths[0].read_text().count('{"trial"') > count:
            return
        time.sleep(0.005)
    raise AssertionError("no trial within a minute")


@pytest.mark.slow
def test_layers_share_trials_by_their_weight_in_the_networks_time(tmp_path: Path, cpu: Hardware) -> None:
    large = replace(CONV, h=40, w=40)
    layers = [kernel(Tiled(), "small"), *(kernel(Tiled(), f"large{i}", large) for i in range(3))]
    settings = SearchSettings("algorithm", trials=8, shared=True, per_round=4)
    small, big = tune(layers, settings, bench(tmp_path, cpu))
    assert small.count < big.count <= 8
    assert small.count + big.count <= 9  # everyone has one at least
    assert small.records.baseline is not None


def test_early_stop_ends_a_search(tmp_path: Path, cpu: Hardware) -> None:
    tuned = tune_one(tmp_path, cpu, Tiled(trouble="raise"), replace(EIGHT, early_stop=1))
    first = [tuned.records.trials[n] for n in range(tuned.count)]
    assert tuned.count < 8
    assert not first[-1].valid or first[-1].median_s >= min(t.median_s for t in first[:-1])


def test_a_device_elsewhere_is_unsupported(tmp_path: Path) -> None:
    class Elsewhere(StubHardware):
        @property
        def local(self) -> bool:
            return False

    with pytest.raises(Unsupported, match="devices of this machine and on boards over RPC only"):
        tune_one(tmp_path, Elsewhere(), Tiled())


def test_a_kernel_that_writes_nothing_is_not_taken_for_right() -> None:
    expected = np.array([1.0, -2.0, np.nan], np.float32)
    assert difference(expected.copy(), expected, 1e-5) is None
    assert difference(np.full(3, np.nan, np.float32), expected, 1e-5) is not None
    assert difference(np.array([1.0, -2.0, 0.0], np.float32), expected, 1e-5) is not None
    assert (
        difference(np.array([1.0, -2.1, np.nan], np.float32), expected, 1e-5)
        == "off by 0.05 of the largest output"
    )
    whole = np.array([1, 250], np.uint8)
    assert difference(np.array([2, 250], np.uint8), whole, 0.0) is None
    assert difference(np.array([1, 0], np.uint8), whole, 0.0) == "off by 250"


def test_trials_are_medians() -> None:
    assert Trial(0, 1.0, run_s=[1.0, 9.0, 2.0]).median_s == 2.0


@needs_wasmtime
@pytest.mark.parametrize(
    ("trouble", "failed"),
    [pytest.param(None, None, marks=pytest.mark.slow), pytest.param("wrong", "wrong", marks=pytest.mark.ci)],
)
def test_an_engine_of_webassembly_checks_and_times_candidates(
    tmp_path: Path, trouble: str | None, failed: str | None
) -> None:
    device = parts.make("hardware", "wasmtime", {})
    tuned = tune_one(tmp_path, device, Tiled(trouble=trouble) if trouble else Tiled())
    bad = [trial.failed for trial in tuned.records.trials.values() if not trial.valid]
    assert bad == ([failed] * 2 if failed else [])
    assert tuned.summary()["tuned_s"] > 0
    assert "wasmtime" in next((tmp_path / "records").glob("*.jsonl")).read_text(), "records know the engine"
