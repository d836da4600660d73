"""Points with what is known of them: the rows that a predictor is fitted to, or a study's points to predict.

What cannot be used is left out, and counted by reason.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlas.errors import InputError
from dlas.networks.operators import Operators
from dlas.prediction.learning.features import columns, matrix
from dlas.prediction.learning.features.devices import Facts, device_features, facts_of
from dlas.prediction.learning.features.kernels import COLUMNS, kernel_features, kind
from dlas.stack import Kernels, Layer, Model, Predictor, Samples
from dlas.sweep.rows.frame import frame_of, read, select
from dlas.sweep.rows.labels import number_of
from dlas.sweep.rows.layer_times import timed_layers
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.study import parts
from dlas.sweep.study.point import Choice

SETTING = ("machine_id", "instance", "threads", "task", "compiler", "algorithm")
"""Columns that make a setting: its rows have a predictor of their own, for nothing carries over unasked."""
NETWORK = "network"
"""Column with the digest of a point's network."""
KEPT = ("operator", "c", "h", "w", "k", "r", "s", "p", "q", "strides", "padding", "dilation", "groups")
"""Fields of an operator that make a network what it is, whatever the batch; names and times do not."""

COPY = "clone"
"""What an activation in place does in training, so that its input is there in the backward pass."""
DROPOUT = ("Bernoulli", "Dropout")
"""Operators of a dropout; PyTorch's on CPUs draws, divides and multiplies: ``d``, ``d.div``, ``d.mul``."""
WHERE = ("folder", "id", "machine_id", "instance")
"""Columns that tell whose facts a point's are: one point may be predicted on several devices."""
KernelsOf = Callable[[str, str], Sequence[Layer]]


