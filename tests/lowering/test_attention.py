"""Products of run-time values and softmax, against float64 and PyTorch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision
import tvm
from torch import nn
from torch.nn import functional as F
from tvm import relax

from dlas.axes.compilers.hand import Hand
from dlas.lowering.graph.graph import is_call, is_constant, shape_of
from dlas.lowering.graph.importing import import_network
from dlas.lowering.graph.simplify import simplify
from dlas.lowering.kernels.attention import legalisation, schedule_attention
from dlas.lowering.lower import lower
from dlas.lowering.target import tvm_target
from dlas.networks.torch.network import TorchNetwork
from dlas.schedules.direct import Direct
from dlas.schedules.spatial_pack import SpatialPack
from dlas.stack import Facts, Target
from dlas.testing.algorithms import HOST
from tests.fixtures.lowering import run
from tests.fixtures.small_network import error, images, network
from tests.fixtures.targets import AVX2, AVX512, NEON


def legal(operator: str, *shapes: tuple[int, ...], target: Target = HOST) -> tvm.tirx.PrimFunc:
    """Return the scheduled kernel of one operator."""
    inputs = [relax.Var(f"x{i}", relax.TensorType(shape, "float32")) for i, shape in enumerate(shapes)]
    builder = relax.BlockBuilder()
    with builder.function("main", inputs):
        call = relax.op.matmul(*inputs) if operator == "matmul" else relax.op.nn.softmax(*inputs, axis=-1)
        builder.emit_func_output(builder.emit(call))
    module = relax.transform.LegalizeOps(legalisation(target))(builder.get())
    module = schedule_attention(module, target)
    (function,) = (each for each in module.functions.values() if isinstance(each, tvm.tirx.PrimFunc))
    assert function.attrs["tirx.is_scheduled"]
    return function.with_attr("global_symbol", "main")


def computed(function: tvm.tirx.PrimFunc, *arrays: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    output = tvm.runtime.tensor(np.full(shape, 7, np.float32))
    built = tvm.tirx.build(function, target=tvm_target(HOST))
    built["main"](*map(tvm.runtime.tensor, arrays), output)
    return np.asarray(output.numpy())


@pytest.mark.parametrize(
    ("lead", "rows", "terms", "columns"),
    [
        ((1,), 1, 5, 7),
        ((3,), 49, 32, 49),
        ((2, 3), 13, 17, 16),
        ((1, 2), 197, 8, 197),
        ((3, 1, 2), 7, 33, 40),
        ((2,), 20, 64, 96),
    ],
    ids=str,
)
def test_products_of_batches(lead: tuple[int, ...], rows: int, terms: int, columns: int) -> None:
    draw = np.random.default_rng(0)
    x = draw.standard_normal((*lead, rows, terms)).astype(np.float32)
    y = draw.standard_normal((*lead, terms, columns)).astype(np.float32)
    actual = computed(legal("matmul", x.shape, y.shape), x, y, shape=(*lead, rows, columns))
    assert np.abs(actual - x.astype(np.float64) @ y.astype(np.float64)).max() < 1e-5


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (3, 16), (2, 3, 49), (1, 2, 3, 197), (4, 1000)], ids=str)
def test_softmax_of_any_length(shape: tuple[int, ...]) -> None:
    x = (5 * np.random.default_rng(0).standard_normal(shape)).astype(np.float32)
    actual = computed(legal("softmax", shape), x, shape=shape)
    expected = torch.softmax(torch.from_numpy(x).double(), -1).numpy()
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-9)
    np.testing.assert_allclose(actual.sum(-1), 1, rtol=2e-6)


def test_masks_infinities_and_nan_in_softmax() -> None:
    inf, nan = np.inf, np.nan
    rows = [[1, -inf, 2], [-inf, -inf, -inf], [nan, 1, 2], [inf, 1, 2], [1e38, -1e38, 0], [-inf, 1, nan]]
    x = np.array(rows, np.float32)
    expected = torch.softmax(torch.from_numpy(x), -1).numpy()
    actual = computed(legal("softmax", x.shape), x, shape=x.shape)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=0)
    assert actual[0, 1] == 0, "what is masked has no share"


@pytest.mark.parametrize(
    ("target", "register"), [(AVX512, "zmm"), (AVX2, "ymm"), (NEON, ".4s")], ids=["avx512", "avx2", "neon"]
)
def test_they_compile_to_vectors_for_every_target(target: Target, register: str) -> None:
    for function in (
        legal("matmul", (2, 49, 32), (2, 32, 49), target=target),
        legal("softmax", (98, 49), target=target),
    ):
        text = tvm.tirx.build(function, target=tvm_target(target)).inspect_source("asm")
        assert register in text and "expf" not in text


class Attention(nn.Module):
    """Attention of pixels, with what a test does to scores."""

    def __init__(self, masked: bool) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.masked = masked
        self.mask = nn.Buffer(torch.full((15, 15), float("-inf")).triu(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.flatten(2).transpose(1, 2)
        if not self.masked:
            whole: torch.Tensor = self.attend(y, y, y, need_weights=False)[0]
            return whole.flatten(1)
        scores = y @ y.transpose(1, 2)
        return (F.softmax(scores + self.mask, -1) @ y).flatten(1)


@pytest.mark.parametrize("masked", [False, True], ids=["module", "masked"])
def test_attention_of_torch(masked: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    shape = (8, 3, 5)
    attention, x = network(Attention(masked), shape), images(2, shape)
    assert error(run(lower(attention, Direct(), 2, HOST), tmp_path, x), attention.reference(x)) < 1e-5


def test_weights_are_not_repeated_for_each_token() -> None:
    graph = simplify(import_network(network(Attention(masked=False), (8, 3, 5)), 2))
    products = [value for _, value in graph.bindings if is_call(value, "relax.matmul")]
    weights = [shape_of(product.args[1]) for product in products if is_constant(product.args[1])]
    assert weights == [(8, 24), (8, 8)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["convnext_tiny", "vit_b_16", "swin_t"])
def test_whole_networks_without_a_bottleneck_in_convolutions(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = torchvision.models.get_model(name, weights=None).eval()
    for parameter in module.parameters():  # heads and scales are initialised to zero or nearly
        parameter.data.add_(0.01 * torch.randn_like(parameter))
    whole = TorchNetwork(module, Facts((3, 224, 224), 1000))
    x = images(1, (3, 224, 224))
    expected = module.double()(torch.from_numpy(x).double()).detach().numpy()
    module.float()
    compiler = Hand()
    compiler.compile(whole, SpatialPack(layout="blocked"), HOST, 1, tmp_path)
    assert error(compiler.load(tmp_path, lambda: whole, HOST).run(x), expected) < 2e-5
