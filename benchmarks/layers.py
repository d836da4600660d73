"""Single convolutions as models, so that a study can sweep them like any network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from torch import nn

from dlas.networks.torch.model import TorchModel

Count = Annotated[int, Field(ge=1)]
LAYERS = {
    "3x3, 64 at 56": (64, 56, "filters = 64"),
    "3x3 / 2, 64 to 128 at 56": (64, 56, "filters = 128, stride = 2"),
    "3x3, 128 at 28": (128, 28, "filters = 128"),
    "3x3 / 2, 128 to 256 at 28": (128, 28, "filters = 256, stride = 2"),
    "3x3, 256 at 14": (256, 14, "filters = 256"),
    "3x3 / 2, 256 to 512 at 14": (256, 14, "filters = 512, stride = 2"),
    "3x3, 512 at 7": (512, 7, "filters = 512"),
    "1x1, 64 to 256 at 56": (64, 56, "filters = 256, kernel = 1"),
    "1x1, 256 to 64 at 56": (256, 56, "filters = 64, kernel = 1"),
    "1x1, 1024 to 256 at 14": (1024, 14, "filters = 256, kernel = 1"),
    "1x1, 512 to 2048 at 7": (512, 7, "filters = 2048, kernel = 1"),
    "1x1 / 2, 256 to 512 at 56": (256, 56, "filters = 512, kernel = 1, stride = 2"),
    "depthwise 3x3, 144 at 56": (144, 56, "filters = 144, groups = 144"),
    "7x7 / 2, stem at 224": (3, 224, "filters = 64, kernel = 7, stride = 2"),
}
"""Channels, height and width, and options of layers of the usual networks, / 2 with a stride of 2."""


@dataclass(frozen=True)
class Layer(TorchModel):
    """A convolution with bias and ReLU that reads the dataset's images."""

    filters: Count
    kernel: Count = 3
    stride: Count = 1
    groups: Count = 1
    """Padding keeps height and width but for the stride."""

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the convolution; its output [n, k, p, q] takes the place of a network's."""
        convolution = nn.Conv2d(
            shape[0], self.filters, self.kernel, self.stride, self.kernel // 2, groups=self.groups
        )
        return nn.Sequential(convolution, nn.ReLU())


def layer_options(name: str) -> dict[str, Any]:
    """Return the options of a study for a layer: its image's ``channels`` and ``size``, and its ``model``."""
    channels, size, options = LAYERS[name]
    return {"channels": channels, "size": size, "model": f'{{ name = "benchmarks.layers:Layer", {options} }}'}


def layer_folder(name: str) -> str:
    """Return a layer's name as that of a folder."""
    return name.replace(" / ", "by").replace(" ", "_")
