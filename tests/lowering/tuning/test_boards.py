"""Searches on boards, which servers on this machine play: the same as here, and all that goes wrong there."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlas.face.console.records import cells
from dlas.lowering.kernels.convolutions import make_kernel
from dlas.lowering.tuning import search
from dlas.lowering.tuning.board_runner import MINIMAL, LibraryBuilder, library
from dlas.lowering.tuning.record_files import read_sections
from dlas.lowering.tuning.records import Records
from dlas.lowering.tuning.tuner import tune
from dlas.lowering.tuning.workload import Workload
from dlas.stack import Target
from dlas.sweep.study import parts
from tests.fixtures.boards import board_linker, board_profile
from tests.fixtures.commands import WARM
from tests.fixtures.processes import wait_for
from tests.fixtures.remote import Served, served
from tests.fixtures.targets import CUDA, NEON, OPENCL
from tests.fixtures.tiled import CONV, EIGHT, Tiled, bench, kernel

AARCH64, X86_64 = 183, 62
"""What libraries are for, as their headers say it."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("board")) as running:
        yield running


def start(
    folder: Path, profile: Path, algorithm: Tiled, trials: int = 8, **options: Any
) -> ForkServerProcess:
    """Start a search in a process that has run no kernel; see :func:`_search`."""
    folder.mkdir(exist_ok=True)
    process = WARM.Process(target=_search, args=(folder, profile, algorithm, trials, options))
    process.start()
    return process


def searched(
    folder: Path, profile: Path, algorithm: Tiled, trials: int = 8, **options: Any
) -> dict[str, Any]:
    """Return what a search says, or its error, once it has ended."""
    start(folder, profile, algorithm, trials, **options).join()
    said: dict[str, Any] = json.loads((folder / "said.json").read_text())
    return said


def _search(folder: Path, profile: Path, algorithm: Tiled, trials: int, options: dict[str, Any]) -> None:
    """Search the schedules of tiny convolutions of some ``filters``; write what was found for the first."""
    search.RUN_S = options.pop("seconds", search.RUN_S)
    layers = [kernel(algorithm, f"conv{k}", replace(CONV, k=k)) for k in options.pop("filters", (CONV.k,))]
    device = parts.make("hardware", str(profile), options)
    try:
        tuned, *_ = tune(layers, replace(EIGHT, trials=trials), bench(folder, device))
        said = {**tuned.summary(), "seconds": tuned.seconds}
    except Exception as error:
        said = {"error": f"{type(error).__name__}: {error}"}
    (folder / "said.json").write_text(json.dumps(said))


def on_file(folder: Path) -> Records:
    """Return the records of the one workload."""
    (path,) = (folder / "records").glob("*.jsonl")
    (records,) = read_sections(path)
    return records


def test_a_search_on_a_board_tries_times_and_selects_in_one_session(tmp_path: Path, server: Served) -> None:
    profile, before = board_profile(tmp_path, server), server.sessions_begun()
    said = searched(tmp_path, profile, Tiled(trouble="wrong"), trials=2, filters=(8, 4))
    assert server.sessions_begun() == before + 1
    assert not list((tmp_path / "work").glob("*.so"))
    paths = list((tmp_path / "records").glob("*.jsonl"))
    assert len(paths) == 2
    for records in (records for path in paths for records in read_sections(path)):
        assert [trial.failed for trial in records.trials.values()] == [None, "wrong"]
        assert records.header.identity["board"] == server.key
        assert any(cell.endswith(f", {server.key}") for cell in cells(records)), "people see it too"
        assert [selection.number for selection in records.selections] == [0]
    assert (said["trials"], said["valid_trials"], said["trial"]) == (2, 1, 0)


@pytest.mark.slow
def test_the_best_candidates_are_measured_again_on_the_board(tmp_path: Path, server: Served) -> None:
    said = searched(tmp_path, board_profile(tmp_path, server), Tiled())
    (selection,) = on_file(tmp_path).selections
    assert len(selection.finalists) >= 5
    assert {len(seconds) for seconds in selection.finalists.values()} == {5}
    assert said["tuned_s"] == statistics.median(selection.finalists[str(said["trial"])])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trouble", "failed", "words"),
    [
        ("raise", "build", "ValueError: this point cannot be scheduled"),
        ("crash", "crash", "killed by SIGABRT (abort)"),
        ("crash when run", "crash", "the session was killed by SIGABRT"),
        ("hang when run", "hang", "took longer than 3"),
        ("wrong", "wrong", "off by"),
    ],
)
def test_candidates_in_trouble_are_counted_and_the_board_serves_on(
    tmp_path: Path, server: Served, trouble: str, failed: str, words: str
) -> None:
    said = searched(tmp_path, board_profile(tmp_path, server), Tiled(trouble=trouble), seconds=3.0)
    assert said.get("valid_trials") == 6, said
    records = on_file(tmp_path)
    bad = [trial for trial in records.trials.values() if not trial.valid]
    assert {records.candidates[trial.number]["decisions"]["part"] for trial in bad} == {4}
    assert [trial.failed for trial in bad] == [failed] * 2
    assert all(words in (trial.words or "") for trial in bad), [trial.words for trial in bad]


