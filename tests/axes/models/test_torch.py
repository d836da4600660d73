"""Modules of one's own, exported to a file."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import dlas.axes.models
from dlas.axes.compression.compact_channel_pruning import CompactChannelPruning
from dlas.axes.compression.weight_pruning import WeightPruning
from dlas.axes.models.torch import Torch
from dlas.errors import InputError
from dlas.lowering.lower import lower
from dlas.networks.exported.files import export_module, export_reason
from dlas.networks.torch.network import TorchNetwork, conv_weights
from dlas.schedules.direct import Direct
from dlas.stack import Facts, Workspace
from dlas.testing import check_model
from dlas.testing.algorithms import HOST
from tests.fixtures.data import noise
from tests.fixtures.lowering import run

SHAPE = (3, 8, 8)


class Own(nn.Module):
    """Layers of all kinds, one of them called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.wide = nn.Conv2d(8, 8, 3, padding="same", groups=2, bias=False)
        self.twice = nn.Conv2d(8, 8, 1)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.twice(self.twice(self.wide(self.stem(x))))
        y: torch.Tensor = self.head(self.dropout(x.mean((2, 3))))
        return y


@pytest.fixture
def module() -> Own:
    torch.manual_seed(0)
    own = Own()
    own(torch.randn(4, *SHAPE))  # moves the statistics of its batch norm
    return own


def workspace(folder: Path) -> Workspace:
    return Workspace(0, folder, say=lambda line: None)


def test_a_module_becomes_a_part_with_the_same_layers(module: Own, tmp_path: Path) -> None:
    part = dlas.models.from_torch(module, SHAPE, folder=tmp_path)
    assert part["name"] == "torch" and module.training
    network = Torch(part["path"]).build(noise(8), workspace(tmp_path))
    assert isinstance(network, TorchNetwork)
    expected = TorchNetwork(module, Facts(SHAPE, 10))
    expected.count()
    for count in ("parameters", "nonzeros", "macs", "effective_macs", "model_bytes", "csr_bytes"):
        assert getattr(network.facts, count) == getattr(expected.facts, count), count
    assert conv_weights(network.module).keys() == conv_weights(module).keys()
    assert network.module.state_dict().keys() == module.state_dict().keys()
    images = np.random.default_rng(0).standard_normal((3, *SHAPE)).astype(np.float32)
    np.testing.assert_allclose(network.reference(images), expected.reference(images), rtol=1e-5, atol=1e-6)
    lowered = lower(network, Direct(), 3, HOST)
    names = [layer["name"] for layer in lowered.layers if "macs" in layer]
    assert names == ["stem.0", "wide", "twice", "twice#2"]
    np.testing.assert_allclose(
        run(lowered, tmp_path, images), expected.reference(images), rtol=1e-4, atol=1e-5
    )


def test_the_file_is_named_after_its_content(module: Own, tmp_path: Path) -> None:
    first, again = (dlas.models.from_torch(module, SHAPE, folder=tmp_path) for _ in range(2))
    assert first == again and Path(first["path"]).name.startswith("Own-")
    with torch.no_grad():
        module.head.bias[0] += 1
    assert dlas.models.from_torch(module, SHAPE, folder=tmp_path) != first
    assert len(list(tmp_path.iterdir())) == 2


def test_an_exported_module_keeps_the_contract_of_a_model(module: Own, tmp_path: Path) -> None:
    check_model(Torch(dlas.models.from_torch(module, SHAPE, folder=tmp_path)["path"]), noise(8))


@pytest.mark.slow
@pytest.mark.parametrize("technique", [WeightPruning, CompactChannelPruning])
def test_an_exported_module_is_compressed_like_any_other(
    technique: Callable[..., Any], module: Own, tmp_path: Path
) -> None:
    data = noise(8)
    network = Torch(dlas.models.from_torch(module, SHAPE, folder=tmp_path)["path"]).build(
        data, workspace(tmp_path)
    )
    dense = network.facts.nonzeros or 0
    pruned = technique(level=0.5, recipe="none").compress(network, data, workspace(tmp_path))
    assert pruned.facts.reached["ratio"] >= 0.4 and pruned.facts.nonzeros < 0.7 * dense
    images, _ = data.test[range(4)]
    assert np.isfinite(pruned.reference(images)).all()


class Branches(Own):
    """Decides by its input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x if x.sum() > 0 else -x)


class Noisy(Own):
    """Computes something else each time."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x + torch.randn_like(x))


class Maps(Own):
    """Has no classes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.wide(self.stem(x))
        return y


class Single(Own):
    """Takes two images at a time."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.reshape(2, *SHAPE))


