"""Points as predictors read them: the rows that one is fitted to, or a study's points to predict.

What cannot be used is left out, and counted by reason.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlas.errors import InputError
from dlas.networks.operators import Operators
from dlas.prediction.learning.examples import DerivedOperators, inherent, read_examples
from dlas.prediction.learning.features import OWN, columns, matrix, of_operators
from dlas.prediction.learning.features.devices import Facts, device_features, facts_of
from dlas.prediction.learning.features.kernels import COLUMNS, kernel_features, kind
from dlas.stack import Kernels, Layer, Operator, Predictor, Samples
from dlas.stack.types import Floats
from dlas.sweep.rows.columns import FEATURE
from dlas.sweep.rows.example import Example
from dlas.sweep.rows.frame import distinct, named, select
from dlas.sweep.rows.labels import number_of
from dlas.sweep.rows.records import RowTable
from dlas.sweep.rows.results import UNSTABLE

SETTING = ("machine_id", "instance", "threads", "task", "compiler", "algorithm")
"""Columns that make a setting: its rows have a predictor of their own, for nothing carries over unasked."""
NETWORK = "network"
"""Column with the digest of a point's network."""
KEPT = ("operator", "c", "h", "w", "k", "r", "s", "p", "q", "strides", "padding", "dilation", "groups")
"""Fields of an operator that make a network what it is, whatever the batch; names and times do not."""


@dataclass(frozen=True)
class PointFacts:
    """What predictors read of a point, beside the values of its row."""

    network: str | None
    """Digest of its network; None where neither its operators are known nor features of its own."""
    operators: Operators
    """Of its network; points with the same one share them."""
    kernels: Kernels
    """Of its program."""
    device: Facts
    """What is known of its device."""


