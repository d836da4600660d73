"""Networks of drawn layers over tokens, so that the kernels of transformers get measured."""

from __future__ import annotations

import random
from dataclasses import dataclass

from dlas.axes.models.layers import token_drawing
from dlas.axes.models.layers.kinds import Layers
from dlas.axes.models.random_layers import Budget, RandomLayers


@dataclass(frozen=True)
class RandomTokens(RandomLayers):
    """A network given by the list of its layers, as of ``random_layers``, and drawn over tokens.

    With ``layers = "drawn"`` in a study that draws, a list is like ViT (attention among all tokens), like
    Swin (within windows) or like ConvNeXt (depthwise convolutions between linear layers), of at most
    ``most_macs`` multiply-adds and a block; the numbers of a token are none of these networks' own.
    """

    layers: str
    """``patch16-144,sequence,add(ln,attention3),add(ln,linear-576,gelu,linear-144)``, or ``"drawn"``."""
    most_macs: Budget = token_drawing.MOST_MACS
    """What a list that is drawn takes at most for an image of 224 by 224, but for its last block."""

    @classmethod
    def draw(cls, dice: random.Random, most_macs: int) -> Layers:
        """Return a list of layers at random."""
        return token_drawing.draw(dice, most_macs)
