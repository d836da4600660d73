"""Take the program of a row home: ``dlas.deploy``."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

import numpy as np

from dlas.analysis.winners import fastest_id
from dlas.bench.store.cache import Cache, default_root
from dlas.bench.store.replacing import new_folder
from dlas.deployment import run
from dlas.deployment.packing import check_packable
from dlas.deployment.page import SUFFIX
from dlas.deployment.remaking import CachedBuild, built
from dlas.deployment.writing import write
from dlas.errors import InputError
from dlas.stack import INFERENCE
from dlas.stack.types import Say
from dlas.sweep.engine.steps.check import CHECK_SECONDS
from dlas.sweep.engine.steps.samples import load_sample
from dlas.sweep.rows.finding import find, point_label
from dlas.sweep.rows.frame import read_each, select
from dlas.sweep.rows.machines import differences
from dlas.sweep.rows.results import COMPLETED, Row
from dlas.sweep.study.point import Point

CHILD_SECONDS = 1800.0
"""Time limit of the check of a deployed program, in which torch may compile it."""


class DeploymentFailed(Exception):
    """The deployed program did not compute what its network does; nothing was left behind."""


def deploy(
    folder: str | os.PathLike[str],
    row: str | None = None,
    *,
    to: str | os.PathLike[str],
    where: Sequence[str] = (),
    cache: Path | None = None,
    say: Say = print,
) -> Path:
    """Write the program of a row, with all that it needs to run elsewhere, into a new folder.

    Parameters
    ----------
    folder : path
        What ``dlas run --out`` wrote.
    row : str, optional
        The row's id, or the beginning of it; by default the fastest row.
    to : path
        The folder to write, which :func:`dlas.load` takes; it must not exist, or be empty.
    where : sequence of str
        Filters, such as ``batch=1``, of the rows to choose from.
    cache : Path, optional
        The artifact cache; by default ``$DLAS_CACHE``.
    say : callable
        Shows a line of progress.

    Returns
    -------
    Path
        ``to``.

    Raises
    ------
    InputError
        If there is no such row, it cannot be deployed, or the folder is not free.
    DeploymentFailed
        If the deployed program cannot be run, or is wrong.
    """
    chosen = find(Path(folder), row or fastest_id(select(read_each(folder), where)))
    say(f"{chosen.id}  {point_label(chosen)}")
    target = Path(to)
    check_free(target)
    check_row(chosen)
    point = Point.of(asdict(chosen))
    check_point(chosen, point)
    store = Cache(cache or default_root())
    made = built(chosen, point, store, say)
    with new_folder(target, "to") as partial:
        write(chosen, point, store, made, partial)
        say(_checked(chosen, store, made, partial))
    for note in made.notes:
        say(f"note: {note}; its latency may differ from the row's")
    return target


def check_free(target: Path) -> None:
    """Refuse a folder that holds something, and the name of a page.

    Raises
    ------
    InputError
    """
    if target.suffix == SUFFIX:
        raise InputError(f"`to={str(target)!r}` is the name of a page, which `dlas.deploy_page` writes")
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise InputError(f"`to={str(target)!r}` exists and is not an empty folder; give another")


def check_row(row: Row) -> None:
    """Refuse a row that came to nothing, one whose program never was here, and one of a training step.

    Raises
    ------
    InputError
    """
    if row.imported:
        raise InputError(
            f"row {row.id} cannot be deployed: it was imported from {row.imported.get('file')!r}, "
            "and its program is not here"
        )
    if row.status not in COMPLETED:
        raise InputError(
            f"row {row.id} cannot be deployed: it is {row.status} in step {row.step}: {row.reason}"
        )
    if row.task != INFERENCE:
        raise InputError(
            f"row {row.id} cannot be deployed: its task is {row.task}, and programs are deployed for "
            f"{INFERENCE}; choose a row of that task"
        )
    if not row.latency_s:
        raise InputError(f"row {row.id} cannot be deployed: it was not measured")


def check_point(row: Row, point: Point) -> None:
    """Refuse a row of another device, and one whose compiler's programs stay here.

    Raises
    ------
    InputError
    """
    check_packable(point.compiler.name, point.compiler_part)
    device = point.device
    if reason := device.unsupported():
        raise InputError(f"row {row.id} cannot be deployed here: {reason}")
    if not device.local:
        raise InputError(f"row {row.id} ran on a board over RPC, and programs are deployed for this machine")
    if other := differences(row.device, device.describe()):
        raise InputError(f"row {row.id} was measured on another machine: {'; '.join(other)}; deploy it there")
    if device.target().on_gpu:
        raise InputError(
            f"row {row.id} ran on a GPU ({device.target().kind}): only processors can be deployed to"
        )


def _checked(row: Row, store: Cache, made: CachedBuild, folder: Path) -> str:
    """Run the deployed program in a process of its own; return by how much it differs from its network.

    Raises
    ------
    DeploymentFailed
        If it cannot be run, or differs by more than is accepted.
    """
    sample = load_sample(store, made.network.key)
    images = sample["images"][: max(1, int(CHECK_SECONDS / median(row.latency_s))) * row.batch]
    with tempfile.TemporaryDirectory() as scratch:
        given, outputs = Path(scratch, "images.npy"), Path(scratch, "outputs.npy")
        np.save(given, images)
        command = [sys.executable, str(folder / "run.py"), str(given), "--out", str(outputs)]
        run_child(command, "the deployed program", "does not run", cwd=scratch)
        try:
            expected = sample["outputs"][: len(images)]
            return run.check_outputs(np.load(outputs), expected, run.describe(folder)["tolerance"])
        except run.Refused as error:
            raise DeploymentFailed(f"the deployed program is {error}") from None


def run_child(command: list[str], what: str, failing: str, cwd: str | None = None) -> None:
    """Run a command; ``what`` it is and how it is ``failing`` begin the messages.

    Raises
    ------
    DeploymentFailed
        If it fails, or takes longer than :data:`CHILD_SECONDS`.
    """
    try:
        subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=CHILD_SECONDS, check=True)
    except subprocess.TimeoutExpired:
        raise DeploymentFailed(f"{what} took longer than {CHILD_SECONDS:g} s") from None
    except subprocess.CalledProcessError as error:
        raise DeploymentFailed(f"{what} {failing}: {error.stderr.strip()}") from None
