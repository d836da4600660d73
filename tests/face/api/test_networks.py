"""Networks predicted as users name them: parts, ONNX files, torch modules; and what is told of them."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn import functional

import dlas
from dlas.axes.models.torchvision import Torchvision
from dlas.errors import InputError
from dlas.stack import Layer
from dlas.sweep.rows.predictions import UNKNOWN
from dlas.sweep.rows.results import Row
from dlas.sweep.study.networks import is_network, named_network
from dlas.sweep.study.point import Choice
from tests.fixtures.commands import Command
from tests.fixtures.commands import dlas as command
from tests.fixtures.kernel_rows import board, kernel_rows
from tests.fixtures.onnx_graphs import small_graph
from tests.fixtures.rows import write
from tests.fixtures.training_rows import LEVELS

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")
TARGET = "latency_s"
LOW, HIGH = "latency_low_s", "latency_high_s"
SIZE = 16
OWN = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16 * 16, 10))

class Needs(nn.Module):
    def __init__(self, width):
        super().__init__()

def factory():
    return Net()

def text():
    return "a text"

number = 3
"""


@dataclass(frozen=True)
class Wide(Torchvision):
    """A network of one's own beside torchvision's."""

    name: str = "wide"


class Attending(nn.Module):
    """Two convolutions, attention between all pixels of the second's filters, and a linear layer."""

    def __init__(self, width: int, filters: int = 8) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, filters, 3, padding=1)
        self.narrow = nn.Conv2d(filters, width, 3, padding=1)
        self.classifier = nn.Linear(width * SIZE * SIZE, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map images [n, 3, 16, 16] to outputs [n, 10]."""
        x = torch.relu(self.narrow(torch.relu(self.conv(x))))
        pixels = x.flatten(2).transpose(1, 2)[:, None]
        found = functional.scaled_dot_product_attention(pixels, pixels, pixels)
        outputs: torch.Tensor = self.classifier(found.flatten(1))
        return outputs


def plain(filters: int = 8) -> nn.Module:
    """Return a network of kinds that were all fitted."""
    return nn.Sequential(
        nn.Conv2d(3, filters, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(filters, filters, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(filters * SIZE * SIZE, 10),
    )


def here(threads: int) -> dict[str, Any]:
    """Return what this machine says of itself."""
    described: dict[str, Any] = Choice.checked("hardware", "local_cpu", {}).make("hardware").describe()
    return {**described, "threads": threads}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A predictor of kernels on this machine: PyTorch with one thread and with two, and ONNX Runtime."""
    folder = tmp_path_factory.mktemp("fitted")
    nine: dict[str, Any] = {"levels": LEVELS[:3]}  # networks, as many as an interval takes
    settings = (
        kernel_rows(here(1), **nine),
        kernel_rows(here(2), 0.5, seed=1, **nine),
        kernel_rows(here(1), 0.25, seed=2, compiler="onnxruntime", **nine),
    )
    folders = [write(folder / str(number), list(rows)) for number, rows in enumerate(settings)]
    options = {"rounds": 5}
    dlas.fit("boosted_kernels", folders, target=TARGET, to=folder / "p", hold_out="network", options=options)
    return folder / "p"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def predicted(fitted: Path, network: Any, cache: Path, **asked: Any) -> pd.DataFrame:
    """Return the predictions of a network whose steps run in this process."""
    known = dlas.predictor(fitted)
    return known.predict(network, cache=cache, steps="inline", **{"size": SIZE, **asked})


def test_a_module_is_predicted_in_each_setting_that_was_fitted(
    fitted: Path, cache: Path, tmp_path: Path
) -> None:
    found = predicted(fitted, plain(), cache, batch=[1, 8], compiler="torch_eager")
    assert len(found) == 4 and found["model"].eq("Sequential").all()
    by_setting = found.set_index(["threads", "batch"])[TARGET]
    assert (by_setting[1] / by_setting[2]).to_numpy() == pytest.approx(2, rel=0.2)
    assert (by_setting[:, 8] > 2 * by_setting[:, 1]).all()
    assert (found[LOW] < found[TARGET]).all() and (found[TARGET] < found[HIGH]).all()
    assert found[UNKNOWN].eq(0).all()
    assert not list((cache / "work" / "modules").iterdir()), "its file is gone"
    options: dict[str, Any] = {"cache": cache, "steps": "inline", "progress": "silent", "size": SIZE}
    one: dict[str, Any] = {"threads": 1, "compiler": "torch_eager", "out": tmp_path}
    dlas.predict(fitted, plain(), **one, **options)
    assert dlas.read(tmp_path, predictions=True)["model"].tolist() == ["Sequential"], "no file that is gone"


def test_a_file_and_a_part_are_predicted_with_the_images_that_they_are_for(
    fitted: Path, cache: Path, tmp_path: Path
) -> None:
    onnx.save(small_graph(size=SIZE), tmp_path / "net.onnx")
    options: dict[str, Any] = {"cache": cache, "steps": "inline", "progress": "silent", "anyway": True}
    view = dlas.predict(fitted, tmp_path / "net.onnx", compiler="onnxruntime", **options)
    (found,) = view.frame.to_dict("records")
    assert found[TARGET] > 0 and found["dataset.size"] == SIZE and found["compiler"] == "onnxruntime"
    assert found["batch"] == 1, "where nobody says"
    assert "unknown kernels" in str(view) and "90% interval" in str(view)
    part = {"name": "tests.fixtures.tiny:TinyModel", "width": 0.5}
    whole = dlas.predict(fitted, model=part, threads=1, compiler="torch_eager", **options).frame
    (small,) = predicted(fitted, part, cache, size=8, threads=1, compiler="torch_eager", anyway=True)[TARGET]
    assert "dataset.size" not in whole, "32 is the default of the data set"
    assert whole[TARGET][0] > small
    assert whole[UNKNOWN][0] > 0.1 and whole["doubt"].str.contains("kinds never fitted").all()


@pytest.mark.parametrize(
    ("name", "size", "classes"),
    [
        ("resnet50", 224, 1000),
        ("inception_v3", 299, 1000),
        ("cifar_vgg16", 32, 10),
        (f"{__name__}:Wide", 224, 1000),
    ],
)
def test_parts_know_the_images_that_they_are_for(name: str, size: int, classes: int) -> None:
    with named_network(name, None, Path()) as found:
        assert (found.size, found.classes, found.channels) == (size, classes, 3)
    with named_network(name, 64, Path()) as found:
        assert found.dataset["size"] == 64


def test_a_module_named_twice_at_once_stays_until_both_are_done(tmp_path: Path) -> None:
    module = plain()
    with named_network(module, SIZE, tmp_path) as first:
        with named_network(module, SIZE, tmp_path) as second:
            assert first.part == second.part
        assert Path(first.part["path"]).is_file()
    assert not Path(first.part["path"]).exists()


def test_a_part_in_a_file_is_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "part_in_a_file.py").write_text(
        "from tests.fixtures.tiny import TinyModel\n\nclass Own(TinyModel):\n    pass\n"
    )
    with named_network("part_in_a_file.py:Own", None, Path()) as found:
        assert found.part == {"name": "part_in_a_file.py:Own"}


