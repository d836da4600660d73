"""Studies that draw: draws that last and extend one another, up to as many as there are."""

from __future__ import annotations

import cProfile
import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dlas.errors import InputError
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study

STUB = "tests.fixtures.stubs:"
MODEL = {"name": f"{STUB}StubModel", "factor": "drawn"}
ONE: dict[str, Any] = {"algorithm": f"{STUB}StubAlgorithm", "batch": 1}
AXES: dict[str, Any] = {
    "dataset": f"{STUB}StubDataset",
    "model": MODEL,
    "algorithm": {"name": f"{STUB}StubAlgorithm", "number": list(range(10))},
    "compiler": f"{STUB}StubCompiler",
    "hardware": f"{STUB}StubHardware",
    "batch": [1, 2, 4, 8],
}


def study(points: int | None, on: Any = None, *, seed: int = 0, skip: Any = (), **axes: Any) -> Study:
    """Return a sample of stub parts, drawn on some axes."""
    sample = None if points is None else {"points": points, "axes": on}
    return Study(axes={**AXES, **axes}, sample=sample, seed=seed, skip=skip)


def ids(drawn: Study) -> list[str]:
    return [point.id for point in drawn.points()]


def factor(point: Point) -> float:
    return float(dict(point.model.options)["factor"])


def number(point: Point) -> int:
    return int(dict(point.algorithm.options).get("number", 0))


def test_more_points_extend_a_sample() -> None:
    more = ids(study(200))
    assert len(set(more)) == 200
    assert more[:100] == ids(study(100)) == ids(study(200).with_sample(100))
    assert set(more).isdisjoint(ids(study(200, seed=1)))


def test_the_work_to_draw_thousands_of_points_grows_with_their_number() -> None:
    def calls(points: int) -> int:
        profile, drawn = cProfile.Profile(), study(points)
        profile.runcall(drawn.check_size)
        assert len(profile.runcall(ids, drawn)) == points
        return sum(entry.callcount for entry in profile.getstats())

    calls(10)
    assert calls(2000) < 5 * calls(500)


def test_what_a_part_draws_is_written_into_its_point() -> None:
    points = list(study(20).points())
    assert len({factor(point) for point in points}) == 20
    assert all(2 <= factor(point) < 3 for point in points)
    assert {point.batch for point in points} == {1, 2, 4, 8}
    first = points[0]
    algorithm = {"name": first.algorithm.name, "number": number(first)}
    model = {**MODEL, "factor": factor(first)}
    assert ids(study(None, model=model, algorithm=algorithm, batch=first.batch)) == [first.id]


def test_the_axes_that_are_not_drawn_are_crossed_next_to_one_another() -> None:
    points = list(study(30, ["model", "batch"]).points())
    assert len(points) == 300
    groups = [list(group) for _, group in itertools.groupby(points, factor)]
    assert [[number(point) for point in group] for group in groups] == [list(range(10))] * 30
    assert all(len({point.batch for point in group}) == 1 for group in groups)


def test_what_is_drawn_on_an_axis_does_not_depend_on_the_others() -> None:
    alone = study(20, ["model"], **ONE)
    assert [factor(point) for point in study(20).points()] == [factor(point) for point in alone.points()]


def test_each_entry_is_as_likely_and_so_is_each_value_of_an_option() -> None:
    slow = {**MODEL, "seconds": [0.1, 0.2, 0.3]}
    seconds = [
        dict(point.model.options).get("seconds", 0) for point in study(600, model=[MODEL, slow]).points()
    ]
    counts = Counter(seconds)
    assert 250 < counts[0] < 350
    assert all(60 < counts[each] < 140 for each in (0.1, 0.2, 0.3))


def test_a_chain_is_drawn_link_by_link() -> None:
    link = {"name": f"{STUB}StubCompression", "level": [0.25, 0.75]}
    drawn = study(4, ["compression"], **ONE, model=f"{STUB}StubModel", compression=[{"chain": [link, link]}])
    levels = [tuple(dict(each.options)["level"] for each in p.compression.chain) for p in drawn.points()]
    assert sorted(levels) == [(0.25, 0.25), (0.25, 0.75), (0.75, 0.25), (0.75, 0.75)]


def test_a_draw_that_rules_skip_is_replaced_and_one_of_which_a_point_is_left_is_not() -> None:
    skip = [{"batch": [2, 4, 8], "reason": "large"}, {"algorithm": {"number": 3}, "reason": "three"}]
    drawn = study(40, skip=skip)
    points = list(drawn.points())
    assert len(points) == 40
    assert {point.batch for point in points} == {1} and 3 not in map(number, points)
    assert ids(drawn)[:20] == ids(study(20, skip=skip))
    expansion = drawn.expansion()
    assert len(list(drawn.points(expansion))) == expansion.total - sum(expansion.skipped.values())
    assert expansion.skipped.keys() == {"large", "three"} and not drawn.unmatched(expansion)
    crossed = study(40, ["model"], skip=skip)
    assert len(ids(crossed)) == 40 * 9


def test_points_that_a_library_runtime_merges_are_drawn_once() -> None:
    compiler = [f"{STUB}StubCompiler", f"{STUB}StubLibrary"]
    drawn = study(11, ["algorithm", "compiler"], model=f"{STUB}StubModel", batch=1, compiler=compiler)
    assert len(set(ids(drawn))) == 11
    with pytest.raises(InputError, match="algorithm, compiler give 11 different draws"):
        drawn.with_sample(12).check_size()


