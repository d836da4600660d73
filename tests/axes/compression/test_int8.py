"""Networks in integers: quantised by ONNX Runtime, counted, calibrated, kept bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
import torch
from onnx import TensorProto, numpy_helper
from torch import nn

from dlas.axes.compilers import onnxruntime
from dlas.axes.compression.float16 import Float16
from dlas.axes.compression.int8 import BATCH, Int8
from dlas.axes.compression.weight_pruning import WeightPruning
from dlas.axes.datasets.random import Random
from dlas.axes.models.cifar_resnet18 import CifarResnet18
from dlas.errors import InputError, Unsupported
from dlas.networks.exporting import as_onnx
from dlas.networks.onnx import network as onnx_network
from dlas.networks.onnx.network import OnnxNetwork, session_options
from dlas.networks.torch.network import TorchNetwork, conv_weights
from dlas.stack import Data, Images, Labels, Split, Workspace, csr_bytes
from dlas.sweep.study import parts
from dlas.sweep.study.chain import Chain
from dlas.testing.algorithms import HOST
from tests.fixtures.compressed import NOISE, check_is_kept, compressed
from tests.fixtures.onnx_graphs import small_graph
from tests.fixtures.small_network import LAYERS, SHAPE, Small, error, images, network, trained


@pytest.fixture(scope="module")
def integer() -> OnnxNetwork:
    return compressed(Int8())


def quantised(part: Int8, given: TorchNetwork | OnnxNetwork, data: Data, to: Workspace) -> OnnxNetwork:
    made = part.compress(given, data, to)
    assert isinstance(made, OnnxNetwork)
    return made


def stored(model: onnx.ModelProto) -> dict[str, npt.NDArray[Any]]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def scales_of(model: onnx.ModelProto) -> list[npt.NDArray[Any]]:
    """Return the scales that a whole tensor shares, those of activations."""
    arrays = stored(model).items()
    return [array for name, array in arrays if name.endswith("_scale") and array.ndim == 0]


def weights(model: onnx.ModelProto) -> dict[str, npt.NDArray[Any]]:
    """Return the weights [k, c / groups, r, s] of the convolutions, by node."""
    arrays = stored(model)
    behind = {node.output[0]: node.input[0] for node in model.graph.node if node.input}
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    return {node.name: arrays[behind.get(node.input[1], node.input[1])] for node in convolutions}


def test_weights_are_signed_bytes_a_scale_a_filter_and_activations_unsigned(integer: OnnxNetwork) -> None:
    arrays = stored(integer.model)
    quantisers = {
        node.output[0]: node for node in integer.model.graph.node if "quantize" in node.op_type.lower()
    }
    convolutions = [node for node in integer.model.graph.node if node.op_type == "Conv"]
    assert len(convolutions) == len(LAYERS)
    for node in convolutions:
        activation, weight = (quantisers[name] for name in node.input[:2])
        assert arrays[activation.input[2]].dtype == np.uint8 and arrays[activation.input[1]].ndim == 0
        assert arrays[weight.input[0]].dtype == np.int8
        assert arrays[weight.input[1]].shape == (len(arrays[weight.input[0]]),)
        assert not arrays[weight.input[2]].any(), "zero is zero"
    assert max(np.abs(weight.astype(int)).max() for weight in weights(integer.model).values()) == 127


def test_it_is_counted_as_the_network_that_it_was(integer: OnnxNetwork) -> None:
    dense, single = network(), OnnxNetwork(as_onnx(network(), None), network().facts)
    dense.count()
    single.count()
    facts, arrays = integer.facts, stored(integer.model)
    assert facts.reached == {"bits": 8}
    assert facts.macs == single.facts.macs == dense.facts.macs
    assert facts.parameters == single.facts.parameters
    assert facts.model_bytes == sum(array.nbytes for array in arrays.values())
    assert facts.model_bytes is not None and single.facts.model_bytes is not None
    assert single.facts.model_bytes / 4 < facts.model_bytes < single.facts.model_bytes / 2.5
    dense_bytes = sum(weight.nbytes for weight in weights(integer.model).values())
    sparse_bytes = sum(
        csr_bytes(len(weight), int(np.count_nonzero(weight)), 1) for weight in weights(integer.model).values()
    )
    assert facts.csr_bytes == facts.model_bytes - dense_bytes + sparse_bytes
    assert single.facts.effective_macs == dense.facts.effective_macs
    assert facts.effective_macs is not None and facts.macs is not None and facts.nonzeros is not None
    assert 0.98 * facts.macs < facts.effective_macs < facts.macs, "a few small weights round to zero"


def test_it_is_saved_restored_and_made_again_bit_for_bit(integer: OnnxNetwork, tmp_path: Path) -> None:
    check_is_kept(Int8(), integer, tmp_path)
    x = images(3)
    np.testing.assert_array_equal(integer.reference(x)[:1], integer.reference(x[:1]))


def test_pruned_weights_stay_zero_and_are_not_counted(workspace: Workspace) -> None:
    dense = network()
    assert isinstance(dense.module, Small)
    with torch.no_grad():
        for dense_weight in conv_weights(dense.module).values():
            dense_weight[torch.rand_like(dense_weight) < 0.9] = 0
        dense.module.second.weight[3] = 0
    dense.count()
    made = quantised(Int8(), dense, NOISE, workspace)
    single = weights(as_onnx(dense, None))
    for name, weight in weights(made.model).items():
        assert not weight[single[name] == 0].any()
    assert made.facts.nonzeros is not None and dense.facts.nonzeros is not None
    assert made.facts.nonzeros < dense.facts.nonzeros
    assert made.facts.effective_macs is not None and dense.facts.effective_macs is not None
    assert 0.9 * dense.facts.effective_macs < made.facts.effective_macs <= dense.facts.effective_macs
    assert made.facts.csr_bytes is not None and made.facts.model_bytes is not None
    assert np.isfinite(made.reference(images(2))).all()


def test_a_chain_prunes_first_and_is_restored(tmp_path: Path, workspace: Workspace) -> None:
    chain = Chain((WeightPruning(level=0.5), Int8()))
    pruned = WeightPruning(level=0.5).compress(network(), NOISE, workspace)
    made = chain.compress(pruned, NOISE, workspace)
    assert isinstance(made, OnnxNetwork)
    assert made.facts.reached["bits"] == 8 and made.facts.reached["ratio"] == pytest.approx(0.5, abs=1e-3)
    assert all(np.count_nonzero(weight) < weight.size for weight in weights(made.model).values())
    made.save(tmp_path)
    restored = chain.restore(CifarResnet18(), tmp_path, made.facts)
    np.testing.assert_array_equal(restored.reference(images(2)), made.reference(images(2)))


# ---------------------------------------------------------------- calibration


@dataclass
class Watched:
    """A split that notes what is read of it."""

    split: Split
    reads: list[list[int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.split)

    def __getitem__(self, indices: Sequence[int]) -> tuple[Images, Labels]:
        self.reads.append(list(indices))
        return self.split[indices]


@pytest.mark.parametrize(("asked", "used"), [(1, 1), (19, 19), (1000, 30)])
def test_calibration_reads_so_many_validation_images_a_batch_at_a_time(
    asked: int, used: int, workspace: Workspace
) -> None:
    noise = Random(size=SHAPE[1], images=30).load()
    train, validation, test = Watched(noise.train), Watched(noise.validation), Watched(noise.test)
    data = replace(noise, train=train, validation=validation, test=test)
    Int8(images=asked).compress(network(), data, workspace)
    assert train.reads == test.reads == []
    reads = validation.reads
    assert all(0 < len(read) <= BATCH for read in reads)
    assert len({index for read in reads for index in read}) == sum(map(len, reads)) == used


def test_without_calibration_no_image_is_read(workspace: Workspace) -> None:
    watched = Watched(NOISE.validation)
    data = replace(NOISE, validation=watched)
    made = [
        quantised(Int8(calibration="none"), network(), data, replace(workspace, seed=s)) for s in (0, 0, 1)
    ]
    assert watched.reads == []
    first, again, other = (network.model.SerializeToString() for network in made)
    assert first == again != other


@pytest.mark.ci
def test_ranges_follow_the_images_and_the_method(workspace: Workspace) -> None:
    dense, data = trained()
    few = partial(Int8, images=16)
    names = [few(), few(method="entropy"), few(method="percentile"), few(calibration="none")]
    scales = {part: scales_of(quantised(part, dense, data, workspace).model) for part in names}
    widest = np.array(scales[few()])
    for part in names[1:]:
        assert np.any(np.array(scales[part]) != widest), part
        if part.calibration == "validation":
            assert np.all(np.array(scales[part]) <= widest * (1 + 1e-6)), part


@pytest.mark.ci
def test_digits_are_told_apart_nearly_as_well(workspace: Workspace) -> None:
    dense, data = trained()
    calibrated = Int8().compress(dense, data, workspace).facts
    uncalibrated = Int8(calibration="none").compress(dense, data, workspace).facts
    assert dense.facts.accuracy is not None and dense.facts.accuracy > 0.5, "the network learnt something"
    assert calibrated.accuracy is not None and uncalibrated.accuracy is not None
    assert calibrated.accuracy > dense.facts.accuracy - 0.03
    assert 0 < uncalibrated.accuracy < 1 and uncalibrated.validation_accuracy is not None


def test_there_is_no_accuracy_without_labels(integer: OnnxNetwork, workspace: Workspace) -> None:
    assert integer.facts.accuracy is None
    dense, _ = trained()
    made = Int8().compress(dense, Random(images=4).load(), workspace).facts
    assert made.accuracy is None and made.validation_accuracy is None


# ---------------------------------------------------------------- compilers


def test_onnx_runtime_computes_in_integers_and_tells_the_layers(integer: OnnxNetwork, tmp_path: Path) -> None:
    compiler = parts.make("compiler", "onnxruntime", {})
    build = compiler.prepare(integer, HOST, 2, tmp_path)
    dense = compiler.prepare(network(), HOST, 2, tmp_path / "dense")
    assert [{**layer, "types": None, "padding_value": 0, "nonzeros": 0} for layer in build.layers] == [
        {**layer, "types": None, "nonzeros": 0} for layer in dense.layers
    ]
    for layer, weight in zip(build.layers, weights(integer.model).values(), strict=True):
        assert tuple(layer["types"].values()) == ("uint8", "int8", "int32", "uint8")
        assert layer["nonzeros"] == np.count_nonzero(weight)
    assert build.layers[0]["padding_value"] == stored(integer.model)["images_zero_point"] != 0
    program = compiler.load(tmp_path, lambda: integer, HOST)
    x = images(2)
    np.testing.assert_array_equal(program.run(x), integer.reference(x))
    times = [layer["name"] for layer in program.layers(x, 2)]
    assert set(LAYERS) <= set(times)
    assert "/Concat" in times and not any(name.endswith("Conv") for name in times)


def test_the_tolerance_takes_another_rounding_and_no_other_network(
    integer: OnnxNetwork, workspace: Workspace
) -> None:
    x = images(8)
    expected = integer.reference(x)
    other = network()
    assert isinstance(other.module, Small)
    nn.init.zeros_(other.module.first.weight)
    wrong = quantised(Int8(), other, NOISE, workspace)
    assert error(wrong.reference(x), expected) > Int8.TOLERANCE
    step = float(stored(integer.model)["outputs_scale"])
    moved = expected.copy()
    moved[0, 0] += 2 * step
    assert 0 < error(moved, expected) < Int8.TOLERANCE


@pytest.mark.parametrize(
    ("flags", "asked"), [("fpu avx2", True), ("avx512f avx512_vnni", False), ("avx2 avx_vnni", False)]
)
def test_sessions_ask_for_sums_that_do_not_saturate_where_those_of_bytes_would(
    flags: str, asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor : 0\nflags\t\t: {flags}\nbugs : none\n")
    found = onnx_network.adds_bytes_in_32_bits(tmp_path / "cpuinfo")
    monkeypatch.setattr(onnx_network, "adds_bytes_in_32_bits", lambda: found)
    options = session_options(1)
    if asked:
        assert options.get_session_config_entry("session.x64quantprecision") == "1"
    else:
        with pytest.raises(RuntimeError, match="x64quantprecision"):
            options.get_session_config_entry("session.x64quantprecision")


def test_onnx_runtime_saturates_where_it_is_asked_to_and_would_by_itself(
    integer: OnnxNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = parts.make("compiler", "onnxruntime", {"saturating": True})
    for module in (onnx_network, onnxruntime):
        monkeypatch.setattr(module, "adds_bytes_in_32_bits", lambda: False)
    settings = []
    for compiler in (asked, parts.make("compiler", "onnxruntime", {})):
        compiler.prepare(integer, HOST, 1, tmp_path)
        program = compiler.load(tmp_path, lambda: integer, HOST)
        settings.append(program._options().get_session_config_entry(onnx_network.IN_32_BITS))
        assert program.run(images(1)).shape == integer.reference(images(1)).shape
    assert settings == ["0", "1"]
    with pytest.raises(Unsupported, match="is for networks in int8, and this one is in float32"):
        asked.prepare(network(), HOST, 1, tmp_path)
    monkeypatch.setattr(onnxruntime, "adds_bytes_in_32_bits", lambda: True)
    with pytest.raises(Unsupported, match="changes nothing here"):
        asked.prepare(integer, HOST, 1, tmp_path)


@pytest.mark.parametrize("name", ["torch_eager", "torch_compile"])
def test_other_compilers_say_that_they_do_not(name: str, integer: OnnxNetwork, tmp_path: Path) -> None:
    compiler = parts.make("compiler", name, {})
    with pytest.raises(Unsupported, match="ONNX graph"):
        compiler.build(integer, lambda: parts.make("algorithm", "direct", {}), HOST, 1, tmp_path)


# ---------------------------------------------------------------- other networks, and bad input


@pytest.mark.parametrize("batch", ["n", 3])
def test_a_graph_from_a_file_keeps_its_batch(batch: int | str, workspace: Workspace) -> None:
    data = Random(size=8, images=4).load()
    given = OnnxNetwork(small_graph(batch), network().facts)
    before = given.model.SerializeToString()
    made = quantised(Int8(), given, data, workspace)
    assert made.batch == (3 if batch == 3 else None)
    assert (made.facts.parameters, made.facts.macs) == (108 + 40, 108 * 64 + 40)
    x, _ = data.validation[range(4)]
    assert error(made.reference(x), given.reference(x)) < 0.05
    kinds = {tensor.data_type for tensor in made.model.graph.initializer}
    assert {TensorProto.INT8, TensorProto.UINT8} <= kinds
    assert given.model.SerializeToString() == before


def test_what_cannot_be_quantised_is_refused(integer: OnnxNetwork, workspace: Workspace) -> None:
    with pytest.raises(Unsupported, match="is in int8 already"):
        Int8().compress(integer, NOISE, workspace)
    with pytest.raises(Unsupported, match="is in int8 already"):
        Float16().compress(integer, NOISE, workspace)
    with pytest.raises(Unsupported, match="is in float16 already"):
        Int8().compress(Float16().compress(network(), NOISE, workspace), NOISE, workspace)
    linear = TorchNetwork(nn.Sequential(nn.Flatten(), nn.Linear(1200, 10)), network().facts)
    with pytest.raises(Unsupported, match="no convolution to quantise"):
        Int8().compress(linear, NOISE, workspace)


@pytest.mark.parametrize(
    "options", [{"images": 0}, {"images": -1}, {"calibration": "train"}, {"method": "mean"}, {"bits": 4}]
)
def test_other_options_are_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(InputError, match=name):
        parts.find("compression", "int8").validate("int8", options)
