"""Networks from ONNX files: counted and run, and kept inside their folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

from dlas.axes.models.cifar_mobilenet_v1 import CifarMobilenetV1
from dlas.axes.models.onnx import Onnx
from dlas.errors import InputError
from dlas.networks.counting import count_macs
from dlas.networks.exporting import as_onnx
from dlas.networks.onnx.counting import count_graph
from dlas.networks.onnx.network import OnnxNetwork
from dlas.networks.torch.network import TorchNetwork
from dlas.stack import Facts, Workspace
from tests.fixtures.data import labelled, noise
from tests.fixtures.onnx_graphs import small_graph


@pytest.mark.parametrize("batch", ["n", 1, 3])
def test_an_onnx_file_is_counted_evaluated_and_restored(
    batch: int | str, tmp_path: Path, workspace: Workspace
) -> None:
    path = tmp_path / "small.onnx"
    onnx.save(small_graph(batch), path)
    data = labelled(noise(8))
    network = Onnx(str(path)).build(data, workspace)
    facts = network.facts
    assert facts.parameters == facts.nonzeros == 108 + 40
    assert facts.macs == 108 * 64 + 40 and facts.model_bytes == 4 * 148
    assert facts.trained and facts.note == "weights from its file" and facts.test_images == 4
    network.save(tmp_path)
    images, _ = data.test[range(4)]
    outputs = network.reference(images)
    assert outputs.shape == (4, 10)
    np.testing.assert_array_equal(Onnx(str(path)).restore(tmp_path, facts).reference(images), outputs)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_graph_counts_as_the_module_that_it_was_exported_from(tmp_path: Path) -> None:
    module = CifarMobilenetV1(width=0.125).module((3, 32, 32), 10).eval()
    path = tmp_path / "exported.onnx"
    torch.onnx.export(module, (torch.zeros(1, 3, 32, 32),), str(path), dynamo=False, opset_version=17)
    model = onnx.load(path)
    assert count_graph(model).macs == count_macs(module, (3, 32, 32))
    images = np.random.default_rng(0).standard_normal((3, 3, 32, 32), np.float32)
    facts = Facts((3, 32, 32), 10)
    reference = TorchNetwork(module, facts).reference(images)
    np.testing.assert_allclose(OnnxNetwork(model, facts).reference(images), reference, atol=1e-5)


class Shuffled(nn.Module):
    """A convolution behind a shuffle of channels whose sizes are computed, and attention behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(6, 4, 3, bias=False)
        self.attention = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.last = nn.Linear(4, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        x = x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        tokens = self.attention(self.conv(x).flatten(2).transpose(1, 2))
        outputs: torch.Tensor = self.last(tokens.mean(1))
        return outputs


def test_a_graph_for_any_batch_counts_though_sizes_are_computed() -> None:
    network = TorchNetwork(Shuffled(), Facts((6, 8, 8), 10))
    model = as_onnx(network, None)
    assert OnnxNetwork(model, network.facts).batch is None
    assert count_graph(model).macs == count_macs(network.module, (6, 8, 8))
    images = np.random.default_rng(0).standard_normal((3, 6, 8, 8), np.float32)
    outputs = OnnxNetwork(model, network.facts).reference(images)
    np.testing.assert_allclose(outputs, network.reference(images), atol=1e-5)


def external(location: str) -> onnx.ModelProto:
    """Return the small graph with its convolution's weights said to lie at ``location``."""
    model = small_graph()
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=location)
    return model


def test_weights_beside_an_onnx_file_are_read_from_its_own_folder_only(
    tmp_path: Path, workspace: Workspace
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    raw = small_graph().graph.initializer[0].raw_data
    for place in (folder / "weights.bin", tmp_path / "secret.bin"):
        place.write_bytes(raw)
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    path = folder / "model.onnx"
    path.write_bytes(external("weights.bin").SerializeToString())
    assert Onnx(str(path)).build(noise(8), workspace).facts.parameters == 148
    for location in ("../secret.bin", str(tmp_path / "secret.bin"), "link.bin"):
        path.write_bytes(external(location).SerializeToString())
        with pytest.raises(InputError, match=r"model\.onnx.*outside its folder"):
            Onnx(str(path)).build(noise(8), workspace)
    path.write_bytes(external("absent.bin").SerializeToString())
    with pytest.raises(InputError, match=r"absent\.bin, which is not there"):
        Onnx(str(path)).build(noise(8), workspace)


def test_other_onnx_files_are_refused(tmp_path: Path, workspace: Workspace) -> None:
    two = small_graph()
    two.graph.input.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1]))
    contents = {
        "cannot be used": b"not a graph",
        "it has 2 inputs": two.SerializeToString(),
        r"has shape \(1, 7\)": small_graph(classes=7).SerializeToString(),
    }
    stored = small_graph()
    stored.graph.initializer[0].raw_data += bytes(48)
    contents["weight.*raw_data size"] = stored.SerializeToString()  # says ONNX Runtime, in errors of its own
    named = small_graph()
    named.graph.output[0].name = "y\n\x1b[31m"
    contents[r"Graph output 'y \\x1b\[31m'"] = named.SerializeToString()
    path = tmp_path / "file.onnx"
    with pytest.raises(InputError, match="there is no ONNX file"):
        Onnx(str(path)).build(noise(8), workspace)
    for message, content in contents.items():
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            Onnx(str(path)).build(noise(8), workspace)
    onnx.save(small_graph(), path)
    with pytest.raises(InputError, match=r"its input 'x' is .x3x8x8, not nx3x16x16"):
        Onnx(str(path)).build(noise(16), workspace)
