"""Networks written as a list of layers, and the lists that are drawn."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from dlas.axes.models.layers import survey
from dlas.axes.models.layers.drawing import draw
from dlas.axes.models.layers.joints import Around, Cat, count
from dlas.axes.models.layers.kinds import ACTIVATIONS, ConvSpec, Layers, Shape, macs, text, written
from dlas.axes.models.layers.reading import parse
from dlas.axes.models.layers.seen import Combination, Ranges, real_layers
from dlas.axes.models.layers.seen import parse as read_seen
from dlas.axes.models.layers.seen import text as written_down
from dlas.axes.models.layers.sizes import IMAGE, MOST_MACS
from dlas.axes.models.random_layers import RandomLayers
from dlas.errors import InputError, Unsupported
from dlas.networks.counting import count_macs
from dlas.schedules.spatial_pack import SpatialPack
from dlas.stack import Facts, Network
from dlas.sweep.study import parts
from dlas.sweep.study.study import Study
from dlas.testing import check_compiler, check_model
from dlas.testing.networks import workspace
from tests.fixtures.data import noise

USUAL = "conv3x3-16/2,bn,relu,max3/2,add(conv3x3-16,bn,relu,conv3x3-16,bn),relu,cat(input|dw5x5|conv1x1-8g4)"
DRAWN = [draw(random.Random(number)) for number in range(200)]
SHAPES = ((3, 224, 224), (3, 32, 32), (1, 17, 17), (3, 7, 5), (3, 1, 1))


def module(layers: str, shape: tuple[int, int, int] = (3, 32, 32)) -> nn.Module:
    return RandomLayers(layers).module(shape, 10).eval()


def test_a_list_is_the_network_that_it_says() -> None:
    made = module(USUAL + ",adaptive2,linear-20,gelu")
    found = Counter(type(layer).__name__ for layer in made.modules())
    assert (found["Conv2d"], found["BatchNorm2d"], found["ReLU"], found["Linear"]) == (5, 3, 3, 2)
    assert found["MaxPool2d"] == found["AdaptiveAvgPool2d"] == found["GELU"] == 1
    layers = dict(made.named_modules())
    assert isinstance(layers["conv0"], nn.Conv2d) and layers["conv0"].stride == (2, 2)
    assert layers["conv0"].bias is None and layers["cat6.branches.1.conv0"].bias is not None
    depthwise, grouped = (layers[f"cat6.branches.{place}.conv0"] for place in (1, 2))
    assert (depthwise.groups, depthwise.kernel_size, grouped.groups) == (16, (5, 5), 4)
    assert layers["linear8"].in_features == (16 + 16 + 8) * 2 * 2
    x = torch.randn(2, 3, 32, 32)
    read = layers["relu2"](layers["bn1"](layers["conv0"](x)))
    added = layers["max3"](read) + layers["add4"].body(layers["max3"](read))
    assert torch.equal(nn.Sequential(*list(made.children())[:5])(x), added)


def test_halves_products_and_shuffles_are_what_they_say() -> None:
    made = module("conv3x3-8d2,halves(relu),shuffle4,mul(adaptive1,conv1x1-8,sigmoid),mul(tanh)")
    conv, halves, shuffle, gated, squared = list(made.children())[:5]
    assert isinstance(conv, nn.Conv2d) and (conv.dilation, conv.padding) == ((2, 2), (2, 2))
    x = torch.randn(2, 8, 5, 5)
    assert torch.equal(halves(x), torch.cat([x[:, :4], x[:, 4:].relu()], 1))
    assert torch.equal(shuffle(x), nn.functional.channel_shuffle(x, 4))
    gate = gated.get_submodule("body")(x)
    assert torch.equal(gated(x), x * gate) and gate.shape == (2, 8, 1, 1)
    assert torch.equal(squared(x), x * x.tanh())


def test_every_layer_of_a_list_is_there_whatever_the_image() -> None:
    made = module("conv3x3-8,max2/2,avg4,adaptive7,adaptive7,max3/2", (3, 1, 2))
    assert not [layer for layer in made.modules() if isinstance(layer, nn.Identity)]
    windows = [
        layer.kernel_size for layer in made.modules() if isinstance(layer, nn.MaxPool2d | nn.AvgPool2d)
    ]
    assert windows == [(1, 2), (1, 1), (3, 3)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_drawn_list_is_valid_for_every_image(shape: Shape) -> None:
    for layers in DRAWN:
        assert parse(text(layers)) == layers
        written(layers, shape)
    channels, h, w = shape
    for layers in DRAWN[:2]:
        small = (channels, min(h, 32), min(w, 32))
        made = module(text(layers), small)
        assert made(torch.randn(2, *small)).shape == (2, 10)


def test_adaptive_pooling_takes_the_largest_map_of_even_windows() -> None:
    (pool,) = parse("adaptive4")
    assert pool.written((8, 12, 10)) == (8, 4, 2) and pool.written((8, 3, 7)) == (8, 3, 1)


def test_what_a_layer_writes_is_foreseen() -> None:
    for layers in DRAWN[4:12]:
        with torch.device("meta"):
            made = RandomLayers(text(layers)).module((3, 53, 40), 10)
            places = list(made.children())[: len(layers)]
            if not any(isinstance(layer, nn.Flatten) for layer in places):
                read = torch.zeros(1, 3, 53, 40)
                assert tuple(nn.Sequential(*places)(read).shape[1:]) == written(layers, (3, 53, 40))


def test_drawn_lists_hold_every_kind_of_layer_at_sizes_of_real_networks() -> None:
    every = ",".join(map(text, DRAWN))
    kernels = ("conv7x7", "conv1x7", "dw3x3", "dw5x5/2", "g32", "conv1x1-256", "linear-")
    for kind in (*ACTIVATIONS, *kernels, "max3/2", "avg2/2", "adaptive7", "bn", "add(", "cat(", "cat(input|"):
        assert kind in every, kind
    assert 20 <= float(np.mean([count(layers) for layers in DRAWN])) <= 28
    assert len(set(DRAWN)) == len(DRAWN)


def test_drawn_networks_take_no_more_multiply_adds_than_they_may() -> None:
    classes = 1000
    total = [macs(layers, IMAGE) + written(layers, IMAGE)[0] * classes for layers in DRAWN]
    assert max(total) <= MOST_MACS and max(total) > 0.8 * MOST_MACS
    with torch.device("meta"):
        for layers, expected in zip(DRAWN[:5], total, strict=False):
            made = RandomLayers(text(layers)).module((3, 224, 224), classes)
            assert count_macs(made, (3, 224, 224)) == expected


def test_larger_networks_are_drawn_where_more_multiply_adds_are_asked_for() -> None:
    most = 2_000_000_000
    larger = [draw(random.Random(number), most) for number in range(100)]
    total = [macs(layers, IMAGE) for layers in larger]
    assert max(total) <= most
    assert np.quantile(total, 0.9) > 2 * MOST_MACS
    for layers in larger:
        written(layers, (3, 32, 32))


def test_how_large_lists_may_be_is_no_part_of_those_that_are_drawn() -> None:
    drawn = {"name": "random_layers", "layers": "drawn", "most_macs": 1_000_000_000}
    told = Study.of({"name": "s", "axes": {"model": drawn, "compiler": "onnxruntime"}}, 3)
    for point in told.points():
        made = parts.make("model", "random_layers", dict(point.model.options))
        assert made == RandomLayers(made.layers)
    with pytest.raises(InputError, match="most_macs = 1000000000 says how large layers = 'drawn' may be"):
        RandomLayers("relu", 1_000_000_000).verify()


def test_half_of_the_drawn_convolutions_are_those_of_real_networks() -> None:
    real = {sizes(each) for each in real_layers().combinations}
    found = [conv for layers in DRAWN for conv in convolutions(layers, IMAGE)]
    assert 0.4 <= float(np.mean([sizes(conv) in real for conv in found])) <= 0.6
    free = [conv for conv in found if sizes(conv) not in real]
    assert any(conv.k % 8 for conv in free) and any(conv.dilation > 1 for conv in free)
    assert {conv.kind for conv in free} == {*real_layers().by_kind}


def sizes(conv: Combination) -> tuple[int, ...]:
    """Return a convolution but for the map that it reads."""
    return conv.c, conv.k, conv.r, conv.s, conv.stride, conv.dilation, conv.groups


def convolutions(layers: Layers, read: Shape) -> Iterator[Combination]:
    """Yield the convolutions of a list, those inside of other layers too."""
    for layer in layers:
        if isinstance(layer, ConvSpec):
            c, side, _ = read
            groups = layer.groups if layer.filters else c
            window = (layer.r, layer.s, layer.stride, layer.dilation)
            yield Combination(c, layer.filters or c, *window, groups, side)
        elif isinstance(layer, Cat):
            for branch in layer.branches:
                yield from convolutions(branch, read)
        elif isinstance(layer, Around):
            yield from convolutions(layer.body, layer.inside(read))
        read = layer.written(read)


def test_ranges_reach_a_little_beyond_what_was_seen_and_outliers_have_their_own() -> None:
    ranges = Ranges.of([32, 1000, 1500, 1500, 4000, 3000, 25_000])
    assert ranges.bounds == ((30, 35), (910, 4400), (22_728, 27_500)) and ranges.counts == (1, 5, 1)
    dice = random.Random(0)
    drawn = [ranges.draw(dice, 100_000) for _ in range(700)]
    inside = [sum(low <= each <= high for each in drawn) for low, high in ranges.bounds]
    assert sum(inside) == 700 and inside[1] > 400 and min(inside) > 60
    assert {ranges.draw(dice, 20) for _ in range(9)} == {20}
    assert max(ranges.draw(dice, 1200) for _ in range(99)) <= 1200


def test_what_was_seen_is_what_the_networks_have() -> None:
    seen, some = real_layers(), survey.survey(["squeezenet1_0"])
    assert {*some.combinations} < {*seen.combinations}
    assert {*some.pools} < {*seen.pools}
    assert Combination(512, 1000, 1, 1, 1, 1, 1, 13) in some.combinations
    assert read_seen(written_down(seen)) == seen and seen.networks == survey.NETWORKS


@pytest.mark.slow
def test_the_whole_survey_gives_the_same_file() -> None:
    assert survey.survey(survey.NETWORKS) == real_layers()


def built(layers: str, size: int, folder: Path) -> Network:
    """Return the network of a list as a study makes it, for images [3, size, size]."""
    return RandomLayers(layers).build(noise(size), workspace(folder))


@pytest.mark.parametrize("compiler", ["onnxruntime", "torch_eager"])
@pytest.mark.parametrize("number", [0, 3])
def test_drawn_networks_are_right(compiler: str, number: int, tmp_path: Path) -> None:
    network = built(text(DRAWN[number]), 16, tmp_path / "work")
    check_compiler(parts.make("compiler", compiler, {}), network)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("compiler", ["onnxruntime", "torch_eager", "hand"])
def test_twenty_drawn_networks_are_right(compiler: str, tmp_path: Path) -> None:
    for number, layers in enumerate(DRAWN[:20]):
        network = built(text(layers), (32, 64, 17)[number % 3], tmp_path / str(number))
        check_compiler(parts.make("compiler", compiler, {}), network, SpatialPack(layout="blocked"))


def test_a_drawn_network_keeps_the_contract_of_a_model() -> None:
    check_model(RandomLayers(text(DRAWN[0])), noise(16))


def test_a_study_draws_lists() -> None:
    axes = {"model": {"name": "random_layers", "layers": "drawn"}, "compiler": "onnxruntime"}
    points = [list(Study.of({"name": "s", "axes": axes}, number).points()) for number in (4, 8)]
    lists = [str(dict(point.model.options)["layers"]) for point in points[1]]
    assert len(set(lists)) == 8 and points[1][:4] == points[0]
    for each in lists:
        RandomLayers(each).verify()


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ("", "'' is no layer .examples: conv3x3-64/2, "),
        ("conv3x3-16,rleu", "'rleu' is no layer"),
        ("conv3x3-16, relu", "' relu' is no layer"),
        ("conv3x3-16,,relu", "'' is no layer"),
        ("drawn", "'drawn' is no layer"),
        ("conv3x3-16/1", "the same network has one text only: write 'conv3x3-16' for 'conv3x3-16/1'"),
        ("conv2x2-16", "'conv2x2-16': the sizes of a kernel are odd"),
        ("conv3x3-0", "'conv3x3-0': 0 is not from 1 to 65,536"),
        ("max99", "'max99': 99 is not from 1 to 31"),
        ("conv1x1-16,conv3x3-6g4", "'conv3x3-6g4': 4 groups do not divide 6 filters"),
        ("conv1x1-6,conv3x3-16g4", "4 groups do not divide 6 channels that it reads"),
        ("conv1x1-6,conv3x3-6g6", "is depthwise here: write 'dw3x3'"),
        ("add(conv3x3-8)", "'add.conv3x3-8.' adds 8x224x224 to 3x224x224: the shapes must be equal"),
        ("cat(input|conv1x1-8/2)", "has branches of shapes 3x224x224, 8x112x112: their maps must be equal"),
        ("cat(bn)", "'cat.' has one branch"),
        ("add(bn", "'add.' is not closed"),
        ("mul(conv1x1-1)", "multiplies 3x224x224 by 1x224x224: the shapes must be equal"),
        ("halves(bn)", "'halves.bn.' reads 3 channels, which have no halves"),
        ("shuffle2", "'shuffle2' deals out groups of equal size, and reads 3 channels"),
        ("conv1x1-8d2", "'conv1x1-8d2': a kernel of one weight has nothing to dilate"),
        ("bn)", "'.' where a list of layers has ended"),
        ("linear-8,bn", "'bn' reads a map, and a linear layer before it has left none"),
        ("add(" * 12, "more than 8 deep"),
        ("relu," * 5000, "it has 25,000 characters, and at most 20,000 are read"),
    ],
)
def test_an_invalid_list_is_one_clear_message(layers: str, said: str) -> None:
    with pytest.raises(InputError, match=f"^option layers: .*{said}"):
        RandomLayers(layers).verify()


@pytest.mark.parametrize(
    ("layers", "shape", "said"),
    [
        ("linear-65536,linear-65536", (3, 32, 32), "4,496,949,248 weights, more than 200,000,000"),
        (
            "conv1x1-65536,conv1x1-1",
            (3, 128, 128),
            "'conv1x1-65536' writes more than 268,435,456 values an image",
        ),
        ("dw3x3,conv3x3-6g3", (1, 32, 32), "3 groups do not divide 1 channels that it reads"),
    ],
)
def test_a_network_that_is_too_large_or_does_not_fit_the_images_is_unsupported(
    layers: str, shape: tuple[int, int, int], said: str
) -> None:
    with pytest.raises(Unsupported, match=said):
        RandomLayers(layers).construct(Facts(shape, 10), seed=0)
