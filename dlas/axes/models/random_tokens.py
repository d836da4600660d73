"""Networks of drawn layers over tokens, so that the kernels of transformers get measured."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dlas.axes.models.layers.kinds import text
from dlas.axes.models.layers.token_drawing import draw
from dlas.axes.models.random_layers import RandomLayers


@dataclass(frozen=True)
class RandomTokens(RandomLayers):
    """A network given by the list of its layers, as of ``random_layers``, and drawn over tokens.

    With ``layers = "drawn"`` in a study that draws, a list is like ViT (attention among all tokens), like
    Swin (within windows) or like ConvNeXt (depthwise convolutions between linear layers), of at most a
    thousand million multiply-adds and a block; the numbers of a token are none of these networks' own.
    """

    layers: str
    """``patch16-144,sequence,add(ln,attention3),add(ln,linear-576,gelu,linear-144)``, or ``"drawn"``."""

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Mapping[str, str]:
        """Return a list of layers at random."""
        return {"layers": text(draw(random.Random(int(rng.integers(2**63)))))}