@pytest.mark.slow
def test_a_session_that_is_shorter_than_a_search_is_opened_again(tmp_path: Path, server: Served) -> None:
    """A kernel that hangs is ended by its session's limit here, and what comes after has a new one."""
    profile, before = board_profile(tmp_path, server, timeout=4.0), server.sessions_begun()
    said = searched(tmp_path, profile, Tiled(trouble="hang when run"))
    assert said.get("valid_trials") == 6, said
    bad = [trial for trial in on_file(tmp_path).trials.values() if not trial.valid]
    assert [trial.failed for trial in bad] == ["hang"] * 2
    assert all("the session was stopped at its time limit of 4 s" in (trial.words or "") for trial in bad)
    assert server.sessions_begun() > before + 2


@pytest.mark.slow
def test_a_board_that_is_lost_ends_a_search_which_goes_on_later(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    algorithm = Tiled(trouble="wait", trace=str(trace))
    with ExitStack() as stack:
        server = stack.enter_context(served(tmp_path))
        profile = board_profile(tmp_path, server)
        process = start(tmp_path, profile, algorithm)
        wait_for(lambda: trace.exists() and trace.read_text().count("\n") > 4)
        server.switch_off()
        Path(f"{trace}.go").touch()
        process.join()
        assert json.loads((tmp_path / "said.json").read_text())["error"].startswith("Unreachable: desk at ")
        before = dict(on_file(tmp_path).trials)
        assert len(before) == 4 and all(trial.valid for trial in before.values())
        assert "no server" in searched(tmp_path, profile, algorithm)["error"]
        stack.enter_context(served(tmp_path, server.port))
        assert searched(tmp_path, profile, algorithm)["valid_trials"] == 8
    after = on_file(tmp_path).trials
    assert sorted(after) == list(range(8))
    assert {number: after[number] for number in before} == before


@pytest.mark.slow
def test_a_session_that_is_killed_is_opened_again_and_the_search_goes_on(
    tmp_path: Path, server: Served
) -> None:
    trace = tmp_path / "trace"
    process = start(tmp_path, board_profile(tmp_path, server), Tiled(trouble="wait", trace=str(trace)))
    wait_for(lambda: trace.exists() and trace.read_text().count("\n") > 4)
    server.kill_session()
    Path(f"{trace}.go").touch()
    process.join()
    records = on_file(tmp_path)
    assert sorted(records.trials) == list(range(8)) and len(records.valid) == 8, "no candidate was to blame"


@pytest.mark.slow
def test_another_board_uses_the_records_of_its_kind_on_request_alone(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    with served(tmp_path / "one", key="one") as one, served(tmp_path / "other", key="other") as other:
        first, second = (board_profile(tmp_path, each, each.key) for each in (one, other))
        said = searched(tmp_path, first, Tiled(), records="profile")
        assert (one.sessions_begun(), other.sessions_begun()) == (1, 0)
        assert searched(tmp_path, second, Tiled(), records="profile") == said
        assert other.sessions_begun() == 0, "all is on record"
        searched(tmp_path, second, Tiled())
        assert (one.sessions_begun(), other.sessions_begun()) == (1, 1)
    assert len(list((tmp_path / "records").glob("*.jsonl"))) == 2


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["direct", "gemm", "csr_direct"])
@pytest.mark.parametrize(("target", "machine"), [(NEON, AARCH64), (CUDA, X86_64), (OPENCL, X86_64)])
def test_candidates_are_libraries_for_the_boards_processor(
    tmp_path: Path, algorithm: str, target: Target, machine: int
) -> None:
    """On an Arm board and on GPUs, which nothing here runs."""
    if machine == AARCH64:
        target = replace(target, linker=str(board_linker(tmp_path)))
    conv = replace(CONV, c=16, k=16)
    weight = np.random.default_rng(0).standard_normal((16, 16, 3, 3)).astype(np.float32)
    layer = make_kernel(parts.make("algorithm", algorithm, {}), conv, np.maximum(weight, 0), "conv")
    builder = LibraryBuilder([Workload.of(layer)], target, tmp_path)
    builder.minimal(0)
    point, *_ = layer.space(target)
    assert builder.build(0, {"decisions": dict(point)}, 7)["trace"]
    for name in (MINIMAL, 7):
        content = library(tmp_path, name).read_bytes()
        assert content[:4] == b"\x7fELF" and content[18] == machine
