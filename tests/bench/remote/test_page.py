"""What docs/guides/boards.md says: files that work, and packages that suffice."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from typer.main import get_command

from dlas.axes.compilers.untuned import MinimalSchedules
from dlas.axes.hardware import targets
from dlas.axes.hardware.board import instruments, load
from dlas.axes.hardware.profile import Profile
from dlas.bench.measuring.doctor import required
from dlas.bench.remote.address import Address
from dlas.bench.remote.board import Board
from dlas.face.cli.app import app
from dlas.schedules.direct import Direct
from dlas.sweep.study import parts
from dlas.sweep.study.study import Study
from dlas.testing.networks import random_images, tiny_network
from tests.fixtures.package import ROOT
from tests.fixtures.processes import wait_for

PAGE = (ROOT / "docs/guides/boards.md").read_text()
FILES = re.findall(r"`(\w+\.toml)`:\n\n```toml\n(.*?)```", PAGE, re.DOTALL)
(LINE,) = re.findall(r"pip install (apache-tvm==.*)\n", PAGE)
INSTALLED = [Requirement(word) for word in LINE.split()]
IMPORTED_AS = {"apache-tvm": "tvm", "apache-tvm-ffi": "tvm_ffi", "scikit-learn": "sklearn"}
BARE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Missing())
from dlas.face.cli import main
main()
"""
"""Runs a command where packages are missing."""


def test_its_files_are_a_profile_and_a_study_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [name for name, _ in FILES] == ["pi4.toml", "pi.toml"]
    for name, text in FILES:
        Path(name).write_text(text)
    profile = Profile.read(Path("pi4.toml"))
    assert targets.refusal(profile.target) is None
    assert profile.rpc is not None
    assert len(list(Study.read(Path("pi.toml")).points())) == 6


def test_its_commands_are_ones_that_there_are() -> None:
    complete = set()
    for name, said in re.findall(r"\bdlas (serve|doctor|run|table)\b([^`\n#;]*)", PAGE):
        command, words = get_command(app).commands[name], said.strip()  # type: ignore[attr-defined]
        options = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"--[\w-]+", words)) <= options
        if not words.endswith(("--device", "--longest")):  # an option that is mentioned
            command.make_context(name, shlex.split(words))  # it parses them, and runs nothing
            complete.add((name, words))
    assert {("serve", "--key pi4"), ("run", "pi.toml --out results/pi")} <= complete


def test_its_packages_are_of_the_versions_that_are_required() -> None:
    wanted = {requirement.name: requirement.specifier for requirement in required()}
    assert {each.name for each in INSTALLED} <= set(wanted)
    pinned = {each.name: each.specifier for each in INSTALLED if each.specifier}
    assert pinned == {name: wanted[name] for name in ("apache-tvm", "apache-tvm-ffi")}


@pytest.mark.slow
def test_its_packages_suffice_for_a_server_and_its_programs(tmp_path: Path) -> None:
    there = {each.name for each in INSTALLED} | {"numpy"}  # which TVM brings
    names = {each.name for each in required()} - there
    missing = {IMPORTED_AS.get(name, name.replace("-", "_")) for name in names}
    output, token = tmp_path / "output", tmp_path / "token"
    words = ["serve", "--key", "desk", "--port", "0", "--token-file", str(token)]
    command = [sys.executable, "-c", BARE.format(missing=missing), *words]
    with output.open("w") as stream:
        server = subprocess.Popen(command, cwd=ROOT, stdout=stream, stderr=subprocess.STDOUT)
    try:
        wait_for(lambda: "; Ctrl-C" in output.read_text() or server.poll() is not None, 120)
        assert server.poll() is None, output.read_text()
        port = int(output.read_text().partition("127.0.0.1:")[2].partition(";")[0])
        board = Board.reach(Address.of("127.0.0.1", port, "desk", 60.0, token), 1, "fastest")
        target = parts.make("hardware", "local_cpu", {"threads": 1}).target()
        MinimalSchedules().build(tiny_network(), Direct, target, 2, tmp_path / "built")
        program, images = load(board, MinimalSchedules(), tmp_path / "built", target), random_images(2)
        here = MinimalSchedules().load(tmp_path / "built", tiny_network, target)
        assert np.array_equal(program.run(images), here.run(images))
        timer, layers = program.timer(images), program.layers(images, 1)
        assert timer is not None and timer(1) > 0
        assert layers and all((layer["latency_s"] or 0) > 0 for layer in layers)
        watch = instruments(board, on_gpu=False).watch
        watch.before()
        assert min(watch.after()["sentinel"]) > 0
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(30) == 0
