"""Take all paths of a flexible network home as one program: ``dlas deploy FOLDER --paths``."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dlas.analysis.pareto import undominated
from dlas.analysis.paths import ALL, COMPRESSION
from dlas.axes.compilers.programs.paths import JointModule, join, write_joined
from dlas.axes.compilers.programs.tvm import ScheduledNetwork, TvmCompiler
from dlas.bench.store.cache import Artifact, Cache, default_root
from dlas.bench.store.replacing import new_folder
from dlas.deployment.deploying import check_free, check_point, check_row, run_child
from dlas.deployment.packing import TVM, copy_runtime
from dlas.deployment.remaking import CHANGED, make
from dlas.deployment.routing import ROUTES, Route, Routes
from dlas.deployment.writing import write_rest
from dlas.errors import CorruptArtifact, InputError
from dlas.stack import PART_AXES, MeasureSettings
from dlas.stack.types import Say
from dlas.sweep.engine.planning import Planner
from dlas.sweep.engine.steps.artifacts import load_verified, restore_network
from dlas.sweep.engine.steps.samples import load_sample
from dlas.sweep.rows import intervals
from dlas.sweep.rows.frame import read_each, select
from dlas.sweep.rows.labels import label
from dlas.sweep.rows.machines import machine_name
from dlas.sweep.rows.results import COMPLETED, Row, read_rows
from dlas.sweep.study.point import Point

CHECKED_IMAGES = 64
"""Images that each path is checked on."""


@dataclass(frozen=True)
class PathEntry:
    """A path with one batch size, as its row measured it."""

    row: Row
    point: Point
    network: Artifact
    """The network at the path."""
    tuning: Artifact | None
    """Schedules that a search found."""

    @property
    def path(self) -> str:
        """The path."""
        return str(self.row.compression["path"])

    @property
    def function(self) -> str:
        """The name of its function in the library."""
        return f"path_{self.path}_of_{self.row.batch}"


NO_ACCURACY = "no path has an accuracy: policies have no Pareto set to choose from; `path=` takes any path"


def deploy_paths(
    folder: str | os.PathLike[str],
    *,
    to: str | os.PathLike[str],
    where: Sequence[str] = (),
    cache: Path | None = None,
    say: Say = print,
) -> Path:
    """Write all paths of a flexible network as one program, with what the rows measured of each.

    Parameters
    ----------
    folder : path
        What ``dlas run --out`` wrote, with rows of the compression ``leaf``.
    to : path
        The folder to write, which :func:`dlas.load` takes; it must not exist, or be empty.
    where : sequence of str
        Filters of the rows: all but path and batch must be equal in them.
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
        If there are no such rows, or of several settings; or the folder is not free.
    DeploymentFailed
        If a path computes something else than its network.
    """
    rows = path_rows(Path(folder), where)
    target = Path(to)
    check_free(target)
    store = Cache(cache or default_root())
    entries = _entries(rows, store, say)
    with new_folder(target, "to") as partial:
        joined = _build(entries, store, partial, say)
        routes = routes_of(entries)
        for batch in routes.without_accuracies():
            say(f"batch {batch}: {NO_ACCURACY}")
        (partial / ROUTES).write_text(json.dumps(routes.content(partial), indent=1, allow_nan=False) + "\n")
        first = min(entries, key=lambda entry: (entry.path, -entry.row.batch))
        notes = changes(entries, store)
        packed = replace(TVM, options={"function": first.function}, notes=tuple(notes))
        copy_runtime(packed, partial)
        write_rest(first.row, first.point, store, first.network, partial, packed)
        _check(entries, store, partial)
    kernels = len({name for names in joined.kernels.values() for name in names})
    alone = sum(map(len, joined.kernels.values()))
    say(f"{len(entries)} paths and batch sizes, each right: {kernels} kernels, {alone} where each is alone")
    for note in notes:
        say(f"note: {note}; latencies may differ from the rows'")
    return target


def path_rows(folder: Path, where: Sequence[str] = ()) -> list[Row]:
    """Return the rows of paths that one program can hold.

    Raises
    ------
    InputError
        If there are none, they differ in more than path and batch, or a batch lacks the path of zeros.
    """
    chosen = set(select(read_each(folder), where)["id"])
    rows = [row for row in read_rows(folder) if row.id in chosen and _is_path(row)]
    if not rows:
        raise InputError(
            f"{str(folder)!r} has no measured row of a path: run a study with compression "
            '{ name = "leaf", path = [...] } and a compiler that builds with TVM'
        )
    settings = {_setting(row): _described(row) for row in rows}
    if len(settings) > 1:
        differing = {
            axis: sorted({described[axis] for described in settings.values()})
            for axis in next(iter(settings.values()))
        }
        shown = "; ".join(
            f"{axis}: {', '.join(values)}" for axis, values in differing.items() if len(values) > 1
        )
        raise InputError(f'the paths of which setting? Choose one with `where="axis=value"` ({shown})')
    batches = sorted({row.batch for row in rows})
    of_batch = {batch: [row.compression["path"] for row in rows if row.batch == batch] for batch in batches}
    for batch, paths in of_batch.items():
        if all("1" in path for path in paths):
            raise InputError(
                f"batch {batch} has no measured row of the path of zeros, the network itself, which is taken "
                f"where no other is asked for; it has {', '.join(sorted(paths))}"
            )
    return rows


def _is_path(row: Row) -> bool:
    """Return whether a row is of a path that TVM compiled; its time may be unstable."""
    is_path = row.compression.get("name") == COMPRESSION and row.compression.get("path") != ALL
    if not (is_path and row.status in COMPLETED and row.latency_s and row.algorithm.get("name") != "library"):
        return False
    return isinstance(Point.of(asdict(row)).compiler_part, TvmCompiler)


def _described(row: Row) -> dict[str, str]:
    """Return what must be equal in all rows of a program, as labels by axis."""
    compression = {name: value for name, value in row.compression.items() if name != "path"}
    axes = {axis: label(getattr(row, axis)) for axis in PART_AXES if axis != "compression"}
    return {**axes, "compression": label(compression), "seed": str(row.seed), "task": row.task}


def _setting(row: Row) -> str:
    return json.dumps(_described(row), sort_keys=True)


def _entries(rows: Sequence[Row], store: Cache, say: Say) -> list[PathEntry]:
    """Return the rows with their networks; those that the cache has dropped are made again.

    Raises
    ------
    InputError
        If a row cannot be deployed here, or a step fails.
    """
    points = [Point.of(asdict(row)) for row in rows]
    for row, point in zip(rows, points, strict=True):
        check_row(row)
        check_point(row, point)
    found = [_artifacts(store, row.artifacts) for row in rows]
    missing = [point for point, artifacts in zip(points, found, strict=True) if artifacts is None]
    if missing:
        say(f"{len(missing)} networks are not in the cache: making them again")
        make(missing, store, say, until="tune")
    planner = Planner(MeasureSettings(), store.root)
    entries = []
    for row, point, artifacts in zip(rows, points, found, strict=True):
        artifacts = artifacts or _artifacts(store, planner.plan(point).artifacts())
        if artifacts is None:
            raise InputError("the cache is too small: it dropped a network at once")
        entries.append(PathEntry(row, point, *artifacts))
    return entries


def changes(entries: Sequence[PathEntry], store: Cache) -> list[str]:
    """Return in what the program may differ from the builds that were measured."""
    planner = Planner(MeasureSettings(), store.root)
    keys = ((planner.plan(entry.point).artifacts(), entry.row.artifacts) for entry in entries)
    return [CHANGED] if any(now["build"] != then.get("build") for now, then in keys) else []


def _artifacts(store: Cache, keys: Mapping[str, Any]) -> tuple[Artifact, Artifact | None] | None:
    """Return the network and the tuning of these keys if the cache has them, undamaged."""
    try:
        tuning = load_verified(store, "tuning", keys["tuning"]) if "tuning" in keys else None
        return load_verified(store, "network", keys["network"]), tuning
    except (CorruptArtifact, KeyError):
        return None


def _build(entries: Sequence[PathEntry], store: Cache, folder: Path, say: Say) -> JointModule:
    """Compile all entries as one library."""
    target = entries[0].point.device.target()

    def scheduled() -> Iterator[tuple[str, ScheduledNetwork]]:
        for number, entry in enumerate(entries, start=1):
            say(f"lowering {number} of {len(entries)}: path {entry.path}, batch {entry.row.batch}")
            yield entry.function, _scheduled(entry, store)

    joined = join(scheduled())
    say(f"compiling {len(joined.unscheduled.get_global_vars())} kernels")
    write_joined(joined, target, folder)
    return joined


def _scheduled(entry: PathEntry, store: Cache) -> ScheduledNetwork:
    """Return an entry's network, lowered and scheduled exactly as in a build of its own."""
    point, compiler = entry.point, entry.point.compiler_part
    assert isinstance(compiler, TvmCompiler)
    network = restore_network(store, entry.network.key, point)
    with tempfile.TemporaryDirectory() as empty:
        folder = entry.tuning.folder if entry.tuning else Path(empty)
        return compiler.schedule(network, point.algorithm_part, point.device.target(), point.batch, folder)