def test_files_say_which_images_and_which_batch_they_take(tmp_path: Path) -> None:
    onnx.save(small_graph(batch=4, classes=7, size=24), tmp_path / "net.ONNX")
    with named_network(tmp_path / "net.ONNX", None, Path()) as found:
        assert (found.size, found.classes, found.channels, found.batch) == (24, 7, 3, 4)
    with (
        pytest.raises(InputError, match="takes images of 24x24, not 16x16"),
        named_network(tmp_path / "net.ONNX", 16, Path()),
    ):
        pass
    with named_network(plain(), SIZE, tmp_path) as found:
        copy = tmp_path / "copy.pt2"
        copy.write_bytes(Path(found.part["path"]).read_bytes())
    with named_network(str(copy), None, Path()) as found:
        assert (found.size, found.classes, found.channels, found.batch) == (SIZE, 10, 3, None)


def test_modules_are_imported_by_file_and_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_network.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    files = set()
    for text in ("own_network.py:Net", "own_network:factory"):
        assert is_network(text)
        with named_network(text, SIZE, tmp_path) as found:
            assert (found.label, found.classes) == (text, 10)
            files.add(found.part["path"])
    assert len(files) == 1, "weights follow from a seed, so that the network is made once"
    assert not is_network("study.toml") and not is_network(tmp_path)
    assert not is_network({"axes": {}}) and is_network({"name": "resnet50"})
    assert is_network(nn.ReLU) and not is_network(int)
    with (
        pytest.raises(InputError, match="the network is the class ReLU"),
        named_network(cast(Any, nn.ReLU), SIZE, tmp_path),
    ):
        pass


