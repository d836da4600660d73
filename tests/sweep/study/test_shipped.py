"""Studies that come with the package are found by name, and a file of the user's own comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlas.errors import InputError
from dlas.sweep.study.shipped import FOLDER, names, shipped
from dlas.sweep.study.study import Study


@pytest.mark.parametrize(
    "path", ["quickstart", "experiments/quickstart", "experiments/quickstart/study.toml"]
)
def test_a_study_is_found_elsewhere(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Study.read(Path(path)).name == "quickstart"
    assert shipped(Path("dense/types.toml")) == FOLDER / "dense/types.toml"


def test_a_file_of_ones_own_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("quickstart").write_text('name = "mine"\n[axes]\nbatch = [1]\n')
    assert Study.read(Path("quickstart")).name == "mine"


def test_other_names_are_refused_with_those_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"quickstrat.*quickstart"):
        Study.read(Path("quickstrat"))
    assert shipped(Path("../quickstart")) == Path("../quickstart")
    assert "quickstart" in names()