@pytest.mark.parametrize(
    ("module", "shape", "said"),
    [
        (Branches(), SHAPE, "torch.export cannot export the module Branches: .*data-dependent"),
        (Noisy(), SHAPE, "Noisy computes something else each time"),
        (Maps(), SHAPE, r"Maps returns 2x8x4x4 for images 2x3x8x8, not \[n, classes\]"),
        (Single(), SHAPE, "torch.export cannot export the module Single: .*batch"),
        (Own(), (4, 8, 8), "Own cannot take images 2x4x8x8: .*expected input"),
        (Own().double(), SHAPE, "'stem.0.weight' in float64; only float32"),
        (Own().half(), SHAPE, "'stem.0.weight' in float16; only float32"),
    ],
)
def test_what_cannot_be_exported_is_refused_with_the_reason(
    module: nn.Module, shape: tuple[int, int, int], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=f"(?is){said}"):
        dlas.models.from_torch(module, shape, folder=tmp_path / "models")
    assert list(tmp_path.iterdir()) == []


def test_what_torch_cannot_export_is_told_with_the_line_and_without_advice_for_developers_of_torch(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    message = (
        "Could not guard on data-dependent expression Eq(u0, 1).  (Size-like symbols: none)\n\n"
        "consider using APIs.\nCaused by: (a.py:1)\nFor more information, run with TORCH_LOGS\n\n"
        'The following call raised this error:\n  File "/home/me/mine.py", line 18, in forward\n'
        "    if x.sum() > 0:\n\n\nThe error above occurred when calling torch.export.export."
    )
    expected = "Could not guard on data-dependent expression Eq(u0, 1). (Size-like symbols: none)"
    assert export_reason(message) == f"{expected} (mine.py, line 18: if x.sum() > 0:)"
    assert export_reason("two\nlines") == "two lines"
    with pytest.raises(
        InputError, match=r"data-dependent .*\(test_torch\.py, line \d+: .*x\.sum\(\) > 0.*\)$"
    ):
        export_module(Branches(), SHAPE)
    assert "symbolic_shapes" not in "".join(capsys.readouterr()) + caplog.text


@pytest.mark.parametrize(
    ("module", "shape", "said"),
    [
        (Own, SHAPE, "`module=` is the class Own, and a torch.nn.Module itself is expected"),
        ("Own", SHAPE, "`module=` is a str, and a torch.nn.Module"),
        (Own(), 32, r"`shape=32`: an image's \(channels, height, width\)"),
        (Own(), (3, 32), r"`shape=\(3, 32\)`"),
        (Own(), (3, 32, 0.5), r"`shape=\(3, 32, 0.5\)`"),
    ],
)
def test_what_is_no_module_or_no_shape_is_refused(module: Any, shape: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        dlas.models.from_torch(module, shape, folder=tmp_path / "models")
    assert list(tmp_path.iterdir()) == []


class Bomb:
    """Leaves a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_files_that_hold_code_or_are_damaged_are_refused(module: Own, tmp_path: Path) -> None:
    path = Path(dlas.models.from_torch(module, SHAPE, folder=tmp_path)["path"])
    trap = tmp_path / "trap"
    legacy = io.BytesIO()
    torch.save({"weight": Bomb(trap)}, legacy)
    for entry in ("archive/data/sample_inputs/model.pt", "archive/data/weights/model.pt"):
        armed = tmp_path / "armed.pt2"
        with zipfile.ZipFile(path) as good, zipfile.ZipFile(armed, "w") as bad:
            for name in good.namelist():
                bad.writestr(name, legacy.getvalue() if name == entry else good.read(name))
            if entry not in good.namelist():
                bad.writestr(entry, legacy.getvalue())
        with pytest.raises(InputError, match=r"armed\.pt2' cannot be used"):
            Torch(str(armed)).verify()
        assert not trap.exists()
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("archive/data/constants/custom_obj_0", pickle.dumps(Bomb(trap)))
    with pytest.raises(InputError, match="objects other than tensors"):
        Torch(str(path)).verify()
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InputError, match=f"{path.name}' cannot be used"):
        Torch(str(path)).verify()
    with pytest.raises(InputError, match=r"there is no exported program '.*nowhere\.pt2'"):
        Torch(str(tmp_path / "nowhere.pt2")).verify()
    assert not trap.exists()


def test_a_program_must_fit_the_data(module: Own, tmp_path: Path) -> None:
    part = Torch(dlas.models.from_torch(module, SHAPE, folder=tmp_path)["path"])
    with pytest.raises(InputError, match=r"has shape \(3, 10\), not \(3, 4\)"):
        part.build(noise(8, classes=4), workspace(tmp_path))
    with pytest.raises(InputError, match="it takes images 3x8x8, not 3x16x16"):
        part.build(noise(16), workspace(tmp_path))