def test_all_of_a_small_space_can_be_drawn() -> None:
    everything = study(40, model=f"{STUB}StubModel")
    assert sorted(ids(everything)) == sorted(ids(study(None, model=f"{STUB}StubModel")))
    assert ids(everything) != ids(study(None, model=f"{STUB}StubModel"))
    assert ids(everything)[:30] == ids(study(30, model=f"{STUB}StubModel"))


def test_a_space_too_large_to_cross_is_drawn_from() -> None:
    options = {"factor": [n / 7 for n in range(1, 2000)], "seconds": [n / 9 for n in range(1, 2000)]}
    huge = study(50, model={"name": f"{STUB}StubModel", **options})
    huge.check_size()
    assert len(set(ids(huge))) == 50


EIGHT = [
    {"batch": [1, 2, 4], "reason": "small"},
    {"batch": 8, "algorithm": [{"number": 0}, {"number": 1}], "reason": "few"},
]


@pytest.mark.parametrize(
    ("drawn", "said"),
    [
        (study(41, model=f"{STUB}StubModel"), "give 40 different draws that no rule skips"),
        (study(5, "batch", model=f"{STUB}StubModel"), "batch give 4 different draws that no rule skips"),
        (study(9, ["batch", "algorithm"], model=f"{STUB}StubModel", skip=EIGHT), "algorithm, batch give 8"),
        (
            study(2, skip=[{"model": "*", "reason": "all"}]),
            "2,000 draws of .* in a row gave none that is new",
        ),
        (study(9, "model", model=f"{STUB}StubModel"), "model give 1 different draws"),
    ],
)
def test_more_points_than_there_are_are_refused(drawn: Study, said: str) -> None:
    with pytest.raises(InputError, match=f"points = [0-9]+: more points than there are: .*{said}"):
        drawn.check_size()


def test_a_sample_of_over_a_million_points_is_refused_at_once() -> None:
    with pytest.raises(InputError, match=r"expands to 4,000,000 points \(100,000 draws of model; .*batch 4"):
        study(100_000, "model").check_size()


SAMPLE = "[sample]\npoints = 3\n"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", 'StubModel\': factor = "drawn" needs a table .sample.'),
        ("sample = 3\n", "sample = 3: a table is expected"),
        ("[sample]\n", "does not say how many points to draw"),
        (
            "[sample]\npoints = 0\n",
            ".sample. points = 0: the number of points to draw, a whole number above 0",
        ),
        ("[sample]\npoints = 2.5\n", ".sample. points = 2.5: the number of points to draw"),
        ("[sample]\npoints = true\n", ".sample. points = True"),
        ("[sample]\npiont = 3\n", "unknown setting in .sample. 'piont'; did you mean 'points'"),
        (f"{SAMPLE}axes = ['modle']\n", "unknown axis in .sample. axes 'modle'; did you mean 'model'"),
        (f"{SAMPLE}axes = []\n", ".sample. axes is an empty list"),
        (f"{SAMPLE}axes = ['batch']\n", r"axes = \['batch'\] leaves out 'model'"),
    ],
)
def test_a_bad_sample_is_one_clear_message(written: str, said: str) -> None:
    text = f'name = "s"\n{written}[axes]\nmodel = [{{ name = "{STUB}StubModel", factor = "drawn" }}]\n'
    with pytest.raises(InputError, match=said):
        Study.parse(text)


@pytest.mark.parametrize(
    ("axis", "entry", "said"),
    [
        (
            "model",
            {"name": "cifar_resnet18", "width": "drawn"},
            "cannot draw width = 'drawn' .it draws no option",
        ),
        ("model", {**MODEL, "seconds": "drawn"}, "cannot draw seconds = 'drawn' .it draws: factor"),
        ("batch", "drawn", "batch = 'drawn': Input should be a valid integer"),
    ],
)
def test_what_cannot_be_drawn_is_refused(axis: str, entry: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        study(3, **{axis: entry})


def test_the_number_of_points_may_be_given_beside_the_study(tmp_path: Path) -> None:
    drawn = study(5)
    path = tmp_path / "study.toml"
    path.write_text(drawn.toml())
    assert ids(Study.read(path)) == ids(drawn)
    for given in (path, drawn, drawn.written, {**drawn.written, "sample": None}):
        assert ids(Study.of(given, 7)) == ids(study(7))
    path.write_text(drawn.toml().replace("points = 5", 'axes = ["model", "batch"]'))
    assert len(ids(Study.read(path, 2))) == 20
    plain = study(None, model=f"{STUB}StubModel")
    assert set(ids(Study.of(plain, 7))) < set(ids(plain))
    with pytest.raises(InputError, match=r"\[sample\] points = -1"):
        Study.of(path, -1)


def test_the_values_of_a_drawn_axis_are_those_that_were_drawn() -> None:
    drawn = study(3, ["model"])
    assert len(drawn.values("model")) == 3 and drawn.values("batch") == [1, 2, 4, 8]
    assert drawn.varying() == ["model", "algorithm", "batch"]
    skip = [{"model": {"factor": 9.0}, "reason": "never"}]
    (warning,) = study(30, ["model"], skip=skip).unmatched(study(30, ["model"], skip=skip).expansion())
    assert "and 10 more" in warning