def attending(share: float) -> Row:
    """Return a row with attention that moves so many of all values."""
    first = next(kernel_rows(here(1)))
    values = sum(math.prod(shape) for layer in first.layers for shape in [*layer["inputs"], layer["output"]])
    shape = [1, 1, 1, round(share * values / 4)]
    attention: Layer = {
        "name": "attention",
        "operator": "Attention",
        "inputs": [shape] * 3,
        "output": shape,
        "latency_s": 1e-6,
    }
    return replace(first, layers=[*first.layers, attention])


def test_attention_is_told_and_widens_the_interval_and_too_much_of_it_is_refused(
    fitted: Path, tmp_path: Path
) -> None:
    known = dlas.predictor(fitted)
    none, little, much = (
        write(tmp_path / str(share), [attending(share) if share else next(kernel_rows(here(1)))])
        for share in (0, 0.02, 2)
    )
    with pytest.raises(InputError, match=r"over 10% of it are kernels of kinds.*; unknown are \d+%"):
        known.predict(much)
    (refused,) = known.predict(much, anyway=True).to_dict("records")
    assert refused[UNKNOWN] > 0.1 and np.isnan(refused[LOW]) and refused[TARGET] > 0
    (plainly,), (told,) = (known.predict(rows).to_dict("records") for rows in (none, little))
    assert 0 < told[UNKNOWN] <= 0.1 and f"{told[UNKNOWN]:.1%} of it are kernels" in told["doubt"]
    assert told[HIGH] / told[LOW] > plainly[HIGH] / plainly[LOW]


@pytest.mark.slow
def test_a_module_with_attention_is_refused_where_too_much_of_it_is_unknown(
    fitted: Path, cache: Path
) -> None:
    one: dict[str, Any] = {"threads": 1, "compiler": "torch_eager"}
    with pytest.raises(InputError, match=r"over 10% of it are kernels of kinds.*; unknown are \d+%"):
        predicted(fitted, Attending(32), cache, **one)
    (little,) = predicted(fitted, Attending(8, filters=512), cache, **one).to_dict("records")
    (none,) = predicted(fitted, plain(), cache, **one).to_dict("records")
    assert 0 < little[UNKNOWN] <= 0.1 and little[HIGH] / little[LOW] > none[HIGH] / none[LOW]


