from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dlas import fingerprint


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
    for cached in (fingerprint._tree, fingerprint._code, fingerprint._imports, fingerprint._file):
        cached.cache_clear()
    return fingerprint.sources([module])


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


def test_editing_a_schedule_does_not_reach_a_network() -> None:
    networks = set()
    waiting = ["dlas.models.cifar_resnet18", "dlas.datasets.digits", "dlas.compression.none"]
    while waiting:
        module = waiting.pop()
        if module not in networks:
            networks.add(module)
            waiting += fingerprint._imports(module)
    assert not any(name.startswith(("dlas.schedules", "dlas.sparse", "dlas.lowering")) for name in networks)
    assert "dlas.training" in networks


def test_a_file_counts_by_content(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"1")
    first = fingerprint.file_digests([path])
    path.write_bytes(b"22")
    second = fingerprint.file_digests([path])
    assert set(first) == set(second) == {str(path)}
    assert first != second