@dataclass(frozen=True)
class Points:
    """Points with what is known of them, and what was left out."""

    frame: pd.DataFrame
    """Columns of :func:`dlas.sweep.rows.frame.read`, and ``network``."""
    facts: tuple[PointFacts, ...]
    """Of each point."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Numbers of rows that cannot be used, by reason."""
    fewer_threads: Points | None = None
    """Points of a setting that differs in its threads alone, as :attr:`dlas.stack.Samples.fewer_threads`."""

    @classmethod
    def of(cls, examples: Iterable[Example]) -> Points:
        """Return the points of examples, whatever became of them; each is let go before the next is read."""
        table = RowTable()
        facts = []
        for example, own in _reduced(examples):
            table.add(example.folder, example.row)
            facts.append(own)
        return cls(_with_networks(named(table), facts), tuple(facts))

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
        computed = tuple(name for name in families if name != OWN)
        if of_operators(computed):
            self._check_operators()
        networks = [own.operators for own in self.facts]
        names, features = columns(computed), matrix(computed, networks, batches, self.options)
        if OWN in families:
            told = self._own_features()
            names, features = (*names, *told), np.hstack([features, told.to_numpy(dtype=np.float64)])
        known = self.frame[target] if target in self.frame else pd.Series(np.nan, self.frame.index)
        return Samples(
            ids=tuple(self.frame["id"]),
            columns=names,
            features=features,
            target=np.asarray(known.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64),
            groups=tuple(groups),
            quantity=target,
            kernels=self._kernels() if predictor.level == "kernel" else None,
        )

    @property
    def tell_operators(self) -> bool:
        """Whether the operators of all networks are known."""
        return all(own.operators for own in self.facts)

    def _check_operators(self) -> None:
        """Refuse points of which no operators are known, only features of their own.

        Raises
        ------
        InputError
        """
        for row, own in zip(self.frame["id"], self.facts, strict=True):
            if own.network is not None and not own.operators:
                raise InputError(
                    f"row {row} does not tell its network's operators, only features of its own: "
                    "additive(costs='own'), mixture and extra_trees(reads='own') read these"
                )

    def _own_features(self) -> pd.DataFrame:
        """Return the columns of features that a table from elsewhere told of its points.

        Raises
        ------
        InputError
            If there is none, or a point lacks one.
        """
        names = own_features(self.frame)
        if not names:
            raise InputError(
                "no row has features of its own, columns 'feature.<name>' of a table that `dlas import` reads"
            )
        told = self.frame[names]
        if told.isna().any(axis=None):
            name = next(name for name in names if told[name].isna().any())
            raise InputError(f"row {self.frame['id'][told[name].isna()].iloc[0]} has no {name}")
        return told

    def selected(self, where: Sequence[str]) -> Points:
        """Return those that all filters keep, as :func:`dlas.sweep.rows.frame.select` reads them."""
        return self.take(select(self.frame, where).index.to_numpy())

    def with_operators(self) -> Points:
        """Return the points, each of which must tell its network's operators.

        Raises
        ------
        InputError
            If one does not.
        """
        for row, own in zip(self.frame["id"], self.facts, strict=True):
            if own.network is None:
                raise InputError(f"row {row} does not tell its network's operators")
        return self

    def devices(self) -> list[Facts]:
        """Return what is known of each point's device."""
        return [own.device for own in self.facts]

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
        counts = [len(own.kernels) for own in self.facts]
        if 0 in counts:
            row = self.frame["id"].iloc[counts.index(0)]
            raise InputError(f"row {row} has no times of layers, and this predictor adds up layers")
        points = np.repeat(np.arange(len(self)), counts)
        of_device, values = device_features(self.frame, self.devices())
        features = np.concatenate([own.kernels.features for own in self.facts])
        return Kernels(
            points=points,
            kinds=np.concatenate([own.kernels.kinds for own in self.facts]),
            columns=(*COLUMNS, *of_device),
            features=np.hstack([features, values[points]]),
            seconds=np.concatenate([own.kernels.seconds for own in self.facts]),
            energies=np.concatenate([own.kernels.joules for own in self.facts]),
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
        facts = tuple(self.facts[place] for place in places)
        return replace(self, frame=self.frame.iloc[places].reset_index(drop=True), facts=facts)

    def merged(self, target: str) -> Points:
        """Return each point once, its target the mean of its measurements."""
        keys = ["id", *SETTING]
        means = self.frame.groupby(keys, sort=False, dropna=False)[target].transform("mean")
        merged = replace(self, frame=self.frame.assign(**{target: means}))
        return merged.take(np.flatnonzero(~self.frame.duplicated(keys)))

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
    return usable_points(read_examples(distinct(folders), kernels), target, where, kernels)


def usable_points(
    examples: Iterable[Example], target: str, where: Sequence[str] = (), kernels: bool = False
) -> Points:
    """Return the examples that a predictor can be fitted to; parameters as for :func:`read_points`."""
    chosen = Points.of(examples).selected(where)
    numeric = [name for name in map(str, chosen.frame) if pd.api.types.is_numeric_dtype(chosen.frame[name])]
    if target not in numeric:
        raise InputError(f"`target={target!r}` is no column of numbers; there are: {', '.join(numeric)}")
    frame = chosen.frame
    _check_known(frame, target)
    reasons = pd.Series("", frame.index, dtype="string")
    unusable = {
        "unstable": frame["status"].eq(UNSTABLE),
        "not ok": ~frame["status"].eq("ok"),
        f"without {target}": frame[target].isna(),
        f"with {target} of zero": frame[target].eq(0).fillna(False),
        "without operators": frame[NETWORK].isna(),
    }
    told = frame[own_features(frame)]
    unusable["without all features"] = told.isna().any(axis=1) & told.notna().any(axis=1)
    if kernels:
        unusable["of training"] = ~frame["task"].eq("inference")
        timed = [len(own.kernels) > 0 for own in chosen.facts]
        unusable["without times of layers"] = ~pd.Series(timed, frame.index, dtype=bool)
    for reason, marked in unusable.items():
        reasons = reasons.mask(marked.astype(bool) & reasons.eq(""), reason)
    left_out = Counter(reason for reason in reasons if reason)
    points = replace(chosen.take(np.flatnonzero(reasons.eq(""))), left_out=left_out)
    if not len(points):
        raise InputError(f"no row can be used: {describe_left_out(points)}")
    return points


def points_of(frame: pd.DataFrame, kernels: bool = True) -> Points:
    """Return the points of rows, whatever became of them; their folders are read for what the frame omits.

    Parameters
    ----------
    frame : DataFrame
        What :func:`dlas.sweep.rows.frame.read` returned.
    kernels : bool
        Whether a predictor reads their kernels.

    Raises
    ------
    InputError
        If a row does not tell its network's operators.
    """
    examples = read_examples(map(Path, frame["folder"].unique()), kernels)
    known = {(example.folder, example.row.id): own for example, own in _reduced(examples)}
    keys = list(zip(frame["folder"], frame["id"], strict=True))
    if missing := next((key for key in keys if key not in known), None):
        raise InputError(f"row {missing[1]} does not tell its network's operators")
    facts = tuple(known[key] for key in keys)
    return Points(_with_networks(frame.reset_index(drop=True), facts), facts).with_operators()


def own_features(frame: pd.DataFrame) -> list[str]:
    """Return the names of the columns of features that a table from elsewhere told, in their order."""
    return sorted(str(name) for name in frame if str(name).startswith(FEATURE) and frame[name].notna().any())


def describe_left_out(points: Points) -> str:
    """Return how many rows were left out and why: ``37 rows: 12 not ok, 8 without peak_memory_bytes``."""
    total = len(points) + points.left_out.total()
    reasons = ", ".join(f"{count} {reason}" for reason, count in points.left_out.items())
    return f"{number_of(total, 'row')}: {reasons or 'none left out'}"


def digest(operators: Sequence[Operator]) -> str:
    """Return sixteen hexadecimal digits, the same for networks of the same operators at any batch size."""
    content = [
        [[layer.get(name) for name in KEPT], [shape[1:] for shape in layer["inputs"]], layer["output"][1:]]
        for layer in operators
    ]
    return _text_digest(content)


def _text_digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _texts(column: pd.Series) -> list[str]:
    """Return values as text, empty where they are missing."""
    values = column.tolist()
    texts = {value: "" if pd.isna(value) else str(value) for value in set(values)}
    return [texts[value] for value in values]


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


def _reduced(examples: Iterable[Example]) -> Iterator[tuple[Example, PointFacts]]:
    """Yield examples beside what is kept of them."""
    # Those in memory may share a network; of those that are read, one may lie where another one was.
    digests: dict[int, tuple[str, Operators]] | None = {} if isinstance(examples, Sequence) else None
    kept: dict[tuple[str, int], Operators] = {}
    for example in examples:
        network, operators = None, example.operators
        if not operators and (example.row.imported or {}).get("features"):
            network = _text_digest([example.row.model, example.row.compression])
        if operators:
            place = id(operators)
            network, operators = (digests or {}).get(place) or _network(example)
            if digests is not None:
                digests[place] = network, operators
            operators = kept.setdefault((network, example.row.batch), operators)
        yield example, PointFacts(network, operators, _table(example.kernels), facts_of(example.row.device))


def _network(example: Example) -> tuple[str, Operators]:
    """Return the digest of an example's network, and those of its operators that any task has."""
    operators = example.operators
    if isinstance(operators, DerivedOperators):
        return _text_digest([operators.shape, operators.classes, example.row.model]), operators
    own = {batch: inherent(layers) for batch, layers in operators.items()}
    return digest(next(iter(own.values()))), own


def _table(kernels: Sequence[Layer]) -> Kernels:
    """Return the kernels of one point, without features of its device."""
    return Kernels(
        points=np.zeros(len(kernels), dtype=np.intp),
        kinds=np.array([kind(kernel) for kernel in kernels], dtype=np.str_),
        columns=COLUMNS,
        features=kernel_features(kernels),
        seconds=_measured(kernels, "latency_s"),
        energies=_measured(kernels, "energy_j"),
    )


def _measured(kernels: Sequence[Layer], name: Literal["latency_s", "energy_j"]) -> Floats:
    """Return a quantity of each kernel, NaN where it was not measured."""
    return np.array([kernel.get(name) or np.nan for kernel in kernels], dtype=np.float64)


def _with_networks(frame: pd.DataFrame, facts: Sequence[PointFacts]) -> pd.DataFrame:
    """Return the frame with the digest of each point's network."""
    return frame.assign(**{NETWORK: pd.Series([own.network for own in facts], frame.index, dtype="string")})
