"""Files of the share that each layer loses, as a trained network was pruned, for one that is not trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from dlas.bench.store import toml
from dlas.bench.store.replacing import replacing
from dlas.errors import InputError, unknown

WHAT = "table of shares"


def read(path: Path) -> dict[str, float]:
    """Return the share of each layer that a file names, by the layer's name.

    Raises
    ------
    InputError
        If it cannot be read or is invalid; quotes the wrong entry.
    """
    raw = toml.read(path, WHAT)
    try:
        for key in raw:
            if key != "layers":
                raise unknown("key", key, ["layers"])
        layers = raw.get("layers")
        if not isinstance(layers, dict) or not layers:
            raise InputError('it names no layer: [layers] holds lines like "layer1.0.conv1" = 0.87')
        return {name: _share(name, value) for name, value in layers.items()}
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write(path: Path, layers: Mapping[str, float], comment: str) -> None:
    """Write a file for :func:`read`, atomically.

    Parameters
    ----------
    layers : mapping
        Shares by layer, such as ``reached.layers`` of a row.
    comment : str
        Where they come from; written above them.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    above = "".join(f"# {line}\n" for line in comment.splitlines())
    rounded = {name: round(float(share), 6) for name, share in layers.items()}
    try:
        with replacing(path) as partial:
            partial.write_text(above + tomli_w.dumps({"layers": rounded}), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the {WHAT} {str(path)!r}: {error.strerror}") from None


def _share(name: str, value: Any) -> float:
    """Return the share of one layer."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not 0 <= value <= 1:
        dotted = '; a layer with dots in its name needs quotes: "layer1.0.conv1" = 0.87'
        hint = dotted if isinstance(value, dict) else ""
        raise InputError(f"layer {name!r}: {value!r} is no share from 0 to 1{hint}")
    return float(value)
