"""Boards over RPC, with a server on this machine: the same results as here, and boards that go away."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dlas.axes.compilers.onnxruntime import OnnxRuntime
from dlas.axes.compilers.untuned import MinimalSchedules
from dlas.axes.hardware.board import BoardProgram
from dlas.axes.hardware.drivers.rpc import Rpc
from dlas.bench.remote import handshake
from dlas.errors import SessionTimeout, Unreachable, Unsupported
from dlas.lowering.tuning.identity import describe_device
from dlas.lowering.tuning.tuner import tune
from dlas.schedules.direct import Direct
from dlas.stack import Hardware, MeasureSettings, Target
from dlas.sweep.study import parts
from dlas.testing import check_hardware
from dlas.testing.networks import random_images, tiny_network
from tests.fixtures.boards import arm_profile, board_linker, board_profile
from tests.fixtures.remote import Served, answering, served
from tests.fixtures.tiled import EIGHT, Tiled, bench, kernel

SETTINGS = MeasureSettings(repeats=4, seconds=0.5, slices=2)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("board")) as running:
        yield running


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a build for this machine's processors."""
    folder = tmp_path_factory.mktemp("built")
    target = parts.make("hardware", "local_cpu", {}).target()
    MinimalSchedules().build(tiny_network(), Direct, target, 2, folder)
    return folder


def board(folder: Path, server: Served, **changed: object) -> Rpc:
    """Return the board behind a server, as a study makes it from a TOML and nothing else."""
    made = parts.make("hardware", str(board_profile(folder, server, "my_board", **changed)), {})
    assert isinstance(made, Rpc)
    return made


def loaded(device: Hardware, built: Path) -> BoardProgram:
    program = device.load(MinimalSchedules(), built, tiny_network)
    assert isinstance(program, BoardProgram)
    return program


def test_a_board_computes_and_times_what_this_machine_does(
    tmp_path: Path, server: Served, built: Path
) -> None:
    device, images = board(tmp_path, server), random_images(2)
    here = MinimalSchedules().load(built, tiny_network, device.target())
    program = loaded(device, built)
    assert np.array_equal(program.run(images), here.run(images))
    turns: list[int] = []
    found = device.measure(program, images, SETTINGS, lambda: turns.append(1))
    assert len(turns) == 2
    assert len(found["latency_s"]) == 4
    assert len(found["sentinel_s"]) == 4 and found["load"] is not None, "as its observers saw it"
    assert all(seconds > 0 for seconds in (*found["latency_s"], found["first_run_s"]))
    timer = program.timer(images)
    assert timer is not None and timer(2) > 0, "the board's own clock"
    names = [layer["name"] for layer in here.layers(images, 1) or ()]
    timed = program.layers(images, 2)
    assert [layer["name"] for layer in timed or ()] == names
    assert all((layer["latency_s"] or 0) > 0 for layer in timed or ())
    with pytest.raises(Unsupported, match="inference only"):
        program.training(images, np.zeros(2, np.int64))


def test_a_board_keeps_the_contract_of_hardware(tmp_path: Path, server: Served) -> None:
    device = board(tmp_path, server)
    device.verify()
    check_hardware(device)
    assert device.device == f"127.0.0.1-{server.port}", "two profiles of one board share its lock"
    told, here = device.describe(), parts.make("hardware", "local_cpu", {}).describe()
    assert {name: told[name] for name in ("cpu", "extensions", "threads")} == {
        name: here[name] for name in ("cpu", "extensions", "threads")
    }
    assert told["instance"] == server.key and "instance" not in here


def test_runtimes_of_this_machine_are_refused(tmp_path: Path, server: Served, built: Path) -> None:
    device = board(tmp_path, server)
    for name in ("onnxruntime", "torch_eager", "torch_compile", "openvino", "ncnn", "mnn"):
        assert "this machine only" in (device.refuses(parts.find("compiler", name).cls) or "")
    with pytest.raises(Unsupported, match="this machine only"):
        device.load(OnnxRuntime(), built, tiny_network)


