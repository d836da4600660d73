"""Objects of modules and of files, which import others beside them and change."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dlas.errors import InputError
from dlas.sweep.study import parts
from dlas.sweep.study.named_objects import object_at

OWN = """
from __future__ import annotations

from dataclasses import dataclass

import beside_a_named_object
from tests.fixtures.stubs import StubModel


@dataclass(frozen=True)
class Own(StubModel):
    width: int | None = beside_a_named_object.WIDTH


def later() -> int:
    import called_by_a_named_object

    return called_by_a_named_object.NUMBER


class Space:
    class Inner:
        pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder below the current one, with a file and two that it imports."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    below = tmp_path / "below"
    below.mkdir()
    (below / "named_object.py").write_text(OWN)
    (below / "beside_a_named_object.py").write_text("WIDTH = 3\n")
    (below / "called_by_a_named_object.py").write_text("NUMBER = 4\n")
    yield below
    for name, module in list(sys.modules.items()):
        if (file := getattr(module, "__file__", None)) and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]


def test_a_file_imports_others_beside_it_now_and_when_it_is_called(folder: Path) -> None:
    later: Any = object_at("below/named_object.py:later")
    assert later() == 4
    assert sys.path[0] != str(folder), "it takes precedence for as long as the file is imported"
    inner: Any = object_at("below/named_object.py:Space.Inner")
    assert sys.modules[inner.__module__].Space.Inner is inner, "as pickles and dataclasses look it up"
    assert object_at("below/named_object.py:Space.Inner") is inner


def test_a_part_may_be_in_a_file(folder: Path) -> None:
    part = parts.Finder().make("model", "below/named_object.py:Own", {"factor": 2.0})
    assert (part.width, part.factor) == (3, 2.0)
    with pytest.raises(InputError, match=r"'below/named_object.py:Space' is not a dlas.stack.Model"):
        parts.Finder().find("model", "below/named_object.py:Space")


def test_a_file_that_changed_is_another_module(folder: Path) -> None:
    path = folder / "named_object.py"
    path.write_text("number = 1\n")
    assert object_at("below/named_object.py:number") == 1
    path.write_text("number = 2\n")
    os.utime(path, ns=(1, 1))
    assert object_at(f"{path}:number") == 2


def test_a_file_named_like_a_module_leaves_that_as_it_is(folder: Path) -> None:
    (folder / "json.py").write_text("number = 1\n")
    assert object_at("below/json.py:number") == 1
    import json

    assert json.loads("1") == 1 and sys.modules["json"] is json


def test_a_name_that_is_not_there_is_told_with_those_of_the_file_and_not_with_what_it_imports(
    folder: Path,
) -> None:
    (folder / "importing.py").write_text("from pathlib import Path\nimport os\nclass Own(Path): ...\n")
    with pytest.raises(InputError, match=r"'Onw'; did you mean 'Own'\? \(there are: Own\)$"):
        object_at("below/importing.py:Onw")
    (folder / "exporting.py").write_text("from pathlib import Path\n")
    with pytest.raises(InputError, match=r"there are: Path\)$"):  # nothing else is there
        object_at("below/exporting.py:Own")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("below/named_object.py:Missing", "unknown name in below/named_object.py 'Missing'.*Own"),
        ("below/named_object.py:later.missing", "unknown name in below/named_object.py 'missing'"),
        ("below/nothing.py:Own", "model 'below/nothing.py:Own': there is no file 'below/nothing.py'"),
        ("below/broken.py:Own", "cannot import 'below/broken.py': ZeroDivisionError"),
        ("nowhere_at_all:Own", "cannot import 'nowhere_at_all': ModuleNotFoundError"),
        ("below/named_object:Own", "is not of the form 'package.module:Class' or 'file.py:Class'"),
        ("named_object.py", "is not of the form"),
    ],
)
def test_what_is_not_there_is_one_message(text: str, said: str, folder: Path) -> None:
    (folder / "broken.py").write_text("1 / 0\n")
    with pytest.raises(InputError, match=said):
        object_at(text, "model")
    assert "broken" not in sys.modules
