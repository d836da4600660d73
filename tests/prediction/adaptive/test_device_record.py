"""A run for a device goes on with the same options, and with no others."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from dlas.errors import InputError
from dlas.face.cli.values import part_of
from dlas.prediction.adaptive.device.record import AGAIN, FILE, DeviceRequest, DeviceRun, opened, predicting
from dlas.prediction.adaptive.records import write_record

OPTIONS: dict[str, Any] = {
    "hardware": "local_cpu",
    "compiler": "onnxruntime",
    "threads": 1,
    "algorithm": None,
    "model": "random_layers",
    "target": "latency_s",
    "unseen": ["resnet18"],
    "seed": 0,
}
ASKED = DeviceRequest.checked(**OPTIONS)


def save(folder: Path, run: DeviceRun) -> None:
    write_record(folder / FILE, run)


def asked(**changed: Any) -> DeviceRequest:
    return DeviceRequest.checked(**{**OPTIONS, **changed})


def test_the_seconds_of_an_unfinished_run_count(tmp_path: Path) -> None:
    folder = tmp_path / "predictors" / "mine"
    assert opened(folder, ASKED) == DeviceRun(asked=ASKED)
    assert not folder.exists()
    save(folder, DeviceRun(asked=ASKED, spent_s=12.5))
    assert opened(folder, ASKED).spent_s == 12.5


@pytest.mark.parametrize(
    ("changed", "there", "here"),
    [
        ({"compiler": "torch_eager"}, "`compiler=onnxruntime`", "`compiler=torch_eager`"),
        ({"threads": 2, "seed": 1}, "`threads=1` `seed=0`", "`threads=2` `seed=1`"),
        ({"algorithm": "gemm"}, "no `algorithm=`", "`algorithm=gemm`"),
        (
            {"unseen": ["resnet18", "vgg16"]},
            "`unseen=resnet18`",
            "`unseen=resnet18` `unseen=vgg16`",
        ),
    ],
)
def test_other_options_are_refused_and_both_are_told(
    changed: dict[str, Any], there: str, here: str, tmp_path: Path
) -> None:
    save(tmp_path, DeviceRun(asked=ASKED))
    with pytest.raises(InputError) as told:
        opened(tmp_path, asked(**changed))
    said = str(told.value)
    assert f"an unfinished run with {there}, and this one has {here}:" in said


def test_a_finished_run_says_so(tmp_path: Path) -> None:
    save(tmp_path, DeviceRun(asked=ASKED, finished=True))
    with pytest.raises(InputError, match=r"is finished: `dlas predict .* --model resnet50`"):
        opened(tmp_path, ASKED)


def test_files_of_ones_own_may_lie_beside_a_run_but_not_in_its_way(tmp_path: Path) -> None:
    save(tmp_path, DeviceRun(asked=ASKED))
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "0").mkdir()
    assert opened(tmp_path, ASKED).asked == ASKED
    (tmp_path / "1").write_text("mine")
    with pytest.raises(InputError, match=r"1' is where the predictor's arrays are to be: move it"):
        opened(tmp_path, ASKED)
    (tmp_path / "1").rename(tmp_path / AGAIN)
    with pytest.raises(InputError, match=f"{AGAIN}' is a file; rows are written to a folder"):
        opened(tmp_path, ASKED)


def test_parts_with_options_are_kept_and_told_as_the_command_takes_them(tmp_path: Path) -> None:
    board = {"name": "pi 4.toml", "cores": "big", "threads": 2}
    run = DeviceRun(asked=asked(hardware=board, threads=None, unseen=[{"name": "resnet18"}, "vgg16"]))
    save(tmp_path, run)
    assert opened(tmp_path, run.asked) == run
    option, _, value = run.asked.options()["hardware"].strip("`").partition("=")
    (typed,) = shlex.split(value)
    assert option == "hardware" and part_of(typed) == board
    with pytest.raises(
        InputError, match=r"an unfinished run with `hardware=.*pi 4.*, and this one has `hard"
    ):
        opened(tmp_path, ASKED)
    words = shlex.split(predicting(tmp_path, board))
    assert (
        words[:5] == ["dlas", "predict", str(tmp_path), "--model", "resnet50"] and part_of(words[6]) == board
    )
    assert predicting(Path("mine"), "local_cpu") == "dlas predict mine --model resnet50"
    save(tmp_path, run.model_copy(update={"finished": True}))
    with pytest.raises(InputError, match=r"is finished: `dlas predict .* --hardware .*pi 4"):
        opened(tmp_path, run.asked)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        opened(tmp_path, ASKED)


@pytest.mark.parametrize("text", ["", "{}", '{"asked": 1}', '{"schema_version": 9}', "\x80"])
def test_a_damaged_file_is_one_message(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(InputError, match=FILE):
        opened(tmp_path, ASKED)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"threads": 0}, "`threads=0`: Input should be greater than or equal to 1"),
        ({"seed": -1}, "`seed=-1`"),
        ({"target": "energy_j"}, "`target='energy_j'`: Input should be 'latency_s' or 'latency_min_s'"),
        ({"unseen": []}, "`unseen="),
    ],
)
def test_options_out_of_range_are_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        asked(**changed)
