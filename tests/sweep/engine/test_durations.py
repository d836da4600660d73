"""When a point was measured, and how long its steps worked and stood still."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from dlas.bench.store.cache import NOTES
from dlas.stack import Data, Images, Network, Program, Target, Workspace
from dlas.sweep.rows.results import Row
from tests.fixtures.engine import in_fork, rows, run, study_of
from tests.fixtures.processes import wait_for
from tests.fixtures.stubs import StubCompiler, StubHardware, StubModel

MEASURING_S = 1.2
"""Longer than the unit of the times in rows."""
MEASURED, BUILT, ALLOWED = "measured", "built", "allowed"
"""Files by which the parts below and the tests tell each other how far they are."""


@dataclass(frozen=True)
class WaitingModel(StubModel):
    """Is built once another point has been measured, and notes when that was."""

    folder: str = ""

    def build(self, data: Data, workspace: Workspace) -> Network:
        """Wait for the note of the measurement, and leave one."""
        wait_for(Path(self.folder, MEASURED).exists)
        Path(self.folder, BUILT).write_text(str(time.time()))
        return super().build(data, workspace)


@dataclass(frozen=True)
class SlowHardware(StubHardware):
    """Takes a while, then notes that it has measured."""

    folder: str = ""

    def measure(
        self, program: Program, images: Images, settings: Any, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Measure as the stub does."""
        time.sleep(MEASURING_S)
        Path(self.folder, MEASURED).touch()
        return super().measure(program, images, settings, turn)


@dataclass(frozen=True)
class WaitingCompiler(StubCompiler):
    """Its builds cannot be loaded before it is allowed."""

    folder: str = ""

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Wait for the permission."""
        wait_for(Path(self.folder, ALLOWED).exists)
        return super().load(folder, network, target)


def of_model(found: list[Row], name: str) -> Row:
    (row,) = (row for row in found if row.model["name"].endswith(name))
    return row


@pytest.mark.slow
def test_a_row_says_when_it_was_measured_and_its_steps_do_not_count_the_measurement_of_others(
    tmp_path: Path,
) -> None:
    options = f'folder = "{tmp_path}"'
    study = study_of(
        f'model = ["tests.fixtures.stubs:StubModel", {{name = "{__name__}:WaitingModel", {options}}}]\n'
        f'hardware = [{{name = "{__name__}:SlowHardware", place = "{tmp_path.name}", {options}}}]'
    )
    run(study, tmp_path, jobs=2)
    stopped = of_model(rows(tmp_path), "WaitingModel")
    assert stopped.waited["network"] >= MEASURING_S, "it was stopped while the other point was measured"
    assert stopped.waited["build"] == 0
    assert stopped.seconds["measure"] >= MEASURING_S
    built = float((tmp_path / BUILT).read_text())
    assert datetime.fromisoformat(stopped.started or "").timestamp() >= int(built)


@pytest.mark.slow
def test_the_time_of_an_artifact_survives_an_interruption_and_is_marked_where_others_use_it(
    tmp_path: Path,
) -> None:
    study = study_of(
        'model = [{name = "tests.fixtures.stubs:StubModel", seconds = 0.1}]\n'
        f'compiler = [{{name = "{__name__}:WaitingCompiler", folder = "{tmp_path}"}}]'
    )
    pid = in_fork(lambda: run(study, tmp_path, keep_builds=True))
    wait_for(lambda: any((tmp_path / "cache" / "build").glob(f"*/{NOTES}")))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    (tmp_path / ALLOWED).touch()
    run(study, tmp_path, keep_builds=True)
    (own,) = rows(tmp_path)
    assert own.seconds["network"] >= 0.1
    assert own.seconds.keys() == {"network", "build", "memory", "check", "measure"}
    assert own.cached == {}

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "cache").symlink_to(tmp_path / "cache")
    run(study, elsewhere)
    (other,) = rows(elsewhere)
    assert other.cached == {step: own.seconds[step] for step in ("network", "build")}
    assert other.seconds.keys() == {"memory", "check", "measure"}
    assert len(list((tmp_path / "cache" / "network").iterdir())) == 1
