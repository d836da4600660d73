"""The text of ``docs/findings.md``."""

from __future__ import annotations

from collections import Counter

from benchmarks.findings import headlines, rows
from benchmarks.findings.papers import headlines as of_papers
from benchmarks.findings.written import EVALUATED, LOST, RECOMPUTED
from benchmarks.studies import ROOT

PAGE = ROOT / "docs" / "findings.md"
COMMAND = "python -m benchmarks.findings"


def page() -> str:
    """Return the whole page."""
    sections = _first(), observations(), papers(), _behind()
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def _first() -> list[str]:
    every, own = (
        rows.counted([getattr(each, name) for each in rows.findings()])
        for name in ("verdict", "verdict_of_paper")
    )
    return [
        "# What was found",
        "",
        f"`{COMMAND}` writes this page from the rows that are kept in [`experiments`](../experiments).",
        "",
        f"- **Observations of the DLAS paper**: over all algorithms {every}; over the paper's own, which are "
        f"direct, GEMM and spatial pack in NCHW, dense and on compressed rows, {own}.",
        *summary(),
    ]


def summary() -> list[str]:
    """Return what is known of the papers' headlines."""
    found = of_papers()
    against = "; ".join(
        f"{each.paper} {each.place}: {each.theirs}" for each in found if each.verdict == headlines.OPPOSITE
    )
    reasons = dict.fromkeys(each.ours for each in found if each.verdict == headlines.NONE and not each.basis)
    return [
        f"- **Headlines of the five papers**: {headlines.counted(found)}.",
        f"- **Contradicted**: {against}.",
        f"- **Not to be had here**: {'; '.join(reasons)}.",
    ]


def observations() -> list[str]:
    """Return the section of the thirteen observations."""
    machines = [f"{each.letter} is {each.title} ({each.points:,} points)" for each in rows.machines()]
    left_out = [f"`{name}` ({reason})" for name, reason in rows.LEFT_OUT.items()]
    return [
        "## The DLAS paper's thirteen observations",
        "",
        f"{len(rows.points()):,} points of {len(machines)} machines: {'; '.join(machines)}. An observation "
        "holds if all of its claims do, and does not if one of them does not.",
        "",
        *rows.observations(),
        "",
        " ".join([*rows.limits(), f"Left out: {'; '.join(left_out)}. The command prints all claims:"]),
        "",
        "```",
        "dlas observations " + " \\\n  ".join(f"experiments/{folder}" for folder in rows.folders()),
        "```",
    ]


def papers() -> list[str]:
    """Return the section of the papers' headlines, which reads no rows."""
    found = of_papers()
    bases = Counter(number.basis for each in found for number in each.basis)
    return [
        "## What the five papers report, and what is found here",
        "",
        *headlines.table(found),
        "",
        f"Of {sum(bases.values())} numbers, {bases[RECOMPUTED]} are recomputed from kept rows by the tests, "
        f"{bases[EVALUATED]} rest on kept rows and on predictors that the command fits, and {bases[LOST]} on "
        "rows that are lost. They are those of the studies' READMEs; what the papers report is cited.",
    ]


def _behind() -> list[str]:
    return ["## The numbers behind each observation", "", *rows.numbers_behind()]
