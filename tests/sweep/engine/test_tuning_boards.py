"""Studies that tune on boards: kernels are those of this machine, and a lost board costs no trial."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from dlas.lowering.tuning.record_files import read_sections
from dlas.stack import MeasureSettings
from dlas.sweep.engine.planning import Planner
from dlas.sweep.study import parts
from dlas.sweep.study.study import Study
from tests.fixtures import commands
from tests.fixtures.boards import ALL, STUDY, arm_profile, board_profile, by_device
from tests.fixtures.engine import rows, run_apart
from tests.fixtures.processes import wait_for
from tests.fixtures.remote import served


def test_a_point_can_be_planned_while_its_board_is_away(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        profile = arm_profile(tmp_path, "one", listener.getsockname()[1])
    axes = 'algorithm = ["direct"]\ncompiler = ["metaschedule"]'
    planner = Planner(MeasureSettings(), tmp_path)
    points = Study.parse(STUDY.format(axes=axes, board=profile)).points()
    here, board = (planner.plan(point).artifacts()["tuning"] for point in points)
    assert here != board


SEARCHED = ("trial", "valid_trials", "tuned_s", "decisions")
"""What a search finds out, by times that differ."""


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_every_algorithm_is_tuned_on_a_board_and_gives_the_same_there(tmp_path: Path) -> None:
    names = ", ".join(f'"{name}"' for name in parts.names("algorithm"))
    axes = (ALL % names).replace('["untuned", "hand"]', '[{ name = "metaschedule", trials = 1 }]')
    with served(tmp_path) as server:
        run_apart(Study.parse(STUDY.format(axes=axes, board=board_profile(tmp_path, server))), tmp_path)
    found = rows(tmp_path)
    assert {row.status for row in found} == {"ok"}, {row.reason for row in found}
    for row in found:
        assert row.tuning is not None and row.tuning["valid"] == row.tuning["trials"] > 0
        assert all(layer.pop("tuned_s", 1.0) > 0 for layer in row.layers)
    # The first trial is the best guess, or drawn by the seed: kernels are the same, and outputs to the bit.
    here, board = by_device(found).values()
    assert here == board
    assert len(here) == len(parts.names("algorithm"))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_longer_search_on_a_board_selects_what_computes_the_same(tmp_path: Path) -> None:
    axes = 'algorithm = ["direct", "csr_direct"]\ncompiler = [{ name = "metaschedule", trials = 6 }]'
    with served(tmp_path) as server:
        run_apart(Study.parse(STUDY.format(axes=axes, board=board_profile(tmp_path, server))), tmp_path)
    found = rows(tmp_path)
    assert {row.status for row in found} == {"ok"}, {row.reason for row in found}
    for row in found:
        assert row.error is not None and row.error < 1e-4
        for layer in row.layers:
            for name in SEARCHED:
                layer.pop(name, None)  # type: ignore[misc]  # names of keys
    by_point: dict[str, list[object]] = {}
    for row in found:
        said = row.compiled_accuracy, row.coverage, [{**layer, "latency_s": 0} for layer in row.layers]
        by_point.setdefault(repr(row.algorithm), []).append(said)
    assert [there == here for there, here in by_point.values()] == [True, True]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_board_that_is_lost_while_it_tunes_costs_no_trial(tmp_path: Path) -> None:
    axes = 'algorithm = ["direct"]\ncompiler = [{ name = "metaschedule", trials = 8 }]'
    words = ("run", "study.toml", "--out", "out", "--retry", "failed")
    with ExitStack() as stack:
        server = stack.enter_context(served(tmp_path))
        text = STUDY.format(axes=axes, board=board_profile(tmp_path, server)).replace('"local_cpu", ', "")
        (tmp_path / "study.toml").write_text(text)
        for kept in (3, 10):
            sweep = commands.start(tmp_path, *words, output=tmp_path / "said")
            wait_for(lambda: trials(tmp_path) > kept, 300)  # noqa: B023 - it waits at once
            server.switch_off()
            sweep.join()
            (row,) = rows(tmp_path)
            assert (row.status, row.step) == ("failed", "tune")
            assert "127.0.0.1" in (row.reason or "") and kept < trials(tmp_path)
            server = stack.enter_context(served(tmp_path, server.port))
        commands.start(tmp_path, *words, output=tmp_path / "said").join()
    (row,) = rows(tmp_path)
    assert row.status == "ok" and row.tuning is not None, row.reason
    assert row.tuning["trials"] == trials(tmp_path)
    for path in (tmp_path / "cache/records").glob("*.jsonl"):
        (records,) = read_sections(path)  # refuses a trial that is there twice
        assert sorted(records.trials) == list(range(min(8, len(records.candidates))))


def trials(folder: Path) -> int:
    """Return how many trials are on record."""
    paths = (folder / "cache/records").glob("*.jsonl")
    return sum(path.read_text().count('{"trial"') for path in paths)