def routes_of(entries: Sequence[PathEntry]) -> Routes:
    """Return the functions of all entries, and the Pareto set of each batch size."""
    batches = sorted({entry.row.batch for entry in entries})
    first = entries[0].row
    device = {
        "hardware": label(first.hardware),
        "machine": machine_name(first.device),
        "threads": first.device.get("threads", 1),
    }
    of_batch = {batch: [entry for entry in entries if entry.row.batch == batch] for batch in batches}
    functions = {batch: {entry.path: entry.function for entry in found} for batch, found in of_batch.items()}
    told = {batch: _measured(found) for batch, found in of_batch.items()}
    measured, others = ({batch: sets[part] for batch, sets in told.items()} for part in (0, 1))
    return Routes(functions, measured, device, others)


def _measured(entries: Sequence[PathEntry]) -> tuple[list[Route], list[Route]]:
    """Return the Pareto set of accuracy and latency, and the other paths, the fastest first.

    A path without an accuracy is among the others.  One whose time is unstable is left out: it is no result.
    """
    routes = [
        Route(entry.path, entry.row.accuracy, *intervals.median(entry.row.latency_s))
        for entry in entries
        if entry.row.timed
    ]
    routes.sort(key=lambda route: route.latency_s)
    known = [route for route in routes if route.accuracy is not None]
    costs = np.array([route.latency_s for route in known])
    best = undominated(costs, np.array([route.accuracy for route in known], dtype=float))
    kept = {route.path for route, is_best in zip(known, best, strict=True) if is_best}
    others = [route for route in routes if route.path not in kept]
    return [route for route in routes if route.path in kept], others


def _check(entries: Sequence[PathEntry], store: Cache, folder: Path) -> None:
    """Compare every path with its network, in a process of its own.

    Raises
    ------
    DeploymentFailed
    """
    with tempfile.TemporaryDirectory() as scratch:
        arrays: dict[str, Any] = {}
        for entry in entries:
            sample = load_sample(store, entry.network.key)
            arrays["images"] = sample["images"][:CHECKED_IMAGES]
            arrays[entry.function] = sample["outputs"][:CHECKED_IMAGES]
        np.savez(Path(scratch, "expected.npz"), **arrays)
        tolerance = max(entry.network.facts["tolerance"] for entry in entries)
        given = (str(folder), f"{scratch}/expected.npz", str(tolerance))
        command = [sys.executable, "-m", "dlas.deployment.checking", *given]
        run_child(command, "the check of the paths", "fails")
