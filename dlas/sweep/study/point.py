"""Points: one choice for each layer of the stack, measured as one row."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

from dlas.errors import InputError, MissingData, MissingPackage
from dlas.stack import (
    INFERENCE,
    PART_AXES,
    TRAINING,
    Algorithm,
    Backend,
    Compression,
    Dataset,
    Hardware,
    Model,
    Predictor,
)
from dlas.sweep.study import parts
from dlas.sweep.study.chain import Chain

_as_json = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
"""Made once, because a study has thousands of points."""


@dataclass(frozen=True)
class Choice:
    """One part with the options that differ from its defaults."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()
    """Sorted by name."""
    chain: tuple[Choice, ...] = ()
    """The techniques of a compression chain, in order; empty for one part."""

    def content(self) -> dict[str, Any]:
        """Return the choice as rows store it: the name and the options."""
        if self.chain:
            return {"name": self.name, "chain": [link.content() for link in self.chain]}
        return {"name": self.name, **dict(self.options)}

    @functools.cached_property
    def json(self) -> str:
        """What :meth:`content` returns, as JSON."""
        return _as_json(self.content())

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Choice:
        """Return the choice that :meth:`content` described."""
        if "chain" in content:
            return cls(content["name"], chain=tuple(map(cls.of, content["chain"])))
        return cls(content["name"], tuple(sorted((k, v) for k, v in content.items() if k != "name")))

    @classmethod
    def checked(cls, axis: str, name: str, options: Mapping[str, Any]) -> Choice:
        """Return the choice of a part, with validated options.

        Raises
        ------
        InputError
            If there is no such part, or it does not take these options.
        """
        differing = parts.find(axis, name).validate(name, options)
        return cls(name, tuple(sorted(differing.items())))

    @overload
    def make(self, axis: Literal["dataset"]) -> Dataset: ...
    @overload
    def make(self, axis: Literal["model"]) -> Model: ...
    @overload
    def make(self, axis: Literal["compression"]) -> Compression: ...
    @overload
    def make(self, axis: Literal["algorithm"]) -> Algorithm: ...
    @overload
    def make(self, axis: Literal["compiler"]) -> Backend: ...
    @overload
    def make(self, axis: Literal["hardware"]) -> Hardware: ...
    @overload
    def make(self, axis: Literal["predictor"]) -> Predictor: ...
    @overload
    def make(self, axis: str) -> Any: ...
    def make(self, axis: str) -> Any:
        """Return the part itself."""
        if self.chain:
            return Chain(tuple(link.make(axis) for link in self.chain))
        return parts.make(axis, self.name, dict(self.options))

    def verify(self, axis: str) -> None:
        """Refuse a part that cannot work here.

        Raises
        ------
        InputError
        """
        for text in filter(_special, (value for _, value in self.options)):
            raise InputError(f"{axis} {self}: {text!r} is a pipe or a device; a file is expected")
        try:
            self.make(axis).verify()
        except (MissingPackage, MissingData, ValueError, OSError) as error:
            raise InputError(f"{axis} {self}: {error}") from None

    def milestones(self, labelled: bool) -> list[tuple[Choice, ...]]:
        """Return a compression's milestones, whose networks are made before it, and the compression itself.

        Parameters
        ----------
        labelled : bool
            Whether the data set has labels to train on.

        Returns
        -------
        list of tuple of Choice
            One for each technique, in order: its milestones, mildest first, then the technique itself.
        """
        if self.chain:
            before: tuple[Choice, ...] = ()
            techniques = []
            for link in self.chain:
                (choices,) = link.milestones(labelled)
                techniques.append(tuple(chained((*before, choice)) for choice in choices))
                before = (*before, link)
            return techniques
        milder = self.make("compression").milestones(labelled)
        return [(*(self.varied("compression", options) for options in milder), self)]

    def varied(self, axis: str, options: Mapping[str, Any]) -> Choice:
        """Return the choice with some options replaced."""
        return self.checked(axis, self.name, {**dict(self.options), **options})

    def __str__(self) -> str:
        if self.chain:
            return " + ".join(map(str, self.chain))
        options = ", ".join(f"{key}={value}" for key, value in self.options)
        return f"{self.name}({options})" if options else self.name


def chained(links: tuple[Choice, ...]) -> Choice:
    """Return a chain of techniques as one choice; a single technique stays as it is."""
    return Choice("+".join(link.name for link in links), chain=links) if len(links) > 1 else links[0]


NONE = Choice("none")
"""No compression."""


