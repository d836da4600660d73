"""A report shows which times are unstable, and gives none of them as a time."""

from __future__ import annotations

from pathlib import Path

from dlas.analysis.roles import with_roles
from dlas.face.reporting.blocks import Figure, Paragraph
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections import latency, trust
from dlas.sweep.rows.frame import read
from tests.fixtures.rows import again, row, write


def test_an_unstable_point_stands_without_a_time_and_is_counted(tmp_path: Path) -> None:
    shaky = again(row(1, algorithm="gemm"), unstable=True, unstable_reason="the medians differ")
    points = with_roles(read(write(tmp_path, [row(10), shaky])))
    context = Context([str(tmp_path)], points)

    section = latency.section(context)
    (figure,) = (block for block in section.blocks if isinstance(block, Figure))  # type: ignore[union-attr]
    drawn = {mark["y"]: (mark["x"], mark["s"]) for panel in figure.panels for mark in panel.rows}
    assert drawn["direct"][0] is not None
    assert drawn["gemm"] == (None, "✕ unstable")
    (said,) = (block for block in trust.section(context).blocks if isinstance(block, Paragraph))
    assert any(text.startswith("1 point unstable, also when measured again") for text, *_ in said.items)
