"""What is special about Winograd's convolution: its matrices, its tiles and its rounding."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pytest
import torchvision
import tvm
from tvm import te
from tvm.ir import Expr

from dlas.errors import InputError
from dlas.lowering.kernels.convolutions import make_kernel
from dlas.lowering.kernels.kernel import schedule_kernel
from dlas.networks.convolutions import library_layers
from dlas.networks.torch.network import TorchNetwork, conv_weights
from dlas.schedules.loops.vectors import vector_unit
from dlas.schedules.minimal_filtering.matrices import KERNEL, POINTS, cook_toom, element, transforms
from dlas.schedules.winograd import Winograd
from dlas.stack import Array, Conv, Target
from dlas.sweep.study import parts
from dlas.testing.algorithms import check_algorithm, check_case, run_here
from dlas.testing.cases import CASES, Case
from tests.fixtures.small_network import network, trained
from tests.fixtures.targets import AVX2, AVX512, NEON

PLAIN = Conv("plain", 1, 16, 8, 8, 16, 3, 3)
SAME = (1, 1, 1, 1)
TARGETS = [pytest.param(AVX512, id="avx512"), pytest.param(AVX2, id="avx2"), pytest.param(NEON, id="neon")]
ODD = (
    Conv("filters and channels", 3, 19, 9, 7, 21, 3, 3, padding=SAME),
    Conv("no padding", 1, 33, 23, 31, 17, 3, 3),
    Conv("another padding a side", 2, 20, 13, 10, 40, 3, 3, padding=(0, 1, 2, 3)),
    Conv("three channels", 1, 3, 30, 30, 24, 3, 3, padding=SAME),
    Conv("a border of 1.5", 1, 19, 14, 14, 35, 3, 3, padding=SAME, padding_value=1.5),
)
"""Channels that fill no blocks, and images that fill no tiles."""
GEOMETRY = ("n", "c", "h", "w", "k", "r", "s", "strides", "padding", "dilation", "groups")
NETWORKS = ("resnet18", "vgg16", "densenet161", "googlenet")


def product_row(matrix: Array, values: Sequence[Expr], row: Expr) -> Expr:
    """Return one element of the product of a matrix and a vector."""
    return element(matrix, row, values)


def run_unlike(module: tvm.IRModule, arguments: Sequence[Array], target: Target) -> Array:
    """Return the output of a module scheduled for another processor, compiled for this one."""
    return run_here(module, arguments)


def layers_of(network: TorchNetwork) -> dict[str, Conv]:
    """Return the convolutions of a network that Winograd computes, by name."""
    layers = {}
    for layer in library_layers(network, 1):
        geometry: dict[str, Any] = {name: value for name, value in layer.items() if name in GEOMETRY}
        layers[layer["name"]] = replace(PLAIN, **geometry)
    return {name: conv for name, conv in layers.items() if Winograd().supports(conv) is None}


@pytest.mark.parametrize("tile", POINTS)
def test_matrices_compute_a_convolution_exactly(tile: int) -> None:
    b, g, a = cook_toom(POINTS[tile])
    assert (b.shape, g.shape, a.shape) == ((tile + 2, tile + 2), (tile + 2, 3), (tile, tile + 2))
    draw = np.random.default_rng(0)
    row, kernel = draw.integers(-99, 99, tile + 2), draw.integers(-99, 99, KERNEL)
    outputs = a @ ((g @ kernel) * (b @ row))
    assert outputs.tolist() == np.correlate(row, kernel).tolist()


@pytest.mark.parametrize("tile", POINTS)
def test_products_written_out_are_those_of_the_matrices(tile: int) -> None:
    for matrix in (transforms(tile)[0], transforms(tile)[2]):
        x = te.placeholder((matrix.shape[1],), name="x")
        values = [x[number] for number in range(matrix.shape[1])]
        y = te.compute((len(matrix),), partial(product_row, matrix, values))
        vector = np.arange(1, len(values) + 1, dtype="float32")
        written = tvm.runtime.tensor(np.zeros(len(matrix), "float32"))
        tvm.compile(te.create_prim_func([x, y]))(tvm.runtime.tensor(vector), written)
        np.testing.assert_array_equal(written.numpy(), matrix @ vector)


@pytest.mark.slow
def test_the_small_tile_keeps_the_contract() -> None:
    edges = {"odd sizes", "asymmetric padding", "bias, residual, relu"}
    cases = [case for case in CASES if case.conv.name in edges]
    assert len(cases) == len(edges)
    assert check_algorithm(Winograd(tile=2), cases=cases) == {}


@pytest.mark.slow
@pytest.mark.parametrize("tile", POINTS)
def test_many_channels_round_as_little_as_is_stated(tile: Literal[2, 4]) -> None:
    assert check_case(Winograd(tile), Case(replace(PLAIN, c=512))) is None


def test_another_tile_is_one_clear_message() -> None:
    with pytest.raises(InputError, match="'winograd': option tile = 3: Input should be 2 or 4"):
        parts.find("algorithm", "winograd").validate("winograd", {"tile": 3})


@pytest.mark.parametrize(
    ("conv", "reason"),
    [
        (replace(PLAIN, r=5, s=5), "5x5"),
        (replace(PLAIN, strides=(1, 2)), r"strides .* \(1, 2\)"),
        (replace(PLAIN, dilation=(2, 2)), r"dilations .* \(2, 2\)"),
        (replace(PLAIN, input_type="uint8", weight_type="int8", accumulator_type="int32"), "int32"),
        (replace(PLAIN, input_layout="NCHW16c"), "NCHW16c"),
    ],
)
def test_what_it_cannot_do_it_declines(conv: Conv, reason: str) -> None:
    assert Winograd().supports(PLAIN) is None
    declined = Winograd().supports(conv)
    assert declined is not None
    assert re.search(reason, declined)


@pytest.mark.parametrize("layout", ["nchw", "blocked"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("conv", [pytest.param(c, id=c.name, marks=pytest.mark.slow) for c in ODD])
def test_channels_and_images_that_fill_no_blocks_are_right(
    conv: Conv, target: Target, layout: Literal["nchw", "blocked"]
) -> None:
    case = Case(conv, bias=True, residual=True, activation="silu")
    assert check_case(Winograd(layout=layout), case, target, run_unlike, points=3) is None


@pytest.mark.parametrize("tile", POINTS)
def test_blocks_of_channels_are_right(tile: Literal[2, 4]) -> None:
    case = Case(ODD[0], bias=True, residual=True, activation="relu")
    assert check_case(Winograd(tile, "blocked"), case, points=1) is None


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NETWORKS)
def test_each_layer_of_a_network_is_right(name: str, target: Target) -> None:
    options = {"init_weights": False} if name == "googlenet" else {}
    module = torchvision.models.get_model(name, weights=None, **options)
    layers = dict.fromkeys(layers_of(network(module, (3, 224, 224))).values())
    assert len(layers) >= 4
    for number, conv in enumerate(layers):
        case = Case(replace(conv, n=1 if max(conv.h, conv.w) > 28 else (1, 3)[number % 2]), bias=True)
        for algorithm in (Winograd(4, "blocked"), Winograd(2, "blocked")):
            assert check_case(algorithm, case, target, run_unlike, points=1) is None


@pytest.mark.slow
def test_each_layer_of_a_trained_network_is_right() -> None:
    given, _ = trained()
    weights, layers = conv_weights(given.module), layers_of(given)
    assert len(layers) >= 10
    for name, conv in layers.items():
        case = Case(conv, bias=True, weight=weights[name].detach().numpy())
        assert check_case(Winograd(layout="blocked"), case, points=1) is None


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [56, 28, 14, 7])
def test_the_best_guess_fills_registers_and_shares_work_evenly(size: int, target: Target) -> None:
    conv = Conv("square", 1, 128, size, size, 128, 3, 3, padding=SAME)
    weight = np.zeros((128, 128, 3, 3), np.float32)
    kernel = make_kernel(Winograd(layout="blocked"), conv, weight, "main", target=target)
    best, unit = kernel.algorithm.space(kernel.conv, target)[0], vector_unit(target)
    vectors = int(best["filters"]) * -(-16 // unit.lanes)
    assert 8 <= vectors * int(best["tiles"]) <= unit.registers - vectors - 1
    (tasks,) = re.findall(r"in T\.parallel\((\d+)\)", schedule_kernel(kernel, target, best).script())
    idle = -int(tasks) % target.threads
    assert idle <= int(tasks) / 4
