"""Times that are unstable are shown, and taken for no result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dlas.analysis.against.changes import changes_between
from dlas.analysis.choosing.layers import layer_costs
from dlas.analysis.compare import compare
from dlas.analysis.interactions import interactions
from dlas.analysis.observations import Evidence, observe
from dlas.analysis.pareto import pareto
from dlas.analysis.rankings import rankings
from dlas.analysis.roles import with_roles
from dlas.analysis.speedups import speedups
from dlas.analysis.winners import fastest_id, standings
from dlas.errors import InputError
from dlas.face.tables.changes import grid as changed
from dlas.face.tables.comparison import grid
from dlas.face.tables.observations import listing
from dlas.face.tables.points import table
from dlas.sweep.rows.frame import read, select
from dlas.sweep.rows.labels import MISSING
from dlas.sweep.rows.results import Row
from tests.fixtures.printing import printed
from tests.fixtures.rows import again, row, write

REASON = "the medians of its slices differ by a factor of 9.2"
UNSTABLE: dict[str, Any] = {"status": "unstable", "reason": REASON}
PRUNED = {"name": "weight_pruning", "level": 0.5}


def network(**wrong: Any) -> list[Row]:
    """Return rows of two algorithms on a dense and a pruned network, the fastest of them ``wrong``."""
    rows = [
        row(ms, algorithm=algorithm, compression=compression, reached=reached)
        for algorithm, ms in (("direct", 10.0), ("gemm", 5.0))
        for compression, reached in (("none", {}), (PRUNED, {"ratio": 0.5}))
    ]
    fastest = again(rows[2], latency_s=[0.1 * each for each in rows[2].latency_s], **wrong)
    return [*rows[:2], fastest, rows[3]]


@pytest.fixture
def points(tmp_path: Path) -> pd.DataFrame:
    return with_roles(read(write(tmp_path, network(**UNSTABLE))))


def analyses() -> dict[str, Callable[[pd.DataFrame], object]]:
    """Return what each analysis says of points, as texts that can be compared."""
    return {
        "winners": lambda points: repr(
            [(each.overall.points, dict(each.by_compression)) for each in standings(points)]
        ),
        "speedups": lambda points: speedups(points)[["achieved", "point", "dense_point"]].to_csv(),
        "pareto": lambda points: pareto(points, "latency_s").tolist(),
        "rankings": lambda points: repr([(each.kept, each.flipped) for each in rankings(points)]),
        "interactions": lambda points: repr([(each.matched, each.shares) for each in interactions(points)]),
        "observations": lambda points: repr(
            [(claim.verdict, claim.numbers) for each in observe(Evidence(points)) for claim in each.claims]
        ),
    }


@pytest.mark.parametrize("name", analyses())
def test_an_analysis_says_what_it_says_without_the_time(tmp_path: Path, name: str) -> None:
    say = analyses()[name]
    untimed: dict[str, Any] = {"latency_s": [], "noisy": None}
    folders = {
        "unstable": network(**UNSTABLE),
        "untimed": [again(each, **untimed) if each.latency_s[0] < 1e-3 else each for each in network()],
    }
    said = {folder: say(with_roles(read(write(tmp_path / folder, rows)))) for folder, rows in folders.items()}
    assert said["unstable"] == said["untimed"]
    if name in ("winners", "speedups", "pareto"):
        assert said["unstable"] != say(with_roles(read(write(tmp_path / "stable", network()))))


def test_the_fastest_is_another(tmp_path: Path) -> None:
    rows = network(**UNSTABLE)
    assert fastest_id(read(write(tmp_path / "some", rows))) == rows[3].id
    with pytest.raises(InputError, match="no row has a time"):
        fastest_id(read(write(tmp_path / "all", [again(rows[0], **UNSTABLE)])))


def test_a_comparison_gives_no_ratio_and_says_why(tmp_path: Path) -> None:
    frame = read(write(tmp_path, network(**UNSTABLE)))
    comparison = compare(frame, "algorithm")
    assert len(comparison.groups) == 1
    (left,) = comparison.unmatched
    assert left.rows["gemm"].status == "unstable" and left.rows["gemm"].ratio is None
    text = printed(grid(comparison))
    assert "3 ok, 1 unstable (left out)" in text


def test_a_table_shows_the_time_with_its_mark_and_relates_it_to_nothing(tmp_path: Path) -> None:
    text = printed(table(read(write(tmp_path, network(**UNSTABLE)))), width=200)
    lines = [line for line in text.splitlines() if "  ok  " in line or "unstable (1)" in line]
    times, relative = zip(
        *((line.partition("]")[0], line.partition("]")[2].split()) for line in lines), strict=True
    )
    assert ["unstable (1)  0.49" in time for time in times] == [False, False, False, True]
    assert [relative[0][0], relative[-1][0]] == ["1.00", "?"]
    assert relative[-1][1] == MISSING
    assert "3 ok, 1 unstable (?: no result, left out of every comparison)" in text
    assert REASON in text


def test_observations_say_how_many_they_left_out(points: pd.DataFrame) -> None:
    text = printed(listing(observe(Evidence(points)), len(points), 1))
    assert "left out: the times of 1 point, which are unstable" in text


def test_a_repeat_that_is_stable_counts_instead(tmp_path: Path) -> None:
    good = row(10, started="2026-01-01T00:00:00Z")
    bad = again(row(90), started="2026-01-02T00:00:00Z", **UNSTABLE)
    folders = [write(tmp_path / name, [each]) for name, each in (("good", good), ("bad", bad))]
    points = with_roles(read(folders))
    assert points["latency_s"].tolist() == [pytest.approx(0.01, rel=0.02)]
    assert (points["runs"].tolist(), points["status"].tolist()) == ([1], ["ok"])


def test_the_choice_of_algorithms_takes_no_layer_of_it(tmp_path: Path) -> None:
    layers = {
        name: [{"name": "conv", "algorithm": name, "macs": 4, "latency_s": seconds}]
        for name, seconds in (("direct", 2e-3), ("gemm", 1e-3))
    }
    rows = [row(10, algorithm=name, layers=of) for name, of in layers.items()]
    chosen = layer_costs([rows[0], again(rows[1], **UNSTABLE)])
    assert set(chosen.layers["conv"]) == {'{"name": "direct"}'}
    assert chosen.unstable == 1
    with pytest.raises(InputError, match=r"no row with status ok has times of layers .*; 2 unstable$"):
        layer_costs([again(each, **UNSTABLE) for each in rows])


def test_a_point_that_is_unstable_in_one_of_two_runs_is_called_so(tmp_path: Path) -> None:
    stable = [row(10), row(5, algorithm="gemm")]
    before = write(tmp_path / "before", stable)
    now = write(tmp_path / "now", [stable[0], again(stable[1], **UNSTABLE)])
    changes = changes_between([now], [before])
    assert changes.count("unstable") == 1 and changes.count("no time") == 0
    assert "1 unstable" in printed(changed(changes, every=False))


def test_what_needs_no_time_is_taken_from_it(tmp_path: Path) -> None:
    rows = [again(each, accuracy=0.9, model_bytes=size) for size, each in enumerate(network(**UNSTABLE), 1)]
    points = with_roles(read(write(tmp_path, rows)))
    stable = with_roles(
        read(write(tmp_path / "ok", [again(each, status="ok", reason=None) for each in rows]))
    )
    assert "unstable" in points["status"].tolist()
    assert pareto(points, "model_bytes").tolist() == pareto(stable, "model_bytes").tolist()
    by_size = table(read(tmp_path), sort="size")
    assert printed(by_size).index("unstable (1)") < printed(by_size).index(
        "  ok  ", printed(by_size).index("unstable (1)")
    )


def test_the_status_filters(tmp_path: Path) -> None:
    frame = read(write(tmp_path, network(**UNSTABLE)))
    assert select(frame, ["status=unstable"])["status"].tolist() == ["unstable"]
    assert len(select(frame, ["status=ok"])) == 3
