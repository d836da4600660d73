from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dlas.errors import InputError
from dlas.sweep.study.chain import Chain
from dlas.sweep.study.point import Choice, Point
from dlas.sweep.study.study import Study
from tests.fixtures.package import ROOT

STUBS = """
name = "s"
[axes]
dataset = ["tests.fixtures.stubs:StubDataset"]
model = ["tests.fixtures.stubs:StubModel"]
algorithm = ["tests.fixtures.stubs:StubAlgorithm"]
compiler = ["tests.fixtures.stubs:StubCompiler"]
hardware = ["tests.fixtures.stubs:StubHardware"]
"""


def with_axis(line: str) -> str:
    axis = line.partition("=")[0].strip()
    return "\n".join(each for each in STUBS.splitlines() if not each.startswith(axis)) + "\n" + line


def points(text: str) -> list[Point]:
    return list(Study.parse(text).points())


def test_options_given_lists_are_tried_at_each_value() -> None:
    text = with_axis(
        'model = [{name = "tests.fixtures.stubs:StubModel", factor = [1.5, 2.5], seconds = [0.1, 0.2]}]'
    )
    assert [dict(point.model.options) for point in points(text)] == [
        {"factor": 1.5, "seconds": 0.1},
        {"factor": 1.5, "seconds": 0.2},
        {"factor": 2.5, "seconds": 0.1},
        {"factor": 2.5, "seconds": 0.2},
    ]


def test_an_axis_left_out_takes_its_default() -> None:
    (point,) = points(STUBS)
    assert (point.compression.name, point.batch, point.seed) == ("none", 1, 0)


@pytest.mark.parametrize(
    "line",
    [
        'model = ["tests.fixtures.stubs:StubModel"]',
        'model = "tests.fixtures.stubs:StubModel"',
        'model = [{name = "tests.fixtures.stubs:StubModel"}]',
        'model = [{name = "tests.fixtures.stubs:StubModel", factor = 1.0}]',
        'model = [{name = "tests.fixtures.stubs:StubModel", factor = 1}]',
        'model = [{seconds = 0, factor = [1.0], name = "tests.fixtures.stubs:StubModel"}]',
    ],
)
def test_the_same_meaning_has_the_same_id(line: str) -> None:
    (plain,) = points(STUBS)
    (written,) = points(with_axis(line))
    assert written.id == plain.id


def test_ids_do_not_change_between_versions() -> None:
    point = Point(
        Choice("digits"),
        Choice("cifar_resnet18", (("width", 0.25),)),
        Choice("weight_pruning+int8", chain=(Choice("weight_pruning", (("level", 0.8),)), Choice("int8"))),
        Choice("direct"),
        Choice("untuned"),
        Choice("local_cpu", (("threads", 2),)),
        batch=8,
        seed=3,
    )
    assert point.id == "d53dc402eaada7a4"
    assert Point.of(point.content()) == point


@pytest.mark.parametrize(
    "change",
    [
        "batch = [2]",
        'model = [{name = "tests.fixtures.stubs:StubModel", factor = 2.0}]',
        'compression = ["tests.fixtures.stubs:StubCompression"]',
    ],
)
def test_another_meaning_has_another_id(change: str) -> None:
    assert points(with_axis(change))[0].id != points(STUBS)[0].id


def test_a_library_runtime_collapses_the_algorithm_axis_and_merges() -> None:
    text = with_axis(
        'algorithm = [{name = "tests.fixtures.stubs:StubAlgorithm", number = [0, 1, 2]}]'
    ).replace(
        '["tests.fixtures.stubs:StubCompiler"]',
        '["tests.fixtures.stubs:StubCompiler", "tests.fixtures.stubs:StubLibrary"]',
    )
    study = Study.parse(text)
    expansion = study.expansion()
    found = list(study.points(expansion))
    assert [point.algorithm.name for point in found].count("library") == 1
    assert (expansion.total, len(found), expansion.merged) == (6, 4, 2)


