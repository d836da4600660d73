"""Measure a share of a study's points, chosen well, and predict the others."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlas.api.running import Progress, Steps, appending, run_study
from dlas.console import terminal
from dlas.console.views import View
from dlas.engine.unsupported import unsupported
from dlas.errors import InputError
from dlas.learning.intervals import LEVEL
from dlas.rows.files import check_appendable, holds_rows
from dlas.rows.frame import read, without_measured
from dlas.rows.labels import number_of
from dlas.rows.predictions import PREDICTED, Bounds, PredictedPoint, write_predictions
from dlas.rows.results import Row, read_rows
from dlas.rows.schema import Device
from dlas.store import cache as caches
from dlas.study.kept import check_keepable
from dlas.study.point import Choice, Point
from dlas.study.reading import as_study
from dlas.study.study import Study, check_size

if TYPE_CHECKING:
    from dlas.learning.exploring.share import Rest
    from dlas.learning.exploring.space import Space
    from dlas.learning.exploring.tallies import Known

TARGET = "latency_s"
AGAIN = "the same command"
OTHER_FOLDER = "Give another --out: what follows from the rows of one machine holds for no other."


def explore(
    study: Study | Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    share: float = 0.1,
    jobs: int = 1,
    cache: str | os.PathLike[str] | None = None,
    cache_gib: float = 20.0,
    keep_builds: bool = False,
    in_process: bool = False,
    progress: Progress = "auto",
) -> View:
    """Measure a share of a study's points and predict the latencies of the others.

    The first points cover every value of every axis; the others follow in batches, each of the points that
    say most about those that are not measured.  Interrupted, it leaves complete rows; the same call
    goes on, and one with a larger share extends them.

    Parameters
    ----------
    study : Study, mapping or path
        As for :func:`dlas.run`; of one with ``[sample]``, the points that it draws.
    out : path
        Folder for ``results.jsonl``, as :func:`dlas.run` writes it, and for ``predictions.jsonl``.
    share : float
        Of the points that can be measured here, above 0 and at most 1.
    jobs, cache, cache_gib, keep_builds, in_process, progress
        As for :func:`dlas.run`.

    Returns
    -------
    View
        ``frame`` holds the measured and the predicted points, as :func:`dlas.read` returns them.

    Raises
    ------
    InputError
        If the study or an argument is invalid, the share is too small to cover every value, or the
        folder holds rows of another machine; nothing has been written then.
    Unfinished
        If no measured point has a time, or as for :func:`dlas.run`.
    """
    from dlas.console.exploring import summary
    from dlas.learning.exploring.share import budget_of, check_covers, measure_share, predict_rest
    from dlas.learning.exploring.space import Space

    chosen, folder = as_study(study), Path(out)
    budget_of(share, 1)
    _check_folder(chosen, folder)
    able, refused = _able(chosen)
    space = Space.of(able)
    check_covers(space, share, chosen.seed)
    steps: Steps = "inline" if in_process else "spawned"
    root = Path(cache) if cache is not None else caches.default_root()
    sweeps = _Sweeps(
        study=chosen,
        folder=folder,
        space=space,
        refused=refused,
        budget=budget_of(share, len(space)),
        cache=lambda: caches.Cache(root, int(cache_gib * 2**30)),
        options={"jobs": jobs, "keep_builds": keep_builds, "steps": steps, "progress": progress},
    )
    known = measure_share(space, share, _known(folder, space), sweeps.measure, chosen.seed)
    rest = predict_rest(space, known)
    write_predictions(folder, _predicted(chosen, space, rest))
    frame = without_measured(read(folder, predictions=True))
    own = frame["id"].isin([point.id for point in (*able, *refused)])
    return View(frame[own].reset_index(drop=True), summary(len(space), known, rest, len(refused)))


@dataclass
class _Sweeps:
    """Sweeps over some of a study's points, one after the other into one folder.

    Parameters
    ----------
    study : Study
    folder : Path
    space : Space
        The points that can be measured.
    refused : list of Point
        The others, whose rows cost nothing.
    budget : int
        Points to measure in all.
    cache : callable
        Creates the cache.
    options : mapping
        Of :func:`dlas.api.running.run_study`.
    others : list of Point
        Points without a batch of their own that the next sweep takes along.
    """

    study: Study
    folder: Path
    space: Space
    refused: Sequence[Point]
    budget: int
    cache: Callable[[], caches.Cache]
    options: Mapping[str, Any]
    others: list[Point] = field(init=False)

    def __post_init__(self) -> None:
        # Rows of earlier sources are out of date, and measured again beside the first batch.
        done = [self.space.points[place] for place in _known(self.folder, self.space)]
        self.others = [*self.refused, *done]

    def measure(self, places: Sequence[int]) -> dict[int, Known]:
        """Measure points, and return what is known of all in the folder."""
        done = len(_known(self.folder, self.space))
        terminal.console(self.options["progress"]).print(
            f"exploring: {number_of(len(places), 'more point')}; {done} of {self.budget} are measured",
            highlight=False,
        )
        batch = [*self.others, *(self.space.points[place] for place in sorted(places))]
        self.others = []
        run_study(
            self.study,
            self.cache,
            lambda _: appending(self.folder, self.study),
            points=batch,
            again=AGAIN,
            **self.options,
        )
        return _known(self.folder, self.space)


def _check_folder(study: Study, folder: Path) -> None:
    """Refuse a study of no points, and a folder to which its rows cannot be written.

    Raises
    ------
    InputError
    """
    from dlas.engine.machines import check_machine

    check_size(study)
    check_appendable(folder)
    check_keepable(folder, study)
    for remark in check_machine(study, folder, advice=OTHER_FOLDER):
        terminal.warn(remark)


def _able(study: Study) -> tuple[list[Point], list[Point]]:
    """Return the points that can be measured here, and those that are unsupported at once.

    Raises
    ------
    InputError
        If none can be measured.
    """
    reasons: dict[tuple[Choice, Choice, str], str | None] = {}
    able: list[Point] = []
    refused: list[Point] = []
    for point in study.points():
        key = point.hardware, point.compiler, point.task
        if key not in reasons:
            reasons[key] = unsupported(point)
        (refused if reasons[key] else able).append(point)
    if not able:
        raise InputError(f"no point of the study can be measured here: {next(iter(reasons.values()))}")
    return able, refused


def _known(folder: Path, space: Space) -> dict[int, Known]:
    """Return what became of the points that have a row, by their places."""
    if not holds_rows(folder):
        return {}
    rows = {row.id: row for row in read_rows(folder)}
    return {place: _outcome(rows[point.id]) for place, point in enumerate(space.points) if point.id in rows}


def _outcome(row: Row) -> Known:
    """Return what became of a point."""
    from dlas.learning.exploring.tallies import Known

    if row.timed:
        return Known(statistics.median(row.latency_s), macs=row.macs)
    if row.status == "ok":
        return Known(None, row.unstable_reason or "its times are unstable", row.macs)
    return Known(None, f"{row.status}: {row.reason}", row.macs)


def _predicted(study: Study, space: Space, rest: Rest) -> list[PredictedPoint]:
    """Return what is written of the points that were predicted."""
    devices: dict[Choice, Device] = {}
    found = []
    for at, place in enumerate(rest.rows.tolist()):
        point = space.points[place]
        if point.hardware not in devices:
            devices[point.hardware] = point.hardware.make("hardware").describe()
        row = Row(
            **point.content(),
            id=point.id,
            key="",
            study=study.name,
            status=PREDICTED,
            device=devices[point.hardware],
        )
        sure = bool(rest.low[at] == rest.low[at])
        bounds = Bounds(
            value=float(rest.seconds[at]),
            low=float(rest.low[at]) if sure else None,
            high=float(rest.high[at]) if sure else None,
            level=LEVEL if sure else None,
        )
        found.append(PredictedPoint(row, {TARGET: bounds}, rest.digest, True, rest.doubts[at]))
    return found
