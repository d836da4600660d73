"""Fitted predictors as folders: a JSON file and arrays, each hashed; reading executes nothing.

predictors/mine/
    predictor.json       what it is, what it was fitted to, how wrong it was
    SHA256SUMS           its hash
    0/arrays.safetensors the arrays of the first setting
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pydantic

from dlas.bench.store import fingerprint
from dlas.bench.store.records import Strict, model_in
from dlas.bench.store.replacing import replacing
from dlas.errors import InputError
from dlas.prediction.learning.features.kernels import COLUMNS
from dlas.prediction.learning.fitting import predicted_kernels, scales_of
from dlas.prediction.learning.kernel_spread import KernelSpread
from dlas.prediction.learning.points import SETTING
from dlas.prediction.predictors.fitted import folders
from dlas.stack import Fitted, Kernels, Predictor, Samples
from dlas.stack.types import Floats
from dlas.sweep.study import parts

FILE = folders.FILE
SCHEMA = 3
ANY = "any"
"""Value of a setting's column where a predictor is one for all values, also those that it never saw."""
TOOLS = ("python", "numpy", "scipy", "scikit-learn", "xgboost", "safetensors")
Finite = Annotated[float, pydantic.Field(allow_inf_nan=False)]
Text = Annotated[str, pydantic.Field(max_length=2000)]


class ScoreRecord(Strict):
    """How wrong a predictor was on rows that were held out; as ``learning.metrics.Scores``."""

    rows: int
    mape: Finite
    within: list[Finite]
    rmse: Finite
    mae: Finite
    rmse_of_mean: Finite
    spearman: Finite | None
    kendall: Finite | None
    coverage: Finite | None
    coverage_error: Finite | None = None
    width: Finite | None


class EvaluationRecord(Strict):
    """A predictor or baseline on held-out groups."""

    name: Text
    overall: ScoreRecord
    by_fold: dict[Text, ScoreRecord]


class KernelRecord(Strict):
    """How wrong a predictor was on the kernels of one kind; as ``learning.evaluation.KernelScores``."""

    kind: Text
    count: int
    share: Finite
    mape: Finite
    within: Finite


class SettingRecord(Strict):
    """What was fitted to the rows of one setting."""

    setting: dict[Text, Text]
    """Values of ``dlas.prediction.learning.points.SETTING``; :data:`ANY` where several were fitted together.
    """
    machine: Text
    """The machine's name."""
    hardware: Text = ""
    """The name of its profile, a part of the axis ``hardware``; empty where nobody wrote it down."""
    facts: dict[Text, tuple[Finite, Finite]] = pydantic.Field(default_factory=dict)
    """What is known of its devices, as ``learning.features.devices.facts_of`` tells it: the least and the
    largest value of each number that all rows have.
    """
    columns: dict[Text, tuple[Finite, Finite]]
    """The features, each with the least and the largest value that was fitted."""
    importances: list[Finite] | None
    """Of the columns."""
    batches: tuple[int, int]
    """Least and largest batch size."""
    rows: list[Text]
    """The ids of the rows that were fitted."""
    on_fewer_threads: pydantic.NonNegativeInt = 0
    """Rows on fewer threads that were fitted beside these."""
    groups: list[Text]
    """The groups that were held out in turn."""
    half_width: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)] | None
    """Of the interval, in natural logarithms; None where groups are too few."""
    spread: KernelSpread | None = None
    """Of latencies that are sums of kernels: how wide the intervals of networks are.  Then ``half_width`` is
    of the network in the middle of those that were held out.
    """
    tried_after: pydantic.NonNegativeInt = 0
    """Networks that were measured after the fit, and say how wide intervals are, too."""
    floor: Finite | None
    """The noise floor."""
    tried: dict[Text, tuple[Finite, Finite]]
    """What was predicted and what was measured of each row while it was held out, by the row's id."""
    evaluation: list[EvaluationRecord]
    """The predictor and the baselines on what was held out."""
    kernels: list[KernelRecord] = pydantic.Field(default_factory=list)
    """The predictor on the kernels of what was held out, by kind; empty if it reads none."""
    folder: Annotated[str, pydantic.Field(pattern=r"^\d{1,6}$")]
    """Where its arrays are."""
    files: dict[Annotated[str, pydantic.Field(pattern=r"^[A-Za-z_]\w*\.(safetensors|json)$")], Text]
    """Their SHA-256 by name."""

    def told(self, fitted: Fitted, samples: Samples) -> tuple[Floats, Floats, Floats]:
        """Return what was fitted to this setting says of samples.

        Returns
        -------
        value, unknown, half_widths : array [n]
            The prediction; the share of it for kernels of kinds of which none or few were fitted; half of the
            width of its interval, in natural logarithms, NaN where groups are too few for any.

        Raises
        ------
        InputError
            If they have other features than what it was fitted to.
        """
        if samples.columns != tuple(self.columns):
            raise InputError(
                "the predictor was fitted to other features than these points have; fit it again"
            )
        kernels = predicted_kernels(fitted, samples)
        told = fitted.told(samples, None if kernels is None else kernels.predicted)
        width = np.nan if self.half_width is None else self.half_width
        return *told, width * scales_of(self.spread, kernels, len(samples))