@dataclass(frozen=True)
class Points:
    """Points, their networks, and what was left out.

    Parameters
    ----------
    frame : DataFrame
        Columns of :func:`dlas.sweep.rows.frame.read`, and ``network``.
    networks : mapping of (str, int) to Operators
        By digest and batch size, what is known of the operators.
    left_out : Counter
        Numbers of rows that cannot be used, by reason.
    kernels : callable
        Returns, of a folder and an id, what the point's program computes, with times where it was measured.
    devices : mapping of tuple to mapping
        By the values of :data:`WHERE`, the facts of each point's device that are features.
    """

    frame: pd.DataFrame
    networks: Mapping[tuple[str, int], Operators]
    left_out: Counter[str]
    kernels: KernelsOf
    devices: Mapping[tuple[str, ...], Facts] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.frame)

    def samples(self, predictor: Predictor, target: str, groups: Sequence[str]) -> Samples:
        """Return the table that a predictor reads.

        Parameters
        ----------
        predictor : Predictor
            Says which features it reads, and whether it reads kernels.
        target : str
            A column of the frame; NaN where it is missing.
        groups : sequence of str
            One for each point.
        """
        families, batches = predictor.families(target), self.frame["batch"].tolist()
        networks = [self.networks[key] for key in zip(self.frame[NETWORK], batches, strict=True)]
        known = self.frame[target] if target in self.frame else pd.Series(np.nan, self.frame.index)
        return Samples(
            ids=tuple(self.frame["id"]),
            columns=columns(families),
            features=matrix(families, networks, batches, self.options),
            target=np.asarray(known.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64),
            groups=tuple(groups),
            quantity=target,
            kernels=self._kernels() if predictor.level == "kernel" else None,
        )

    def facts(self) -> list[Facts]:
        """Return what is known of each point's device."""
        return [self.devices.get(key, {}) for key in _whose(self.frame)]

    def options(self, column: str) -> list[Any]:
        """Return a column of the frame, None where a point has no value in it."""
        if column not in self.frame:
            return [None] * len(self)
        return [None if pd.isna(value) else value for value in self.frame[column].tolist()]

    def _kernels(self) -> Kernels:
        """Return the kernels of all points.

        Raises
        ------
        InputError
            If a point does not tell its kernels.
        """
        keys = list(zip(self.frame["folder"], self.frame["id"], strict=True))
        each = [self.kernels(*key) for key in keys]
        if [] in each:
            row = self.frame["id"].iloc[each.index([])]
            raise InputError(f"row {row} has no times of layers, and this predictor adds up layers")
        together = [kernel for own in each for kernel in own]
        points = np.repeat(np.arange(len(each)), [len(own) for own in each])
        of_device, values = device_features(self.frame, self.facts())
        return Kernels(
            points=points,
            kinds=np.array([kind(kernel) for kernel in together], dtype=np.str_),
            columns=(*COLUMNS, *of_device),
            features=np.hstack([kernel_features(together), values[points]]),
            seconds=np.array([kernel.get("latency_s") or np.nan for kernel in together], dtype=np.float64),
        )

    def places(self, without: Sequence[str] = ()) -> dict[tuple[str, ...], npt.NDArray[np.intp]]:
        """Return where the points of each setting are, by the values of :data:`SETTING`.

        Parameters
        ----------
        without : sequence of str
            Columns of the setting in which points may differ.
        """
        found: dict[tuple[str, ...], list[int]] = {}
        columns = [_texts(self.frame[name]) for name in SETTING if name not in without]
        for place, key in enumerate(zip(*columns, strict=True)):
            found.setdefault(key, []).append(place)
        return {key: np.asarray(own, dtype=np.intp) for key, own in found.items()}

    def take(self, places: npt.NDArray[np.intp]) -> Points:
        """Return some of the points, by their places."""
        if len(places) == len(self):
            return self
        return replace(self, frame=self.frame.iloc[places].reset_index(drop=True))

    def merged(self, target: str) -> Points:
        """Return each point once, its target the mean of its measurements."""
        keys = ["id", *SETTING]
        means = self.frame.groupby(keys, sort=False, dropna=False)[target].transform("mean")
        merged = self.frame.assign(**{target: means}).drop_duplicates(keys)
        return replace(self, frame=merged.reset_index(drop=True))

    def settings(self, without: Sequence[str] = ()) -> dict[tuple[str, ...], Points]:
        """Return the points of each setting; parameters as for :meth:`places`."""
        return {key: self.take(places) for key, places in self.places(without).items()}


def read_points(
    folders: Sequence[Path], target: str, where: Sequence[str] = (), kernels: bool = False
) -> Points:
    """Return the rows of folders that a predictor of ``target`` can be fitted to.

    Parameters
    ----------
    folders : sequence of Path
        What ``dlas run --out`` wrote.
    target : str
        A column: ``latency_s``, ``peak_memory_bytes``.
    where : sequence of str
        Filters, as :func:`dlas.sweep.rows.frame.select` reads them.
    kernels : bool
        Whether rows must tell times of kernels, which only those of inference do.

    Raises
    ------
    InputError
        If there is no such column, or no row has a value in it.
    """
    frame = select(read(folders), where)
    numeric = [name for name in map(str, frame) if pd.api.types.is_numeric_dtype(frame[name])]
    if target not in numeric:
        raise InputError(f"--target {target!r} is no column of numbers; there are: {', '.join(numeric)}")
    _check_known(frame, target)
    frame, networks, devices = _with_networks(frame)
    reasons = pd.Series("", frame.index, dtype="string")
    unusable = {
        "not ok": ~frame["status"].eq("ok"),
        "unstable": frame["unstable"].fillna(False),
        f"without {target}": frame[target].isna(),
        f"with {target} of zero": frame[target].eq(0).fillna(False),
        "without operators": frame[NETWORK].isna(),
    }
    told = _measured_kernels()
    if kernels:
        unusable["of training"] = ~frame["task"].eq("inference")
        timed = [bool(told(*key)) for key in zip(frame["folder"], frame["id"], strict=True)]
        unusable["without times of layers"] = ~pd.Series(timed, frame.index)
    for reason, marked in unusable.items():
        reasons = reasons.mask(marked.astype(bool) & reasons.eq(""), reason)
    left_out = Counter(reason for reason in reasons if reason)
    kept = frame[reasons.eq("")].reset_index(drop=True)
    points = Points(kept, networks, left_out, told, devices)
    if not len(points):
        raise InputError(f"no row can be used: {describe_left_out(points)}")
    return points


