from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from dlas.axes.hardware.drivers.local import Local
from dlas.errors import InputError
from dlas.schedules.direct import Direct
from dlas.sweep.study import parts
from tests.fixtures.stubs import StubAlgorithm


def with_entry(name: str, value: str, axis: str = "algorithm") -> parts.Finder:
    """Return a finder where a package is installed that brings a part."""
    entry = EntryPoint(name, value, f"dlas.{axis}")
    return parts.Finder(entries=lambda asked: [entry] if asked == axis else [])


def test_a_file_is_a_part() -> None:
    assert parts.find("algorithm", "direct").cls is Direct
    assert "direct" in parts.names("algorithm")


def test_a_class_path_is_a_part() -> None:
    assert parts.make("algorithm", "tests.fixtures.stubs:StubAlgorithm", {"number": 3}) == StubAlgorithm(3)


def test_an_entry_point_is_a_part() -> None:
    finder = with_entry("theirs", "tests.fixtures.stubs:StubAlgorithm")
    assert finder.find("algorithm", "theirs").cls is StubAlgorithm
    assert "theirs" in finder.names("algorithm")
    assert "theirs" not in finder.names("model")


def test_a_name_claimed_twice_is_an_error() -> None:
    finder = with_entry("direct", "tests.fixtures.stubs:StubAlgorithm")
    with pytest.raises(InputError, match=r"'direct' is claimed twice: dlas\.schedules\.direct, "):
        finder.find("algorithm", "direct")


def test_what_an_entry_point_names_must_be_a_part_of_the_axis() -> None:
    finder = with_entry("theirs", "tests.fixtures.stubs:StubModel")
    with pytest.raises(InputError, match=r"is not a dlas\.stack\.Algorithm"):
        finder.find("algorithm", "theirs")


def test_an_abstract_class_is_no_part() -> None:
    with pytest.raises(InputError, match="does not define compute"):
        parts.find("algorithm", "dlas.stack:Algorithm")


def test_a_torchvision_model_goes_by_its_own_name() -> None:
    model = parts.make("model", "squeezenet1_1", {})
    assert (model.name, model.weights) == ("squeezenet1_1", "none")
    assert {"cifar_resnet18", "onnx", "resnet50"} <= set(parts.names("model"))
    assert "torchvision" not in parts.names("model")


MANY_NAMES = """
from dataclasses import dataclass

from tests.fixtures.stubs import StubModel


def names():
    return ["narrow", "wide"]


@dataclass(frozen=True)
class Many(StubModel):
    name: str = ""
"""


def test_a_module_may_say_which_names_its_part_goes_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home_of_many_names"
    home.mkdir()
    (home / "__init__.py").touch()
    (home / "many.py").write_text(MANY_NAMES)
    monkeypatch.syspath_prepend(str(tmp_path))
    finder = parts.Finder({"model": [home.name]}, lambda axis: [])
    assert finder.names("model") == ["narrow", "wide"]
    assert finder.make("model", "wide", {"factor": 2.0}).name == "wide"
    assert "name" not in finder.find("model", "wide").options()
    with pytest.raises(InputError, match=r"unknown model 'many'.*narrow, wide"):
        finder.find("model", "many")


def test_a_board_is_a_profile_wherever_it_lies(tmp_path: Path) -> None:
    text = (parts.PROFILES / "local_cpu.toml").read_text()
    (tmp_path / "mine.toml").write_text(text)
    device = parts.make("hardware", str(tmp_path / "mine.toml"), {"threads": 1})
    assert isinstance(device, Local)
    assert device.threads == 1


def test_a_profile_with_an_unknown_driver_names_those_there_are(tmp_path: Path) -> None:
    text = (parts.PROFILES / "local_cpu.toml").read_text().replace('"local"', '"lcoal"')
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(InputError, match="'lcoal'; did you mean 'local'"):
        parts.find("hardware", str(tmp_path / "mine.toml"))


def test_defaults_are_left_out_and_values_take_their_fields_type() -> None:
    found = parts.find("model", "cifar_resnet18")
    assert found.validate("cifar_resnet18", {"width": 1, "epochs": 3}) == {"epochs": 3}


def test_an_option_without_default_must_be_given() -> None:
    with pytest.raises(InputError, match="'onnx' needs the option 'path'"):
        parts.find("model", "onnx").validate("onnx", {})
