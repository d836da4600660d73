"""The keys of all steps and rows of studies, to see which of them a change of the code renews.

    python -m benchmarks.keys experiments/quickstart/study.toml > before
    ...
    python -m benchmarks.keys experiments/quickstart/study.toml | diff before -

A key is a hash of what an artifact depends on: where it differs, the step runs again.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dlas.sweep.engine.planning import Planner
from dlas.sweep.study.study import Study


def keys(study: Study) -> Iterator[tuple[str, str, str]]:
    """Yield the id of each point of a study, the name of a step (or ``row``), and its key."""
    planner = Planner(study.measure, Path(tempfile.gettempdir()))
    for point in study.points():
        plan = planner.plan(point)
        yield from ((point.id, step.name, step.key) for step in plan.steps)
        yield point.id, "row", plan.key


def main() -> None:
    """Print the key of each step of each point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", nargs="+", type=Path, help="study files")
    for path in parser.parse_args().studies:
        for point, step, key in keys(Study.read(path)):
            print(path, point, step, key)


if __name__ == "__main__":
    main()
