"""Studies that benchmarks write and run; the compared programs take turns in them."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

import typer

from dlas.sweep.rows.results import COMPLETED, UNSTABLE, Row, read_rows
from dlas.sweep.study.study import Study

ROOT = Path(__file__).parents[1]
JOBS = 2
"""Networks and builds at a time; a measurement has the machine to itself."""


def chosen(listed: str, known: Collection[str], what: str) -> list[str]:
    """Return the names in a list with commas.

    Parameters
    ----------
    what : str
        What the names are of, for messages.

    Raises
    ------
    typer.BadParameter
        If a name is not known.
    """
    names = [name for name in listed.split(",") if name]
    if unknown := [name for name in names if name not in known]:
        raise typer.BadParameter(f"{what} {unknown[0]!r}; there are: {', '.join(known)}")
    return names


def run_study(folder: Path, text: str) -> list[Row]:
    """Run the study in ``text`` and return its rows, without those of other studies in the folder.

    Parameters
    ----------
    folder : Path
        Of the study and its rows.
    text : str
        TOML.
    """
    folder.mkdir(parents=True, exist_ok=True)
    study = folder / "study.toml"
    study.write_text(text)
    command = [sys.executable, "-m", "dlas", "run", str(study), "--out", str(folder), "--jobs", str(JOBS)]
    subprocess.run(command, check=True, cwd=ROOT)
    asked = {point.id for point in Study.read(study).points()}
    return [row for row in read_rows(folder) if row.id in asked]


def median_s(row: Row) -> float:
    """Return a row's median latency in seconds, NaN where it has none that is a result."""
    return statistics.median(row.latency_s) if row.timed else float("nan")


def disturbed(rows: Iterable[Row]) -> str:
    """Return the numbers of noisy and of unstable rows in a sentence."""
    measured = [row for row in rows if row.status in COMPLETED]
    noisy = sum(bool(row.noisy) for row in measured)
    unstable = sum(row.status == UNSTABLE for row in measured)
    return (
        f"{noisy} of {len(measured)} times were disturbed and are marked noisy; {unstable} are unstable, "
        "left out"
    )
