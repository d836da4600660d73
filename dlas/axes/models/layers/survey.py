"""Write down which layers real networks have: ``python -m dlas.axes.models.layers.survey``.

The networks are the ten of MIRAGE (section 5.2; ResNet with 18 and with 50 layers) and, for kinds of
layers that they lack, ResNeXt-50 (groups), MobileNetV3 and EfficientNet-B0 (squeeze-and-excitation, other
activations).  How convolutions are padded is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from dlas.axes.models.layers.seen import FILE, Combination, LayerSurvey, text
from dlas.axes.models.torchvision import Torchvision
from dlas.stack import Facts, Operator

NETWORKS = (
    *("alexnet", "densenet161", "googlenet", "inception_v3", "mnasnet1_0", "mobilenet_v2", "resnet18"),
    *("resnet50", "shufflenet_v2_x1_0", "squeezenet1_0", "vgg16"),
    *("resnext50_32x4d", "mobilenet_v3_large", "efficientnet_b0"),
)
CLASSES = 1000
SIDE, SIDES = 224, {"inception_v3": 299}
"""Of the images that networks are for."""
SPELLED = {
    "Relu": "relu",
    "Clip": "relu6",
    "HardSwish": "hardswish",
    "HardSigmoid": "hardsigmoid",
    "Swish": "silu",
    "Sigmoid": "sigmoid",
}
"""Activations in lists of layers, by their operators."""
POOLS = {"MaxPool": "max", "AveragePool": "avg"}


def main() -> None:
    """Survey all networks, and write what was found beside this file."""
    (Path(__file__).parent / FILE).write_text(text(survey(NETWORKS)), encoding="utf-8")


def survey(networks: Iterable[str]) -> LayerSurvey:
    """Return which layers torchvision's networks of these names have."""
    names = tuple(networks)
    operators = {name: operators_of(name) for name in names}
    every = [layer for layers in operators.values() for layer in layers]
    has = [{layer["operator"] or "" for layer in layers} for layers in operators.values()]
    return LayerSurvey(
        networks=names,
        combinations=tuple(sorted({combination(layer) for layer in every if layer["operator"] == "Conv"})),
        linear=tuple(sorted({(layer["c"], layer["k"]) for layer in every if layer["operator"] == "Gemm"})),
        pools=tuple(sorted({pool(layer) for layer in every if layer["operator"] in POOLS and "r" in layer})),
        activations=dict(Counter(SPELLED[each] for found in has for each in sorted(found & {*SPELLED}))),
    )


def operators_of(name: str) -> list[Operator]:
    """Return the operators of a network for one of the images that it is for."""
    side = SIDES.get(name, SIDE)
    network = Torchvision(name).construct(Facts((3, side, side), CLASSES), seed=0)
    return [*network.operators()[1]]


def combination(layer: Operator) -> Combination:
    """Return the sizes of a convolution."""
    stride, dilation = layer["strides"][0], layer["dilation"][0]
    return Combination(
        *(layer["c"], layer["k"], layer["r"], layer["s"]), stride, dilation, layer["groups"], layer["h"]
    )


def pool(layer: Operator) -> tuple[str, int, int]:
    """Return kind, window and stride of a pooling."""
    return POOLS[layer["operator"] or ""], layer["r"], layer["strides"][0]


if __name__ == "__main__":
    main()
