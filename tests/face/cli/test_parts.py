"""The commands for parts: the list of all, one in full, and checks of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlas.axes.datasets.random import Random
from dlas.axes.models.onnx import Onnx
from dlas.networks.onnx.network import OnnxNetwork
from dlas.stack import Workspace
from tests.fixtures.commands import Command, dlas


def test_list_names_parts_with_what_they_do_and_the_values_of_their_options(dlas_here: Command) -> None:
    listed = dlas_here("list", "dataset")
    assert listed.returncode == 0, listed.stderr
    assert "1,797 real handwritten digits" in listed.stdout
    assert "root required (text); size = 224 (integer 32 to 1,024)" in listed.stdout
    compilers = dlas_here("list", "compiler").stdout
    assert 'preset = "quick" ("quick", "smoke", "paper")' in compilers
    assert "channels_last = false (true or false)" in compilers
    assert "this machine's processors" in dlas_here("list", "hardware").stdout


def test_names_that_one_file_defines_are_folded_into_families(dlas_here: Command) -> None:
    models = dlas_here("list", "model").stdout
    assert "densenet{121,161,169,201}" in models and "vgg{11,11_bn,13," in models
    assert models.count("A torchvision classification network") == 1
    assert len(models.splitlines()) <= 30


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("weight_pruning", ["level", "required", 'number above 0 below 1, or "elbow"', "weight_pruning.py"]),
        (
            "weight_pruning",
            ["Rank importance over all layers together", 'name = "weight_pruning", level = ...'],
        ),
        ("resnet18", ["model", "models/torchvision.py", '{ name = "resnet18", weights = "none" }']),
        ("jetson_agx", ["Volta GPU", "jetson_agx.toml"]),
    ],
)
def test_list_tells_everything_about_one_part(dlas_here: Command, name: str, said: list[str]) -> None:
    told = dlas_here("list", name)
    assert told.returncode == 0, told.stderr
    assert all(text in told.stdout for text in said)
    assert "``" not in told.stdout and ":class:" not in told.stdout


def test_a_name_that_is_neither_an_axis_nor_a_part_is_refused(dlas_here: Command) -> None:
    for name, near in (("compilr", "compiler"), ("weight_prunning", "weight_pruning")):
        refused = dlas_here("list", name)
        assert refused.returncode == 2 and f"did you mean {near!r}" in refused.stderr


OWN = """
import os
from dataclasses import dataclass
from tvm import te
from dlas.schedules.gemm import Gemm

@dataclass(frozen=True)
class Mine(Gemm):
    faulty: bool = False
    fault: str = "none"

    def supports(self, conv):
        if conv.groups > 1:
            return "only groups of one"
        return None if conv.name in ("1x1", "1x1, stride 2", "batch 3", "one output point") else "not this"

    def pack(self, weight, conv):
        if self.faulty and conv.name == "1x1, stride 2":
            os.abort()
        doubled = self.faulty and conv.name == "1x1" and self.fault == "double"
        return super().pack(weight * (2 if doubled else 1), conv)

    def compute(self, x, packed, conv, tail):
        if self.faulty and conv.name == "one output point":
            image = x
            x = te.compute(image.shape, lambda n, *at: image(n, *at) + image(n + 1, *at) * 1e-30, name="seen")
        return super().compute(x, packed, conv, tail)

    def schedule(self, schedule, conv, target):
        if self.faulty and conv.name == "batch 3":
            schedule.get_sblock("nowhere")
        super().schedule(schedule, conv, target)
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(OWN)
    return tmp_path


@pytest.mark.slow
def test_check_holds_a_users_own_algorithm_to_the_contract(mine: Path) -> None:
    checked = dlas(mine, "check", "algorithm", "mine:Mine")
    assert checked.returncode == 0, checked.stderr
    assert "mine:Mine: right on 4 of 35 convolutions\n" in checked.stdout
    assert "declines 'depthwise': only groups of one" in checked.stdout


