"""Parts are told from their source: the same as of the parts themselves, and nothing is imported."""

from __future__ import annotations

import ast
import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from dlas.sweep.study import parts
from dlas.sweep.study.describing import describe
from dlas.sweep.study.docstrings import behind_fields, meanings
from dlas.sweep.study.outlines import FINDER, OutlineFinder, Unreadable, outline
from tests.fixtures.package import ROOT

TOLD = """
import json, sys
from dlas.sweep.study import parts
from dlas.sweep.study.describing import describe
from dlas.sweep.study.outlines import FINDER

told = {}
for axis in parts.HOMES:
    for names in FINDER.modules(axis):
        told[f"{axis} {' '.join(names)}"] = str(describe(axis, names[0]))
imported = [name for name in ("torch", "tvm", "pandas") if name in sys.modules]
print(json.dumps({"told": told, "imported": imported}))
"""


@pytest.mark.slow
def test_every_part_is_told_as_by_importing_it_and_nothing_is_imported() -> None:
    ran = subprocess.run([sys.executable, "-c", TOLD], cwd=ROOT, capture_output=True, text=True, check=True)
    outlined = json.loads(ran.stdout)
    imported = {
        f"{axis} {' '.join(names)}": str(describe(axis, names[0], parts.FINDER))
        for axis in parts.HOMES
        for names in parts.FINDER.modules(axis)
    }
    assert outlined["told"] == imported
    assert outlined["imported"] == []


PART = '''
from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field

from dlas.stack import Dataset
{imports}

MOST = {most}
Size = Annotated[int, Field(ge=1, le=MOST)]


class Net(torch.nn.Module):
    """No part."""


@dataclass(frozen=True)
class Own(Dataset):
    """A data set of one's own.

    Parameters
    ----------
    size : int
        How large.
    """

    recipe: ClassVar[str] = torch.float32
    size: Size = 4
    level: float = 0.5
    """How much
    of it."""

    def load(self):
        raise NotImplementedError
'''


def finder(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> OutlineFinder:
    """Return what finds the part of a home that holds one."""
    home = folder / f"home_{folder.name}"
    home.mkdir()
    (home / "__init__.py").write_text("")
    (home / "own.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    return OutlineFinder({"dataset": [home.name]}, lambda axis: [])


def test_the_fields_of_a_part_are_read_with_what_is_written_behind_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = finder(tmp_path, PART.format(imports="", most="2**4"), monkeypatch)
    told = describe("dataset", "own", own)
    assert (told.summary, told.text) == ("A data set of one's own.", "")
    assert [dataclasses.astuple(option) for option in told.options] == [
        ("size", "4", False, "integer 1 to 16", "How large."),
        ("level", "0.5", False, "number", "How much of it."),
    ]
    assert told.file.name == "own.py" and told.file.parent.parent == tmp_path
    assert f"home_{tmp_path.name}.own" not in sys.modules


def test_a_part_is_imported_where_its_source_does_not_suffice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PART.format(imports="def most():\n    return 127\n", most="most()")
    own = finder(tmp_path, text, monkeypatch)
    assert describe("dataset", "own", own).options[0].allowed == "integer 1 to 127"
    assert f"home_{tmp_path.name}.own" in sys.modules


def test_a_module_without_source_has_no_outline() -> None:
    with pytest.raises(Unreadable):
        outline("math")


def test_names_of_torchvisions_networks_are_read_without_importing_it() -> None:
    names = [found for found in FINDER.modules("model") if "resnet18" in found]
    assert len(names) == 1 and {"vgg11_bn", "vit_b_16", "googlenet"} <= {*names[0]}


SAID = """Do it.

    Parameters
    ----------
    one, two : int
        Of ``both``.
    three
        As
        it is.

    Returns
    -------
    int
        No parameter.
    """
FIELDS = """
class Own:
    one: int = 1
    '''Of one.'''
    two: int
    three: int
"""


def test_docstrings_of_parameters_and_behind_fields() -> None:
    assert meanings(SAID) == {"one": "Of ``both``.", "two": "Of ``both``.", "three": "As it is."}
    (definition,) = ast.parse(FIELDS).body
    assert isinstance(definition, ast.ClassDef)
    assert dict(behind_fields(definition)) == {"one": "Of one."}
