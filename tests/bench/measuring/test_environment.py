"""What a row says of where it comes from."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dlas.bench.measuring.environment import CHECKOUT, CODE, TOOLCHAIN, code, environment, version


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=someone", "-c", "user.email=someone@example.org"]
    command = ["git", "-C", str(folder), *who, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def checkout(folder: Path) -> Path:
    (folder / "dlas").mkdir(parents=True)
    (folder / "dlas/stack.py").write_text("x = 1\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "Begin")
    return folder


def test_versions_are_known_and_json() -> None:
    found = environment()
    assert json.loads(json.dumps(found)) == found
    assert set(found["versions"]) == set(TOOLCHAIN)
    assert found["versions"]["numpy"]
    assert version("no-such-distribution") is None


def test_nothing_heavy_is_imported() -> None:
    measuring = [f"dlas.bench.measuring.{name}" for name in ("environment", "sampling", "doctor")]
    drivers = [f"dlas.axes.hardware.drivers.{name}" for name in ("local", "rpc")]
    asked = "dlas.bench.measuring.environment.environment()"
    found = "{'torch', 'tvm'} & set(sys.modules)"
    script = f"import sys, {', '.join([*measuring, *drivers])}; {asked}; print({found})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_checkout_says_its_commit_and_whether_the_code_has_changed(tmp_path: Path) -> None:
    clean = checkout(tmp_path / "clean")
    (clean / "README.md").write_text("not code")
    assert code(clean)["commit"] == git(clean, "rev-parse", "HEAD")
    assert code(clean)["dirty"] is False
    edited = checkout(tmp_path / "edited")
    (edited / "dlas/stack.py").write_text("x = 2\n")
    assert code(edited)["dirty"] is True
    added = checkout(tmp_path / "added")
    (added / "dlas/new.py").write_text("")
    assert code(added)["dirty"] is True


def test_rows_of_this_checkout_name_its_commit() -> None:
    if not (Path(__file__).parents[3] / ".git").exists():
        pytest.skip("the tests are not in a checkout")
    assert [name for name in CODE if not (CHECKOUT / name).exists()] == []
    assert environment()["code"]["commit"] == git(CHECKOUT, "rev-parse", "HEAD")


def test_an_installed_package_has_no_commit_even_inside_a_repository(tmp_path: Path) -> None:
    site = checkout(tmp_path) / "site-packages"
    site.mkdir()
    assert code(site) == {"version": version("dlas"), "commit": None, "dirty": None}


def test_a_checkout_that_git_cannot_read_has_no_commit(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere")
    assert code(tmp_path)["commit"] is None