def test_skip_rules_drop_what_matches_every_pattern_and_are_counted() -> None:
    text = (
        with_axis("batch = [1, 8]")
        + """
[[skip]]
batch = 8
compiler = "*StubCompiler"
reason = "too big"
"""
    )
    study = Study.parse(text)
    expansion = study.expansion()
    assert [point.batch for point in study.points(expansion)] == [1]
    assert dict(expansion.skipped) == {"too big": 1}


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ('model = {name = "tests.fixtures.stubs:*", factor = 1.0}', 1),
        ("model = {factor = [2.0]}", 2),
        ("model = {factor = 2.0}", 1),
        ('model = ["nothing", "tests.fixtures.stubs:StubModel"]', 0),
        ("model = {unknown = 2.0}", 2),
        ('model = {trouble = "n*e"}', 0),
        ('model = {trouble = "*x*"}', 2),
    ],
)
def test_a_skip_pattern_may_name_options_and_alternatives(pattern: str, left: int) -> None:
    text = with_axis('model = [{name = "tests.fixtures.stubs:StubModel", factor = [1.0, 2.0]}]')
    assert len(points(f'{text}\n[[skip]]\n{pattern}\nreason = "r"')) == left


def test_a_chain_is_one_choice_that_keeps_its_order() -> None:
    link = '{name = "tests.fixtures.stubs:StubCompression", level = [0.25, 0.75]}'
    found = points(with_axis(f'compression = [{{chain = [{link}, "none"]}}]'))
    assert [len(point.compression.chain) for point in found] == [2, 2]
    assert found[0].compression.content()["chain"][0]["level"] == 0.25
    part = found[1].compression_part
    assert isinstance(part, Chain)
    assert [type(each).__name__ for each in part.links] == ["StubCompression", "NoCompression"]


def test_points_that_will_be_compared_are_neighbours() -> None:
    text = with_axis("batch = [1, 2]").replace(
        '["tests.fixtures.stubs:StubCompiler"]',
        '[{name = "tests.fixtures.stubs:StubCompiler", number = [0, 1]}]',
    )
    assert [point.batch for point in points(text)] == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty study"),
        ('name = "s"', r"an empty study: the table \[axes\]"),
        ('name = "s"\n[axes]', "an empty study"),
        ('name = "s"\n[axes]\nmodel = [', "broken TOML.*: line 3 is 'model = \\['"),
        ("name = 3\n[axes]\nbatch = [1]", "name = 3"),
        ('name = "../s"\n[axes]\nbatch = [1]', "'../s'"),
        ("[axes]\nbatch = [1]", "the study has no name: write name"),
        ('[axes]\nbatch = [1]\nmodel = ["nowhere"]', "unknown model 'nowhere'"),
        ('nmae = "s"', "unknown key in the study 'nmae'; did you mean 'name'"),
        (with_axis('modle = ["x"]'), "unknown axis 'modle'; did you mean 'model'"),
        (with_axis('compiler = ["untunde"]'), "unknown compiler 'untunde'; did you mean 'untuned'"),
        (with_axis('model = ["cifar_resnet81"]'), "did you mean 'cifar_resnet18'"),
        (
            with_axis('model = [{name = "tests.fixtures.stubs:StubModel", fcator = 1.0}]'),
            "did you mean 'factor'",
        ),
        (
            with_axis('model = [{name = "tests.fixtures.stubs:StubModel", factor = "much"}]'),
            "factor = 'much'.*valid number",
        ),
        (
            with_axis('model = [{name = "tests.fixtures.stubs:StubModel", trouble = "some"}]'),
            "trouble = 'some'",
        ),
        (
            with_axis('model = [{name = "tests.fixtures.stubs:StubModel", factor = []}]'),
            "an option with an empty list",
        ),
        (with_axis('model = ["tests.fixtures.stubs:StubDataset"]'), "is not a dlas.stack.Model"),
        (with_axis('model = ["tests.fixtures.stubs:StubModle"]'), "did you mean 'StubModel'"),
        (with_axis('model = ["tests.stabs:StubModel"]'), "cannot import 'tests.stabs'"),
        (with_axis('model = ["../x:Y"]'), "not of the form"),
        (with_axis("model = [3]"), "3 is neither a part's name nor a table"),
        (with_axis("model = []"), "an empty list"),
        (with_axis("batch = [0]"), "batch = 0"),
        (with_axis("batch = [true]"), "batch = True"),
        (with_axis("compression = [{chain = []}]"), "an empty chain"),
        (STUBS + '[[skip]]\nmodel = "x"', "skip rule 1 has no reason"),
        (STUBS + '[[skip]]\nreason = "why"', "names no axis"),
        (STUBS + '[[skip]]\nmodul = "x"\nreason = "why"', "axis in skip rule 1 'modul'"),
        (STUBS + "[measure]\nrepeat = 3", "setting in .measure. 'repeat'; did you mean 'repeats'"),
        (STUBS + "[measure]\nseconds = -1", r"\[measure\] seconds = -1"),
        (STUBS + "[limits]\nbuild = 0", r"\[limits\] build = 0"),
    ],
)
def test_bad_input_is_one_clear_message(text: str, said: str) -> None:
    with pytest.raises(InputError, match=f"(?s){said}"):
        Study.parse(text)


