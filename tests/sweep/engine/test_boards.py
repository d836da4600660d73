"""Studies on boards: the same rows as on this machine, and boards that come and go."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tvm import te
from tvm.ir import Expr

from dlas.errors import Unreachable
from dlas.stack import Algorithm, Backend, Conv, Network, Program, Tail
from dlas.sweep.rows.results import FILE, read_rows
from dlas.sweep.study import parts
from dlas.sweep.study.study import Study
from tests.fixtures import commands
from tests.fixtures.boards import ALL, STUDY, board_profile, by_device, computed
from tests.fixtures.engine import rows, run, run_apart, study_of
from tests.fixtures.processes import wait_for
from tests.fixtures.remote import Served, served
from tests.fixtures.stubs import StubHardware


@pytest.mark.slow
def test_a_board_gives_the_rows_of_this_machine(tmp_path: Path) -> None:
    axes = 'algorithm = ["gemm", "csr_direct"]\ncompiler = ["hand"]'
    with served(tmp_path) as server:
        run_apart(Study.parse(STUDY.format(axes=axes, board=board_profile(tmp_path, server))), tmp_path)
    found = rows(tmp_path)
    assert [row.status for row in found] == ["ok"] * 4, [row.reason for row in found]
    here, board = by_device(found).values()
    assert here == board
    for row in found:
        elsewhere = row.device["name"] == "my_board"
        assert (row.peak_memory_bytes is None, row.resident_bytes is None) == (elsewhere, elsewhere)
        assert ("the device is not this machine" in (row.memory_note or "")) == elsewhere
        assert row.device["cpu"], "the board tells what it is"


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_every_algorithm_gives_the_same_on_a_board(tmp_path: Path) -> None:
    names = ", ".join(f'"{name}"' for name in parts.names("algorithm"))
    with served(tmp_path) as server:
        run_apart(
            Study.parse(STUDY.format(axes=ALL % names, board=board_profile(tmp_path, server))), tmp_path
        )
    found = rows(tmp_path)
    assert {row.status for row in found} == {"ok"}, {row.reason for row in found}
    here, board = by_device(found).values()
    assert here == board
    assert len(here) == 2 * len(parts.names("algorithm"))


@dataclass(frozen=True)
class Endless(Algorithm):
    """Adds up one product for many minutes."""

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        """Return the output [n, k, p, q], in theory."""
        # A loop so long that its extent times its steps overflows 32 bits, TVM would unroll.
        again = te.reduce_axis((0, 2**27), "again")

        def element(n: Expr, k: Expr, p: Expr, q: Expr) -> Expr:
            return te.sum(x[n, 0, p, q] * packed[0][k, 0, 0, 0] / again.astype("float32"), axis=again)

        return tail(te.compute((conv.n, conv.k, conv.p, conv.q), element, name="conv"))


@pytest.mark.slow
def test_kernels_that_do_not_halt_are_timeouts_here_and_on_a_board(tmp_path: Path) -> None:
    axes = 'algorithm = ["tests.sweep.engine.test_boards:Endless", "direct"]\ncompiler = ["untuned"]'
    with served(tmp_path) as server:
        study = Study.parse(STUDY.format(axes=axes, board=board_profile(tmp_path, server, timeout=10.0)))
        run_apart(study.with_limits(check=30.0), tmp_path)
    ended = {
        (row.algorithm["name"] == "direct", row.hardware["name"] == "local_cpu"): row
        for row in rows(tmp_path)
    }
    assert [ended[True, here].status for here in (True, False)] == ["ok", "ok"], "the server serves on"
    here, board = ended[False, True], ended[False, False]
    assert (here.status, here.reason) == ("timeout", "memory took longer than 30 s, `check` in [limits]")
    assert board.status == "timeout" and "stopped at its time limit of 10 s" in (board.reason or "")


GPU = """
title = "a GPU whose thread blocks are small"
driver = "rpc"
[target]
kind = "opencl"
max_num_threads = 64
[target.host]
kind = "llvm"
mcpu = "x86-64-v2"
[rpc]
host = "127.0.0.1"
key = "nobody"
"""


@pytest.mark.slow
def test_what_a_gpu_cannot_run_is_a_row_with_its_reason_before_the_board_is_asked(tmp_path: Path) -> None:
    profile = tmp_path / "small_gpu.toml"
    profile.write_text(GPU)
    axes = 'compression = ["none", "float16"]\nalgorithm = ["direct"]\ncompiler = ["untuned"]'
    study = Study.parse(STUDY.format(axes=axes, board=profile).replace('"local_cpu", ', ""))
    run_apart(study, tmp_path)
    found = {str(row.compression["name"]): row for row in rows(tmp_path)}
    assert {name: (row.status, row.step) for name, row in found.items()} == {
        "none": ("unsupported", "build"),
        "float16": ("unsupported", "build"),
    }
    for row in found.values():
        assert "threads a block, and the target allows 64" in (row.reason or "")


@dataclass(frozen=True)
class Away(StubHardware):
    """A device that cannot be reached at first, ``absent`` times in all."""

    absent: int = 1
    folder: str = ""

    def load(self, compiler: Backend, folder: Path, network: Callable[[], Network]) -> Program:
        """Count the attempts in a file."""
        count = Path(self.folder) / "attempts"
        with count.open("a") as stream:
            stream.write("x")
        if len(count.read_text()) <= self.absent:
            raise Unreachable("pi at 10.0.0.7:9190: no server")
        return super().load(compiler, folder, network)


@pytest.mark.slow
@pytest.mark.parametrize(("absent", "expected"), [(1, "ok"), (99, "failed")])
def test_a_board_that_is_away_is_tried_again_and_the_rest_goes_on(
    tmp_path: Path, absent: int, expected: str
) -> None:
    away = f'{{name = "tests.sweep.engine.test_boards:Away", absent = {absent}, folder = "{tmp_path}"}}'
    study = study_of(f'hardware = [{away}, "tests.fixtures.stubs:StubHardware"]')
    summary = run(study, tmp_path)
    found = {str(row.hardware["name"]).rpartition(":")[2]: row for row in rows(tmp_path)}
    assert found["StubHardware"].status == "ok"
    assert found["Away"].status == expected
    if expected == "failed":
        assert "pi at 10.0.0.7:9190: no server" in (found["Away"].reason or "")
    assert sum(summary.written.values()) == 2
    lines = (tmp_path / "out" / FILE).read_text().splitlines()
    assert len(lines) == 2


@dataclass
class Chaos:
    """A sweep on a board whose server and sweep are killed.

    Parameters
    ----------
    folder : Path
    expected : dict
        What the row of each point says, by the point's id.
    """

    folder: Path
    expected: dict[str, str]
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    servers_killed: int = 0
    sweeps_killed: int = 0
    rounds: int = 0
    lost: int = 0

    def go_on(self, stack: ExitStack, server: Served) -> Served:
        """Run the sweep until it ends or is killed, and kill the server meanwhile; return the server."""
        sweep = commands.start(
            self.folder, "run", "study.toml", "--out", f"out{self.rounds}", "--retry", "failed",
            output=self.folder / "said",
        )  # fmt: skip  # the words of a command
        while sweep.is_alive():
            if self.chance.random() < 0.7:  # else at any moment, which is rarely one on the board
                wait_for(lambda: bool(server.sessions()) or not sweep.is_alive(), 300)  # noqa: B023
            sweep.join(self.chance.uniform(0, 1.0))
            if not sweep.is_alive():
                break
            if self.chance.random() < 0.25:
                sweep.kill()
                self.sweeps_killed += 1
            else:
                server = self.switch_off(stack, server)
        sweep.join()
        self.check()
        return server

    def switch_off(self, stack: ExitStack, server: Served) -> Served:
        """Kill a server and its session, and start it again."""
        server.switch_off()
        self.servers_killed += 1
        time.sleep(self.chance.uniform(0, 0.5))
        return stack.enter_context(served(self.folder, server.port))

    def check(self) -> None:
        """Compare the rows; begin with new ones once all are there."""
        path = self.folder / f"out{self.rounds}"
        if not (path / FILE).exists():
            return
        found = list(read_rows(path))
        assert len({row.id for row in found}) == len(found)
        for row in found:
            if row.status == "ok":
                assert repr(computed(row)) == self.expected[row.id]
            else:
                assert row.status == "failed" and "Unreachable" not in (row.reason or "")
                assert "127.0.0.1" in (row.reason or ""), row.reason
                self.lost += 1
        written = [json.loads(line)["id"] for line in (path / FILE).read_text().splitlines() if line]
        assert set(written) <= set(self.expected)
        if {row.id for row in found if row.status == "ok"} == set(self.expected):
            self.rounds += 1


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_thirty_kills_of_the_server_and_ten_of_the_sweep(tmp_path: Path) -> None:
    axes = 'algorithm = ["gemm", "csr_direct"]\ncompiler = ["untuned", "hand"]'
    with ExitStack() as stack:
        server = stack.enter_context(served(tmp_path))
        text = STUDY.format(axes=axes, board=board_profile(tmp_path, server))
        (tmp_path / "study.toml").write_text(text)
        run_apart(Study.parse(text), tmp_path / "undisturbed")
        expected = {row.id: repr(computed(row)) for row in rows(tmp_path / "undisturbed")}
        assert len(expected) == 8
        chaos = Chaos(tmp_path, expected)
        while chaos.servers_killed < 30 or chaos.sweeps_killed < 10:
            server = chaos.go_on(stack, server)
        before = chaos.rounds
        while chaos.rounds == before:
            process = commands.start(
                tmp_path, "run", "study.toml", "--out", f"out{before}", "--retry", "failed",
                output=tmp_path / "said",
            )  # fmt: skip  # the words of a command
            process.join()
            chaos.check()
        print(f"{chaos.servers_killed} servers, {chaos.sweeps_killed} sweeps, {chaos.lost} rows failed")
