"""One block of Once-for-All's MobileNetV3 by itself, so that a table of latencies can be measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator
from torch import nn

from dlas.networks.subnets.blocks import TablePart, read_key
from dlas.networks.subnets.modules import FlatOutput, part
from dlas.networks.torch.model import TorchModel


def _known_block(key: str) -> str:
    read_key(key)  # which says what is wrong
    return key


@dataclass(frozen=True)
class OfaBlock(TorchModel):
    """One block, or another layer, of Once-for-All's MobileNetV3, untrained.

    Its images are the maps that the block reads, and its classes the values that it writes, so that nothing
    is timed beside the block.
    """

    block: Annotated[str, AfterValidator(_known_block)]
    """Its name in a table of latencies:
    ``"expanded_conv-input:20x20x48-output:10x10x96-expand:144-kernel:3-stride:2-idskip:0-se:0-hs:0"``.
    """

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the block with random weights.

        Raises
        ------
        ValueError
            If images are not what it reads, or classes not as many as it writes values.
        """
        known: TablePart = read_key(self.block)
        if shape != known.read or classes != known.values:
            channels, height, width = known.read
            raise ValueError(f"it reads {channels}x{height}x{width} and writes {known.values} values")
        return FlatOutput(part(known))
