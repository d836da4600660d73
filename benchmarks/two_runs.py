"""Do two runs of one study tell what changed?  ``python -m benchmarks.two_runs work FOLDER 5% TO``.

``work`` writes how many steps of work slow the points of ``experiments/two-runs`` that can be slowed by a
share of their time in a folder.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path

from benchmarks.slowed import name_of
from dlas.sweep.rows.results import Row, read_rows

SLOWED = "benchmarks.slowed:Slowed"
STEP_S = 1.45e-9
"""A step of the work on a Zen 4 at its highest clock: six shifts and exclusive-ors, each after the other."""


def work_for(rows: list[Row], share: float) -> dict[str, int]:
    """Return the steps by kernel that make each slowed point's kernels longer by a share of its time.

    A point's time is spread over its kernels by theirs; a kernel of several points takes their mean.
    """
    steps = defaultdict(list)
    for row in rows:
        if row.compiler["name"] != SLOWED:
            continue
        kernels = [(name_of(each), each["latency_s"]) for each in row.layers if "decisions" in each]
        scale = share * statistics.median(row.latency_s) / sum(seconds for _, seconds in kernels)
        for name, seconds in kernels:
            steps[name].append(scale * seconds / STEP_S)
    return {name: round(statistics.fmean(own)) for name, own in steps.items()}


def main() -> None:
    """Write the work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["work"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("share")
    parser.add_argument("to", type=Path)
    given = parser.parse_args()
    steps = work_for(list(read_rows(given.folder)), float(given.share.removesuffix("%")) / 100)
    given.to.write_text(json.dumps(steps, indent=1) + "\n")


if __name__ == "__main__":
    main()
