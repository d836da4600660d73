"""A small network that holds all subnetworks of Once-for-All's structure, trained at once."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from dlas.networks.subnets.flexible import SharedWeights
from dlas.networks.torch.model import Epochs, RecipeName, TorchModel


@dataclass(frozen=True)
class Supernet(TorchModel):
    """All subnetworks of five stages in one network for small images, of 8 to 48 channels.

    A step trains the largest, the smallest and two drawn subnetworks on a batch.  By itself it is the
    largest; the compression ``subnet`` takes another out of it.

    References
    ----------
    H. Cai et al., "Once-for-All", ICLR 2020.
    """

    recipe: RecipeName = "auto"
    """How to train; "auto" takes the data set's recipe, and does not train if images have no labels."""
    epochs: Epochs = None
    """Instead of the recipe's own number."""

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights."""
        return SharedWeights(shape[0], classes)