class Record(Strict):
    """What ``predictor.json`` holds."""

    schema_version: Literal[1, 2, 3] = 3
    """Version of this list of fields."""
    part: Text
    """The predictor's name."""
    options: dict[Text, Any]
    """Its options where they differ from their defaults."""
    target: Text
    """The column that it predicts; the unit is its suffix."""
    hold_out: Text
    """What its evaluation and its intervals held out."""
    seed: int
    versions: dict[Text, Text | None]
    """Of the libraries that it was fitted with."""
    settings: Annotated[list[SettingRecord], pydantic.Field(min_length=1, max_length=10_000)]


@dataclass(frozen=True)
class StoredPredictor:
    """A predictor that was read from its folder."""

    record: Record
    digest: str
    part: Predictor
    fitted: Mapping[tuple[str, ...], Fitted]
    """By the values of :data:`dlas.prediction.learning.points.SETTING`."""

    def covering(self, key: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the fitted setting that a point's belongs to; None where none was fitted."""
        if key in self.fitted:
            return key
        return next((own for own in self.fitted if covers(own, key)), None)

    def setting(self, key: tuple[str, ...]) -> SettingRecord:
        """Return what was fitted to the rows of a setting."""
        return next(each for each in self.record.settings if _key(each) == key)

    def told(self, key: tuple[str, ...], samples: Samples) -> tuple[Floats, Floats, Floats]:
        """Return what was fitted to a setting says of samples, as :meth:`SettingRecord.told`."""
        return self.setting(key).told(self.fitted[key], samples)


def covers(fitted: tuple[str, ...], key: tuple[str, ...]) -> bool:
    """Return whether what was fitted to a setting is for another, too."""
    return all(own in (value, ANY) for own, value in zip(fitted, key, strict=True))


def write(folder: Path, record: Record, fitted: Sequence[Fitted], beside: bool = False) -> None:
    """Write a predictor into a folder, completely or not at all: without its JSON file it is none.

    Parameters
    ----------
    record : Record
        Its settings have no ``files`` yet.
    fitted : sequence of Fitted
        One for each setting.
    beside : bool
        Whether the folder may hold other files, which stay.

    Raises
    ------
    InputError
        If the folder exists, or holds files in its place, or cannot be written.
    """
    if beside:
        check_beside(folder)
    else:
        check_new(folder)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    try:
        partial.mkdir(parents=True)
        settings = []
        for setting, own in zip(record.settings, fitted, strict=True):
            place = partial / setting.folder
            place.mkdir()
            own.save(place)
            files = {path.name: folders.sha256(path) for path in sorted(place.iterdir())}
            settings.append(setting.model_copy(update={"files": files}))
        complete = record.model_copy(update={"settings": settings})
        text = (complete.model_dump_json(indent=1) + "\n").encode()
        (partial / folders.SUMS).write_text(folders.sums(text), encoding="utf-8")
        (partial / FILE).write_bytes(text)
        _move(partial, folder)
    except OSError as error:
        raise InputError(f"cannot write the predictor {str(folder)!r}: {error.strerror}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def rewrite(folder: Path, record: Record) -> None:
    """Replace the record of a predictor, whose arrays stay.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    text = (record.model_dump_json(indent=1) + "\n").encode()
    try:
        (folder / folders.SUMS).unlink(missing_ok=True)  # without it, either record can be read
        for name, content in ((FILE, text), (folders.SUMS, folders.sums(text).encode())):
            with replacing(folder / name) as partial:
                partial.write_bytes(content)
    except OSError as error:
        raise InputError(f"cannot write the predictor {str(folder)!r}: {error.strerror}") from None


def _move(partial: Path, folder: Path) -> None:
    """Move a predictor to its place, its JSON file last."""
    if not folder.exists():
        os.rename(partial, folder)
        return
    for path in sorted(partial.iterdir(), key=lambda path: path.name == FILE):
        shutil.rmtree(folder / path.name, ignore_errors=True)
        os.rename(path, folder / path.name)


def check_new(folder: Path) -> None:
    """Refuse a folder that exists.

    Raises
    ------
    InputError
    """
    if folder.exists():
        raise InputError(f"{str(folder)!r} exists already; give another folder, or remove it")


def check_beside(folder: Path) -> None:
    """Refuse a folder in which files are where a predictor is to be written; any others may be beside it.

    Folders with a number as their name hold arrays that a process left when it was killed, and are replaced.

    Raises
    ------
    InputError
    """
    if (folder / FILE).exists():
        raise InputError(f"{str(folder)!r} holds a predictor already")
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.isdigit() and (path.is_symlink() or not path.is_dir()):
            raise InputError(f"{str(path)!r} is where the predictor's arrays are to be: move it elsewhere")


def read(folder: Path) -> StoredPredictor:
    """Return the predictor in a folder, which may come from elsewhere.

    Raises
    ------
    InputError
        If it is no predictor, is damaged, or was written by a newer version.
    """
    text = folders.read_text(folder, repr(str(folder)))
    record = _parsed(folder / FILE, text)
    check_named(record.part)
    part: Predictor = parts.checked("predictor", record.part, record.options)
    fitted = {_key(setting): _loaded(part, folder / setting.folder, setting) for setting in record.settings}
    return StoredPredictor(record, hashlib.sha256(text).hexdigest(), part, fitted)


def check_named(part: str) -> None:
    """Refuse a predictor that is given as ``module:Class``: reading it again would import what a file names.

    Raises
    ------
    InputError
    """
    if ":" in part:
        raise InputError(
            f"predictor {part!r}: a stored predictor is found by its name; put its file into "
            "dlas/prediction/predictors, or install it with an entry point in the group dlas.predictor"
        )


def _loaded(part: Predictor, place: Path, setting: SettingRecord) -> Fitted:
    """Return what was fitted to one setting, after checking its files and that it takes its columns."""
    folders.check_files(place, setting.files)
    fitted = part.load(place)
    try:
        predicted = fitted.predict(_least(part, setting))
    except (ValueError, IndexError):  # arrays of other sizes
        predicted = np.full(1, np.nan)
    if predicted.shape != (1,) or not predicted[0] > 0 or not np.isfinite(predicted[0]):
        raise InputError(f"the arrays in {str(place)!r} do not fit the columns of the predictor")
    return fitted


def _least(part: Predictor, setting: SettingRecord) -> Samples:
    """Return a point with the least value of each column, and one kernel."""
    low = np.array([[least for least, _ in setting.columns.values()]]).reshape(1, -1)
    kernel = Kernels(np.zeros(1, np.intp), np.array(["any"]), COLUMNS, np.ones((1, len(COLUMNS))), np.ones(1))
    return Samples(
        ids=("",),
        columns=tuple(setting.columns),
        features=low,
        target=np.full(1, np.nan),
        groups=("",),
        kernels=kernel if part.level == "kernel" else None,
    )


def _parsed(path: Path, text: bytes) -> Record:
    """Return the record in a predictor's JSON file."""
    try:
        raw = pydantic.TypeAdapter(dict[str, Any]).validate_json(text)
    except pydantic.ValidationError:
        raise InputError(f"{path} is not a JSON object") from None
    schema = raw.get("schema_version")
    if isinstance(schema, int) and schema > SCHEMA:
        raise InputError(
            f"{path} has schema {schema}, and this version reads up to {SCHEMA}: install a newer one"
        )
    return model_in(text, path, Record)


def versions() -> dict[str, str | None]:
    """Return the versions of the libraries that fitting depends on."""
    return fingerprint.versions(TOOLS)


def _key(setting: SettingRecord) -> tuple[str, ...]:
    return tuple(setting.setting.get(name, "") for name in SETTING)