def points_of(frame: pd.DataFrame) -> Points:
    """Return the points of rows, whatever became of them.

    Parameters
    ----------
    frame : DataFrame
        What :func:`dlas.sweep.rows.frame.read` returned.

    Raises
    ------
    InputError
        If a row does not tell its network's operators.
    """
    known, networks, devices = _with_networks(frame.reset_index(drop=True))
    if (missing := known[NETWORK].isna()).any():
        raise InputError(f"row {known['id'][missing].iloc[0]} does not tell its network's operators")
    return Points(known, networks, Counter(), _measured_kernels(), devices)


def planned_points(
    rows: Sequence[Row], networks: Sequence[Operators], kernels: Sequence[Sequence[Layer]]
) -> Points:
    """Return points that were not measured.

    Parameters
    ----------
    rows : sequence of Row
        Their parts and devices.
    networks : sequence of Operators
        What is known of each point's network.
    kernels : sequence of sequence of Layer
        What each point's program computes.
    """
    told = {row.id: own for row, own in zip(rows, kernels, strict=True)}
    frame = frame_of("", rows)
    known: dict[int, tuple[str, Operators]] = {}
    for operators in networks:  # many points share one
        if id(operators) not in known:
            own = {batch: inherent(layers) for batch, layers in operators.items()}
            known[id(operators)] = digest(next(iter(own.values()))), own
    digests = [known[id(operators)][0] for operators in networks]
    keys = zip(digests, (row.batch for row in rows), strict=True)
    by_key = dict(zip(keys, (known[id(operators)][1] for operators in networks), strict=True))
    known_frame = frame.assign(**{NETWORK: pd.Series(digests, dtype="string")})
    devices = dict(zip(_whose(known_frame), (facts_of(row.device) for row in rows), strict=True))
    return Points(known_frame, by_key, Counter(), lambda _folder, point: told[point], devices)


def describe_left_out(points: Points) -> str:
    """Return how many rows were left out and why: ``37 rows: 12 not ok, 8 without peak_memory_bytes``."""
    total = len(points) + points.left_out.total()
    reasons = ", ".join(f"{count} {reason}" for reason, count in points.left_out.items())
    return f"{number_of(total, 'row')}: {reasons or 'none left out'}"


def digest(operators: Sequence[Layer]) -> str:
    """Return sixteen hexadecimal digits, the same for networks of the same operators at any batch size."""
    content = [
        [[layer.get(name) for name in KEPT], [shape[1:] for shape in layer["inputs"]], layer["output"][1:]]
        for layer in operators
    ]
    return _text_digest(content)


def _text_digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def operators_of(row: Row) -> list[Layer]:
    """Return the operators of a row's network; empty where the row does not tell their shapes."""
    return inherent([layer for layer in row.layers if layer.get("inputs") and layer.get("output")])


@dataclass(frozen=True)
class Followed(Mapping[int, Sequence[Layer]]):
    """Operators of a network that follow from its options, listed when they are read: they take much memory.

    Parameters
    ----------
    model : Model
    shape : tuple of int
    classes : int
    batch : int
        The only one.
    """

    model: Model
    shape: tuple[int, int, int]
    classes: int
    batch: int

    def __getitem__(self, batch: int) -> Sequence[Layer]:
        if batch != self.batch:
            raise KeyError(batch)
        return self.model.operators(self.shape, self.classes, batch)

    def __contains__(self, batch: object) -> bool:
        return batch == self.batch  # by default it would list them

    def __iter__(self) -> Iterator[int]:
        return iter((self.batch,))

    def __len__(self) -> int:
        return 1


