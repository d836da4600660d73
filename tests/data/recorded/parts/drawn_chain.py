"""Chains of which hundreds can be drawn; it imports the file beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from chain_net import ChainNet


@dataclass(frozen=True)
class DrawnChain(ChainNet):
    """A chain, drawn."""

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> dict[str, Any]:
        """Return one of 183 chains."""
        return {"depth": int(rng.integers(1, 4)), "filters": int(rng.integers(4, 65))}
