"""Shards of a study: each point is in one, networks are whole, and every machine deals alike."""

from __future__ import annotations

from typing import Any

import pytest

from dlas.errors import InputError
from dlas.sweep.study.selecting import select_points
from dlas.sweep.study.shards import Shard, prices
from dlas.sweep.study.study import Study

STUB = "tests.fixtures.stubs:"


def study(networks: int, **axes: Any) -> Study:
    own: dict[str, Any] = {
        "dataset": f"{STUB}StubDataset",
        "model": {"name": f"{STUB}StubModel", "factor": [2 + number for number in range(networks)]},
        "algorithm": {"name": f"{STUB}StubAlgorithm", "number": [0, 1, 2]},
        "compiler": f"{STUB}StubCompiler",
        "hardware": f"{STUB}StubHardware",
        "batch": [1, 8],
    }
    return Study(axes={**own, **axes})


def test_each_point_is_in_one_shard_and_networks_are_whole() -> None:
    whole = study(7)
    shards = [Shard(number, 3).points(whole) for number in (1, 2, 3)]
    assert sorted(point.id for shard in shards for point in shard) == sorted(p.id for p in whole.points())
    models = [{point.model for point in shard} for shard in shards]
    assert sum(map(len, models)) == len(set().union(*models)) == 7
    assert shards == [Shard.parse(f"{number}/3").points(study(7)) for number in (1, 2, 3)]
    order = [point.id for point in whole.points()]
    assert all(
        [point.id for point in shard] == sorted((p.id for p in shard), key=order.index) for shard in shards
    )


def test_shards_of_many_networks_differ_by_at_most_a_fifth() -> None:
    trials = [1, 16, 64]
    compilers = [f"{STUB}StubCompiler", *({"name": "metaschedule", "trials": each} for each in trials)]
    whole = study(32, compiler=compilers)
    seconds = whole.measure.seconds
    seconds_of = [sum(prices(Shard(n, 5).points(whole), seconds).values()) for n in range(1, 6)]
    assert max(seconds_of) <= 1.2 * min(seconds_of)


@pytest.mark.parametrize("text", ["0/4", "5/4", "a/b", "3", "3/", "-1/4", "1/0", "1/4/2", ""])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"shard='.*from 1/N to N/N, such as 3/16"):
        Shard.parse(text)


def test_a_shard_without_points_says_how_many_networks_there_are() -> None:
    with pytest.raises(InputError, match=r"`shard='4/4'` has no points: .* the study has 3 of them"):
        Shard(4, 4).points(study(3))


def test_filters_choose_among_the_points_of_a_shard() -> None:
    whole = study(4)
    chosen = select_points(whole, ["batch=8"], "2/2")
    assert chosen == [point for point in Shard(2, 2).points(whole) if point.batch == 8] != []
    factor = dict(chosen[0].model.options)["factor"]
    with pytest.raises(InputError, match="no point of the shard 1/2 matches all of"):
        select_points(whole, [f"model.factor={factor}"], "1/2")
