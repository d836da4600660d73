"""Two runs against each other: what is called changed, what is not, and why."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlas
from dlas.analysis.against.changes import (
    APPEARED,
    FAILED,
    FASTER,
    FEWER,
    FIXED,
    GONE,
    MORE,
    NO_TIME,
    OTHER_MACHINE,
    SLOWER,
    Changes,
    changes_of,
)
from dlas.analysis.against.noise import MEDIANS, SENTINELS, SHORTEST, within_rows
from dlas.analysis.against.pairs import Pair, log_medians, pairs_of
from dlas.errors import InputError
from dlas.sweep.rows.results import UNSTABLE, Row
from tests.fixtures.commands import runner
from tests.fixtures.rows import CPU, failing, row, write
from tests.fixtures.runs import POINTS, run_of


def changes(before: list[Row], now: list[Row]) -> Changes:
    return changes_of([Pair(*rows) for rows in zip(before, now, strict=True)])


def test_slices_have_the_samples_that_a_row_says() -> None:
    samples = [1.0, 1.0, 1.0, 2.0, 4.0]
    assert log_medians(row(latency_s=samples, slice_samples=[3, 1, 1])) == pytest.approx(np.log([1, 2, 4]))
    older = row(latency_s=samples, measure={"slices": 2})
    assert log_medians(older) == pytest.approx(np.log([1, 3]))


def test_of_runs_without_a_change_hardly_a_point_is_called_changed() -> None:
    runs = [run_of(seed) for seed in range(6)]
    pairs = [(before, now) for at, before in enumerate(runs) for now in runs[at + 1 :]]
    called = sum(
        found.count(SLOWER) + found.count(FASTER) for found in (changes(before, now) for before, now in pairs)
    )
    assert called <= 0.01 * POINTS * len(pairs)


def test_what_the_machine_did_to_single_points_is_taken_out_where_sentinels_beside_them_tell() -> None:
    slowed = dict.fromkeys(range(0, POINTS, 10), 0.1)
    found = changes(run_of(0, drift=0.06), run_of(1, slowed, drift=0.06))
    slower = {each.pair.row.batch - 1 for each in found.points if each.outcome == SLOWER}
    assert found.noise and found.noise.by == SENTINELS
    assert np.sqrt(found.noise.between) < 0.03
    assert len(slower & slowed.keys()) >= 18 and len(slower - slowed.keys()) <= 2
    steady = changes(run_of(0), run_of(1, slowed))
    assert steady.noise and steady.noise.by == MEDIANS


def test_shortest_samples_tell_where_the_machine_slows_most_of_them() -> None:
    slowed = dict.fromkeys(range(0, POINTS, 10), 0.15)
    before, now = run_of(0, busy=0.6), run_of(1, slowed, busy=0.6)
    found = changes(before, now)
    slower = {each.pair.row.batch - 1 for each in found.points if each.outcome == SLOWER}
    assert found.noise and found.noise.by == SHORTEST
    assert len(slower & slowed.keys()) >= 18 and len(slower - slowed.keys()) <= 2
    assert found.points[0].ratio[0] == pytest.approx(1.15, abs=0.08)
    unchanged = changes(before, run_of(2, busy=0.6))
    assert unchanged.count(SLOWER) + unchanged.count(FASTER) <= 2


def test_the_fewer_samples_are_near_the_shortest_the_less_it_tells() -> None:
    near, far = np.log([1.0, 1.0, 1.01, 1.01, 1.01]), np.log([1.0, 1.1, 1.15, 1.2, 1.2])
    known = within_rows([near, far, near[:1]], SHORTEST)
    assert known[0] < known[1] / 100 and known[2] == 0


def test_what_slices_of_all_points_have_in_common_hides_no_change() -> None:
    slowed = dict.fromkeys(range(0, POINTS, 10), 0.1)
    found = changes(run_of(0, common=0.1), run_of(1, slowed, common=0.1))
    slower = {each.pair.row.batch - 1 for each in found.points if each.outcome == SLOWER}
    assert found.noise and found.noise.unshared < 0.2
    assert slowed.keys() <= slower and len(slower) <= 22
    steady = changes(run_of(0), run_of(1, slowed)).noise
    assert steady and steady.unshared > 0.5


def test_how_many_samples_a_slowdown_takes_follows_from_what_slices_and_runs_differ_by() -> None:
    noise = changes(run_of(0), run_of(1)).noise
    assert noise is not None
    least = noise.detectable(0.01)
    for share in (0.05, 0.2):
        times = noise.samples_for(share, 0.01)
        assert np.all((times <= 1) == (least <= share))
    quiet = dataclasses.replace(noise, within=noise.within / times)
    assert quiet.detectable(0.01) == pytest.approx(0.2)
    assert np.isinf(noise.samples_for(0.001, 0.01)).all()


@pytest.mark.parametrize("shift", [0.0, 0.08])
def test_points_that_became_slower_are_found_though_the_whole_machine_did(shift: float) -> None:
    slowed = dict.fromkeys(range(0, POINTS, 10), 0.1)
    found = changes(run_of(0), run_of(1, slowed, shift))
    slower = {each.pair.row.batch - 1 for each in found.points if each.outcome == SLOWER}
    assert len(slower & slowed.keys()) >= 19 and len(slower - slowed.keys()) <= 2
    assert found.count(FASTER) <= 2
    assert found.noise and found.noise.controls == POINTS - 20
    assert found.noise.shift == pytest.approx(np.log(1 + shift), abs=0.01)
    assert found.points[0].ratio[0] == pytest.approx(1.1, abs=0.04)
    low, high = found.points[0].ratio[1:]
    assert low < 1.1 < high


def test_what_is_told_to_be_found_is_found_that_often() -> None:
    before, known = run_of(0), changes(run_of(0), run_of(1))
    least = float(np.median([each.detectable for each in known.points]))
    hits = []
    for seed in range(2, 7):
        found = changes(before, run_of(seed, dict.fromkeys(range(0, POINTS, 100), least)))
        hits += [each.outcome == SLOWER for each in found.points if not each.pair.unchanged]
    assert np.mean(hits) > 0.8, "two of two hundred, at 95 % power"


def test_where_every_point_may_have_changed_the_sentinel_tells_the_shift() -> None:
    slowed = dict.fromkeys(range(POINTS), 0.2)
    found = changes(run_of(0), run_of(1, slowed, shift=0.1))
    assert found.noise and found.noise.controls == 0
    assert found.noise.shift == pytest.approx(np.log(1.1), abs=0.01)
    assert found.count(SLOWER) == POINTS


def test_another_machine_is_named_and_nothing_is_called_slower() -> None:
    before = run_of(0, points=9)
    other: Any = {**CPU, "cpu": "another processor"}
    now = [dataclasses.replace(each, device=other) for each in run_of(1, shift=0.5, points=9)]
    found = changes(before, now)
    assert found.noise is None and {each.outcome for each in found.points} == {OTHER_MACHINE}
    assert all(each.causes[0].startswith("machine: cpu (") for each in found.points)


def test_outcomes_without_two_times() -> None:
    ok, bad = row(batch=1), failing(batch=1)
    unstable = dataclasses.replace(ok, status="unstable", reason="slices differ")
    pairs = {
        FAILED: Pair(ok, bad),
        FIXED: Pair(bad, ok),
        APPEARED: Pair(None, ok),
        GONE: Pair(ok, None),
        UNSTABLE: Pair(ok, unstable),
        NO_TIME: Pair(bad, bad),
    }
    assert [each.outcome for each in changes_of(list(pairs.values())).points] == list(pairs)


def test_causes_are_what_differs() -> None:
    versions = {"torch": "2.11.0", "tvm": "0.27"}
    sources = {"algorithm": "a", "compiler": "b"}
    before = row(environment={"versions": dict(versions)}, sources=sources)
    now = row(key="other", environment={"versions": {**versions, "tvm": "0.28"}}, sources=sources)
    (change,) = changes([before], [now]).points
    assert change.causes == ("tvm 0.27 to 0.28",)
    own = dataclasses.replace(before, key="other", sources={**sources, "algorithm": "c"})
    assert changes([before], [own]).points[0].causes == ("source of algorithm",)
    tool = dataclasses.replace(before, key="other")
    assert changes([before], [tool]).points[0].causes == ("source of the tool",)
    older = dataclasses.replace(before, key="other", sources={})
    assert changes([before], [older]).points[0].causes == ("source unknown",)
    assert changes([before], [before]).points[0].causes == ()


def test_layers_and_other_quantities_explain_a_change() -> None:
    layers: list[Any] = [{"name": "conv1", "latency_s": 1e-3}, {"name": "conv2", "latency_s": 2e-3}]
    slower = [layers[0], {"name": "conv2", "latency_s": 3e-3}]
    before = row(layers=layers, accuracy=0.97, peak_memory_bytes=1000)
    now = row(layers=slower, accuracy=0.95, peak_memory_bytes=1010)
    found = changes([before], [now])
    name, seconds = found.points[0].layers[0]
    assert name == "conv2" and seconds == pytest.approx(1e-3)
    assert list(found.quantities) == ["accuracy"] and found.quantities["accuracy"][0][1] < -0.02


def test_earlier_rows_of_a_folder_are_a_run_too(tmp_path: Path) -> None:
    first, other = row(batch=1), row(batch=2)
    again = dataclasses.replace(first, key="new")
    folder = write(tmp_path, [first, other, again])
    assert pairs_of(folder, folder) == [Pair(first, again)]
    with pytest.raises(InputError, match="has an earlier row with another key"):
        pairs_of(write(tmp_path / "once", [first]), tmp_path / "once")
    with pytest.raises(InputError, match=r"no point is in both .*\(rows of made-up\) and .*\(rows of s\)"):
        pairs_of(folder, write(tmp_path / "s", [row(study="s", batch=9)]))


def test_the_command_prints_changes_and_can_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "a", run_of(0, points=12))
    write(tmp_path / "b", run_of(1, {3: 0.5}, points=12))
    command = runner(tmp_path, monkeypatch, capsys)
    done = command("compare", "b", "--against", "a")
    assert done.returncode == 0 and "b against a: 1 slower" in done.stdout
    assert "11 points that cannot have changed, taken out" in done.stdout
    assert command("compare", "b", "--against", "a", "--fail-if-slower", "5%").returncode == 3
    assert command("compare", "b", "--against", "a", "--fail-if-slower", "90%").returncode == 0
    assert command("compare", "b", "--against", "a", "--where", "batch=5", "--json").returncode == 0
    for wrong in (
        ("b",),
        ("b", "--against", "a", "--axis", "model"),
        ("b", "--against", "a", "--fail-if-slower", "5"),
        ("b", "--axis", "batch", "--fail-if-slower", "5%"),
        ("b", "--against", "a", "--baseline", "1"),
    ):
        refused = command("compare", *wrong)
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1, refused.stderr


def test_a_view_has_a_line_for_each_point(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", run_of(0, points=12)), write(tmp_path / "b", run_of(1, {3: 0.5}, points=12))
    view = dlas.compare(b, against=a, every=True)
    assert len(view.frame) == 12 and view.frame["outcome"].iloc[0] == SLOWER
    assert str(view).count("ms") >= 2
    with pytest.raises(InputError, match="a frame lacks what a row says"):
        dlas.compare(dlas.read(b), against=a)


def counted(instructions: float, counter: str = "callgrind, x86-64-v3", **kernels: int) -> Row:
    """Return a row without times that tells instructions."""
    return row(status="unstable", instructions=instructions, counter=counter, kernel_instructions=kernels)


@pytest.mark.parametrize(
    ("before", "now", "outcome"),
    [
        (counted(1e6), counted(1.01e6), MORE),
        (counted(1e6), counted(0.99e6), FEWER),
        (counted(1e6), counted(1.001e6), UNSTABLE),
        (counted(1e6, first=1000, second=999_000), counted(1.00002e6, first=1020, second=999_000), MORE),
        (counted(1e6), counted(1.01e6, "perf_event_open"), UNSTABLE),
        (counted(1e6, "perf_event_open"), counted(1.01e6, "perf_event_open"), UNSTABLE),
        (counted(1e6, "perf_event_open"), counted(1.03e6, "perf_event_open"), MORE),
        (counted(1e6), row(status="unstable"), UNSTABLE),
    ],
)
def test_where_the_clock_does_not_tell_instructions_of_one_counter_do(
    before: Row, now: Row, outcome: str
) -> None:
    (change,) = changes([before], [now]).points
    assert change.outcome == outcome


def test_kernels_with_more_instructions_are_named_and_fail_a_comparison() -> None:
    found = changes([counted(1e6, a=400, b=600)], [counted(1.1e6, a=401, b=700)])
    assert found.points[0].kernels == [("b", 100), ("a", 1)]
    assert found.slower_by(0.05) == found.points and not found.slower_by(0.15)
    assert found.frame()["instructions"].tolist() == pytest.approx([1.1])


def test_a_time_that_is_clear_is_not_overruled_by_counts() -> None:
    runs = [run_of(seed) for seed in (0, 1)]
    few, many = (
        [dataclasses.replace(each, instructions=count, counter="callgrind") for each in run]
        for run, count in zip(runs, (1e6, 2e6), strict=True)
    )
    plain, found = changes(*runs), changes(few, many)
    assert found.count("same") == plain.count("same") > 0
    assert found.count(MORE) == plain.count("unclear")
