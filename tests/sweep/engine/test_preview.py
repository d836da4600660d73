"""What a sweep would do, before it does anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dlas.bench.store.cache import Cache, held_keys
from dlas.sweep.engine import preview as module
from dlas.sweep.engine.planning import Planner
from dlas.sweep.engine.preview import History, preview
from dlas.sweep.study.point import Point
from tests.fixtures.engine import study_of
from tests.fixtures.rows import row

FOUR = study_of('batch = [1, 2]\nmodel = [{ name = "tests.fixtures.stubs:StubModel", factor = [1.0, 2.0] }]')


def test_a_cache_is_listed_once_however_many_points_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, said, listed = list(FOUR.points()), list[str](), list[str]()

    def listing(root: Path, kind: str) -> frozenset[str]:
        listed.append(kind)
        return held_keys(root, kind)

    monkeypatch.setattr(module, "held_keys", listing)
    monkeypatch.setattr(module, "SHOWN_EVERY", 2)
    found = preview(FOUR.measure, points, [], tmp_path / "cache", say=said.append)
    assert (found.needed["network"], found.cached["network"]) == (2, 0)
    assert sorted(listed) == ["build", "network"]
    assert said == ["planning: 2 of 4 points", "planning: 4 of 4 points"]
    assert not (tmp_path / "cache").exists()
    cache, plan = Cache(tmp_path / "cache"), Planner(FOUR.measure, tmp_path / "cache").plan(points[0])
    with cache.create("network", plan.artifacts()["network"]):
        pass
    again = preview(FOUR.measure, points, [], tmp_path / "cache")
    assert (again.needed["network"], again.cached["network"]) == (1, 1)


def test_the_kernels_of_programs_are_planned_where_they_are_asked_for(tmp_path: Path) -> None:
    (point,) = study_of('compiler = "hand"\nalgorithm = "direct"').points()
    planner = Planner(FOUR.measure, tmp_path)
    assert planner.plan(point).kernels is None and planner.plan(point, kernels=True).kernels is not None


def test_times_come_from_the_rows_that_are_most_alike() -> None:
    def took(seconds: float, **values: Any) -> Any:
        return row(10, seconds={"build": seconds}, model_bytes=int(seconds), **values)

    rows = [took(1, algorithm="direct"), took(2, algorithm="gemm"), took(4, algorithm="gemm")]
    rows.append(took(9, algorithm="gemm", compiler="other"))
    history = History(rows)

    def of(**values: Any) -> float | None:
        return history.seconds("build", Point.of(vars(row(1, **values))))

    assert of(algorithm="gemm") == 3
    assert of(algorithm="winograd") == 2, "of its model and compiler"
    assert of(algorithm="gemm", model="another") == 2, "of its compiler"
    assert of(compiler="unknown") is None
    assert history.seconds("tune", Point.of(vars(row(1)))) is None
    assert history.network_bytes(Point.of(vars(row(1, algorithm="gemm")))) == 1
