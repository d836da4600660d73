from __future__ import annotations

from pathlib import Path

import pytest

from dlas.bench.remote import tokens
from dlas.bench.remote.address import Address
from dlas.errors import InputError, Unreachable

TOKEN = "a-token-of-a-test"


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DLAS_TOKEN", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_a_token_is_made_once_for_its_owner_alone() -> None:
    path = tokens.default_path("pi4")
    token = tokens.read_or_make(path)
    assert len(token) > 40
    assert path.stat().st_mode & 0o777 == 0o600
    assert tokens.read_or_make(path) == token
    assert Address.of("localhost", 9190, "pi4").token == token


def test_two_servers_have_two_tokens(tmp_path: Path) -> None:
    assert tokens.read_or_make(tmp_path / "a") != tokens.read_or_make(tmp_path / "b")


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    tokens.read_or_make(tmp_path / "token")
    (tmp_path / "token").chmod(0o644)
    with pytest.raises(InputError, match=r"others can read .*: chmod 600"):
        tokens.read_or_make(tmp_path / "token")


def test_the_environment_goes_before_default_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("another-token-of-a-test\n")
    monkeypatch.setenv("DLAS_TOKEN", TOKEN)
    assert tokens.of_key("pi4") == Address.of("localhost", 9190, "pi4").token == TOKEN
    # A profile that names a file means that one: there may be several boards.
    assert Address.of("localhost", 9190, "pi4", 1.0, tmp_path / "token").token == "another-token-of-a-test"


def test_an_address_does_not_show_its_token() -> None:
    address = Address("localhost", 9190, "pi4", TOKEN)
    assert TOKEN not in f"{address} {address!r}"
    assert str(address) == "pi4 at localhost:9190"


def test_without_a_token_a_device_cannot_be_reached(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=r"no token: .*/tokens/pi4 does not exist; copy it from the board"):
        Address.of("localhost", 9190, "pi4")
    with pytest.raises(Unreachable, match="cannot be read: Is a directory"):
        tokens.read(tmp_path)


@pytest.mark.parametrize("content", ["", "short", "two words of a test", "x" * 300])
def test_what_is_no_token_is_not_quoted(tmp_path: Path, content: str) -> None:
    (tmp_path / "token").write_text(content)
    with pytest.raises(Unreachable, match="holds no token") as caught:
        tokens.read(tmp_path / "token")
    assert not content or content not in str(caught.value).removeprefix(str(tmp_path))
    (tmp_path / "token").chmod(0o600)
    with pytest.raises(InputError, match="holds no token"):
        tokens.read_or_make(tmp_path / "token")


@pytest.mark.parametrize("key", ["", "../pi4", "a/b", "two words", ".hidden", "x" * 65])
def test_a_key_is_the_name_of_a_file(key: str) -> None:
    with pytest.raises(InputError, match="expected letters, digits"):
        tokens.default_path(key)
