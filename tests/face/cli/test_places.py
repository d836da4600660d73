"""Files and folders that cannot be read or written: one message, exit code 2, and nothing written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import dlas as package
from dlas.bench.measuring.doctor import disk
from tests.fixtures import rows
from tests.fixtures.commands import Command

STUDY = 'name = "s"\n[axes]\ndataset = ["random"]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with studies, what is in the way, and a sweep of one row."""
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "others").mkdir()
    for name in "abcd":
        (tmp_path / "others" / f"{name}.py").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "piped.toml").write_text(STUDY + 'model = [{ name = "onnx", path = "pipe" }]')
    (tmp_path / "file").write_text("")
    rows.write(tmp_path / "rows", [rows.row()])
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "study.toml", "--out", "file"], "'file' is a file"),
        (["run", "study.toml", "--out", "file/below"], "'file' is a file"),
        (["run", "study.toml", "--out", "/proc/nowhere"], "cannot create the results folder '/proc/nowhere'"),
        (["run", "study.toml", "--out", "out", "--cache", "file"], "the cache 'file'"),
        (["run", "study.toml", "--out", "out", "--cache", "/proc/nowhere"], "the cache '/proc/nowhere'"),
        (
            ["run", "study.toml", "--out", "others"],
            "'others' holds other files (a.py, b.py, c.py, and 1 more), and",
        ),
        (["run", "study.toml", "--out", "others", "--dry-run"], "'others' holds other files (a.py"),
        (["explore", "study.toml", "--out", "others"], "'others' holds other files (a.py"),
        (["run", "pipe", "--out", "out"], "cannot read the study 'pipe': it is a pipe"),
        (["run", "/dev/zero", "--out", "out"], "cannot read the study '/dev/zero': it is a pipe or a device"),
        (["run", "piped.toml", "--out", "out"], "'pipe' is a pipe or a device; a file is expected"),
        (["records", "merge", "pipe"], "cannot read the records 'pipe'"),
        (["predict", "p" * 5000, "study.toml"], "'" + "p" * 150),
        (["explore", "study.toml", "--out", "file"], "'file' is a file"),
        (["explore", "study.toml", "--out", "/proc/nowhere"], "cannot create the results folder"),
        (["explore", "study.toml", "--out", "out", "--share", "0"], "--share 0: expected a share above 0"),
        (["tune", "cifar_resnet18", "--cache", "file"], "the cache 'file'"),
        (["table", "file"], "'file' is a file"),
        (["show", "file", "aa"], "'file' is a file"),
        (["export", "rows", "--to", "/proc/nowhere.csv"], "'/proc/nowhere.csv'"),
        (["export", "rows", "--to", "file/rows.csv"], "'file/rows.csv'"),
        (["report", "rows", "--out", "page.pdf"], "'page.pdf': the report is one HTML page"),
        (["report", "rows", "--out", "file/page.html"], "cannot write 'file"),
        (["records", "list", "--cache", "file"], "the cache 'file' is a file"),
        (["records", "export", "--to", "/proc/nowhere"], "'/proc/nowhere'"),
    ],
)
def test_a_place_that_cannot_be_used_is_one_message(
    folder: Path, dlas_here: Command, words: list[str], said: str
) -> None:
    refused = dlas_here(*words)
    assert refused.returncode == 2, refused.stderr
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr and len(refused.stderr.splitlines()) == 1
    assert len(refused.stderr) < 1000
    assert not (folder / "out").exists() and not (folder / "page.pdf").exists()


def test_a_byte_order_mark_at_the_start_of_a_study_is_fine(folder: Path, dlas_here: Command) -> None:
    (folder / "study.toml").write_text(f"\ufeff{STUDY.replace('random', 'randm')}", encoding="utf-8")
    refused = dlas_here("run", "study.toml", "--out", "out")
    assert "did you mean 'random'" in refused.stderr


def test_a_cache_that_is_a_file_fails_the_doctors_check(folder: Path) -> None:
    check = disk("disk for the cache", folder / "file")
    assert check.status == "fail" and "file is a file" in check.finding


def test_the_version_and_help_have_short_forms(dlas_here: Command) -> None:
    assert dlas_here("--version").stdout == f"dlas {package.__version__}\n"
    for words in (["-h"], ["table", "-h"], ["records", "list", "-h"]):
        asked = dlas_here(*words)
        assert asked.returncode == 0 and "Usage:" in asked.stdout
    assert "--install-completion" in dlas_here("-h").stdout
