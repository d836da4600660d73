"""Where a search has the costs and the scores of candidates from: predictors, tables, files, measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dlas.analysis.matching import timed
from dlas.errors import InputError, listed
from dlas.networks.subnets.accuracy import AccuracyNetwork
from dlas.networks.subnets.tables import block_times, read_tables
from dlas.prediction.adaptive.evolution.space import PointOptions, StudySpace, samples_of, told_by_options
from dlas.prediction.learning import stored
from dlas.prediction.learning.features import OF_OPTIONS
from dlas.prediction.learning.features.subnets import SubnetOptions
from dlas.prediction.learning.points import SETTING, Points
from dlas.prediction.learning.predictions import bound, check_within
from dlas.prediction.predictors.lookup_table import BlockSum, LookupTable
from dlas.stack import INFERENCE, Fitted, Samples
from dlas.stack.types import Floats
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.example import Example
from dlas.sweep.rows.frame import frame_of
from dlas.sweep.rows.predictions import PREDICTED
from dlas.sweep.rows.results import Row
from dlas.sweep.study.point import NONE, Point

MEASURE = "measure"
TRUE = "accuracy"
"""What is maximised by making each network, training it or not as the study says, and evaluating it."""
WEIGHTS = (".pth", ".pt", ".safetensors")
LATENCY = "latency_s"
MEASURED = {LATENCY: "latency_high_s", "energy_j": "energy_j"}
"""What a measurement tells, and the upper end of its interval: energy has none."""
COSTS = ("_s", "_bytes", "_j", "_w")
"""Units of what is no score."""


class Costs(Protocol):
    """What candidates cost."""

    def __call__(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        """Return the costs of points, and the upper ends of their intervals."""


Scores = Callable[[Sequence[Point]], Floats]


@dataclass(frozen=True)
class PredictorSource:
    """A predictor that was fitted to one setting."""

    known: stored.StoredPredictor
    fitted: Fitted
    setting: stored.SettingRecord
    space: StudySpace
    fast: bool
    """Whether options tell what it reads, so that no network is made."""
    differing: Mapping[str, tuple[str, str]]
    """What is not the study's own, and what the study has."""
    session: Session

    @classmethod
    def of(cls, folder: Path, space: StudySpace, session: Session) -> PredictorSource:
        """Return the predictor in a folder, for a study.

        Raises
        ------
        InputError
            If it is none, or was fitted to several settings, none of which is the study's.
        """
        known = stored.read(folder)
        point = space.point(space.draw(np.random.default_rng(0)))
        device: Any = point.device.describe()
        row = Row(
            **point.content(), id=point.id, key="", study=space.study.name, status=PREDICTED, device=device
        )
        (key,) = Points.of([Example(row, {point.batch: []})]).places()
        covering = known.covering(key)
        if covering is None and len(known.fitted) > 1:
            told = [
                ", ".join(filter(None, (each.machine, *each.setting.values())))
                for each in known.record.settings
            ]
            raise InputError(
                f"{str(folder)!r} was fitted to {len(told)} settings, and the study has none of "
                f"them: {listed(told)}"
            )
        own = covering or next(iter(known.fitted))
        fast = told_by_options(known.part, known.record.target, point)
        differing = {
            name: (mine, value)
            for name, mine, value in zip(SETTING, own, key, strict=True)
            if mine not in (value, stored.ANY)
        }
        setting = known.setting(own)
        low, high = setting.batches
        if not low <= point.batch <= high:
            session.display.warn(
                f"{folder} was fitted to batches of {low} to {high}, and the study has {point.batch}"
            )
        return cls(known, known.fitted[own], setting, space, fast, differing, session)

    def __call__(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        """Return what is predicted, and the upper ends of the intervals.

        Both are infinite without a network, and where more of it is unknown than ``dlas predict`` takes.
        """
        part, target = self.known.part, self.known.record.target
        if self.fast:
            told = self._predicted(samples_of(part, target, points))
        else:
            told = np.full(len(points), np.inf), np.zeros(len(points)), np.zeros(len(points))
            made = self.session.part.plan(self.space.small, points, kernels=part.level == "kernel")
            examples = {each.row.id: each for each in made.points}
            places = [at for at, point in enumerate(points) if point.id in examples]
            if places:
                own = Points.of([examples[points[at].id] for at in places])
                known = self._predicted(own.samples(part, target, [""] * len(own)))
                for whole, some in zip(told, known, strict=True):
                    whole[places] = some
        value, _, high = bound(*told)
        return np.nan_to_num(value, nan=np.inf), np.nan_to_num(high, nan=np.inf)

    def _predicted(self, samples: Samples) -> tuple[Floats, Floats, Floats]:
        """Return what is predicted, the share of it that is unknown, and half of the intervals' widths."""
        value, unknown, widths = self.setting.told(self.fitted, samples)
        return value, unknown, np.nan_to_num(widths, nan=0.0)


@dataclass
class TableSource:
    """A table of blocks."""

    place: str
    """Of its files."""
    tables: Mapping[int, Mapping[str, float]]
    """What :func:`dlas.networks.subnets.tables.read_tables` returned."""
    sums: dict[float, BlockSum] = field(default_factory=dict)
    """By width, those that were needed."""

    def __call__(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        """Return the sums of blocks, which have no interval.

        Raises
        ------
        InputError
            If a point is not of what tables are: the inference of one image, uncompressed.
        """
        for point in points:
            if (point.batch, point.task, point.compression) != (1, INFERENCE, NONE):
                raise InputError(
                    f"table {self.place!r} is of inference with batch 1, uncompressed, and a point has batch "
                    f"{point.batch}, task {point.task!r} and compression {point.compression.name!r}"
                )
        samples = samples_of(LookupTable(self.place), LATENCY, points)
        width = float(samples.features[0, -1])
        if width not in self.sums:
            self.sums[width] = BlockSum(block_times(self.tables, width, self.place), width)
        value = self.sums[width].predict(samples)
        return value, value


@dataclass(frozen=True)
class Measurement:
    """The device itself: each candidate is measured as ``dlas run`` does, before it is asked for here."""

    quantity: str = LATENCY
    """What it tells, one of :data:`MEASURED`."""
    rows: dict[str, Row] = field(default_factory=dict)
    """What was measured, by id."""

    def __call__(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        """Return what was measured, and the upper ends of its intervals; infinity where a point has none.

        Raises
        ------
        InputError
            If no point has any, as on a device whose energy nothing tells.
        """
        ids = [point.id for point in points]
        frame = frame_of([self.rows[name] for name in dict.fromkeys(ids) if name in self.rows])
        results = frame[timed(frame)].set_index("id")
        if len(results) and results[self.quantity].isna().all():
            raise InputError(f"`within={self.quantity}=...`: measuring on this device does not tell it")
        value, high = (
            results[name].reindex(ids).to_numpy(dtype=float)
            for name in (self.quantity, MEASURED[self.quantity])
        )
        return np.nan_to_num(value, nan=np.inf), np.nan_to_num(high, nan=np.inf)


def costs_of(
    texts: Sequence[str],
    space: StudySpace,
    within: Mapping[str, float],
    session: Session,
) -> dict[str, Costs]:
    """Return what tells each quantity that is bounded.

    Parameters
    ----------
    texts : sequence of str
        Predictors' folders, a table of blocks, or ``measure``, which tells what no other one does.

    Raises
    ------
    InputError
        If there is no such thing, two tell the same, or one tells what is not bounded, or reversely.
    """
    found: dict[str, Costs] = {}
    for text in sorted(texts, key=lambda text: text == MEASURE):
        open_bounds = [quantity for quantity in within if quantity not in found]
        told = (
            _measurements(open_bounds or list(within))
            if text == MEASURE
            else dict([_told(text, space, session)])
        )
        for quantity, costs in told.items():
            if quantity in found:
                raise InputError(f"`estimator={text!r}`: another one tells {quantity}, too")
            if quantity not in within:
                raise InputError(f"`estimator={text!r}` tells {quantity}; give `within={quantity}=...`")
            if isinstance(costs, PredictorSource):
                check_within(costs.known, {quantity: within[quantity]})
            found[quantity] = costs
    for quantity in within:
        if quantity not in found:
            raise InputError(
                f"`within={quantity}=...`: no `estimator=` tells it; these are told: {listed([*found])}"
            )
    return {quantity: found[quantity] for quantity in within}


def _measurements(open_bounds: Sequence[str]) -> dict[str, Costs]:
    """Return what measuring tells of some quantities, by all of the same rows; a time where it tells none."""
    rows: dict[str, Row] = {}
    told = [quantity for quantity in open_bounds if quantity in MEASURED] or [LATENCY]
    return {quantity: Measurement(quantity, rows) for quantity in told}


def _told(text: str, space: StudySpace, session: Session) -> tuple[str, Costs]:
    """Return what an estimator that does not measure tells, and the estimator."""
    path = Path(text).expanduser()
    if (path / stored.FILE).is_file():
        found = PredictorSource.of(path, space, session)
        if "task" in found.differing:
            task, asked = found.differing["task"]
            raise InputError(f"`estimator={text!r}` predicts {task}, and the study's task is {asked}")
        if found.differing:
            told = "; ".join(
                f"{name} {mine}, not {value}"
                for name, (mine, value) in found.differing.items()
                if mine and name not in ("machine_id", "instance")
            )
            session.display.warn(
                f"{text} was fitted on {found.setting.machine}{told and f' ({told})'}, which is not what the "
                "study asks for: the search is for the former, and what is measured again is not"
            )
        return found.known.record.target, found
    if path.exists():
        return LATENCY, TableSource(text, read_tables(text))
    raise InputError(
        f"`estimator={text!r}`: there is no such folder; expected a predictor that `dlas fit` wrote, a table "
        f"that `dlas blocks` wrote, or {MEASURE!r}"
    )


def scores_of(text: str, space: StudySpace, session: Session) -> Scores:
    """Return what ``maximise`` names.

    Parameters
    ----------
    text : str
        A predictor's folder; a file of weights from 128 values to an accuracy; or ``accuracy``, of each
        network, which is made.

    Raises
    ------
    InputError
        If there is no such thing.
    """
    if text == TRUE:
        return lambda points: _true(space, points, session)
    path = Path(text).expanduser()
    if path.suffix in WEIGHTS:
        network = AccuracyNetwork.read(path)
        return lambda points: network(OF_OPTIONS["subnet"].values(SubnetOptions(PointOptions(points))))
    if (path / stored.FILE).is_file():
        found = PredictorSource.of(path, space, session)
        target = found.known.record.target
        if target.endswith(COSTS):
            raise InputError(f"`maximise={text!r}` predicts {target}, of which less is better; give a score")
        return lambda points: found(points)[0]
    raise InputError(
        f"`maximise={text!r}`: there is no such predictor; expected a folder that `dlas fit` wrote, a file "
        f"of weights ({', '.join(WEIGHTS)}), or {TRUE!r}"
    )


def _true(space: StudySpace, points: Sequence[Point], session: Session) -> Floats:
    """Return the accuracies of networks, which are made; of those that cannot be none, minus infinity.

    Raises
    ------
    InputError
        If networks have no accuracy, because images have no labels.
    """
    points = list(points)
    session.check(space.small, points=points)
    made = session.part.make(space.small, points, until="network", workspace="search")
    known = {row.id: row.accuracy for row in made.rows if row.status == "ok"}
    if known and all(accuracy is None for accuracy in known.values()):
        raise InputError(
            f"`maximise={TRUE!r}`: networks that are not trained on labelled images have none; give a "
            "predictor or a file of weights"
        )
    found = [known.get(point.id) for point in points]
    return np.array([-np.inf if accuracy is None else accuracy for accuracy in found], dtype=np.float64)
