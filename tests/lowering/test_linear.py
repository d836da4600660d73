"""Linear layers in register tiles: any rank, any number of rows, any target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import tvm
from torch import nn
from torch.nn import functional as F

from dlas.lowering.kernels.kernel import schedule_kernel
from dlas.lowering.kernels.products.linear import LinearKernel, pack_linear
from dlas.lowering.kernels.products.tiles import whole_rows
from dlas.lowering.lower import LoweredNetwork, lower
from dlas.lowering.target import tvm_target
from dlas.lowering.tuning.tuner import SearchSettings, tune
from dlas.schedules.direct import Direct
from dlas.stack import Hardware, Target
from dlas.sweep.study import parts
from dlas.testing.algorithms import HOST
from tests.fixtures.lowering import run
from tests.fixtures.small_network import error, images, network
from tests.fixtures.targets import AVX2, AVX512, CUDA, NEON
from tests.fixtures.tiled import bench


class Rows(nn.Module):
    """A linear layer over the last dimension, and what a test does behind it."""

    def __init__(
        self, inputs: int, outputs: int, behind: Callable[[torch.Tensor], torch.Tensor] = F.gelu
    ) -> None:
        super().__init__()
        self.linear, self.behind = nn.Linear(inputs, outputs), behind

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.linear(x)
        return self.behind(y).flatten(1)


def lowered_rows(
    lead: tuple[int, int, int], inputs: int, outputs: int, target: Target = HOST
) -> LoweredNetwork:
    """Return the lowered network of one linear layer on [*lead, inputs]."""
    batch, *rows = lead
    return lower(network(Rows(inputs, outputs), (rows[0], rows[1], inputs)), Direct(), batch, target)


def linear_kernel(lowered: LoweredNetwork) -> LinearKernel:
    (kernel,) = lowered.kernels.values()
    assert isinstance(kernel, LinearKernel)
    return kernel


def computed(function: tvm.tirx.PrimFunc, arrays: list[np.ndarray], outputs: int) -> np.ndarray:
    rows = arrays[0].reshape(-1, arrays[0].shape[-1])
    output = tvm.runtime.tensor(np.full((len(rows), outputs), np.nan, np.float32))
    built = tvm.tirx.build(function.with_attr("global_symbol", "main"), target=tvm_target(HOST))
    built["main"](*map(tvm.runtime.tensor, [rows, *arrays[1:]]), output)
    return np.asarray(output.numpy())


@pytest.mark.parametrize(
    ("lead", "inputs", "outputs"),
    [
        ((1, 1, 1), 24, 100),
        ((1, 1, 7), 33, 16),
        ((1, 13, 1), 17, 7),
        ((1, 7, 7), 64, 40),
        ((1, 1, 197), 48, 96),
        ((3, 4, 5), 20, 33),
    ],
    ids=str,
)
def test_every_point_computes_the_layer_and_what_is_behind_it(
    lead: tuple[int, int, int], inputs: int, outputs: int
) -> None:
    batch, *rows = lead
    shape = (rows[0], rows[1], inputs)
    dense, x = network(Rows(inputs, outputs), shape), images(batch, shape)
    lowered = lower(dense, Direct(), batch)
    kernel = linear_kernel(lowered)
    assert kernel.describe()["bias"] and kernel.describe()["fused"] == ["Gelu"]
    expected = dense.module.double()(torch.from_numpy(x).double()).detach().numpy()
    space = kernel.space(HOST)
    copied = next((point for point in space if point["copied"]), space[-1])
    for point in (None, space[0], copied):
        function = schedule_kernel(kernel, HOST, point)
        actual = computed(function, [x, *lowered.parameters.values()], outputs)
        assert error(actual.reshape(batch, -1), expected) < 2e-6, point


@pytest.mark.parametrize(
    ("target", "register"), [(AVX512, "zmm"), (AVX2, "ymm"), (NEON, ".4s")], ids=["avx512", "avx2", "neon"]
)
def test_tiles_compile_to_vectors_for_every_target(target: Target, register: str) -> None:
    kernel = linear_kernel(lowered_rows((1, 14, 14), 64, 96, target))
    best = kernel.space(target)[0]
    assert int(best["rows"]) >= 5
    function = schedule_kernel(kernel, target, best).with_attr("global_symbol", "main")
    text = tvm.tirx.build(function, target=tvm_target(target)).inspect_source("asm")
    assert register in text


def test_few_rows_are_added_where_tiles_do_not_divide() -> None:
    for target in (AVX512, AVX2, NEON):
        for rows in (1, 5, 49, 196, 197, 3136):
            assert rows <= whole_rows(rows, 32 if target is AVX512 else 16, target) <= 1.05 * rows + 1
    assert whole_rows(197, 16, CUDA) == 197


def test_a_gpu_has_no_tiles_and_a_schedule() -> None:
    kernel = linear_kernel(lowered_rows((1, 7, 7), 64, 40, CUDA))
    assert kernel.space(CUDA) == ()
    assert "threadIdx.x" in schedule_kernel(kernel, CUDA).script()


@pytest.mark.parametrize(
    ("behind", "fused"),
    [
        (lambda y: y, []),
        (lambda y: F.gelu(y.reshape(-1, 6)).reshape(2, 3, 4, 6), ["Gelu"]),
        (lambda y: torch.tanh(F.gelu(y)), None),
        (lambda y: y + y.mean(1, keepdim=True), []),
        (lambda y: y + y.permute(0, 2, 1, 3).reshape(2, 3, 4, 6), []),
    ],
    ids=["bias", "reshapes", "two formulas", "broadcast", "permuted"],
)
def test_what_is_behind_a_layer_is_fused_as_far_as_it_may(
    behind: Callable[[torch.Tensor], torch.Tensor], fused: list[str] | None, tmp_path: Path
) -> None:
    shape = (3, 4, 9)
    dense, x = network(Rows(9, 6, behind), shape), images(2, shape)
    lowered = lower(dense, Direct(), 2)
    told = [kernel.describe() for kernel in lowered.kernels.values()]
    assert [layer["fused"] for layer in told if layer["bias"]] == ([] if fused is None else [fused])
    assert error(run(lowered, tmp_path, x), dense.reference(x)) < 1e-5


class Block(nn.Module):
    """Two linear layers with a residual addition, between reshapes as in a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(8, 20), nn.Linear(20, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.flatten(1, 2)
        z: torch.Tensor = self.narrow(F.gelu(self.wide(y)))
        return (y + z).flatten(1)


def test_a_residual_addition_is_fused(tmp_path: Path) -> None:
    shape = (3, 5, 8)
    block, x = network(Block(), shape), images(2, shape)
    lowered = lower(block, Direct(), 2)
    told = [kernel.describe() for kernel in lowered.kernels.values()]
    assert all(layer["bias"] for layer in told)
    assert sorted(list(layer["fused"]) for layer in told) == [["Add"], ["Gelu"]]
    assert error(run(lowered, tmp_path, x), block.reference(x)) < 1e-5


def test_linear_layers_are_searched_and_equal_ones_once(tmp_path: Path) -> None:
    cpu: Hardware = parts.make("hardware", "local_cpu", {"threads": 1})
    module = nn.Sequential(Rows(16, 16, F.relu), nn.Unflatten(1, (6, 16)), Rows(16, 16, F.relu))
    lowered = lower(network(module, (1, 6, 16)), Direct(), 1, cpu.target())
    settings = SearchSettings("algorithm", trials=3, per_round=3)
    (tuned,) = tune(lowered.kernels.values(), settings, bench(tmp_path, cpu))
    assert tuned.task.layers == ["linear 6x16x16"]
    assert tuned.records.candidates[0]["decisions"] == dict(tuned.task.kernels[0].space(cpu.target())[0])
    assert len(tuned.records.valid) == tuned.count == 3
    assert tuned.records.header.identity["algorithm"]["name"] == "linear"


def test_panels_hold_neighbouring_outputs() -> None:
    weight = np.arange(6 * 80, dtype=np.float32).reshape(6, 80)
    panels = pack_linear(weight, AVX512)
    count, channels, t = panels.shape
    assert (channels, count * t) == (6, 96)
    assert np.array_equal(panels[1, 2], weight[2, t : 2 * t])
    assert not panels[2, :, 80 - 2 * t :].any()
