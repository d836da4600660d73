"""A table of latencies: each block that a subnetwork of Once-for-All may have, measured once by itself."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dlas.errors import InputError, Unfinished
from dlas.networks.subnets.blocks import TablePart, read_key
from dlas.networks.subnets.shapes import CLASSES, WIDTHS, check_size, ofa
from dlas.networks.subnets.tables import write_tables
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.results import Row
from dlas.sweep.study.point import Choice, Point
from dlas.sweep.study.study import Study

MEASURE: Mapping[str, float] = {"repeats": 30, "seconds": 0.5, "slices": 2, "layer_repeats": 0}
PartOption = str | Mapping[str, Any]


def block_studies(
    sizes: Sequence[int],
    width: float,
    compiler: PartOption,
    hardware: PartOption,
    algorithm: PartOption | None,
    seed: int,
) -> dict[int, Study]:
    """Return a study for each size of images, among whose points are those of all blocks.

    Raises
    ------
    InputError
        If an argument is invalid.
    """
    if width not in WIDTHS:
        raise InputError(f"`width={width:g}`: expected {' or '.join(map(str, WIDTHS))}")
    for size in sizes:
        check_size(size)
    device = {"name": "local_cpu", "threads": 1} if hardware == "local_cpu" else hardware
    axes = {"compiler": compiler, "hardware": device, **({"algorithm": algorithm} if algorithm else {})}
    return {size: _study(_names(width, size), axes, seed) for size in sorted(set(sizes))}


def measure_tables(
    folder: Path, width: float, studies: Mapping[int, Study], session: Session, say: Callable[[str], None]
) -> pd.DataFrame:
    """Measure the blocks of each size, write their tables, and return a line for each.

    Raises
    ------
    Unfinished
        If a block could not be measured.
    """
    lines = []
    for size, study in studies.items():
        try:
            seconds = _table(folder, size, study, _names(width, size), session.part)
        except KeyboardInterrupt:
            say(f"interrupted at size {size}; the same command goes on")
            raise
        fixed = sum(seconds[name] for name in ofa(width).fixed_keys(size))
        say(f"size {size}: {len(seconds)} blocks in {folder / f'{size}_lookup_table.yaml'}")
        lines.append({"size": size, "blocks": len(seconds), "sum_s": sum(seconds.values()), "fixed_s": fixed})
    return pd.DataFrame(lines)


def _table(folder: Path, size: int, study: Study, names: Sequence[str], session: Session) -> dict[str, float]:
    """Measure the blocks for images of one size, write their table, and return their seconds."""
    place, chosen = folder / "rows" / str(size), _points(study, names)
    session.check(study, place, list(chosen))
    rows = {row.id: row for row in session.measure(study, list(chosen), place)}
    seconds, counts = _timed(rows, chosen, place)
    write_tables(folder, {size: seconds}, counts)
    return seconds


def _names(width: float, size: int) -> list[str]:
    shapes = ofa(width)
    return list(dict.fromkeys([*shapes.keys(size), *shapes.fixed_keys(size, CLASSES)]))


def _images(known: TablePart) -> dict[str, Any]:
    """Return the data set of a block: maps that it reads, and a class for each value that it writes."""
    channels, height, _ = known.read
    return {"name": "random", "size": height, "channels": channels, "classes": known.values, "images": 2}


def _study(names: Sequence[str], axes: Mapping[str, Any], seed: int) -> Study:
    """Return a study among whose points are those of all blocks."""
    images = [_images(read_key(name)) for name in names]
    return Study(
        axes={
            "dataset": [each for place, each in enumerate(images) if each not in images[:place]],
            "model": [{"name": "ofa_block", "block": name} for name in names],
            **axes,
        },
        name="blocks",
        seed=seed,
        measure=dict(MEASURE),
    )


def _points(study: Study, names: Sequence[str]) -> dict[Point, str]:
    """Return the point of each block: that with its own images."""
    wanted = {name: _choice(_images(read_key(name))) for name in names}
    found: dict[Point, str] = {}
    for point in study.points():
        name = dict(point.model.options)["block"]
        if point.dataset == wanted[name]:
            found[point] = name
    several = len(found) - len(names)
    if several > 0:
        raise InputError("a table is of one compiler, one device and one algorithm")
    return found


def _choice(images: Mapping[str, Any]) -> Choice:
    options = {name: value for name, value in images.items() if name != "name"}
    return Choice.checked("dataset", images["name"], options)


def _timed(
    rows: Mapping[str, Row], chosen: Mapping[Point, str], folder: Path
) -> tuple[dict[str, float], dict[str, int]]:
    """Return the median of each block, and the number of its samples.

    Raises
    ------
    Unfinished
        If a block has no time.
    """
    seconds, counts = {}, {}
    for point, name in chosen.items():
        row = rows.get(point.id)
        if row is None or not row.timed:
            why = "it was not measured" if row is None else f"{row.status}: {row.reason}"
            raise Unfinished(f"block {name!r} has no time ({why}); `dlas show {folder}` tells more")
        seconds[name], counts[name] = statistics.median(row.latency_s), len(row.latency_s)
    return seconds, counts