@pytest.mark.slow
def test_check_goes_through_all_convolutions_and_says_which_are_wrong(mine: Path) -> None:
    checked = dlas(mine, "check", "algorithm", "mine:Mine", "faulty=true", "fault=double")
    assert checked.returncode == 1
    assert "mine:Mine faulty=true fault=double: right on 0 of 35 convolutions, wrong on 4" in checked.stdout
    wrong, crashed, outside, broken = (line.partition("=double: ")[2] for line in checked.stderr.splitlines())
    assert wrong.startswith("'1x1' (input 1x32x7x7, weight 16x32x1x1): unpack: relative error")
    assert crashed.startswith("'1x1, stride 2' (input 1x16x8x8, weight 32x16x1x1, strides (2, 2)): killed by")
    assert "SIGABRT (abort) in pack (" in crashed
    assert outside.startswith("'one output point' (input 1x16x3x3") and "killed by SIGSEGV" in outside
    assert broken.startswith("'batch 3' (input 3x8x9x9, weight 16x8x3x3, padding (1, 1, 1, 1)): ")
    assert "Cannot find a block with the name: nowhere" in broken and "mine.py:" in broken


def test_check_holds_parts_of_other_axes_to_their_contracts(tmp_path: Path, dlas_here: Command) -> None:
    checked = dlas(tmp_path, "check", "dataset", "random", "images=8", "size=4")
    assert checked.returncode == 0, checked.stderr
    assert "random images=8 size=4: keeps the contract of a dataset" in checked.stdout
    wrong = dlas_here("check", "dataset", "tests.fixtures.stubs:StubDataset", "--in-process")
    assert wrong.returncode == 1 and "StubDataset: an image of the" in wrong.stderr
    refused = dlas_here("check", "compression", "weight_pruning")
    assert refused.returncode == 2 and "needs options (level)" in refused.stderr
    refused = dlas_here("check", "modle", "onnx")
    assert refused.returncode == 2 and "did you mean 'model'" in refused.stderr
    refused = dlas_here("check", "algorithm", "winograd", "tile")
    assert refused.returncode == 2 and "'tile' is not of the form option=value" in refused.stderr


NET = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Linear(4 * 49, 5))

class Other(nn.Module):
    def forward(self, x):
        return x.flatten(1) if x.sum() > 0 else x.flatten(1) + 1
"""


def test_a_network_is_written_as_an_onnx_file_by_one_line(tmp_path: Path, dlas_here: Command) -> None:
    (tmp_path / "mine.py").write_text(NET)
    done = dlas_here("check", "mine.py:Net", "--size", "20", "--to", "network.onnx")
    assert done.returncode == 0, done.stderr
    assert "images [n, 3, 20, 20], outputs [n, 5]" in done.stdout and "written: network.onnx" in done.stdout
    network = Onnx(str(tmp_path / "network.onnx")).build(
        Random(size=20, images=4, classes=5).load(), Workspace(0, tmp_path, print)
    )
    assert isinstance(network, OnnxNetwork) and network.batch is None
    for words, said in (
        (["mine.py:Other", "--to", "other.onnx"], "torch.export cannot export the module Other"),
        (["mine.py:Net", "--size", "20", "--to", "x.pt"], "--to 'x.pt': a file NAME.onnx is expected"),
        (["mine.py:Net", "--size", "20", "--to", "no/x.onnx"], "cannot write 'no/x.onnx'"),
        (["nothing", "--to", "x.onnx"], "unknown axis or network 'nothing'"),
        (["compiler"], "give the name of a part of the axis compiler"),
        (["compiler", "hand", "--to", "x.onnx"], "--to and --size are for a network by itself"),
    ):
        refused = dlas_here("check", *words)
        assert refused.returncode == 2 and said in refused.stderr, refused.stderr
        assert len(refused.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.glob("*.*")) == ["mine.py", "network.onnx"]
