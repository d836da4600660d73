"""Two rows of a point beside each other: everything that differs, and the time as in a comparison."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from dlas.analysis.against.changes import OTHER_MACHINE, SAME, SLOWER
from dlas.analysis.against.differences import difference_of
from dlas.errors import InputError
from dlas.sweep.rows.results import Row
from tests.fixtures.commands import Command
from tests.fixtures.rows import CPU, again, failing, row, write
from tests.fixtures.runs import run_of

LAYERS: list[Any] = [{"name": "conv1", "latency_s": 1e-3}, {"name": "conv2", "latency_s": 2e-3}]
SLOWER_LAYERS: list[Any] = [LAYERS[0], {"name": "conv2", "latency_s": 3e-3}]

LESS_MEMORY: Any = {**CPU, "memory_bytes": 1}


def runs() -> tuple[list[Row], list[Row]]:
    """Return two runs of twelve points, the fourth of which became slower, with what may explain it."""
    before, now = run_of(0, points=12), run_of(1, {3: 0.5}, points=12)
    versions: Any = {"torch": "2.11.0", "tvm": "0.27"}
    sources = {"algorithm": "a", "compiler": "b"}
    before[3] = dataclasses.replace(
        before[3],
        environment={"versions": versions},
        sources=sources,
        layers=LAYERS,
        artifacts={"build": "x"},
    )
    now[3] = dataclasses.replace(
        now[3],
        environment={"versions": {**versions, "tvm": "0.28"}},
        sources={**sources, "algorithm": "c"},
        layers=SLOWER_LAYERS,
        artifacts={"build": "y"},
        device=LESS_MEMORY,
        accuracy=0.5,
    )
    return before, now


def test_all_that_differs_is_told(tmp_path: Path) -> None:
    before, now = runs()
    a, b = write(tmp_path / "a", before), write(tmp_path / "b", now)
    found = difference_of(b, now[3].id[:10], a)
    assert found.change.outcome == SLOWER and found.noise and found.noise.controls == 11
    assert found.ratio == found.change.ratio and found.ratio[1] < 1.5 < found.ratio[2]
    assert found.change.causes == ("tvm 0.27 to 0.28", "source of algorithm")
    assert found.facts() == {
        "row": [("key", "k", "changed1")],
        "source of": [("algorithm", "a", "c")],
        "versions": [("tvm", "0.27", "0.28")],
        "device": [("memory_bytes", 8 * 10**9, 1)],
        "artifacts": [("build", "x", "y")],
        "quantities": [("accuracy", 0.9712, 0.5)],
    }
    ((name, seconds),) = found.layers
    assert name == "conv2" and seconds == pytest.approx(1e-3)
    unchanged = difference_of(b, now[0].id, a)
    assert unchanged.change.outcome == SAME and not unchanged.facts() and not unchanged.layers


def test_an_earlier_row_of_the_same_folder_is_told_and_compared(tmp_path: Path, dlas_here: Command) -> None:
    before, now = runs()
    write(tmp_path / "rows", [*before, *now])
    shown = dlas_here("show", "rows", now[3].id)
    told = f"1 row with another key; `dlas show rows {now[3].id[:8]} --against rows` says what differs"
    assert told in shown.stdout
    assert "with another key" not in dlas_here("show", "rows", now[0].id).stdout
    found = difference_of(tmp_path / "rows", now[3].id, tmp_path / "rows")
    assert (found.before, found.now) == (before[3], now[3])
    refused = dlas_here("show", "rows", now[0].id, "--against", "rows")
    assert refused.returncode == 2 and "an earlier row of it with another key is not there" in refused.stderr


def test_the_command_prints_both_rows_or_json(tmp_path: Path, dlas_here: Command) -> None:
    before, now = runs()
    write(tmp_path / "a", before)
    write(tmp_path / "b", now)
    shown = dlas_here("show", "b", now[3].id[:8], "--against", "a").stdout
    assert shown.startswith(now[3].id) and "\nslower: " in shown and "taken out" in shown
    for line in (
        ["source", "of", "algorithm", "a", "c"],
        ["versions", "tvm", "0.27", "0.28"],
        ["conv2", "+1"],
    ):
        assert line in [each.split() for each in shown.splitlines()], line
    told = json.loads(dlas_here("show", "b", now[3].id, "--against", "a", "--json").stdout)
    assert told["outcome"] == SLOWER and told["ratio"] == pytest.approx(1.5, rel=0.1)
    assert told["differences"]["versions"] == {"tvm": {"before": "0.27", "now": "0.28"}}
    assert told["layers"][0]["name"] == "conv2" and told["machine"]["controls"] == 11
    fastest = dlas_here("show", "b", "--fastest", "--where", "batch=2", "--against", "a")
    assert fastest.stdout.startswith(now[1].id) and "nothing that the result depends on" in fastest.stdout


def test_rows_of_other_machines_and_without_times(tmp_path: Path, dlas_here: Command) -> None:
    here, bad = row(), failing(batch=8)
    a = write(tmp_path / "a", [here, row(batch=8), row(batch=2)])
    device: Any = {**CPU, "cpu": "another processor"}
    b = write(tmp_path / "b", [again(here, device=device, latency_s=[0.02] * 9), bad])
    moved = difference_of(b, here.id, a)
    assert moved.change.outcome == OTHER_MACHINE and moved.ratio[0] == pytest.approx(2, rel=0.05)
    assert moved.facts()["machine"] == [("cpu", "Imaginary 9000", "another processor")]
    assert "not tested" in dlas_here("show", "b", here.id, "--against", "a").stdout
    failed = dlas_here("show", "b", bad.id, "--against", "a")
    assert failed.returncode == 0 and "\nfailed\n" in failed.stdout and "it was failed" in failed.stdout
    with pytest.raises(InputError, match=r"a row of it is not there"):
        difference_of(a, row(batch=2).id, b)
