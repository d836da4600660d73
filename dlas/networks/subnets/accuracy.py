"""Once-for-All's predictor of accuracy: a perceptron over a subnetwork's 128 values, in a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from dlas.errors import InputError
from dlas.networks.weights import read_weights
from dlas.stack.array import Float64Array

READ = 128
MOST_LAYERS = 16
MOST_BYTES = 256 << 20
MOST_VALUES = MOST_BYTES // 4
"""Most values of a tensor: a few bytes of a file may stand for any number of equal ones."""
NAMED = re.compile(r"(.*?)(\d{1,6})\.(weight|bias)")


@dataclass(frozen=True)
class AccuracyNetwork:
    """Linear layers with ReLUs between them."""

    layers: tuple[tuple[Float64Array, Float64Array], ...]
    """The first reads the 128 values of a subnetwork, the last writes its accuracy; tuple of ([written, read]
    [written]).
    """

    @classmethod
    def read(cls, path: Path) -> AccuracyNetwork:
        """Return the network of a file: safetensors, or a torch state dict; nothing in it is executed.

        Raises
        ------
        InputError
            If it is no such file.
        """
        if path.is_file() and path.stat().st_size > MOST_BYTES:
            raise InputError(f"weights {str(path)!r} have over {MOST_BYTES:,} bytes")
        found: dict[int, dict[str, Float64Array]] = {}
        for name, value in read_weights(path).items():
            named = NAMED.fullmatch(name) if isinstance(name, str) else None
            if not named or named[3] in found.setdefault(int(named[2]), {}):
                raise InputError(f"{_expected(path)}: {name!r} is no weight or bias of a numbered layer")
            found[int(named[2])][named[3]] = _array(path, name, value)
        layers = [found[place] for place in sorted(found)]
        sizes = READ
        if not 1 <= len(layers) <= MOST_LAYERS:
            raise InputError(f"{_expected(path)}: it has {len(layers)} layers")
        for place, layer in enumerate(layers):
            weight, bias = layer.get("weight"), layer.get("bias")
            if weight is None or bias is None or weight.ndim != 2 or bias.shape != weight.shape[:1]:
                raise InputError(f"{_expected(path)}: layer {place + 1} has no weight with a bias")
            if weight.shape[1] != sizes:
                raise InputError(
                    f"{_expected(path)}: layer {place + 1} reads {weight.shape[1]} values, not {sizes}"
                )
            if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
                raise InputError(f"{_expected(path)}: layer {place + 1} has values that are not finite")
            sizes = weight.shape[0]
        if sizes != 1:
            raise InputError(f"{_expected(path)}: it writes {sizes} values")
        return cls(tuple((layer["weight"], layer["bias"]) for layer in layers))

    def __call__(self, encoded: Float64Array) -> Float64Array:
        """Return the accuracies of subnetworks.

        Parameters
        ----------
        encoded : array [n, 128]

        Returns
        -------
        array [n]
        """
        values = encoded
        for place, (weight, bias) in enumerate(self.layers):
            values = values @ weight.T + bias
            if place + 1 < len(self.layers):
                values = np.maximum(values, 0)
        return np.asarray(values[:, 0])


def _array(path: Path, name: str, value: torch.Tensor) -> Float64Array:
    """Return the values of a tensor."""
    if not value.is_floating_point() or value.layout != torch.strided or value.numel() > MOST_VALUES:
        kind = f"{tuple(value.shape)} of {value.dtype}"
        raise InputError(f"{_expected(path)}: {name!r} holds no weights, but {kind}")
    return np.asarray(value.detach().double().numpy())


def _expected(path: Path) -> str:
    return f"weights {str(path)!r}: expected linear layers from {READ} values of a subnetwork to its accuracy"
