"""A predictor for a device while it is made: what was asked for, and the seconds spent so far.

predictors/mine/
    device.json      this
    rows/            points that it is fitted to
    again/           some of them, measured a second time for the noise floor
    more_threads/    some of them on more threads, where these were asked for
    unseen/          networks that it is never fitted to
    predictor.json   the predictor, once it is fitted, with SHA256SUMS and its arrays in 0/
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic

from dlas.errors import InputError
from dlas.prediction.adaptive.records import RunRecord, RunRequest, read_record, typed
from dlas.prediction.learning import stored
from dlas.prediction.learning.networks import HERE
from dlas.sweep.rows.files import check_appendable


def plain(part: object) -> object:
    """Return a part as a file can hold it."""
    return dict(part) if isinstance(part, Mapping) else part


FILE = "device.json"
ROWS, AGAIN, MORE_THREADS, UNSEEN = PLACES = ("rows", "again", "more_threads", "unseen")
Text = Annotated[str, pydantic.Field(max_length=2000)]
PartOption = Annotated[Text | dict[Text, Any], pydantic.BeforeValidator(plain)]
"""A part's name, or a table with its name and options."""


class DeviceRequest(RunRequest):
    """What a predictor for a device was asked for, the minutes apart."""

    hardware: PartOption
    compiler: PartOption
    """A part's name, or a table with its name and options."""
    threads: Annotated[int, pydantic.Field(ge=1)] | None
    """None for 1, where the hardware takes a number."""
    more_threads: Annotated[int, pydantic.Field(ge=2)] | None = None
    """A second number of threads, on which a share of the points is measured; None for none."""
    algorithm: PartOption | None
    """Of a compiler that takes algorithms; None for blocked ``spatial_pack``."""
    model: PartOption
    """The part that draws networks."""
    target: Literal["latency_s", "latency_min_s"]
    """The column to predict."""
    unseen: Annotated[list[PartOption], pydantic.Field(min_length=1, max_length=1000)]
    """The networks that it is tried on."""
    seed: Annotated[int, pydantic.Field(ge=0, lt=2**32)]


class DeviceRun(RunRecord):
    """What was asked for, and how far it is."""

    asked: DeviceRequest


def predicting(folder: Path, hardware: object) -> str:
    """Return the command that predicts with a predictor, for the hardware that it was made on."""
    named = "" if hardware == HERE else f" --hardware {typed(hardware)}"
    return f"dlas predict {shlex.quote(str(folder))} --model resnet50{named}"


def opened(folder: Path, asked: DeviceRequest) -> DeviceRun:
    """Return the run in a folder, or a new one, of which nothing is written yet.

    Raises
    ------
    InputError
        If the folder holds something else, a run of other options or one that is finished, or files are in
        the way of what is to be written.
    """
    if not (folder / FILE).exists():
        stored.check_new(folder)
        return DeviceRun(asked=asked)
    run = read_record(folder / FILE, DeviceRun)
    if run.finished:
        raise InputError(
            f"{str(folder)!r} is finished: `{predicting(folder, run.asked.hardware)}` predicts with it; "
            "give another folder for another predictor, or remove it"
        )
    asked.check_goes_on(run.asked, folder)
    if not (folder / stored.FILE).exists():
        stored.check_beside(folder)
    for name in PLACES:
        check_appendable(folder / name)
    return run
