from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from dlas.errors import InputError
from dlas.hardware.drivers.local import Local
from dlas.schedules.direct import Direct
from dlas.study import parts
from tests.fixtures.stubs import StubAlgorithm


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """Stand in for installed packages that bring parts."""
    found: list[EntryPoint] = []
    monkeypatch.setattr(parts, "_entries", lambda axis: tuple(e for e in found if e.group == f"dlas.{axis}"))
    parts.find.cache_clear()
    yield found
    parts.find.cache_clear()


def entry(name: str, value: str, axis: str = "algorithm") -> EntryPoint:
    return EntryPoint(name, value, f"dlas.{axis}")


def test_a_file_is_a_part() -> None:
    assert parts.find("algorithm", "direct").cls is Direct
    assert "direct" in parts.names("algorithm")


def test_a_class_path_is_a_part() -> None:
    assert parts.make("algorithm", "tests.fixtures.stubs:StubAlgorithm", {"number": 3}) == StubAlgorithm(3)


def test_an_entry_point_is_a_part(entries: list[EntryPoint]) -> None:
    entries.append(entry("theirs", "tests.fixtures.stubs:StubAlgorithm"))
    assert parts.find("algorithm", "theirs").cls is StubAlgorithm
    assert "theirs" in parts.names("algorithm")


def test_a_name_claimed_twice_is_an_error(entries: list[EntryPoint]) -> None:
    entries.append(entry("direct", "tests.fixtures.stubs:StubAlgorithm"))
    with pytest.raises(InputError, match="'direct' is claimed twice"):
        parts.find("algorithm", "direct")


def test_what_an_entry_point_names_must_be_a_part_of_the_axis(entries: list[EntryPoint]) -> None:
    entries.append(entry("theirs", "tests.fixtures.stubs:StubModel"))
    with pytest.raises(InputError, match=r"is not a dlas\.stack\.Algorithm"):
        parts.find("algorithm", "theirs")


def test_an_abstract_class_is_no_part() -> None:
    with pytest.raises(InputError, match="does not define compute"):
        parts.find("algorithm", "dlas.stack:Algorithm")


def test_a_torchvision_model_goes_by_its_own_name() -> None:
    model = parts.make("model", "squeezenet1_1", {})
    assert (model.name, model.weights) == ("squeezenet1_1", "none")
    assert {"cifar_resnet18", "onnx", "resnet50"} <= set(parts.names("model"))
    assert "torchvision" not in parts.names("model")


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