def recorded(folder: Path, key: str, port: int, records: str = "instance") -> dict[str, object]:
    """Return what records know a board by."""
    return describe_device(parts.make("hardware", str(arm_profile(folder, key, port)), {"records": records}))


def test_records_are_those_of_a_board_by_its_key_and_processor(tmp_path: Path) -> None:
    def told(key: str, cpu: str = "Cortex-A72") -> dict[str, object]:
        facts = {"tvm": "", "code": "", "machine": {"cpu": cpu, "physical_cores": 4}, "flags": []}
        with answering([handshake.facts(key, {**facts, "busy_s": None})]) as address:
            return recorded(tmp_path, key, address.port)

    one = told("one")
    assert (one["machine"], one["board"]) == ("Cortex-A72 (4 cores)", "one")
    assert one == told("one"), "a tunnel ends at another port each time"
    assert told("other") != one != told("one", "Cortex-A53")
    kind = recorded(tmp_path, "one", 1, "profile")
    assert kind == recorded(tmp_path, "other", 2, "profile") != one, "of any board, also of one that is away"
    assert kind["machine"] == "A board"


def test_no_search_begins_on_a_board_that_does_not_say_which_it_is(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        profile = arm_profile(tmp_path, "one", listener.getsockname()[1])
    device = parts.make("hardware", str(profile), {})
    assert device.refuses(parts.find("compiler", "metaschedule").cls) is None
    with pytest.raises(Unreachable, match="no server"):
        tune([kernel(Tiled())], EIGHT, bench(tmp_path, device))
    assert not (tmp_path / "records").exists()


def test_a_program_that_does_not_end_is_bounded_by_its_session(
    tmp_path: Path, server: Served, built: Path
) -> None:
    program = loaded(board(tmp_path, server, timeout=1.0), built)
    run = program.timer(random_images(2))
    assert run is not None
    with pytest.raises(SessionTimeout, match=r"stopped at its time limit of 1 s"):
        run(10**9)
    assert loaded(board(tmp_path, server), built).run(random_images(2)).shape == (2, 4), "it serves on"


def test_a_session_that_is_killed_is_a_lost_board(tmp_path: Path, server: Served, built: Path) -> None:
    program = loaded(board(tmp_path, server), built)
    run = program.bind(random_images(2))
    run()
    threading.Timer(0.2, lambda: os.kill(server.sessions()[0], signal.SIGKILL)).start()
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
        while True:
            run()
    with pytest.raises(Unreachable):
        program.run(random_images(2))


def test_more_threads_than_the_board_has_are_its_own_message(
    tmp_path: Path, server: Served, built: Path
) -> None:
    device = board(tmp_path, server)
    path = device.profile.model_copy(update={"target": {**device.profile.target, "num-cores": 999}})
    with pytest.raises(Unsupported, match=r"^desk at .*: 999 threads, but the server may use"):
        Rpc(path).load(MinimalSchedules(), built, tiny_network)


def test_the_board_gets_a_library_that_the_profiles_compiler_has_linked(tmp_path: Path) -> None:
    linker = board_linker(tmp_path)
    arm = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a73", "num-cores": 4}
    MinimalSchedules().build(tiny_network(), Direct, Target(arm, 4, str(linker)), 1, tmp_path / "built")
    assert "-shared" in (tmp_path / "arguments").read_text()
    library = (tmp_path / "built/library.so").read_bytes()
    assert library[:4] == b"\x7fELF" and library[18] == 183, "code for aarch64"


def test_a_board_whose_tvm_knows_no_gpu_says_so(tmp_path: Path, server: Served, built: Path) -> None:
    device = board(tmp_path, server)
    gpu = {"kind": "opencl", "host": device.profile.target}
    with pytest.raises(Unsupported, match="TVM on the board finds no device for opencl"):
        Rpc(device.profile.model_copy(update={"target": gpu})).load(MinimalSchedules(), built, tiny_network)
