"""Networks of drawn layers, so that kernels of all kinds and sizes get measured."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from torch import nn

from dlas.axes.models.layers.drawing import draw
from dlas.axes.models.layers.kinds import text, written
from dlas.axes.models.layers.modules import network
from dlas.axes.models.layers.reading import parse
from dlas.errors import InputError
from dlas.networks.torch.model import TorchModel

USUAL = (3, 224, 224)
"""An image on which a list of layers is tried before its data set is known."""


@dataclass(frozen=True)
class RandomLayers(TorchModel):
    """A network given by the list of its layers, untrained.

    With ``layers = "drawn"`` in a study that draws, the list is drawn: about 24 layers of the kinds and
    sizes that real networks have, and between them, of at most 300 million multiply-adds together.

    A list is separated by commas.  ``conv3x3-64/2g4d2`` has 64 filters, stride 2, 4 groups and dilation 2;
    ``dw5x5/2`` is depthwise; ``max3/2``, ``avg2/2`` pool, ``adaptive7`` to 7x7 or less; ``bn``; ``relu``,
    ``relu6``, ``hardswish``, ``hardsigmoid``, ``silu``, ``sigmoid``, ``gelu``, ``elu``, ``tanh``;
    ``shuffle2``; ``linear-256``.  ``add(conv3x3-64,bn)`` adds its layers' output to their input,
    ``mul(...)`` multiplies, ``halves(...)`` works on half of the channels, and
    ``cat(input|conv1x1-32)`` puts branches side by side.  Convolutions and odd windows are padded so that
    only strides make maps smaller; an even window is at most as large as the map.

    Over tokens: ``patch16-192`` is a convolution of patches, ``sequence`` and ``last`` make tokens of a map,
    one after the other or with the channels last, ``first`` a map again; ``positions`` adds a vector a place,
    ``ln`` is layer norm, ``scale`` a factor a channel, ``merge`` puts four neighbours side by side;
    ``attention3`` has 3 heads, ``attention3w7`` works in windows of 7x7, ``attention3w7s`` in shifted ones.

    Behind the list come global average pooling, if it leaves a map or tokens, and a linear layer to the
    classes.

    References
    ----------
    MIRAGE, section 4.2.
    """

    layers: str
    """``conv3x3-64/2,bn,relu,max3/2,add(conv3x3-64,bn,relu,conv3x3-64,bn),relu``, or ``"drawn"``."""

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Mapping[str, str]:
        """Return a list of layers at random."""
        # Python's own generator takes a tenth of the time that numpy's takes for single numbers.
        return {"layers": text(draw(random.Random(int(rng.integers(2**63)))))}

    def verify(self) -> None:
        """Read the list, and try it on usual images.

        Raises
        ------
        InputError
            Quotes the layer that is wrong.
        """
        try:
            written(parse(self.layers), USUAL)
        except ValueError as error:
            raise InputError(f"option layers: {error}") from None

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights."""
        return network(parse(self.layers), shape, classes)
