"""Per-layer choice: a table file names the algorithm of each layer."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import tomli_w

from dlas.bench.store import toml
from dlas.bench.store.replacing import replacing
from dlas.errors import InputError, Unsupported, unknown
from dlas.stack import Algorithm, Conv, Part, Tail, Target
from dlas.sweep.study import parts
from dlas.sweep.study.point import Choice

DIRECT = Choice("direct")
AGAIN = re.compile(r"#\d+$")
"""Suffix of the name of a layer's second, third, ... call."""


@dataclass(frozen=True)
class Table:
    """The content of a file: algorithms by layer, and the algorithm of all other layers."""

    layers: Mapping[str, Choice]
    default: Choice = DIRECT


@dataclass(frozen=True)
class PerLayer(Algorithm):
    """Compute each layer with the algorithm that a file names for it.

    The file is TOML::

        default = "direct"                # of layers not named; may be left out

        [layers]
        "conv1"          = "spatial_pack"
        "layer1.0.conv1" = { name = "gemm" }

    Layers have the names of rows, algorithms the names of studies, with
    their options.  A layer that the network uses several times (``conv``,
    ``conv#2``) has one entry for all its calls, unless a call has its own.

    Parameters
    ----------
    path : str
        The file; without one ``direct`` computes every layer.
    """

    path: str = ""

    def verify(self) -> None:
        """Read the table, and verify the algorithms in it."""
        if not self.path:
            raise InputError('per_layer needs a table: path = "choices.toml"')
        super().verify()

    def delegates(self) -> Sequence[Part]:
        """Return every algorithm in the table, once."""
        return tuple(self._algorithms.values())

    def check_layers(self, names: Collection[str]) -> None:
        """Refuse a table that names layers the network does not have."""
        valid = {*names, *(AGAIN.sub("", name) for name in names)}
        for layer in self._table.layers:
            if layer not in valid:
                raise Unsupported(f"{self.path}: {unknown('layer', layer, names)}")

    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        """Return the algorithm that the table names for ``conv.name``."""
        layers = self._table.layers
        choice = layers.get(conv.name) or layers.get(AGAIN.sub("", conv.name)) or self._table.default
        return self._algorithms[choice].for_layer(conv, target)

    def compute(self, x: Any, packed: Sequence[Any], conv: Conv, tail: Tail) -> Any:
        """Raise: the algorithm that :meth:`for_layer` returns computes the layer."""
        raise TypeError(f"per_layer computes nothing itself; ask for_layer for {conv.name!r}")

    @cached_property
    def _table(self) -> Table:
        return read(Path(self.path).expanduser()) if self.path else Table({})

    @cached_property
    def _algorithms(self) -> dict[Choice, Algorithm]:
        choices = dict.fromkeys((self._table.default, *self._table.layers.values()))
        return {choice: choice.make("algorithm") for choice in choices}


def read(path: Path) -> Table:
    """Return the table in a file.

    Raises
    ------
    InputError
        If it is invalid; quotes the wrong entry.
    """
    raw = toml.read(path, "table of layers")
    try:
        for key in raw:
            if key not in ("layers", "default"):
                raise unknown("key", key, ["layers", "default"])
        layers = raw.get("layers")
        if not isinstance(layers, dict) or not layers:
            raise InputError('it names no layer: [layers] holds lines like "layer1.0.conv1" = "gemm"')
        default = _choice("default", raw["default"]) if "default" in raw else DIRECT
        return Table({name: _choice(f"layer {name!r}", entry) for name, entry in layers.items()}, default)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write(path: Path, layers: Mapping[str, Mapping[str, Any]], comment: str = "") -> None:
    """Write a table for :func:`read`, atomically.

    Parameters
    ----------
    path : Path
    layers : mapping
        Algorithms by layer, in a row's format: ``{"name": "gemm"}`` and its options.
    comment : str
        Written above the table, e.g. its source.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    entries = {
        layer: dict(content) if len(content) > 1 else content["name"] for layer, content in layers.items()
    }
    above = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
    try:
        with replacing(path) as partial:
            partial.write_text(above + tomli_w.dumps({"layers": entries}), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the table of layers {str(path)!r}: {error.strerror}") from None


def _choice(what: str, entry: Any) -> Choice:
    """Return the algorithm of one entry: a name, or a table of name and options."""
    table = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        dotted = '; a layer with dots in its name needs quotes: "layer1.0.conv1" = "gemm"'
        hint = dotted if isinstance(entry, dict) else ""
        raise InputError(f"{what}: {entry!r} is neither an algorithm's name nor a table with a name{hint}")
    name = table["name"]
    try:
        if issubclass(parts.find("algorithm", name).cls, PerLayer):
            raise InputError("a table cannot name another table")
        return Choice.checked("algorithm", name, {key: table[key] for key in table if key != "name"})
    except InputError as error:
        raise InputError(f"{what}: {error}") from None
