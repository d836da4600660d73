"""A predictor for a device while it is made: what was asked for, and the seconds spent so far.

predictors/mine/
    device.json      this
    rows/            points that it is fitted to
    again/           some of them, measured a second time for the noise floor
    unseen/          networks that it is never fitted to
    predictor.json   the predictor, once it is fitted, with its arrays in 0/
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic

from dlas.bench.store import toml
from dlas.bench.store.replacing import make_folder, replacing
from dlas.errors import InputError
from dlas.prediction.learning import stored
from dlas.prediction.learning.networks import HERE
from dlas.sweep.rows.files import check_appendable

FILE = "device.json"
ROWS, AGAIN, UNSEEN = "rows", "again", "unseen"
MOST_BYTES = 1 << 20
STRICT = pydantic.ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
Text = Annotated[str, pydantic.Field(max_length=2000)]
Part = Text | dict[Text, Any]
"""A part's name, or a table with its name and options."""


class Asked(pydantic.BaseModel):
    """What a predictor for a device was asked for, the minutes apart.

    Attributes
    ----------
    hardware, compiler : str or dict
        A part's name, or a table with its name and options.
    threads : int or None
        None for 1, where the hardware takes a number.
    algorithm : str, dict or None
        Of a compiler that takes algorithms; None for blocked ``spatial_pack``.
    model : str or dict
        The part that draws networks.
    target : {"latency_s", "latency_min_s"}
        The column to predict.
    unseen : list of (str or dict)
        The networks that it is tried on.
    seed : int
    """

    model_config = STRICT

    hardware: Part
    compiler: Part
    threads: Annotated[int, pydantic.Field(ge=1)] | None
    algorithm: Part | None
    model: Part
    target: Literal["latency_s", "latency_min_s"]
    unseen: Annotated[list[Part], pydantic.Field(min_length=1, max_length=1000)]
    seed: Annotated[int, pydantic.Field(ge=0, lt=2**32)]

    @classmethod
    def checked(cls, **options: Any) -> Asked:
        """Return what was asked for.

        Raises
        ------
        InputError
            If an option is out of range.
        """
        try:
            return cls(**options)
        except pydantic.ValidationError as error:
            problem = error.errors()[0]
            raise InputError(f"--{problem['loc'][0]} {problem['input']!r}: {problem['msg']}") from None

    def told(self) -> dict[str, str]:
        """Return the options of the command, by name."""
        given = {name: value for name, value in self if name != "unseen" and value is not None}
        options = {name: f"--{name} {_typed(value)}" for name, value in given.items()}
        return {**options, "unseen": " ".join(f"--unseen {_typed(each)}" for each in self.unseen)}


def predicting(folder: Path, hardware: object) -> str:
    """Return the command that predicts with a predictor, for the hardware that it was made on."""
    named = "" if hardware == HERE else f" --hardware {_typed(hardware)}"
    return f"dlas predict {shlex.quote(str(folder))} --model resnet50{named}"


def _typed(value: object) -> str:
    """Return a value as a shell reads it: a text as it is, anything else as TOML."""
    return shlex.quote(value if isinstance(value, str) else toml.on_one_line(value))


class DeviceRun(pydantic.BaseModel):
    """What was asked for, and how far it is.

    Attributes
    ----------
    schema_version : int
        Version of this list of fields.
    asked : Asked
    spent_s : float
        Seconds so far.
    finished : bool
        Whether the predictor was fitted, and tried on the networks never seen.
    """

    model_config = STRICT

    schema_version: Literal[1] = 1
    asked: Asked
    spent_s: Annotated[float, pydantic.Field(ge=0)] = 0.0
    finished: bool = False


def opened(folder: Path, asked: Asked) -> DeviceRun:
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
    run = _read(folder / FILE)
    if run.finished:
        raise InputError(
            f"{str(folder)!r} is finished: `{predicting(folder, run.asked.hardware)}` predicts with it; "
            "give another folder for another predictor, or remove it"
        )
    before, now = run.asked.told(), asked.told()
    if differ := [name for name in now | before if before.get(name) != now.get(name)]:
        there, here = (" ".join(told.get(name, f"no --{name}") for name in differ) for told in (before, now))
        raise InputError(
            f"{str(folder)!r} holds an unfinished run with {there}, and this one has {here}: give the same "
            "options to go on, or another folder"
        )
    if not (folder / stored.FILE).exists():
        stored.check_beside(folder)
    for name in (ROWS, AGAIN, UNSEEN):
        check_appendable(folder / name)
    return run


def save(folder: Path, run: DeviceRun) -> None:
    """Write how far a run is."""
    make_folder(folder, "predictor's folder")
    with replacing(folder / FILE) as partial:
        partial.write_text(run.model_dump_json(indent=1) + "\n", encoding="utf-8")


def _read(path: Path) -> DeviceRun:
    """Return the run in a file.

    Raises
    ------
    InputError
        If it is damaged.
    """
    try:
        with path.open("rb") as file:
            return DeviceRun.model_validate_json(file.read(MOST_BYTES))
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except pydantic.ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise InputError(f"{path}: {place or 'the file'}: {problem['msg']}") from None