def followed(row: Row) -> Followed | None:
    """Return the operators of an imported row where they follow from its options, else None.

    Raises
    ------
    InputError
        If the model takes no such images.
    """
    if row.imported is None or row.compression != {"name": "none"}:
        return None
    images, network = Choice.of(row.dataset), Choice.of(row.model)
    if images.name not in parts.plain_names("dataset") or network.name not in parts.plain_names("model"):
        return None
    if parts.find("model", network.name).cls.operators is Model.operators:
        return None
    if parts.find("dataset", images.name).cls.labelled:  # its images are files, which need not be here
        return None
    data = images.make("dataset").load()
    found = Followed(network.make("model"), data.shape, data.classes, row.batch)
    return found if found[row.batch] else None


def inherent(operators: Sequence[Layer]) -> list[Layer]:
    """Return the operators that inference and training have in common.

    Training adds copies for the backward pass and dropout; without them, a network that was only made has
    the same operators as one that was trained.
    """
    dropouts = {layer["name"] for layer in operators if layer.get("operator") in DROPOUT}
    return [
        layer
        for layer in operators
        if layer.get("operator") != COPY and not dropouts & {layer["name"], layer["name"].rpartition(".")[0]}
    ]


def _texts(column: pd.Series) -> list[str]:
    """Return values as text, empty where they are missing."""
    values = column.tolist()
    texts = {value: "" if pd.isna(value) else str(value) for value in set(values)}
    return [texts[value] for value in values]


def _measured_kernels() -> KernelsOf:
    """Return what tells the kernels of rows with their times, and reads each folder once."""

    @functools.cache
    def of_folder(folder: str) -> dict[str, list[Layer]]:
        return {row.id: _timed(row) for row in read_rows(Path(folder))}

    return lambda folder, row: of_folder(folder)[row]


def _timed(row: Row) -> list[Layer]:
    """Return a row's kernels with their corrected times; none where no layer was timed."""
    return [{**layer, "latency_s": seconds} for layer, seconds in timed_layers(row)]


def _check_known(frame: pd.DataFrame, target: str) -> None:
    """Refuse a target that no row has, though some were measured.

    Raises
    ------
    InputError
    """
    measured = frame[target][frame["status"].eq("ok")]
    if measured.empty or measured.notna().any():
        return
    why = f"{number_of(len(measured), 'row')} without {target}"
    if target.startswith("energy"):
        why = f"{why}, for their machines have no meter that may be read (RAPL, or a Jetson's sensors)"
    raise InputError(f"no row has {target}: {why}")


def _with_networks(
    frame: pd.DataFrame,
) -> tuple[pd.DataFrame, dict[tuple[str, int], Operators], dict[tuple[str, ...], Facts]]:
    """Return the frame with the digest of each row's network, what is known of these, and of the devices."""
    digests: dict[tuple[str, str], str] = {}
    networks: dict[tuple[str, int], Operators] = {}
    facts: dict[tuple[str, ...], Facts] = {}
    for folder in frame["folder"].unique():
        for row in read_rows(Path(folder)):
            facts[folder, row.id] = facts_of(row.device)
            if operators := operators_of(row):
                digests[folder, row.id] = name = digest(operators)
                networks.setdefault((name, row.batch), {row.batch: operators})
            elif (listed := followed(row)) is not None:
                digests[folder, row.id] = name = _text_digest([listed.shape, listed.classes, row.model])
                networks.setdefault((name, row.batch), listed)
    keys = zip(frame["folder"], frame["id"], strict=True)
    column = pd.Series([digests.get(key) for key in keys], frame.index, dtype="string")
    devices = {key: facts.get(key[:2], {}) for key in _whose(frame)}
    return frame.assign(**{NETWORK: column}), networks, devices


def _whose(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return the values of :data:`WHERE` of each point."""
    return list(zip(*(_texts(frame[name]) for name in WHERE), strict=True))
