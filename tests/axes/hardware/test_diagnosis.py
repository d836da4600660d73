from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dlas.axes.hardware import diagnosis
from dlas.axes.hardware.profile import Profile, ServerAddress
from dlas.bench.measuring import on_board
from dlas.bench.measuring.doctor import SystemCheck
from dlas.bench.remote import handshake
from dlas.bench.remote.asking import Answer
from dlas.bench.store.fingerprint import versions
from dlas.errors import InputError
from tests.fixtures.commands import runner
from tests.fixtures.remote import KEY, answering

HERE = versions(["apache-tvm"])["apache-tvm"]
A76 = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a76", "num-cores": 4}
PI5 = ["fp", "asimd", "atomics", "fphp", "asimdhp", "asimdrdm", "asimddp"]
PI4 = ["fp", "asimd", "crc32", "cpuid"]


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLAS_TOKEN", "a-token-of-a-test")


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Stand in for a C compiler that links for Arm."""
    path = tmp_path / "arm-cc"
    path.write_text("#!/bin/sh\necho aarch64-linux-gnu\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def answer(flags: list[str], architecture: str = "aarch64", **other: Any) -> Answer:
    machine = {"architecture": architecture, "allowed_cores": 4, "governor": "performance", **other}
    return Answer(str(HERE), on_board.code(), machine, flags, None, "127.0.0.1")


def profile(target: dict[str, Any] = A76, **server: Any) -> Profile:
    rpc = ServerAddress(**{"host": "127.0.0.1", "key": KEY, "compiler": "arm-cc", **server})
    return Profile(name="board", title="A board", driver="rpc", target=target, rpc=rpc)


def failed(found: list[SystemCheck]) -> dict[str, str]:
    assert all(check.advice for check in found if check.status != "ok")
    return {check.name: check.finding for check in found if check.status == "fail"}


@pytest.mark.parametrize(
    ("target", "flags", "architecture", "status", "words"),
    [
        (A76, PI5, "aarch64", "ok", "all that cortex-a76 has"),
        (A76, PI4, "aarch64", "fail", "lacks dotprod, fullfp16, lse, rdm, which cortex-a76 has"),
        ({**A76, "mcpu": "cortex-a72"}, PI4, "aarch64", "ok", "all that cortex-a72 has"),
        ({**A76, "mattr": ["-lse", "-rdm", "-fullfp16", "-dotprod"]}, PI4, "aarch64", "ok", "all that"),
        ({**A76, "mcpu": "cortex-a72", "mattr": ["+sve"]}, PI4, "aarch64", "fail", "lacks fullfp16, sve"),
        ({"kind": "llvm", "mtriple": "aarch64-linux-gnu"}, PI4, "aarch64", "ok", "all that aarch64 has"),
        (A76, PI5, "x86_64", "fail", "the target is for aarch64, and the board is x86_64"),
        ({"kind": "cuda", "arch": "sm_72", "host": A76}, PI4, "aarch64", "fail", "lacks dotprod"),
        ({"kind": "cuda", "arch": "sm_72"}, PI4, "aarch64", "warn", "the target has no host"),
        (
            {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "skylake"},
            ["ssse3", "sse4_1", "sse4_2", "avx", "fma", "f16c"],
            "x86_64",
            "fail",
            "lacks avx2, which skylake has",
        ),
    ],
)
def test_instructions(
    target: dict[str, Any], flags: list[str], architecture: str, status: str, words: str
) -> None:
    check = diagnosis.instructions(target, answer(flags, architecture))
    assert check.status == status
    assert words in check.finding
    assert bool(check.advice) == (status != "ok")


def test_a_target_has_no_more_cores_than_its_server() -> None:
    assert diagnosis.cores(A76, answer(PI5)).status == "ok"
    check = diagnosis.cores({**A76, "num-cores": 8}, answer(PI5))
    assert (check.status, check.finding) == ("fail", "the target has 8, and the server may use 4")


def test_a_profile_without_an_address_is_no_board_yet() -> None:
    board = Profile(name="board", title="A board", driver="rpc", target=A76)
    (check,) = diagnosis.checks(board)
    assert (check.name, check.status, check.finding) == ("profile", "fail", "it has no table [rpc]")
    with pytest.raises(InputError, match="'here' is a device of this machine"):
        list(diagnosis.checks(Profile(name="here", title="Here", driver="local")))


def test_what_is_wrong_here_is_told_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DLAS_TOKEN")
    wrong = profile(
        {**A76, "mcpu": "cortex-a7666"}, compiler="no-such-cc", token_file=str(tmp_path / "token")
    )
    told = failed(list(diagnosis.checks(wrong)))
    assert list(told) == ["target", "C compiler", "token"]
    assert "cortex-a7666" in told["target"]
    assert "'no-such-cc' is not installed here" in told["C compiler"]
    assert f"{tmp_path / 'token'} does not exist" in told["token"]


def test_a_compiler_for_another_processor_is_told() -> None:
    x86 = {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "skylake"}
    assert diagnosis.compiler(profile().rpc or ServerAddress(host="", key=KEY), A76).status == "ok"
    wrong = diagnosis.compiler(profile().rpc or ServerAddress(host="", key=KEY), x86)
    assert wrong.status == "fail" and "links for aarch64, and the board is x86_64" in wrong.finding


@pytest.mark.parametrize(
    ("sent", "name", "words"),
    [
        (b"", "server", "closed without an answer"),
        (handshake.refusal("the token is not the server's"), "server", "the token is not the server's"),
        (handshake.refusal("there is no key 'desk' here"), "server", "there is no key 'desk' here"),
        (
            handshake.facts(
                KEY,
                {
                    "tvm": "0.26.0",
                    "machine": {"architecture": "aarch64", "allowed_cores": 4},
                    "flags": PI5,
                    "busy_s": None,
                },
            ),
            "TVM",
            f"0.26.0 there, {HERE} here",
        ),
    ],
)
def test_what_is_wrong_on_the_board_is_told(sent: bytes, name: str, words: str) -> None:
    with answering([sent]) as address:
        told = failed(list(diagnosis.checks(profile(port=address.port))))
    assert list(told) == [name]
    assert words in told[name]


def test_the_command_ends_with_1_where_something_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dlas = runner(tmp_path, monkeypatch, capsys)
    done = dlas("doctor", "--device", "hikey_970_cpu")
    assert done.returncode == 1
    assert "add [rpc] with the host and the key" in done.stdout
    done = dlas("doctor", "--device", "no_board")
    assert done.returncode == 2
    assert "unknown hardware 'no_board'" in done.stderr
    done = dlas("doctor", "--device", "local_cpu")
    assert done.returncode == 2
    assert "'local_cpu' is a device of this machine" in done.stderr
