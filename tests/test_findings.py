"""``docs/findings.md`` says what its command computes from the kept rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.findings import headlines, rows, written
from benchmarks.findings.page import PAGE, page, papers, summary
from benchmarks.findings.papers import headlines as of_papers
from benchmarks.recomputed.markdown import tables
from dlas.analysis.observations import OBSERVATIONS
from tests.fixtures.package import ROOT


def test_what_the_papers_report_is_as_the_command_writes_it() -> None:
    text = PAGE.read_text()
    for section in (summary(), papers()):
        assert "\n".join(section) in text, "run `python -m benchmarks.findings`"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_page_is_what_the_command_writes() -> None:
    assert PAGE.read_text() == page(), "run `python -m benchmarks.findings`"


def test_thirteen_observations_have_a_verdict_or_a_reason() -> None:
    found, *_ = tables(PAGE.read_text())
    assert [row["no."] for row in found.rows] == [each.number for each in OBSERVATIONS]
    assert {each.number for each in OBSERVATIONS} == rows.SECTIONS.keys()
    for row in found.rows:
        verdicts = row["all algorithms"], row["the paper's own"]
        assert {*verdicts} <= {"holds", "**does not hold**", "open"}
        assert ("missing: " in row["rests on"]) == (verdicts[0] == "open")
        assert row["rests on"] and row["machine by machine"]


def test_headlines_say_where_they_are_from() -> None:
    found = of_papers()
    assert {each.paper for each in found} == {"DLAS", "perf4sight", "OFA latency", "MIRAGE", "LeAF"}
    for each in found:
        assert each.place and each.verdict in headlines.VERDICTS
        assert bool(each.basis) == bool(each.command), each
        if module := re.match(r"python -m (benchmarks\.\w+)", each.command):
            place = ROOT / module[1].replace(".", "/")
            assert place.is_dir() or place.with_suffix(".py").is_file()


def test_a_number_is_that_of_its_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
<!-- = errors -->
| predictor | mean error |
|---|---|
| `sum` | 1,234 % |

<!-- measured: python -m benchmarks.made -->
| predictor | mean error |
|---|---|
| `sum` | 5 % |

It gains 2.5<!-- = gain(a, b) --> times.
"""
    monkeypatch.setattr(written, "_text", lambda study: text)
    number = written.cell("made", "errors", "mean error", predictor="`sum`")
    assert (str(number), float(number), number.basis) == ("1,234", 1234, written.RECOMPUTED)
    lost = written.cell("made", "python -m benchmarks.made", "mean error", predictor="`sum`")
    assert (float(lost), lost.basis) == (5, written.LOST)
    gain = written.claimed("made", "gain", "a", "b")
    assert float(gain) == 2.5
    with pytest.raises(AssertionError, match="has no number of gain"):
        written.claimed("made", "gain", "a")
    found = headlines.Headline("P", "1", "x", "y", headlines.MET, "c", [number, lost])
    assert found.rests_on == written.LOST and headlines.counted([found]) == "1 met"
    assert headlines.table([found])[-1] == "| P | 1 | x | y | met | no rows | `c` |"
