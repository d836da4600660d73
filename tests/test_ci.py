"""What `.ci/run` does: the targets in order, and Debian packages where they can be installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.package import ROOT

TOOLS = ("bash", "dirname", "env", "rm", "tail", "timeout")
TARGETS = ["make install", "make test", "make test-ci"]
APT_GET = "apt-get -qq -o DPkg::Lock::Timeout=30 -o APT::Install-Recommends=false"
PACKAGES = "chromium chromium-driver valgrind dataset-fashion-mnist"
INSTALLED = [f"{APT_GET} update", f"{APT_GET} install {PACKAGES} -y"]


class Machine:
    """A folder of programs that only note how they were called, in a file."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls = folder, folder / "calls"
        (folder / ".ci").mkdir(parents=True)
        (folder / "bin").mkdir()
        (folder / ".venv").mkdir()
        shutil.copy(ROOT / ".ci/run", folder / ".ci/run")
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None
            (folder / "bin" / tool).symlink_to(found)
        self.add("make", f'echo "make $* ${{PACKAGES_MISSING:+without}}" >> {self.calls}')
        self.add("id", "echo 0")

    def add(self, name: str, does: str) -> None:
        """Add a program, or replace it."""
        (self.folder / "bin" / name).write_text(f"#!{shutil.which('sh')}\n{does}\n")
        (self.folder / "bin" / name).chmod(0o755)

    def run(self) -> tuple[str, list[str]]:
        """Return what the script prints, and the programs that it calls."""
        ran = subprocess.run(
            [self.folder / ".ci/run"],
            env={"PATH": str(self.folder / "bin")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert ran.returncode == 0, ran.stdout
        return ran.stdout, [line.strip() for line in self.calls.read_text().splitlines()]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine of Debian's, without Chromium."""
    made = Machine(tmp_path / "tree")
    made.add("apt-get", f'echo "apt-get $*" >> {made.calls}')
    return made


def test_packages_are_installed_between_the_tests_without_and_with_them(machine: Machine) -> None:
    printed, calls = machine.run()
    assert printed == "" and calls == [*TARGETS[:2], *INSTALLED, TARGETS[2]]
    assert not (machine.folder / ".venv").exists()


def test_packages_that_are_here_are_not_installed(machine: Machine) -> None:
    for program in ("chromium", "chromedriver", "valgrind"):
        machine.add(program, "")
    machine.add("dpkg", "echo Status: install ok installed")
    assert machine.run() == ("", TARGETS)
    machine.add("dpkg", "exit 1")  # the data set alone is missing
    (machine.folder / "calls").unlink()
    assert machine.run() == ("", [*TARGETS[:2], *INSTALLED, TARGETS[2]])


def test_a_browser_without_its_driver_is_not_enough(machine: Machine) -> None:
    machine.add("chromium", "")
    machine.add("dpkg", "")
    assert machine.run()[1] == [*TARGETS[:2], *INSTALLED, TARGETS[2]]


@pytest.mark.parametrize(
    ("program", "does", "why"),
    [
        ("id", "echo 1000", "only root may install packages"),
        (
            "apt-get",
            "echo reading; echo 'E: Unable to locate package chromium'; exit 100",
            "apt-get: E: Un",
        ),
        ("apt-get", "exit 124", "apt-get took too long"),
        ("apt-get", None, "no apt-get here"),
    ],
)
def test_where_they_cannot_be_installed_one_line_says_why_and_tests_go_on(
    machine: Machine, program: str, does: str | None, why: str
) -> None:
    if does is None:
        (machine.folder / "bin" / program).unlink()
    else:
        machine.add(program, does)
    printed, calls = machine.run()
    (line,) = printed.splitlines()
    assert line.startswith(f"{PACKAGES} are not installed, tests that need them are skipped: ")
    assert why in line
    assert calls == [*TARGETS[:2], "make test-ci without"]
