from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from dlas.bench.store import fingerprint
from dlas.bench.store.fingerprint import SourceTree


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "pkg_of_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "leaf.py").write_text("VALUE = 1\n")
    (folder / "middle.py").write_text("from pkg_of_test import leaf\n")
    (folder / "part.py").write_text('"""Doc."""\nimport os\nfrom pkg_of_test.middle import leaf\n')
    (folder / "other.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith("pkg_of_test")]:
        del sys.modules[name]


def code_of(module: str) -> str:
    code = SourceTree()
    return code.digest(code.closure([module]))


def test_a_change_in_what_is_imported_changes_the_hash(package: Path) -> None:
    before = code_of("pkg_of_test.part")
    (package / "leaf.py").write_text("VALUE = 2\n")
    assert code_of("pkg_of_test.part") != before


def test_what_is_not_imported_does_not_count(package: Path) -> None:
    before = code_of("pkg_of_test.part")
    (package / "other.py").write_text("VALUE = 2\n")
    assert code_of("pkg_of_test.part") == before


def test_comments_docstrings_and_layout_do_not_count(package: Path) -> None:
    before = code_of("pkg_of_test.part")
    (package / "leaf.py").write_text('"""New."""\n\n\nVALUE   =  1  # one\n')
    assert code_of("pkg_of_test.part") == before


def test_nothing_is_imported_to_find_what_counts(package: Path) -> None:
    (package / "part.py").write_text("from pkg_of_test.middle import leaf\nimport pkg_of_test.other\n")
    before = code_of("pkg_of_test.part")
    (package / "other.py").write_text("VALUE = 2\n")
    assert code_of("pkg_of_test.part") != before
    assert not {"pkg_of_test.part", "pkg_of_test.middle", "pkg_of_test.other"} & set(sys.modules)


def test_docstrings_of_constants_do_not_count(package: Path) -> None:
    (package / "leaf.py").write_text('VALUE = 1\n"""What it is."""\n')
    before = code_of("pkg_of_test.part")
    (package / "leaf.py").write_text('VALUE = 1\n"""What it is for."""\n')
    assert code_of("pkg_of_test.part") == before


def test_moving_a_module_renews_nothing(package: Path) -> None:
    before = code_of("pkg_of_test.part")
    room = package / "room"
    room.mkdir()
    (room / "__init__.py").write_text('"""A room."""\n')
    (package / "leaf.py").rename(room / "leaf.py")
    (package / "middle.py").write_text("from pkg_of_test.room import leaf\n")
    assert code_of("pkg_of_test.part") == before


def test_importing_another_function_under_the_same_name_counts(package: Path) -> None:
    (package / "leaf.py").write_text("A = 1\nB = 2\n")
    (package / "middle.py").write_text("from pkg_of_test.leaf import A as leaf\n")
    before = code_of("pkg_of_test.part")
    (package / "middle.py").write_text("from pkg_of_test.leaf import B as leaf\n")
    assert code_of("pkg_of_test.part") != before


@pytest.mark.parametrize(
    "line", ["from pkg_of_test import leaf", "from . import leaf", "from .leaf import VALUE"]
)
def test_importing_a_module_does_not_bring_in_its_package(package: Path, line: str) -> None:
    (package / "__init__.py").write_text("from pkg_of_test.other import VALUE\nNAME = 1\n")
    (package / "part.py").write_text(line)
    assert SourceTree().closure(["pkg_of_test.part"]) == {"pkg_of_test.part", "pkg_of_test.leaf"}


@pytest.mark.parametrize("line", ["from .other import VALUE as VALUE", "from pkg_of_test.other import VALUE"])
def test_a_name_that_a_package_passes_on_is_followed_to_where_it_is_defined(package: Path, line: str) -> None:
    (package / "__init__.py").write_text(f"from .leaf import VALUE as OTHER\n{line}\n")
    (package / "part.py").write_text("from pkg_of_test import VALUE")
    assert SourceTree().closure(["pkg_of_test.part"]) == {"pkg_of_test.part", "pkg_of_test.other"}


def test_what_only_type_checkers_import_does_not_count(package: Path) -> None:
    (package / "part.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg_of_test import leaf\n"
    )
    assert SourceTree().closure(["pkg_of_test.part"]) == {"pkg_of_test.part"}


def test_code_outside_the_project_follows_the_parts_of_it_that_it_uses(package: Path) -> None:
    (package / "part.py").write_text("from dlas.errors import unknown\n")
    assert SourceTree().closure(["pkg_of_test.part"]) == {"pkg_of_test.part", "dlas.errors"}


def test_an_edit_can_be_tried_without_making_it(package: Path) -> None:
    before, edited = SourceTree(), SourceTree({"pkg_of_test.leaf": "VALUE = 2\n"})
    modules = before.closure(["pkg_of_test.part"])
    assert edited.closure(["pkg_of_test.part"]) == modules
    assert edited.digest(modules) != before.digest(modules)


def test_a_file_counts_by_content(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"1")
    first = fingerprint.file_digests([path])
    path.write_bytes(b"22")
    second = fingerprint.file_digests([path])
    assert set(first) == set(second) == {str(path)}
    assert first != second


def test_a_package_is_found_under_its_other_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(name: str) -> str:
        if name != "xgboost-cpu":
            raise metadata.PackageNotFoundError(name)
        return "3.2.0"

    fingerprint.version.cache_clear()
    monkeypatch.setattr(metadata, "version", installed)
    try:
        found = fingerprint.versions(["xgboost", "onnxruntime"])
    finally:
        fingerprint.version.cache_clear()
    assert found == {"xgboost": "3.2.0", "onnxruntime": None}
