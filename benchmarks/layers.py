"""Single convolutions as models, so that a study can sweep them like any network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from torch import nn

from dlas.torch_model import TorchModel

Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Layer(TorchModel):
    """A convolution with bias and ReLU that reads the dataset's images.

    Parameters
    ----------
    filters, kernel, stride, groups : int
        Padding keeps height and width but for the stride.
    """

    filters: Count
    kernel: Count = 3
    stride: Count = 1
    groups: Count = 1

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the convolution; its output [n, k, p, q] takes the place of a network's."""
        convolution = nn.Conv2d(
            shape[0], self.filters, self.kernel, self.stride, self.kernel // 2, groups=self.groups
        )
        return nn.Sequential(convolution, nn.ReLU())
