"""The benchmark of dense code: what ours is compared with, and ratios from the same turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from benchmarks import peers
from benchmarks.dense import STUDY
from benchmarks.peers import PEERS, REFERENCES, TURNS, available, name_of, print_ratios, ratio, toml
from dlas.sweep.rows.results import Row
from dlas.sweep.study.study import Study
from tests.fixtures.rows import row


def timed(seconds: list[float], **given: Any) -> Row:
    """Return a row with these samples."""
    return row(latency_s=seconds, **given)


def test_every_peer_is_a_point_of_its_own_that_tables_call_by_its_name(tmp_path: Path) -> None:
    options = {"channels": 3, "size": 64, "model": '"resnet18"', "algorithm": '"blocked"', "turns": TURNS}
    listed = ", ".join(map(toml, PEERS.values()))
    (tmp_path / "study.toml").write_text(STUDY.format(**options, compilers=listed, count=1, seconds=1.0))
    points = list(Study.read(tmp_path / "study.toml").points())
    assert [name_of(point.compiler.content()) for point in points] == [*PEERS]
    assert name_of({"name": "hand"}) == "hand"


def test_peers_that_are_not_installed_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peers, "installed", lambda name: name not in ("ncnn", "mnn"))
    assert available(None) == ["onnxruntime", "openvino", "inductor", "torch_eager", "torch_compile"]
    assert "not compared, since not installed: ncnn, mnn" in capsys.readouterr().out
    with pytest.raises(typer.BadParameter, match="peer 'tensorrt'; there are: onnxruntime, openvino, ncnn"):
        available("tensorrt")


def test_ratios_are_those_of_the_same_turns() -> None:
    slow = [factor for turn in range(TURNS) for factor in 3 * [1.0 + turn]]  # the machine slows down
    found = ratio(timed(slow), timed([2 * time for time in slow]))
    assert [found.median, found.spread] == pytest.approx([2, 0])
    apart = ratio(timed(30 * [1.0]), timed(15 * [1.0] + 15 * [2.0]))
    assert [apart.median, apart.spread] == pytest.approx([1.5, 0.5])


def test_the_best_of_each_network_is_named_and_errors_stand_beside(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    results = {
        "one": {"hand": timed([1.0]), "ncnn": timed([2.0]), "mnn": timed([3.0], error=1.3e-3)},
        "two": {"hand": timed([1.0]), "ncnn": timed([8.0]), "mnn": row(status="wrong", latency_s=[])},
    }
    print_ratios("a title", results, ["hand"])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert (
        "one, hand (error 2e-06) 2.00 ± 0.00 (error 2e-06) 3.00 ± 0.00 (error 1e-03) ncnn 2.00 ± 0.00"
        in lines
    )
    assert "two, hand (error 2e-06) 8.00 ± 0.00 (error 2e-06) wrong ncnn 8.00 ± 0.00" in lines
    assert "geometric mean 4.00 3.00 4.00" in lines
    assert not {"openvino", "inductor"} & set(lines[1].split()) and set(REFERENCES) >= {"ncnn", "mnn"}