def test_a_study_that_expands_to_nothing_says_why() -> None:
    study = Study.parse(STUBS + '[[skip]]\nmodel = "*"\nreason = "not today"')
    with pytest.raises(InputError, match=r"expands to nothing.*1 by 'not today'"):
        study.check_size()


def test_a_study_of_over_a_million_points_is_refused_at_once() -> None:
    numbers = list(range(1200))
    text = with_axis(
        f'model = [{{name = "tests.fixtures.stubs:StubModel", factor = {[n + 0.5 for n in numbers]}}}]'
    )
    text += f"\nbatch = {[n + 1 for n in numbers]}"
    with pytest.raises(InputError, match=r"1,440,000 points .*model 1200.*at most 1,000,000"):
        Study.parse(text).check_size()


def test_an_unreadable_study_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.toml"):
        Study.read(tmp_path / "nothing.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file"):
        Study.read(binary)


def test_the_documented_study_is_a_study() -> None:
    page = (ROOT / "docs/reference/studies.md").read_text()
    Study.parse(page.partition("```toml\n")[2].partition("```")[0]).check_size()


def test_a_study_may_be_written_in_python() -> None:
    axes = {
        "model": {"name": "tests.fixtures.stubs:StubModel", "factor": (1.5, 2.5), "trace": Path("here")},
        "compiler": "tests.fixtures.stubs:StubCompiler",
        "batch": range(1, 3),
    }
    skip = [{"batch": 2, "model": {"factor": 2.5}, "reason": "one is enough"}]
    study = Study(axes=axes, name="s", skip=skip, measure={"repeats": 3}).with_limits(build=5)
    found = list(study.points())
    assert [(dict(point.model.options)["factor"], point.batch) for point in found] == [
        (1.5, 1),
        (1.5, 2),
        (2.5, 1),
    ]
    assert dict(found[0].model.options)["trace"] == "here"
    again = Study.parse(study.toml())
    assert again == study and (again.measure.repeats, again.limits.build) == (3, 5)
    assert [point.id for point in again.points()] == [point.id for point in found]
    assert Study.of(study) is study
    assert Study.of({"axes": axes, "name": "s"}).axes == study.axes


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"axis": {}}, "unknown key in the study 'axis'; did you mean 'axes'"),
        ({}, r"an empty study: the table \[axes\]"),
        ({"axes": {"modle": "resnet18"}}, "did you mean 'model'"),
        ({"axes": {"model": {"factor": 1}}}, "neither a part's name nor a table with a name"),
        ({"axes": {"batch": 1}, "skip": [{"batch": 1}]}, "skip rule 1 has no reason"),
        ({"axes": {"batch": 1}, "name": "no spaces"}, "a study needs a name of letters"),
    ],
)
def test_a_study_in_python_is_checked_like_a_file(table: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Study.of(table)


def test_a_skip_rule_that_matches_no_point_is_told_with_what_there_is() -> None:
    study = Study.parse(
        """
name = "s"
[axes]
algorithm = ["direct", "gemm"]
compiler  = ["untuned", "onnxruntime"]
[[skip]]
algorithm = "gemm"
reason    = "it matches"
[[skip]]
algorithm = ["gem", "gemmm"]
reason    = "misspelt"
[[skip]]
algorithm = "gemm"
compiler  = "untuned"
reason    = "the first rule matches it already"
[[skip]]
model     = { name = "cifar_resnet18", width = 0.5 }
compiler  = "untuned"
reason    = "another width"
[[skip]]
algorithm = "direct"
compiler  = "onnxruntime"
reason    = "a runtime takes no algorithm"
"""
    )
    expansion = study.expansion()
    assert len(list(study.points(expansion))) == 2
    assert study.unmatched(expansion) == [
        'skip rule 2 matches no point (algorithm = ["gem", "gemmm"], reason = "misspelt"): '
        "algorithm is one of direct, gemm",
        'skip rule 4 matches no point (compiler = "untuned", model = { name = "cifar_resnet18", '
        'width = 0.5 }, reason = "another width"): model is one of cifar_resnet18',
        'skip rule 5 matches no point (algorithm = "direct", compiler = "onnxruntime", '
        'reason = "a runtime takes no algorithm"): each pattern matches a value, but no point has '
        "all of them",
    ]
