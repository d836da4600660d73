"""Networks of drawn layers, so that kernels of all kinds and sizes get measured."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from torch import nn

from dlas.axes.models.layers import sizes
from dlas.axes.models.layers.drawing import draw
from dlas.axes.models.layers.kinds import Layers, text, written
from dlas.axes.models.layers.modules import network
from dlas.axes.models.layers.reading import parse
from dlas.errors import InputError
from dlas.networks.torch.model import TorchModel

USUAL = (3, 224, 224)
"""An image on which a list of layers is tried before its data set is known."""
Budget = Annotated[int, Field(ge=100_000_000, le=100_000_000_000)]


@dataclass(frozen=True)
class RandomLayers(TorchModel):
    """A network given by the list of its layers, untrained.

    With ``layers = "drawn"`` in a study that draws, the list is drawn: about 24 layers of the kinds and
    sizes that real networks have, and between them, of at most ``most_macs`` multiply-adds together.

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
    most_macs: Budget = sizes.MOST_MACS
    """What a list that is drawn takes at most for an image of 224 by 224; no part of what was drawn."""

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Mapping[str, str]:
        """Return a list of layers at random, of the usual multiply-adds."""
        return {"layers": cls._text(rng, cls.most_macs)}

    @classmethod
    def drawn_with(cls, given: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        """Return a list of layers at random; the multiply-adds that it may have are no part of what it is."""
        most_macs = given.get("most_macs", cls.most_macs)
        return {"layers": cls._text(rng, most_macs), "most_macs": cls.most_macs}

    @classmethod
    def draw(cls, dice: random.Random, most_macs: int) -> Layers:
        """Return a list of layers at random."""
        return draw(dice, most_macs)

    @classmethod
    def _text(cls, rng: np.random.Generator, most_macs: int) -> str:
        # Python's own generator takes a tenth of the time that numpy's takes for single numbers.
        return text(cls.draw(random.Random(int(rng.integers(2**63))), most_macs))

    def verify(self) -> None:
        """Read the list, and try it on usual images.

        Raises
        ------
        InputError
            Quotes the layer that is wrong, or a budget of a list that is not drawn: equal networks have
            equal options.
        """
        if self.most_macs != type(self).most_macs:
            raise InputError(
                f"most_macs = {self.most_macs} says how large layers = 'drawn' may be, and this list is "
                f"{self.layers!r}: leave it out"
            )
        try:
            written(parse(self.layers), USUAL)
        except ValueError as error:
            raise InputError(f"option layers: {error}") from None

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights."""
        return network(parse(self.layers), shape, classes)
