"""Lists of layers over tokens, and those that are drawn."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torchvision.models.swin_transformer import ShiftedWindowAttention, SwinTransformer

from dlas.axes.models.layers.joints import Around
from dlas.axes.models.layers.kinds import Last, Layers, LayerSpec, LinearSpec, Shape, macs, text, written
from dlas.axes.models.layers.reading import parse
from dlas.axes.models.layers.sizes import IMAGE
from dlas.axes.models.layers.token_drawing import MOST_MACS, REAL, draw
from dlas.axes.models.layers.tokens import AttentionSpec
from dlas.axes.models.random_tokens import RandomTokens
from dlas.errors import InputError
from dlas.networks.counting import count_macs
from dlas.schedules.spatial_pack import SpatialPack
from dlas.sweep.study import parts
from dlas.sweep.study.study import Study
from dlas.testing import check_compiler, check_model
from dlas.testing.networks import workspace
from tests.fixtures.data import noise

VIT = "patch16-48,sequence,positions,add(ln,attention3),add(ln,linear-192,gelu,linear-48),ln"
SWIN = "patch4-24,last,ln,add(ln,attention2w3),add(ln,attention2w3s),merge,ln,linear-40,relu"
CONVNEXT = "patch4-24,last,ln,first,add(dw7x7,last,ln,linear-96,gelu,linear-24,scale,first),relu"
DRAWN = [draw(random.Random(number)) for number in range(120)]
SHAPES = ((3, 224, 224), (3, 32, 32), (1, 17, 17), (3, 7, 5), (3, 1, 1))


def module(layers: str, shape: tuple[int, int, int] = (3, 32, 32)) -> nn.Module:
    return RandomTokens(layers).module(shape, 10).eval()


def steps(made: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    """Return what each layer of a network makes."""
    found = [x]
    for layer in made.children():
        found.append(layer(found[-1]))
    return found[1:]


def test_a_sequence_is_that_of_vit() -> None:
    made = module(VIT)
    patches, sequence, placed, attended, hidden, normed, pooled, classes = steps(
        made, torch.randn(2, 3, 32, 32)
    )
    assert patches.shape == (2, 48, 2, 2) and torch.equal(sequence[:, 1], patches[:, :, 0, 1])
    positions = made.get_submodule("positions2")
    assert isinstance(positions.vectors, torch.Tensor) and torch.equal(placed, sequence + positions.vectors)
    attention = made.get_submodule("add3.body.attention1.attention")
    read = made.get_submodule("add3.body.ln0")(placed)
    assert torch.allclose(attended, placed + attention(read, read, read)[0], atol=1e-6)
    assert hidden.shape == normed.shape == (2, 4, 48) and torch.allclose(pooled, normed.mean(1))
    assert classes.shape == (2, 10)


def test_windows_are_those_of_swin() -> None:
    made = module(SWIN)
    found = steps(made, torch.randn(2, 3, 32, 32))
    plain, shifted = (made.get_submodule(f"add{at}.body.attention1") for at in (3, 4))
    for layer, shift in ((plain, 0), (shifted, 1)):
        assert isinstance(layer, ShiftedWindowAttention)
        assert (layer.window_size, layer.shift_size, layer.num_heads) == ([3, 3], [shift, shift], 2)
    merging = SwinTransformer([4, 4], 24, [1, 1], [2, 2], [3, 3]).features[2]
    merging.norm, merging.reduction = nn.Identity(), nn.Identity()
    assert torch.equal(found[5], merging(found[4])) and found[5].shape == (2, 4, 4, 96)
    assert found[7].shape == (2, 4, 4, 40) and found[9].shape == (2, 40)


def test_a_map_comes_back_from_tokens() -> None:
    made = module(CONVNEXT)
    patches, last, _, first, block, *_ = steps(made, torch.randn(2, 3, 32, 32))
    assert torch.equal(last, patches.permute(0, 2, 3, 1)) and first.shape == block.shape == (2, 24, 8, 8)
    assert isinstance(made.get_submodule("add4.body.conv0"), nn.Conv2d)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_drawn_list_is_valid_for_every_image(shape: tuple[int, int, int]) -> None:
    for layers in DRAWN:
        assert parse(text(layers)) == layers
        written(layers, shape)
    channels, h, w = shape
    for layers in DRAWN[:6]:
        small = (channels, min(h, 32), min(w, 32))
        assert module(text(layers), small)(torch.randn(2, *small)).shape == (2, 10)


def test_what_a_layer_writes_and_takes_is_foreseen() -> None:
    with torch.device("meta"):
        for layers in DRAWN[:6]:
            made = RandomTokens(text(layers)).module((3, 53, 40), 10)
            read = torch.zeros(1, 3, 53, 40)
            after = nn.Sequential(*list(made.children())[: len(layers)])(read)
            assert tuple(after.shape[1:]) == tuple(written(layers, (3, 53, 40)))
    for spelled in (VIT, SWIN, CONVNEXT):
        specs = parse(spelled)
        features = written(specs, (3, 32, 32))[-1 if spelled != CONVNEXT else 0]
        counted = count_macs(RandomTokens(spelled).module((3, 32, 32), 10), (3, 32, 32))
        products = sum(of_products(each, read) for each, read in inside(specs, (3, 32, 32)))
        assert macs(specs, (3, 32, 32)) - products <= counted <= macs(specs, (3, 32, 32)) + 10 * features


def of_products(layer: LayerSpec, read: Shape) -> int:
    """Return the multiply-adds of attention, which not every count has."""
    return layer.macs(read) if isinstance(layer, AttentionSpec) else 0


def inside(layers: Layers, read: Shape) -> Iterator[tuple[LayerSpec, Shape]]:
    """Yield all layers with what they read."""
    for layer in layers:
        if isinstance(layer, Around):
            yield from inside(layer.body, layer.inside(read))
        else:
            yield layer, read
        read = layer.written(read)


def test_drawn_networks_are_of_all_families_and_of_no_real_ones_sizes() -> None:
    every = [each for layers in DRAWN for each in inside(layers, IMAGE)]
    attention = [(layer, read) for layer, read in every if isinstance(layer, AttentionSpec)]
    assert {type(read) for _, read in attention} == {tuple, Last}
    assert any(layer.shifted for layer, _ in attention) and any("dw7x7" in text(each) for each in DRAWN)
    real = {(each, ratio * each) for each in REAL for ratio in (1, 2, 3, 4)}
    for layer, read in every:
        if isinstance(layer, AttentionSpec):
            assert read[-1] not in REAL
        elif isinstance(layer, LinearSpec):
            assert not {(read[-1], layer.features), (layer.features, read[-1])} & real
    widths = np.array([read[-1] for _, read in attention])
    assert widths.min() < 64 and widths.max() > 700
    assert len(set(DRAWN)) == len(DRAWN)


def test_drawn_networks_take_about_as_many_multiply_adds_as_they_may() -> None:
    total = np.array([macs(layers, IMAGE) for layers in DRAWN])
    assert np.median(total) > 0.2 * MOST_MACS and (total < 4 * MOST_MACS).mean() > 0.9


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ("patch4-8,attention2", "reads a sequence of tokens: write 'sequence' before it"),
        ("patch4-8,sequence,attention2w3", "write 'last' before it"),
        ("patch4-8,sequence,attention3", "3 heads do not divide 8"),
        ("patch4-8,last,conv3x3-8", "layers before it have made tokens of that"),
        ("patch4-8,sequence,add(linear-4)", "the shapes must be equal"),
        ("attention2w3x", "is no layer"),
    ],
)
def test_lists_that_mean_nothing_are_refused(layers: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        RandomTokens(layers).verify()


@pytest.mark.parametrize("compiler", ["onnxruntime", "torch_eager"])
@pytest.mark.parametrize("layers", [VIT, SWIN, CONVNEXT], ids=["vit", "swin", "convnext"])
def test_networks_over_tokens_are_right(layers: str, compiler: str, tmp_path: Path) -> None:
    network = RandomTokens(layers).build(noise(32), workspace(tmp_path / "work"))
    check_compiler(parts.make("compiler", compiler, {}), network)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("compiler", ["onnxruntime", "torch_eager", "hand"])
def test_drawn_networks_over_tokens_are_right(compiler: str, tmp_path: Path) -> None:
    for number, layers in enumerate(map(text, DRAWN[:12])):
        # What broadcasts the bias of windows is a view, which is listed as a layer and has no time.
        if compiler == "hand" and re.search(r"attention\d+w", layers):
            continue
        size = (32, 64, 57)[number % 3]
        network = RandomTokens(layers).build(noise(size), workspace(tmp_path / str(number)))
        check_compiler(parts.make("compiler", compiler, {}), network, SpatialPack(layout="blocked"))


def test_a_drawn_network_over_tokens_keeps_the_contract_of_a_model() -> None:
    check_model(RandomTokens(text(DRAWN[0])), noise(16))


def test_larger_networks_are_drawn_where_more_multiply_adds_are_asked_for() -> None:
    larger = [macs(draw(random.Random(number), 4 * MOST_MACS), IMAGE) for number in range(60)]
    assert np.quantile(larger, 0.9) > 2 * MOST_MACS


def test_a_study_draws_networks_over_tokens() -> None:
    axes = {"model": {"name": "random_tokens", "layers": "drawn"}, "compiler": "onnxruntime"}
    lists = [
        str(dict(point.model.options)["layers"])
        for point in Study.of({"name": "s", "axes": axes}, 6).points()
    ]
    assert len(set(lists)) == 6
    for each in lists:
        RandomTokens(each).verify()
