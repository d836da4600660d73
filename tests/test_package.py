"""What is installed elsewhere is what stands here."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from tests.fixtures.package import ROOT


def listed(key: str) -> list[str]:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    return [line.strip() for line in settings["options"][key].splitlines() if line.strip()]


def folders() -> dict[str, Path]:
    """Every folder under dlas/ by its import name, links followed, studies' own folders left out."""
    found = {"dlas": ROOT / "dlas"}
    for folder, inside, _ in os.walk(ROOT / "dlas", followlinks=True):
        studies = folder.endswith("dlas/experiments")
        inside[:] = [name for name in inside if name != "__pycache__" and not studies]
        for name in inside:
            path = Path(folder, name)
            found[".".join(path.relative_to(ROOT).parts)] = path
    return found


def test_every_package_is_listed() -> None:
    assert listed("packages") == sorted(folders())


def test_linked_packages_are_mapped_to_the_same_folder() -> None:
    mapped = dict(line.split(" = ") for line in listed("package_dir"))
    links = {name: path for name, path in folders().items() if path.is_symlink()}
    assert set(mapped) == {"dlas", *links}
    for name, path in links.items():
        assert path.resolve() == (ROOT / mapped[name]).resolve()


def test_constraints_hold_everything_that_is_required() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    needed = "".join([settings["options"]["install_requires"], *settings["options.extras_require"].values()])
    names = {line.split()[0].partition("[")[0] for line in needed.splitlines() if line.strip()}
    held = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert names <= held


@pytest.mark.parametrize("name", ["schedules", "sparse"])
def test_a_bare_name_is_refused(name: str) -> None:
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {name}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "second copy" in done.stderr or "another package" in done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel of this tree, built from a copy: building leaves folders behind."""
    copy, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    tracked = ["dlas", "schedules", "sparse", "hardware_profiles", "experiments"]
    files = ["setup.cfg", "pyproject.toml", "README.md", "LICENSE"]
    subprocess.run(["cp", "-R", "-P", *tracked, *files, copy], cwd=ROOT, check=True)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(copy)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (path,) = out.glob("*.whl")
    return zipfile.ZipFile(path)


def test_a_wheel_holds_every_module_profile_and_study_once(wheel: zipfile.ZipFile) -> None:
    inside = Counter(name for name in wheel.namelist() if ".dist-info/" not in name)
    assert max(inside.values()) == 1
    expected = {
        path.relative_to(ROOT).as_posix()
        for folder in folders().values()
        for pattern in ("*.py", "*.toml", "*.css", "*.jinja", "*.js", "*.json", "py.typed")
        for path in folder.glob(pattern)
    }
    expected |= {
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.toml", "README.md")
        for path in (ROOT / "dlas/experiments").glob(f"*/{pattern}")
    }
    assert set(inside) == expected


def test_a_wheel_brings_the_command(wheel: zipfile.ZipFile) -> None:
    (entries,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert b"dlas = dlas.face.cli:main" in wheel.read(entries)