@dataclass(frozen=True)
class Point:
    """Points: one choice for each layer of the stack, measured as one row.

    Its parts themselves are ``dataset_part``, ``model_part`` and so on, and ``device`` that of its hardware.
    """

    dataset: Choice
    model: Choice
    compression: Choice
    algorithm: Choice
    compiler: Choice
    hardware: Choice
    batch: int
    seed: int
    task: str = INFERENCE

    def content(self) -> dict[str, Any]:
        """Return everything that identifies the point, JSON-able; the task where it is not inference."""
        axes = {axis: getattr(self, axis).content() for axis in PART_AXES}
        content = {**axes, "batch": self.batch, "seed": self.seed}
        return content if self.task == INFERENCE else {**content, "task": self.task}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Point:
        """Return the point that :meth:`content` described."""
        axes = {axis: Choice.of(content[axis]) for axis in PART_AXES}
        task = content.get("task", INFERENCE)
        return cls(**axes, batch=content["batch"], seed=content["seed"], task=task)

    @functools.cached_property
    def dataset_part(self) -> Dataset:
        """The data set; nothing is loaded."""
        return self.dataset.make("dataset")

    @functools.cached_property
    def model_part(self) -> Model:
        """The model; no network is made."""
        return self.model.make("model")

    @functools.cached_property
    def compression_part(self) -> Compression:
        """The compression technique, or the chain of them."""
        return self.compression.make("compression")

    @functools.cached_property
    def algorithm_part(self) -> Algorithm:
        """The algorithm of convolutions; a point whose compiler has kernels of its own has none."""
        return self.algorithm.make("algorithm")

    @functools.cached_property
    def compiler_part(self) -> Backend:
        """The compiler."""
        return self.compiler.make("compiler")

    @functools.cached_property
    def device(self) -> Hardware:
        """The device of the hardware profile."""
        return self.hardware.make("hardware")

    @property
    def dataset_class(self) -> type[Dataset]:
        """The class of the data set, where its options do not count."""
        return parts.find("dataset", self.dataset.name).cls

    @property
    def model_class(self) -> type[Model]:
        """The class of the model."""
        return parts.find("model", self.model.name).cls

    @property
    def compiler_class(self) -> type[Backend]:
        """The class of the compiler."""
        return parts.find("compiler", self.compiler.name).cls

    def unsupported(self) -> str | None:
        """Return why it can take no step, or None: no such device here, or a compiler that does not suit."""
        if reason := self.device.unsupported():
            return f"{self.hardware.name}: {reason}"
        if reason := self.device.refuses(self.compiler_class):
            return f"{self.compiler.name} on {self.hardware.name}: {reason}"
        if self.compiler_class.lowers and (operator := _nesting(self.model)):
            return (
                f"{self.compiler.name} has no code for the ONNX operator {operator}, "
                "which runs graphs inside it"
            )
        if self.task == TRAINING and not self.compiler_class.trains:
            return f"{self.compiler.name} builds for inference only; {' and '.join(_trainers())} train"
        return None

    @functools.cached_property
    def id(self) -> str:
        """Sixteen hexadecimal digits that identify the content: those of a digest of its JSON."""
        axes = {axis: getattr(self, axis).json for axis in PART_AXES}
        values = {**axes, "batch": _as_json(self.batch), "seed": _as_json(self.seed)}
        if self.task != INFERENCE:
            values["task"] = _as_json(self.task)
        text = ",".join(f'"{name}":{values[name]}' for name in sorted(values))
        return hashlib.sha256(f"{{{text}}}".encode()).hexdigest()[:16]

    def __str__(self) -> str:
        parts_of = " / ".join(str(getattr(self, axis)) for axis in PART_AXES)
        task = "" if self.task == INFERENCE else f" / {self.task}"
        return f"{parts_of} / batch {self.batch}{task}"


def _special(value: object) -> bool:
    """Return whether an option's value is the path of something whose reading may never end."""
    place = Path(value).expanduser() if isinstance(value, str) and value else None
    try:
        return place is not None and place.exists() and not place.is_file() and not place.is_dir()
    except (OSError, ValueError):  # no path: too long, or with a zero
        return False


def _nesting(model: Choice) -> str | None:
    """Return the first operator in a model's ONNX file that runs graphs inside it."""
    from dlas.axes.models.onnx import Onnx

    part = model.make("model")
    if not isinstance(part, Onnx):
        return None
    path = Path(part.path).expanduser()
    return _nesting_once(path, path.stat().st_mtime_ns) if path.is_file() else None


@functools.cache
def _nesting_once(path: Path, _modified: int) -> str | None:
    from dlas.networks.onnx.nesting import nesting_operator

    return nesting_operator(path)


@functools.cache
def _trainers() -> tuple[str, ...]:
    """Return the compilers that train."""
    return tuple(name for name in parts.names("compiler") if parts.find("compiler", name).cls.trains)
