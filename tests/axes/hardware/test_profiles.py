"""Profiles of devices: the papers' boards, and a user's own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dlas.axes.hardware.drivers.rpc import Rpc
from dlas.axes.hardware.profile import Profile, ServerAddress
from dlas.errors import InputError, Unsupported
from dlas.stack import Hardware, MeasureSettings
from dlas.sweep.study import parts
from tests.fixtures.package import ROOT
from tests.fixtures.profiles import write_profile

BOARDS = ["agx_xavier_cpu", "agx_xavier_gpu", "hikey_970_cpu", "hikey_970_gpu", "intel_i7_8700", "jetson_agx"]


def test_every_device_of_the_papers_is_there() -> None:
    assert set(parts.names("hardware")) >= {"local_cpu", *BOARDS}


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_is_described_and_says_why_it_cannot_be_used(name: str) -> None:
    board: Hardware = parts.make("hardware", name, {})
    board.verify()
    assert board.unsupported()
    assert not board.local
    assert board.target().threads >= 1
    assert json.loads(json.dumps(board.describe()))["source"]
    with pytest.raises(Unsupported, match=r"add a table \[rpc\]"):
        board.measure(None, None, MeasureSettings(), lambda: None)  # type: ignore[arg-type]


def test_facts_are_the_papers_own() -> None:
    facts = Profile.read(parts.PROFILES / "hikey_970_cpu.toml").facts
    assert (facts["cores"], facts["clock_hz"], facts["l2_bytes"]) == (4, 2.4e9, 2 * 2**20)
    jetson = Profile.read(parts.PROFILES / "jetson_agx.toml").facts
    steps = int(jetson["clock_levels"]) * int(jetson["gpu_clock_levels"]) * int(jetson["memory_clock_levels"])
    assert 3_600 <= steps < 3_700


def test_a_boards_processors_and_gpu_share_a_lock() -> None:
    xavier = [parts.make("hardware", name, {}).device for name in ("agx_xavier_cpu", "agx_xavier_gpu")]
    assert len(set(xavier)) == 1


A76 = 'mtriple = "aarch64-linux-gnu"\nmcpu = "cortex-a76"'
BOARD = 'title = "x"\ndriver = "rpc"\n'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("title = \ndriver = 1", "broken TOML.*line 1"),
        ('driver = "rpc"', "title is missing"),
        (
            BOARD + 'colour = "red"',
            "unknown key 'colour' .there are: title, driver, unsupported, target, rpc, clocks, facts",
        ),
        (BOARD + 'name = "other"', "called by its file's name"),
        ('title = ""\ndriver = "rpc"', "title = ''"),
        ('title = "x"\ndriver = "../local"', r"driver = '\.\./local'"),
        ("title = 3\ndriver = 'rpc'", "title = 3: .*valid string"),
        (BOARD + '[target]\nmcpu = "znver4"', "target = .*needs its kind"),
        (BOARD + '[target]\nkind = "llvm"', "needs its processor"),
        (BOARD + '[target]\nkind = "cuda"\n[target.host]\nkind = "llvm"', "needs its processor"),
        (BOARD + '[target]\nkind = "llvm"\nmcpu = "x"\nnum-cores = 0', "num-cores = 0"),
        (BOARD + "[facts]\nl2_bytes = -1", "l2_bytes = -1 must be a positive number"),
        (BOARD + '[facts]\nclock_hz = "fast"', "clock_hz = 'fast' must be"),
        (BOARD + '[rpc]\nkey = "pi"', "rpc.host is missing"),
        (BOARD + '[rpc]\nhost = "pi"\nkey = "pi"\nport = 70_000', "rpc.port = 70000: .*65535"),
        (
            BOARD + '[rpc]\nhost = "pi"\nkey = "pi"\ntoken = "x"',
            "unknown key 'rpc.token' .there are: host, port, key",
        ),
        (BOARD + "[facts]\nsizes = [1, 2]", "facts.sizes"),
        (BOARD + "[facts]\nlittle_cores = inf", "little_cores = inf must be finite"),
        (BOARD + '[facts]\n"\\n" = 1', "facts"),
        (BOARD + '[target]\nkind = "cuda"\nhost = ["llvm"]', "host = .'llvm'. is not a table"),
        (BOARD + '[target]\nkind = "llvm"\nmcpu = "x"\n"vector-width" = nan', "its numbers are finite"),
    ],
)
def test_a_bad_profile_is_one_clear_message(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        Profile.read(write_profile(tmp_path, text))
    assert "my_board.toml" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_profile_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the profile .*absent\.toml"):
        Profile.read(tmp_path / "absent.toml")


def test_a_new_board_is_a_new_file_and_no_python(tmp_path: Path) -> None:
    target = f'[target]\nkind = "llvm"\n{A76}\nnum-cores = 8\n[facts]\nboard = "My board"'
    path = write_profile(tmp_path, BOARD + target)
    board = parts.make("hardware", str(path), {"threads": 2})
    assert (board.profile.name, board.device) == ("my_board", "My board")
    assert board.target().description == {
        "kind": "llvm",
        "mtriple": "aarch64-linux-gnu",
        "mcpu": "cortex-a76",
        "num-cores": 2,
    }
    assert "add a table [rpc]" in (board.unsupported() or "")
    assert len({board, Rpc(Profile.read(path), threads=2)}) == 1


def test_a_board_that_could_not_be_compiled_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="profile 'my_board' has no"):
        Rpc(Profile.read(write_profile(tmp_path, BOARD))).verify()
    with pytest.raises(InputError, match="threads = 5, but the profile gives 4 cores"):
        parts.make("hardware", "hikey_970_cpu", {"threads": 5}).verify()


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        (r'kind = "\u0001"', r'TVM refuses it: .*"\\x01" is not defined'),
        ('kind = "lvm"', 'TVM refuses it: .*"lvm" is not defined'),
        ('kind = "llvm"\nmcpu = "cortex-a76"\ncolour = 1', "TVM refuses it: .*colour"),
        (
            'kind = "llvm"\nmtriple = "aarch64-linux-gnu"\nmcpu = "cortex-a777"',
            "LLVM knows no processor mcpu = 'cortex-a777' .*similar names: .*cortex-a77",
        ),
        ('kind = "llvm"\nmcpu = "cortex-a76"', "LLVM knows no processor mcpu = 'cortex-a76' of that"),
        ('kind = "llvm"\nmtriple = "pi-linux"\nmcpu = "cortex-a76"', "mtriple = 'pi-linux' names no arch"),
        (
            f'kind = "cuda"\narch = "sm_72"\n[target.host]\nkind = "llvm"\n{A76.replace("a76", "x76")}',
            "LLVM knows no processor mcpu = 'cortex-x76'",
        ),
    ],
)
def test_a_target_that_tvm_refuses_or_takes_for_another_is_one_message(
    tmp_path: Path, target: str, complaint: str
) -> None:
    path = write_profile(tmp_path, f"{BOARD}[target]\n{target}")
    with pytest.raises(InputError, match=rf"profile 'my_board': \[target\]: {complaint}") as caught:
        parts.make("hardware", str(path), {}).verify()
    assert len(str(caught.value).splitlines()) == 1


def test_cores_of_one_kind_are_chosen_where_the_facts_tell_of_two(tmp_path: Path) -> None:
    for cores, threads in (("big", 4), ("little", 4), ("all", 8), (None, 4)):
        board = parts.make("hardware", "hikey_970_cpu", {"cores": cores} if cores else {})
        board.verify()
        assert board.target().threads == board.target().description["num-cores"] == threads
    with pytest.raises(InputError, match="threads = 5, but the profile gives 4 cores"):
        parts.make("hardware", "hikey_970_cpu", {"cores": "little", "threads": 5}).verify()
    with pytest.raises(InputError, match=r"cores = 'big'.* facts cores and little_cores, and has cores"):
        parts.make("hardware", "agx_xavier_cpu", {"cores": "big"}).verify()


def test_a_compiler_that_is_not_there_is_the_reason_of_every_row(tmp_path: Path) -> None:
    server = '[rpc]\nhost = "pi"\nkey = "pi"\ncompiler = "no-such-gcc"'
    path = write_profile(tmp_path, f'{BOARD}[target]\nkind = "llvm"\n{A76}\n{server}')
    board = parts.make("hardware", str(path), {})
    assert board.target().linker == "no-such-gcc"
    assert "'no-such-gcc'" in board.unsupported()


def test_the_board_in_the_document_is_one(tmp_path: Path) -> None:
    text = (ROOT / "docs/reference/parts.md").read_text()
    (example,) = (block for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if "[rpc]" in block)
    board = parts.make("hardware", str(write_profile(tmp_path, example)), {"threads": 3})
    board.verify()
    assert board.target().linker == "aarch64-linux-gnu-gcc"
    assert board.target().description["num-cores"] == 3
    assert board.profile.rpc == ServerAddress(host="127.0.0.1", key="pi", compiler="aarch64-linux-gnu-gcc")
    assert board.describe()["memory"] == "LPDDR4", "also while the board is away"
