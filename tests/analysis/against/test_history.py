"""Points over versions: which changes of their level are found, and at which version."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlas
from dlas.analysis.against.changes import FASTER, SAME, SLOWER
from dlas.analysis.against.history import OUTLYING, UNCONFIRMED, VersionHistory, history_of
from dlas.analysis.against.noise import MEDIANS, SENTINELS, SHORTEST
from dlas.analysis.against.segments import segments_of
from dlas.analysis.against.versions import every_row, lines_of
from dlas.errors import InputError
from dlas.sweep.rows.results import Row
from tests.fixtures.commands import Command
from tests.fixtures.rows import CPU, again, failing, row, write
from tests.fixtures.runs import run_of

VERSIONS, POINTS = 10, 100
OTHER: Any = {**CPU, "cpu": "another processor"}


def versions_of(
    seed: int,
    slower: Mapping[int, Mapping[int, float]] = {},
    shift: float = 0.0,
    points: int = POINTS,
    versions: int = VERSIONS,
    **machine: float,
) -> list[list[Row]]:
    """Return runs, in some of which, by their numbers from 1, points are slower by a share.

    ``shift`` is by how much the whole machine's speed differs between them, ``machine`` what else
    :func:`run_of` takes of it.
    """
    rng = np.random.default_rng(seed)
    return [
        [
            dataclasses.replace(each, started=f"2026-01-{number:02}T00:00:00+00:00")
            for each in run_of(
                1000 * seed + number, slower.get(number, {}), shift * rng.uniform(-1, 1), points, **machine
            )
        ]
        for number in range(1, versions + 1)
    ]


def lasting(slower: Mapping[int, float], first: int = 6) -> dict[int, Mapping[int, float]]:
    """Return by version how much slower points are that stay so from one version on."""
    return dict.fromkeys(range(first, VERSIONS + 1), slower)


def found_in(versions: Sequence[Sequence[Row]]) -> VersionHistory:
    found = history_of(versions, [f"v{number}" for number in range(1, len(versions) + 1)])
    assert found is not None
    return found


def events(found: VersionHistory) -> set[tuple[int, str, int]]:
    """Return points, what happened to them, and at which version."""
    return {
        (each.line.row.batch - 1, event.kind, event.at + 1) for each in found.points for event in each.events
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_without_a_change_hardly_a_point_is_called(seed: int) -> None:
    found = events(found_in(versions_of(seed, shift=0.05)))
    assert len({point for point, *_ in found}) <= 0.01 * POINTS


def test_a_slowdown_is_found_at_its_version_though_the_machine_changes_too() -> None:
    slowed = dict.fromkeys(range(0, POINTS, 10), 0.1)
    found = found_in(versions_of(3, lasting(slowed), shift=0.05))
    assert {(point, SLOWER, 6) for point in slowed} <= events(found)
    assert len(events(found)) <= len(slowed) + 1
    assert found.points[0].events[0].ratio[0] == pytest.approx(1.1, abs=0.03)
    assert 0.02 < found.detectable < 0.1
    told = found.frame().query("event != 'same'")
    assert set(told["version"]) == {6} and set(told["folder"]) == {"v6"}


def test_what_the_machine_did_to_single_points_is_taken_out_of_all_versions_or_of_none() -> None:
    slowed = dict.fromkeys(range(0, POINTS, 10), 0.1)
    found = found_in(versions_of(8, lasting(slowed), drift=0.06))
    assert all(noise.by == SENTINELS for noise in found.steps.values())
    slower = {point for point, kind, at in events(found) if (kind, at) == (SLOWER, 6)}
    assert len(slower & slowed.keys()) >= 9 and len(events(found)) <= len(slowed) + 2
    busy = found_in(versions_of(8, lasting(dict.fromkeys(slowed, 0.15)), busy=0.6))
    assert all(noise.by == SHORTEST for noise in busy.steps.values())
    slower = {point for point, kind, at in events(busy) if (kind, at) == (SLOWER, 6)}
    assert len(slower & slowed.keys()) >= 9 and len(events(busy)) <= len(slowed) + 2
    steady = found_in(versions_of(8, lasting(slowed)))
    assert all(noise.by == MEDIANS for noise in steady.steps.values())


def test_what_is_told_to_be_found_is_found() -> None:
    least = found_in(versions_of(4)).detectable
    slowed = dict.fromkeys(range(0, POINTS, 10), least)
    called = [
        point for point, kind, at in events(found_in(versions_of(5, lasting(slowed)))) if kind == SLOWER
    ]
    assert len(slowed.keys() & set(called)) >= 8, "of ten, at 95 % power for one alone, in half of the lines"


def test_one_version_alone_is_outlying_and_the_last_one_unconfirmed() -> None:
    slower = {4: {5: 0.3, 6: -0.3}, 10: {7: 0.3}, 1: {8: 0.3}}
    expected = {(5, OUTLYING, 4), (6, OUTLYING, 4), (8, OUTLYING, 1), (7, UNCONFIRMED, 10)}
    assert events(found_in(versions_of(6, slower))) == expected


def test_the_next_version_confirms_a_change_and_another_may_end_it() -> None:
    slower = {9: {5: 0.3}, 10: {5: 0.3}, 4: {7: 0.3}, 5: {7: 0.3}, 6: {7: 0.3}}
    expected = {(5, SLOWER, 9), (7, SLOWER, 4), (7, FASTER, 7)}
    assert events(found_in(versions_of(7, slower))) == expected


def test_a_point_whose_runs_differ_more_than_those_of_others_is_not_called_for_it() -> None:
    rng = np.random.default_rng(0)
    slower = {number: dict.fromkeys(range(5), 0.0) for number in range(1, VERSIONS + 1)}
    slower = {
        number: {point: 0.06 * rng.standard_normal() for point in own} for number, own in slower.items()
    }
    found = found_in(versions_of(8, slower))
    assert not [kind for _, kind, _ in events(found) if kind in (SLOWER, FASTER)]


def test_segments_of_a_series() -> None:
    levels = [0.0] * 4 + [1.0] * 3 + [0.5] * 3
    found = segments_of(np.array(levels), np.full(10, 0.001), 20.0)
    assert [(each.start, each.stop, each.level) for each in found] == [(0, 4, 0), (4, 7, 1), (7, 10, 0.5)]
    assert found[1].error == pytest.approx((0.001 / 3) ** 0.5)
    levels[2], levels[5] = 9.0, -9.0
    found = segments_of(np.array(levels), np.full(10, 0.001), 20.0)
    assert [(each.start, each.stop, each.outlying) for each in found] == [
        (0, 4, (2,)),
        (4, 7, (5,)),
        (7, 10, ()),
    ]
    (short,) = segments_of(np.array([0.0, 0.0, 1.0]), np.full(3, 0.001), 20.0)
    assert short.outlying == (2,)


def test_three_versions_are_too_few_for_a_change() -> None:
    found = found_in(versions_of(9, {2: {3: 0.5}, 3: {3: 0.5}}, versions=3, points=12))
    assert np.isnan(found.detectable)
    assert not [kind for _, kind, _ in events(found) if kind in (SLOWER, FASTER)]


def test_another_machine_has_a_line_of_its_own_and_is_named() -> None:
    versions = versions_of(10, points=10)
    moved = [
        [again(each, device=OTHER, latency_s=[2 * time for time in each.latency_s]) for each in rows]
        if number % 2
        else rows
        for number, rows in enumerate(versions)
    ]
    found = found_in(moved)
    assert not events(found) and len(found.points) == 20
    frame = found.frame()
    assert frame.groupby("machine")["version"].unique().map(list).to_dict() == {
        "Imaginary 9000, 2 cores, otherwise unknown": [1, 3, 5, 7, 9],
        "another processor, 2 cores, otherwise unknown": [2, 4, 6, 8, 10],
    }


def test_earlier_keys_of_a_folder_are_versions_and_copies_are_none(tmp_path: Path) -> None:
    first, second = row(key="a"), row(key="b", started="2026-01-03T00:00:00+00:00")
    third = again(second, key="c", started="2026-01-04T00:00:00+00:00")
    repeated = again(second, latency_s=[0.5] * 9)
    write(tmp_path / "one", [first, second, failing(batch=8), repeated])
    write(tmp_path / "two", [third, second, first], tail="{}\n")
    folders = [list(every_row(tmp_path / name)) for name in ("one", "two")]
    (line,), untimed = lines_of(folders)
    assert untimed == 1
    assert [(each.version.folder, each.version.generation, each.row.key) for each in line.rows] == [
        (0, 0, "a"),
        (0, 1, "b"),
        (1, 1, "b"),
        (1, 0, "c"),
    ]
    assert line.rows[1].row.latency_s == repeated.latency_s
    assert [each.id for each in every_row(tmp_path / "one", [first.id])] == [first.id] * 3


def test_what_cannot_be_told_is_one_message(tmp_path: Path, dlas_here: Command) -> None:
    write(tmp_path / "a", [row()])
    write(tmp_path / "b", [row(study="other", batch=2)])
    write(tmp_path / "c", [again(row(), device=OTHER)])
    alone = "no point has times in two versions on one machine in"
    for words, said in (
        (["a"], f"{alone} a (rows of made-up)"),
        (["a", "a"], f"{alone} a (rows of made-up)"),
        (["a", "b"], f"{alone} a b (rows of made-up, other)"),
        (["a", "c"], f"{alone} a c"),
        (["a", "nowhere"], "no results.jsonl in 'nowhere'"),
        (["a", "--to", "x.txt"], "--to 'x.txt': a figure is written as *.html"),
        (["a", "--where", "batch=9"], "unknown batch in --where '9'"),
    ):
        refused = dlas_here("history", *words)
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1, refused.stderr
        assert said in refused.stderr
    with pytest.raises(InputError, match=r"^`to='x\.txt'`"):
        dlas.history(tmp_path / "a", to="x.txt")


def test_the_command_prints_draws_and_writes_json(tmp_path: Path, dlas_here: Command) -> None:
    slower = lasting({3: 0.5})
    for number, rows in enumerate(versions_of(11, slower, points=12), 1):
        write(tmp_path / f"v{number}", rows)
    folders = [f"v{number}" for number in range(1, VERSIONS + 1)]
    shown = dlas_here("history", *folders, "--to", "x.svg")
    assert shown.returncode == 0 and "12 points over 10 versions: 1 slower, 11 same" in shown.stdout
    assert "version 6: v6 2026-01-06" in shown.stdout and "written: x.svg" in shown.stdout
    assert "batch 4" in (tmp_path / "x.svg").read_text()
    told = json.loads(dlas_here("history", *folders, "--json", "--where", "batch=4").stdout)
    changed = [line for line in told["points"] if line["event"] != SAME]
    assert [(line["version"], line["event"]) for line in changed] == [(6, SLOWER)]
    assert len(told["points"]) == 10 and len(told["machines"]) == 9
    view = dlas.history([tmp_path / name for name in folders], to=tmp_path / "new" / "x.json", every=True)
    assert len(view.frame) == 120 and str(view).count(" same ") >= 11
    drawn = json.loads((tmp_path / "new" / "x.json").read_text())
    assert len(drawn["concat"]) == 12 and drawn["concat"][0]["title"] == ["batch 4"]
    assert [mark["x"] for mark in drawn["concat"][0]["data"]["values"] if mark["e"]] == [6]


@pytest.mark.slow
def test_the_figure_is_a_page_without_a_network_or_a_picture(tmp_path: Path) -> None:
    folders = [write(tmp_path / f"v{number}", [row(sampled=number, key=f"{number}")]) for number in range(4)]
    for name, start in (("x.html", b"<!DOCTYPE html>"), ("x.pdf", b"%PDF"), ("x.png", b"\x89PNG")):
        dlas.history(folders, to=tmp_path / name)
        assert (tmp_path / name).read_bytes().lstrip().startswith(start)
    assert b'<script src="http' not in (tmp_path / "x.html").read_bytes()