def test_a_predictor_of_another_machine_says_so(
    fitted: Path, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = dlas.predict(fitted, fitted.parent / "0").frame["machine"][0]
    assert "fitted on" not in capsys.readouterr().err
    folder = write(tmp_path / "rows", list(kernel_rows(board("Elsewhere 7", threads=48))))
    rounds = {"rounds": 5}
    dlas.fit("boosted_kernels", folder, target=TARGET, to=tmp_path / "p", hold_out="batch", options=rounds)
    tiny = "tests.fixtures.tiny:TinyModel"
    options: dict[str, Any] = {"cache": cache, "steps": "inline", "progress": "silent"}
    view = dlas.predict(tmp_path / "p", model=tiny, size=8, anyway=True, out=tmp_path / "o", **options)
    told = " ".join(capsys.readouterr().err.split())
    assert "the predictor was fitted on Elsewhere 7" in told and ours in told
    for frame in (view.frame, dlas.read(tmp_path / "o", predictions=True)):
        assert frame["machine"].str.startswith("Elsewhere 7").all() and frame["threads"].tolist() == [48]
    noise = {"name": "random", "size": 8, "images": 16, "classes": 4}
    study = {"axes": {"dataset": noise, "model": tiny, "compiler": "torch_eager"}}
    with pytest.raises(InputError, match=r"machine .* was never fitted \(fitted: Elsewhere 7"):
        dlas.predict(tmp_path / "p", study, **options)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mine.py:Missing"], "unknown name in mine.py 'Missing'"),
        (["nowhere.py:Net"], "there is no file 'nowhere.py'"),
        (["nowhere.at.all:Net"], "cannot import 'nowhere.at.all': ModuleNotFoundError"),
        (["broken.py:Net"], "cannot import 'broken.py': SyntaxError"),
        (["mine.py:Needs"], "called without arguments, it raises TypeError"),
        (["mine.py:text"], "returns a str, and a torch.nn.Module is expected"),
        (["mine.py:number"], "is of type int; a torch.nn.Module is expected"),
        (["mine.py:Net"], "size gives another height and width"),
        (["mine.py:Net", "--size", "0"], "--size 0: a whole number above 0"),
        (["bad.onnx"], "ONNX file 'bad.onnx' cannot be used"),
        (["nowhere.onnx"], "there is no ONNX file 'nowhere.onnx'"),
        (["bad.pt2"], "exported program 'bad.pt2' cannot be used"),
        (["--model", "resnet5"], "unknown model 'resnet5'"),
        (["--model", "{name = 'resnet18', depth = 3}"], "unknown option of model 'resnet18' 'depth'"),
        (["--model", "resnet18", "--threads", "7"], "threads '7' was never fitted (fitted: 1, 2)"),
        (["--model", "resnet18", "--compiler", "hand"], "'hand' was never fitted (fitted: onnxruntime"),
        (["--model", "resnet18", "--batch", "1,many"], "--batch '1,many': expected whole numbers"),
        (["--model", "resnet18", "--batch", "0"], "--batch 0: a whole number above 0"),
        (["study.toml", "--size", "8"], "--size is for one network"),
        (["study.toml", "--model", "resnet18"], "give what to predict"),
        ([], "give what to predict"),
    ],
)
def test_what_cannot_be_read_is_one_message_exit_code_2_and_nothing_written(
    words: list[str], said: str, fitted: Path, tmp_path: Path, dlas_here: Command
) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("def")
    (tmp_path / "study.toml").write_text('name = "s"\n[axes]\nmodel = "resnet18"\n')
    for name in ("bad.onnx", "bad.pt2"):
        (tmp_path / name).write_bytes(b"no network")
    before = sorted(tmp_path.iterdir())
    refused = dlas_here("predict", str(fitted), *words, "--out", "out")
    assert refused.returncode == 2, refused.stderr
    assert said in " ".join(refused.stderr.split()) and len(refused.stderr.splitlines()) == 1
    assert sorted(path for path in tmp_path.iterdir() if path.name != "__pycache__") == before


@pytest.mark.slow
def test_commands_predict_networks_in_processes_of_their_own(fitted: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    onnx.save(small_graph(size=SIZE), tmp_path / "net.onnx")
    for words in (
        ["mine.py:Net", "--size", "16", "--batch", "1,8"],
        ["net.onnx", "--compiler", "onnxruntime", "--anyway"],
        ["--model", "{name = 'cifar_resnet18', width = 0.25}", "--threads", "2", "--anyway"],
    ):
        told = command(tmp_path, "predict", str(fitted), *words)
        assert told.returncode == 0, told.stderr
        assert "that were predicted" in told.stdout and "latency, ms" in told.stdout
