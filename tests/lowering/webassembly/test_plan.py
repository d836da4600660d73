"""What a network becomes: calls of kernels on places, whatever kernels are called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from tvm import relax, te, tirx

from dlas.axes.compilers.programs.webassembly import WebAssemblyProgram
from dlas.bench.engines.wasmtime import Wasmtime
from dlas.errors import Unsupported, WrongOutput
from dlas.lowering.webassembly import writing
from dlas.lowering.webassembly.functions import callers, with_pointers
from dlas.lowering.webassembly.linking import link
from dlas.networks.torch.network import TorchNetwork
from dlas.stack import Facts
from dlas.sweep.study import parts
from dlas.testing.engines import loaded
from tests.fixtures.webassembly import TARGET, needs_wasmtime

pytestmark = needs_wasmtime


def build_and_load(network: TorchNetwork, folder: Path) -> WebAssemblyProgram:
    """Return a network as a program in wasmtime."""
    compiler = parts.make("compiler", "hand", {})
    algorithm = parts.make("algorithm", "spatial_pack", {"layout": "blocked"})
    compiler.build(network, lambda: algorithm, TARGET, 1, folder)
    return WebAssemblyProgram(folder, Wasmtime())


def images_of(size: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((1, 3, size, size)).astype(np.float32)


def imagenet(name: str) -> TorchNetwork:
    network = parts.make("model", name, {}).construct(Facts((3, 64, 64), 1000), 0)
    assert isinstance(network, TorchNetwork)
    network.module.eval()
    return network


def error_of(program: WebAssemblyProgram, network: TorchNetwork, images: np.ndarray) -> float:
    """Return how far outputs are from torch's, relative to the largest."""
    with torch.no_grad():
        right = network.module(torch.from_numpy(images)).numpy()
    return float(np.abs(program.run(images) - right).max() / np.abs(right).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squeezenet1_1", "efficientnet_b0"])
def test_networks_that_use_memory_again_are_right(name: str, tmp_path: Path) -> None:
    network = imagenet(name)
    assert error_of(build_and_load(network, tmp_path), network, images_of(64)) <= 2e-6


@pytest.mark.slow
def test_kernels_in_one_object_with_their_caller_are_wrong_and_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LLVM inlines them, and takes arrays of other names for other memory: why there are two objects."""

    def together(*given: object) -> dict[str, object]:
        return {**kernels, **callers(*given)}  # type: ignore[arg-type]

    def kept(*given: object) -> object:
        function, taken = with_pointers(*given)  # type: ignore[arg-type]
        kernels[str(given[1])] = function
        return function, taken

    kernels: dict[str, object] = {}
    monkeypatch.setattr(writing, "callers", together)
    monkeypatch.setattr(writing, "with_pointers", kept)
    monkeypatch.setattr(writing, "link", lambda objects, *rest: link(objects[1:], *rest))
    network = imagenet("squeezenet1_1")
    with pytest.raises(WrongOutput, match="called one by one"):
        build_and_load(network, tmp_path).run(images_of(64))


def transposed(shape: tuple[int, int]) -> tirx.PrimFunc:
    """Return a kernel that writes a transposed matrix."""
    given = te.placeholder(shape, name="given")
    result = te.compute(shape[::-1], lambda i, j: given[j, i], name="result")
    return te.create_prim_func([given, result])


def test_a_kernel_is_no_view_whatever_it_is_called(tmp_path: Path) -> None:
    """Views lie where their input does; a kernel called reshape... writes an array of its own."""
    builder = relax.BlockBuilder()
    kernel = builder.add_func(transposed((4, 6)), "reshape_transpose")
    doubling = builder.add_func(doubled(24), "double")
    given = relax.Var("given", relax.TensorType((4, 6), "float32"))
    with builder.function("main", [given]):
        with builder.dataflow():
            turned = builder.emit(relax.call_tir(kernel, given, relax.TensorType((6, 4), "float32")))
            flat = builder.emit(relax.op.reshape(turned, (24,)))
            result = relax.call_tir(doubling, flat, relax.TensorType((24,), "float32"))
            output = builder.emit_output(result)
        builder.emit_func_output(output)
    written = writing.write_network(builder.get(), [], TARGET, tmp_path)
    assert written.calls == ("reshape_transpose", "double"), "the reshape is a view"
    engine = loaded(written, tmp_path, Wasmtime())
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    engine.write(written.inputs[0], array)
    engine.run(1)
    assert np.array_equal(engine.read(written.output), 2 * array.T.reshape(-1))


def doubled(size: int) -> tirx.PrimFunc:
    """Return a kernel that doubles numbers."""
    given = te.placeholder((size,), name="given")
    return te.create_prim_func([given, te.compute((size,), lambda i: 2 * given[i], name="result")])


def test_an_operator_that_is_no_kernel_is_refused_by_name(tmp_path: Path) -> None:
    given = relax.Var("given", relax.TensorType((4,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [given]):
        called = relax.call_pure_packed("elsewhere", given, ty_args=[relax.TensorType((4,), "float32")])
        builder.emit_func_output(builder.emit(called))
    with pytest.raises(Unsupported, match="elsewhere"):
        writing.write_network(builder.get(), [], TARGET, tmp_path)


def test_layers_are_named_and_small_networks_right(tmp_path: Path) -> None:
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.Flatten(),
        nn.Linear(144, 5),
    ).eval()
    network = TorchNetwork(module, Facts((3, 10, 10), 5))
    program = build_and_load(network, tmp_path)
    assert error_of(program, network, images_of(10)) <= 2e-6
    layers = program.layers(images_of(10), 2)
    assert {"0", "3"} <= {layer["name"] for layer in layers}
    assert all((layer["latency_s"] or 0) > 0 for layer in layers)
    assert program.timer(images_of(10))(3) > 0
    assert program.bytes_used() >= 2**16
