"""A report shows which times are unstable, and gives none of them as a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dlas.analysis.roles import with_roles
from dlas.face.reporting.blocks import Figure, Paragraph
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections import latency, summary, trust
from dlas.sweep.rows.frame import read
from tests.fixtures.rows import again, row, write


def test_an_unstable_point_stands_without_a_time_and_is_counted(tmp_path: Path) -> None:
    shaky = again(row(1, algorithm="gemm"), status="unstable", reason="the medians differ")
    points = with_roles(read(write(tmp_path, [row(10), shaky])))
    context = Context([str(tmp_path)], points)

    section = latency.section(context)
    (figure,) = (block for block in section.blocks if isinstance(block, Figure))  # type: ignore[union-attr]
    drawn = {mark["y"]: (mark["x"], mark["s"]) for panel in figure.panels for mark in panel.rows}
    assert drawn["direct"][0] is not None
    assert drawn["gemm"] == (None, "✕ unstable")
    (said,) = (block for block in trust.section(context).blocks if isinstance(block, Paragraph))
    assert any(text.startswith("1 point unstable, also when measured again") for text, *_ in said.items)


def test_sentences_tell_which_unstable_points_they_leave_out(tmp_path: Path) -> None:
    runtime: dict[str, Any] = {"algorithm": "library"}
    rows = [
        row(40),
        row(10, compiler="hand"),
        again(row(1, compiler="hand", algorithm="gemm"), status="unstable", reason="the medians differ"),
        row(8, compiler="torch_compile", **runtime),
        again(row(2, compiler="onnxruntime", **runtime), status="unstable", reason="the medians differ"),
    ]
    points = with_roles(read(write(tmp_path, rows)))
    told = [
        text
        for block in summary.section(Context([str(tmp_path)], points)).blocks
        if isinstance(block, Paragraph) and block.text == "What stands out"
        for text, _ in block.items
    ]
    both = " (left out as unstable: gemm · hand and onnxruntime)."
    assert told[0].endswith(f"torch_compile{both}")
    assert told[1].endswith(f"the fastest runtime, torch_compile{both}")
    (schedule,) = [text for text in told if text.startswith("A hand-written schedule")]
    assert schedule.endswith(" (left out as unstable: gemm · hand).")
