"""Installed packages that cannot be imported: one line that names them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from dlas.face.console.installation import broken_package


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "raise TypeError('Descriptors cannot be created directly.\\nIf this call came from')",
            "Descriptors",
        ),
        ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
        ("def run():\n    raise ValueError('of a call')", None),
    ],
)
def test_the_package_whose_import_fails_is_named(
    content: str, said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "protobroken.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "protobroken", raising=False)
    with pytest.raises(Exception) as caught:
        importlib.import_module("protobroken").run()
    found = broken_package(caught.value)
    if said is None:
        assert found is None
    else:
        assert found is not None and len(found.splitlines()) == 1
        assert found.startswith("the package 'protobroken' cannot be imported: ") and said in found


def test_a_package_that_is_missing_is_named_and_a_module_of_ones_own_is_not() -> None:
    for name, said in (("nowhere_at_all", "the package 'nowhere_at_all'"), ("dlas.nowhere", None)):
        with pytest.raises(ModuleNotFoundError) as caught:
            importlib.import_module(name)
        assert (broken_package(caught.value) or "none").startswith(said or "none")
