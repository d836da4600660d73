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
from dlas.stack import Algorithm, AlgorithmChooser, AlgorithmMaker, Conv, Part, Target

DIRECT = "direct"
AGAIN = re.compile(r"#\d+$")
"""Suffix of the name of a layer's second, third, ... call."""


@dataclass(frozen=True)
class LayerTable:
    """The content of a file: algorithms by layer, and the algorithm of all other layers."""

    layers: Mapping[str, Algorithm]
    default: Algorithm


@dataclass(frozen=True)
class PerLayer(AlgorithmChooser):
    """Compute each layer with the algorithm that a file names for it.

    The file is TOML::

        default = "direct"                # of layers not named; may be left out

        [layers]
        "conv1"          = "spatial_pack"
        "layer1.0.conv1" = { name = "gemm" }

    Layers have the names of rows, algorithms the names of studies, with
    their options.  A layer that the network uses several times (``conv``,
    ``conv#2``) has one entry for all its calls, unless a call has its own.
    """

    path: str = ""
    """The file; without one ``direct`` computes every layer."""

    def verify(self) -> None:
        """Read the table, and verify the algorithms in it."""
        if not self.path:
            raise InputError('per_layer needs a table: path = "choices.toml"')
        super().verify()

    def delegates(self) -> Sequence[Part]:
        """Return every algorithm in the table, once."""
        return tuple(dict.fromkeys((self._table.default, *self._table.layers.values())))

    def check_layers(self, names: Collection[str]) -> None:
        """Refuse a table that names layers the network does not have."""
        valid = {*names, *(AGAIN.sub("", name) for name in names)}
        for layer in self._table.layers:
            if layer not in valid:
                raise Unsupported(f"{self.path}: {unknown('layer', layer, names)}")

    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        """Return the algorithm that the table names for ``conv.name``."""
        layers = self._table.layers
        algorithm = layers.get(conv.name) or layers.get(AGAIN.sub("", conv.name)) or self._table.default
        return algorithm.for_layer(conv, target)

    @cached_property
    def _table(self) -> LayerTable:
        if not self.path:
            return LayerTable({}, self.make(DIRECT, {}))
        return read(Path(self.path).expanduser(), self.make)


def read(path: Path, make: AlgorithmMaker) -> LayerTable:
    """Return the table in a file, its algorithms made by ``make``.

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
        default = _algorithm("default", raw.get("default", DIRECT), make)
        named = {name: _algorithm(f"layer {name!r}", entry, make) for name, entry in layers.items()}
        return LayerTable(named, default)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write(path: Path, layers: Mapping[str, Mapping[str, Any]], comment: str = "") -> None:
    """Write a table for :func:`read`, atomically.

    Parameters
    ----------
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


def _algorithm(what: str, entry: Any, make: AlgorithmMaker) -> Algorithm:
    """Return the algorithm of one entry: a name, or a table of name and options."""
    table = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        dotted = '; a layer with dots in its name needs quotes: "layer1.0.conv1" = "gemm"'
        hint = dotted if isinstance(entry, dict) else ""
        raise InputError(f"{what}: {entry!r} is neither an algorithm's name nor a table with a name{hint}")
    try:
        algorithm = make(table["name"], {key: table[key] for key in table if key != "name"})
    except InputError as error:
        raise InputError(f"{what}: {error}") from None
    if isinstance(algorithm, PerLayer):
        raise InputError(f"{what}: a table cannot name another table")
    return algorithm
