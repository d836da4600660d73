"""Boards over RPC, with a server on this machine: the same results as here, and boards that go away."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dlas.compilers.onnxruntime import OnnxRuntime
from dlas.compilers.untuned import Untuned
from dlas.errors import SessionTimeout, Unreachable, Unsupported
from dlas.hardware.board import BoardProgram
from dlas.hardware.drivers.rpc import Rpc
from dlas.schedules.direct import Direct
from dlas.stack import Hardware, MeasureSettings, Target
from dlas.study import parts
from dlas.testing import check_hardware
from dlas.testing.networks import random_images, tiny_network
from tests.fixtures.boards import board_profile
from tests.fixtures.remote import Served, served

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
    Untuned().build(tiny_network(), Direct, target, 2, folder)
    return folder


def board(folder: Path, server: Served, **changed: object) -> Rpc:
    """Return the board behind a server, as a study makes it from a TOML and nothing else."""
    made = parts.make("hardware", str(board_profile(folder, server, **changed)), {})
    assert isinstance(made, Rpc)
    return made


def loaded(device: Hardware, built: Path) -> BoardProgram:
    program = device.load(Untuned(), built, tiny_network)
    assert isinstance(program, BoardProgram)
    return program


def test_a_board_computes_and_times_what_this_machine_does(
    tmp_path: Path, server: Served, built: Path
) -> None:
    device, images = board(tmp_path, server), random_images(2)
    here = Untuned().load(built, tiny_network, device.target())
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


def test_runtimes_of_this_machine_are_refused(tmp_path: Path, server: Served, built: Path) -> None:
    device = board(tmp_path, server)
    for name in ("onnxruntime", "torch_eager", "torch_compile", "openvino"):
        assert "this machine only" in (device.refuses(parts.find("compiler", name).cls) or "")
    with pytest.raises(Unsupported, match="this machine only"):
        device.load(OnnxRuntime(), built, tiny_network)


def test_a_search_runs_here_for_a_processor_of_this_kind_alone(tmp_path: Path, server: Served) -> None:
    device, search = board(tmp_path, server), parts.find("compiler", "metaschedule").cls
    here = parts.make("hardware", "local_cpu", {})
    assert device.refuses(search) is None
    assert device.tuned_on().target() == device.target() == here.target()
    assert device.tuned_on().device == here.device
    assert "another one than the board's" in (
        parts.make("hardware", "hikey_970_cpu", {}).refuses(search) or ""
    )


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
        Rpc(path).load(Untuned(), built, tiny_network)


def test_the_board_gets_a_library_that_the_profiles_compiler_has_linked(tmp_path: Path) -> None:
    linker, arguments = tmp_path / "board-gcc", tmp_path / "arguments"
    # Takes the object as the library: no compiler for that processor needs to be here.
    linker.write_text(
        f'#!/bin/sh\necho "$@" > {arguments}\nfor each; do case "$each" in *.o) object="$each";; esac; done\n'
        'while [ "$1" != -o ]; do shift; done\ncp "$object" "$2"\n'
    )
    linker.chmod(linker.stat().st_mode | stat.S_IXUSR)
    arm = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a73", "num-cores": 4}
    Untuned().build(tiny_network(), Direct, Target(arm, 4, str(linker)), 1, tmp_path / "built")
    assert "-shared" in arguments.read_text()
    library = (tmp_path / "built/library.so").read_bytes()
    assert library[:4] == b"\x7fELF" and library[18] == 183, "code for aarch64"


def test_a_board_whose_tvm_knows_no_gpu_says_so(tmp_path: Path, server: Served, built: Path) -> None:
    device = board(tmp_path, server)
    gpu = {"kind": "opencl", "host": device.profile.target}
    with pytest.raises(Unsupported, match="TVM on the board finds no device for opencl"):
        Rpc(device.profile.model_copy(update={"target": gpu})).load(Untuned(), built, tiny_network)
