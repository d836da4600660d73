"""The thirteen observations of the DLAS paper over all rows that are kept, and machine by machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from benchmarks.recomputed.kept import EXPERIMENTS
from dlas.analysis.observations import FAILS, HOLDS, OPEN, VERDICTS, Claim, Evidence, Finding, observe
from dlas.analysis.roles import with_roles
from dlas.sweep.rows.columns import MACHINE
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import UNSTABLE

LEFT_OUT = {
    "devices": "one processor as four devices, under one compiler",
    "kernels/rows": "drawn networks of layers",
    "kernels/again": "the same",
    "kernels/tokens": "the same",
    "kernels/compressed": "the same",
    "kernels/fit-device": "the same",
    "eager-allocator/draws": "the same",
    "eager-allocator/faults": "a few samples of points of the study's own rows",
    "dlas-imagenet/levels": "other work disturbed its times",
    "leaf-digits/fine-tuned": "other work disturbed its times",
    "mirage-simulated": "no device: a law tells its times",
    "ofa-latency": "subnetworks of one network under runtimes",
    "training-cost": "training steps, of a runtime",
    "two-runs": "layers alone, and kernels that were slowed",
}
"""Folders, or all of a study, that are no evidence for the observations, and why."""
SECTIONS = {
    "I": "6",
    "II": "6.1",
    "III": "6.2",
    "IV": "6.3",
    "V": "6.3",
    "VI": "6.3.2",
    "VII": "6.4",
    "VIII": "6.4",
    "IX": "6.4",
    "X": "6.4",
    "XI": "6.5",
    "XII": "6.5",
    "XIII": "6.6",
}
"""Of the DLAS paper, where each observation stands."""

WORDS = {HOLDS: "hold", FAILS: "do not", OPEN: "are open"}


@dataclass(frozen=True)
class MachineFindings:
    """A machine that measured rows, and what the observations are on them alone."""

    letter: str
    title: str
    points: int
    findings: list[Finding]


@cache
def folders() -> tuple[str, ...]:
    """Return the kept folders that are read, below ``experiments/``."""
    kept = sorted(str(path.parent.relative_to(EXPERIMENTS)) for path in EXPERIMENTS.rglob("results.jsonl.xz"))
    return tuple(name for name in kept if not {name, *map(str, Path(name).parents)} & LEFT_OUT.keys())


@cache
def points() -> pd.DataFrame:
    """Return the points of all studies that are evidence."""
    return with_roles(read([EXPERIMENTS / folder for folder in folders()]))


@cache
def findings() -> list[Finding]:
    """Return the observations over all rows."""
    return observe(Evidence(points()))


@cache
def machines() -> list[MachineFindings]:
    """Return the machines, that of the most points first."""
    every = points()
    found: list[MachineFindings] = []
    for machine, count in _counts(every[MACHINE]):
        own = every[every[MACHINE] == machine].reset_index(drop=True)
        letter = chr(ord("A") + len(found))
        found.append(MachineFindings(letter, str(own["machine"].iloc[0]), count, observe(Evidence(own))))
    return found


def observations() -> list[str]:
    """Return the lines of the table of verdicts."""
    lines = [
        "| no. | the paper says | where | all algorithms | the paper's own | rests on | machine by machine |",
        "|---|---|---|---|---|---|---|",
    ]
    for place, finding in enumerate(findings()):
        number = finding.observation.number
        told = "; ".join(
            f"{each.letter} {each.findings[place].verdict}"
            for each in machines()
            if each.findings[place].verdict != OPEN
        )
        cells = (
            number,
            finding.observation.statement,
            SECTIONS[number],
            _verdict(finding.verdict),
            _verdict(finding.verdict_of_paper),
            _rests_on(finding),
            told or "open on each",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def numbers_behind() -> list[str]:
    """Return the lines of the table of claims: their numbers, or what is missing."""
    lines = ["| no. | claim | all algorithms | the paper's own, where it differs |", "|---|---|---|---|"]
    for finding in findings():
        for claim, own in zip(finding.claims, finding.of_paper, strict=True):
            told, paper = (f"{_verdict(each.verdict)}: {_told(each)}" for each in (claim, own))
            cells = finding.observation.number, claim.text, told, paper if paper != told else ""
            lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    return lines


def counted(verdicts: Sequence[str]) -> str:
    """Return how many observations hold, do not hold and are open."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[name]} {WORDS[name]}" for name in VERDICTS if counts[name])


def limits() -> list[str]:
    """Return sentences that say what the points are of."""
    every = points()
    known = every[every["accuracy"].notna()]
    images = known.groupby("dataset_name")["test_images"].max()
    accuracies = ", ".join(f"{name} ({int(count):,} test images)" for name, count in images.items())
    pruned = every[every["kind"] == "pruned"]
    random = int((pruned["compression.criterion"] == "random").sum())
    processors = ", ".join(f"{count:,} of a {name.upper()}" for name, count in _counts(every["processor"]))
    return [
        f"Of the points {processors}, and {len(known):,} have an accuracy, of {accuracies}.",
        f"Of {len(pruned):,} pruned points {random:,} have random weights, pruned at random.",
        f"{int(every['noisy'].fillna(False).sum()):,} are marked noisy, and the times of "
        f"{int((every['status'] == UNSTABLE).sum()):,} are unstable and left out.",
    ]


def _counts(column: pd.Series) -> list[tuple[str, int]]:
    return [(str(name), int(count)) for name, count in column.value_counts().items()]


def _verdict(verdict: str) -> str:
    return {HOLDS: "holds", OPEN: "open"}.get(verdict, f"**{verdict}**")


def _told(claim: Claim) -> str:
    missing = f"missing: {claim.missing}" if claim.missing else ""
    return "; ".join(filter(None, (claim.numbers, missing)))


def _rests_on(finding: Finding) -> str:
    """Return how many cases each claim that is decided rests on, and why others are not."""
    cases = [str(claim.cases) for claim in finding.claims if claim.cases]
    missing = [claim.missing for claim in finding.claims if claim.missing]
    told = [f"cases: {', '.join(cases)}"] if cases else []
    if finding.verdict == OPEN:
        told.append(f"missing: {'; '.join(dict.fromkeys(missing))}")
    return "; ".join(told)
