"""Figures of a checkout's structure: each on a package so small that they can be counted by hand."""

from __future__ import annotations

import ast
import importlib
import json
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

from benchmarks.sources import Function, Module, arrows, described_twice, lines, parameters, uses_any
from benchmarks.structure import main, structure
from benchmarks.trips import Trip, followed

FILES = {
    "dlas/__init__.py": "",
    "dlas/errors.py": "class InputError(Exception): ...\n",
    "dlas/api/running.py": '''
        """Runs."""

        from typing import Any

        from dlas.errors import InputError
        from dlas.study import study


        def run(a, b, c, d, e, f, g, *, out: Any, **options: "dict[str, Any]") -> None:
            from dlas.store.files import write  # late

            write(out)
    ''',
    "dlas/store/files.py": '''
        def write(out):
            """Write."""


        class Point: ...
    ''',
    "dlas/study/study.py": """
        from .. import sparse
        from .point import Point


        class _Point: ...
    """,
    "dlas/study/point.py": '''
        class Point:
            """A point.

            Parameters
            ----------
            batch, seed : int
                Of images.

            Raises
            ------
            task
            """

            batch: int
            seed: int
            task: str
    ''',
    "sparse/csr.py": "import dlas.stack\nfrom dlas.schedules.gemm import Gemm\n",
    "schedules/gemm.py": "class Gemm: ...\n",
    "tests/test_architecture.py": 'STOREYS = """\n    api\n    study  schedules\n    store\n"""\n',
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout of the tiny package, whose folder of sparse algorithms is linked as in a real one."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    (tmp_path / "dlas" / "sparse").symlink_to("../sparse")
    return tmp_path


def test_the_figures_of_a_checkout(checkout: Path) -> None:
    figures, names = structure(checkout)
    assert names["rooms"] == ["api", "store", "study"]
    assert names["arrows between rooms"] == [
        "api -> store",
        "api -> study",
        "sparse -> schedules",
        "study -> sparse",
    ]
    assert figures["storeys"] == 3
    assert figures["files"] == 8  # the link is not followed
    assert figures["lines in `api`"] == 13
    assert figures["lines: imports"] == 8
    assert (figures["functions"], figures["functions with a docstring, %"]) == (2, 50.0)
    assert names["public class names used twice or more"] == [
        "Point: dlas/store/files.py, dlas/study/point.py"
    ]
    assert names["fields described twice"] == [
        f"dlas/study/point.py: Point.{name}" for name in ("batch", "seed")
    ]
    assert names["parameters typed `Any`"] == ["dlas/api/running.py: run(out)"]
    assert names["parameters whose type contains `Any`"] == ["dlas/api/running.py: run(options)"]
    assert names["functions with more than 6 parameters"] == ["dlas/api/running.py: run (9)"]


def test_each_line_is_of_one_kind() -> None:
    text = '''
        """A module

        of two paragraphs."""

        # Why.
        LIMIT = 3  # a comment behind code
        """What it limits."""
        TEXT = """
        # no comment

        """


        def f(
            x,
            # of each
        ): ...
    '''
    found = lines(Module(Path("dlas/a.py"), dedent(text)))
    assert found == {"all": 18, "code": 8, "docstrings": 4, "comments": 2, "blank": 4}


def test_arrows_leave_out_a_rooms_own_modules_and_what_is_no_room() -> None:
    package = [
        Module(
            Path("dlas/a/one.py"), "from dlas.a import two\nfrom dlas import errors, b\nimport dlas.c.x\n"
        ),
        Module(Path("dlas/b/__init__.py"), "from ..a.one import X\n"),
        Module(Path("dlas/c/x.py"), "import numpy\n"),
        Module(Path("dlas/errors.py"), "from dlas.c import x\n"),
        Module(Path("sparse/inner/rows.py"), "from ...a import one\n"),
    ]
    assert arrows(package) == {("a", "b"), ("a", "c"), ("b", "a"), ("sparse", "a")}


@pytest.mark.parametrize(
    ("written", "use"),
    [
        ("Any", "is"),
        ("'Any'", "is"),
        ("typing.Any", "is"),
        ("Mapping[str, Any]", "contains"),
        ("'dict[str, Any] | None'", "contains"),
        ("Anything", None),
        ("object", None),
    ],
)
def test_any_is_found_in_annotations(written: str, use: str | None) -> None:
    assert uses_any(ast.parse(written, mode="eval").body) == use


def test_a_method_counts_without_self() -> None:
    (node,) = ast.parse("def f(self, a, /, b=1, *rest, c, **options): ...").body
    assert isinstance(node, Function)
    assert [each.arg for each in parameters(node)] == ["a", "b", "rest", "c", "options"]


def test_a_field_without_an_entry_and_an_entry_without_a_field_are_described_once() -> None:
    text = '''
        class A:
            """A.

            Attributes
            ----------
            a
                b : not an entry, but what ``a`` is.
            c : int
            """

            a: int
            b: int

            def c(self) -> int: ...
    '''
    (node,) = ast.parse(dedent(text)).body
    assert isinstance(node, ast.ClassDef)
    assert described_twice(node) == ["a"]


def test_checkouts_stand_side_by_side(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = checkout / "other"
    (other / "dlas").mkdir(parents=True)
    (other / "dlas" / "one.py").write_text("x = 1\n")
    main(["--root", str(checkout), "--root", str(other)])
    table = capsys.readouterr().out.splitlines()
    assert table[0] == f"| figure | {checkout.name} | other |"
    assert "| rooms | 3 | 0 |" in table
    assert "| storeys | 3 |  |" in table
    main(["--root", str(other), "--json"])
    assert json.loads(capsys.readouterr().out)["other"]["figures"]["lines"] == 1


def test_a_folder_without_the_package_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--root", str(tmp_path)])
    assert f"{tmp_path} holds no python in dlas, schedules, sparse" in capsys.readouterr().err


TOY = {
    "start": """
        from toy import holder, loop, value

        def start(name):
            made = value.Value(name)
            loop.both([made, made])
            holder.Holder(made).look()
            loop.unrelated(made.fitted().size)
    """,
    "value": """
        from toy.results import Result

        class Value:
            def __init__(self, name):
                self.name = name

            def fitted(self):
                return Result(3)
    """,
    "results": """
        from dataclasses import dataclass

        @dataclass
        class Result:
            size: int

            def read(self):
                return self.size
    """,
    "holder": """
        from dataclasses import dataclass

        @dataclass
        class Holder:
            held: object

            def look(self):
                return [read(each) for each in [self.held.fitted()]]

        def read(result):
            return result.read()
    """,
    "loop": """
        from toy import unused

        def both(values):
            return [one(each) for each in values]

        def one(value):
            return unused.length(len(value.name))

        def unrelated(number):
            return number
    """,
    "unused": """
        def length(number):
            return number
    """,
}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the first module of a package through which a value goes."""
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for name, text in TOY.items():
        (folder / f"{name}.py").write_text(dedent(text))
    for name in ("toy", *(f"toy.{name}" for name in TOY)):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("toy.start")


def test_a_trip_counts_the_files_whose_functions_get_the_value(toy: ModuleType, tmp_path: Path) -> None:
    def is_value(value: object) -> bool:
        return value == "name" or type(value).__name__ == "Value"

    trip = Trip(tmp_path / "toy", is_value)
    with followed(trip):
        toy.start("name")
    # Neither `unused`, which gets a number made of the name, nor `results`, which gets none of it.
    assert trip.files == ["toy/start.py", "toy/value.py", "toy/loop.py", "toy/holder.py"]
    # Into `value` three times: to construct it, and for `fitted` from two files.
    # Into `holder` twice, to construct it and for `look`.
    assert trip.stays == 1 + 3 + 1 + 2


def test_what_methods_of_a_maker_return_is_followed_too(toy: ModuleType, tmp_path: Path) -> None:
    def is_value(value: object) -> bool:
        return type(value).__name__ == "Value"

    trip = Trip(tmp_path / "toy", is_value, is_value)
    with followed(trip):
        toy.start("name")
    assert trip.files == ["toy/value.py", "toy/loop.py", "toy/holder.py", "toy/results.py"]
