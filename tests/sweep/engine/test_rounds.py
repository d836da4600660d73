"""A point whose times are unstable is measured again at the end of the sweep."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dlas.stack import Images, Program
from dlas.sweep.rows.results import FILE, Row
from tests.fixtures.engine import rows, run, study_of
from tests.fixtures.stubs import StubHardware

REASON = "the medians of its slices differ"


@dataclass(frozen=True)
class ShakyHardware(StubHardware):
    """Gives ``instabilities`` one after the other, the last from then on; the first sample is as large.

    Parameters
    ----------
    folder : str
        Where it notes every measurement.
    instabilities : str
        Numbers with spaces between them; ``fail`` raises.
    """

    folder: str = ""
    instabilities: str = "0.5"

    def measure(
        self, program: Program, images: Images, settings: Any, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Measure as the stub does."""
        measured = super().measure(program, images, settings, turn)
        log = Path(self.folder, "measured")
        before = log.read_text().splitlines() if log.exists() else []
        with log.open("a") as out:
            out.write(f"{self.place}\n")
        given = self.instabilities.split()
        now = given[min(before.count(self.place), len(given) - 1)]
        if now == "fail":
            raise RuntimeError("device lost")
        unstable = float(now) >= 1
        return {
            **measured,
            "latency_s": [float(now), float(now), float(now)],
            "instability": float(now),
            "unstable": unstable,
            "unstable_reason": REASON if unstable else None,
        }


def shaky(folder: Path, place: str, instabilities: str) -> str:
    """Return a device of its own for a study."""
    options = f'folder = "{folder}", place = "{place}", instabilities = "{instabilities}"'
    return f'{{name = "{__name__}:ShakyHardware", {options}}}'


def measured(folder: Path) -> list[str]:
    """Return the places that were measured, in order."""
    return (folder / "measured").read_text().splitlines()


def by_place(found: list[Row]) -> dict[str, Row]:
    return {row.hardware["place"]: row for row in found}


@pytest.mark.slow
def test_an_unstable_point_is_measured_again_after_all_others_and_the_steadier_round_is_kept(
    tmp_path: Path,
) -> None:
    devices = {"passes": "9 0.5", "stays": "3 4", "better": "4 3", "steady": "0.5", "breaks": "5 fail"}
    listed = ", ".join(shaky(tmp_path, place, values) for place, values in devices.items())
    summary = run(study_of(f"hardware = [{listed}]"), tmp_path)
    again = ["passes", "stays", "better", "breaks"]
    assert measured(tmp_path) == [*devices, *again]
    assert (dict(summary.written), summary.measured, summary.again) == ({"ok": 2, "unstable": 3}, 5, 4)

    found = by_place(rows(tmp_path))
    assert {place: row.latency_s[0] for place, row in found.items()} == {
        "passes": 0.5,
        "stays": 3,
        "better": 3,
        "steady": 0.5,
        "breaks": 5,
    }
    assert [place for place, row in found.items() if row.status == "unstable"] == [
        "stays",
        "better",
        "breaks",
    ]
    assert {place for place, row in found.items() if row.timed} == {"passes", "steady"}
    others = {place: row.other_round or {} for place, row in found.items() if row.other_round}
    assert {place: other["latency_s"] for place, other in others.items()} == {
        "passes": 9,
        "stays": 4,
        "better": 4,
        "breaks": None,
    }
    assert others["passes"]["reason"] == others["stays"]["reason"] == REASON
    assert "device lost" in str(others["breaks"]["reason"])
    assert (others["passes"]["started"] or "") <= (found["passes"].started or "")
    assert found["passes"].reason is None


@pytest.mark.slow
def test_a_sweep_that_ends_before_the_second_round_measures_again_when_it_goes_on(tmp_path: Path) -> None:
    study = study_of(f"hardware = [{shaky(tmp_path, 'here', '3 4 0.5')}]")
    run(study, tmp_path)
    path = tmp_path / "out" / FILE
    first, _ = path.read_text().splitlines(keepends=True)
    assert json.loads(first)["status"] == "unstable" and json.loads(first)["other_round"] is None
    assert run(study, tmp_path).kept.total() == 1, "twice is enough"
    path.write_text(first)
    assert run(study, tmp_path).kept.total() == 0
    (row,) = rows(tmp_path)
    assert (row.latency_s[0], row.status, len(measured(tmp_path))) == (0.5, "ok", 3)


@pytest.mark.slow
def test_unstable_points_alone_are_measured_again_on_demand(tmp_path: Path) -> None:
    places = [("shaky", "3 4 0.5"), ("steady", "0.5")]
    study = study_of(f"hardware = [{', '.join(shaky(tmp_path, *each) for each in places)}]")
    run(study, tmp_path)
    assert measured(tmp_path) == ["shaky", "steady", "shaky"]
    summary = run(study, tmp_path, retry=["unstable"])
    assert (summary.kept.total(), dict(summary.written)) == (1, {"ok": 1})
    assert measured(tmp_path)[3:] == ["shaky"]
    found = by_place(rows(tmp_path))
    assert {place: (row.status, row.other_round) for place, row in found.items()} == dict.fromkeys(
        ("shaky", "steady"), ("ok", None)
    )
    assert run(study, tmp_path, retry=["unstable"]).kept.total() == 2


@pytest.mark.parametrize("keep_builds", [False, True])
def test_the_build_stays_until_the_second_round(tmp_path: Path, keep_builds: bool) -> None:
    study = study_of(f"hardware = [{shaky(tmp_path, 'here', '3 0.5')}]")
    run(study, tmp_path, keep_builds=keep_builds)
    (row,) = rows(tmp_path)
    assert row.seconds.keys() == {"network", "build", "memory", "check", "measure"}
    assert len((tmp_path / "out" / "logs" / f"{row.id}.log").read_text().split("built a stub")) == 2
    assert any((tmp_path / "cache" / "build").iterdir()) == keep_builds
