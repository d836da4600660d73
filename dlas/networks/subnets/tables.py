"""Tables of latencies as Once-for-All has them: YAML, a file for each image size, milliseconds by block.

.. code-block:: yaml

    # 160_lookup_table.yaml
    Conv-input:160x160x3-output:80x80x24: {mean: 0.4956, count: 30}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dlas.bench.store.replacing import make_folder, replacing
from dlas.errors import InputError
from dlas.networks.subnets.shapes import CLASSES, WIDTHS, ofa
from dlas.stack.array import Float64Array

NAMED = re.compile(r"(\d{1,4})_lookup_table\.ya?ml")
SIZE = re.compile(r"Conv-input:(\d{1,4})x\1x\d+-")
MOST_BYTES = 8 << 20
MOST_FILES = 1000
MOST_MS = 1e9
"""Longest time of a block."""


@dataclass(frozen=True)
class BlockTimes:
    """What the blocks of subnetworks of one width take."""

    sizes: Float64Array
    """Of images, rising; [sizes]."""
    variants: Float64Array
    """Of the blocks that :meth:`dlas.networks.subnets.shapes.Shapes.variants` yields; [sizes, blocks], s."""
    fixed: Float64Array
    """Of all layers that every subnetwork has; [sizes], s."""


def read_tables(place: str) -> dict[int, dict[str, float]]:
    """Return the seconds of blocks by image size.

    Parameters
    ----------
    place : str
        A folder with files named ``160_lookup_table.yaml``, or one such file.

    Raises
    ------
    InputError
        If there is no table, or a file is none.
    """
    path = Path(place).expanduser()
    files = sorted(each for each in path.iterdir() if NAMED.fullmatch(each.name)) if path.is_dir() else [path]
    if not files or len(files) > MOST_FILES or not all(file.is_file() for file in files):
        raise InputError(
            f"{place!r} is no table of latencies: expected a folder with 160_lookup_table.yaml, ..."
        )
    found: dict[int, dict[str, float]] = {}
    for file in files:
        seconds = _read(file)
        size = next((int(match[1]) for key in seconds if (match := SIZE.match(key))), None)
        named = NAMED.fullmatch(file.name)
        if size is None or (named and int(named[1]) != size):
            which = named[1] if named else "a size"
            raise InputError(f"{file}: the table of {which} has no block Conv-input of it")
        found[size] = seconds
    return found


def _read(path: Path) -> dict[str, float]:
    """Return the seconds of blocks in a file."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses aliases: a few aliases of aliases stand for more than memory holds."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            """Return the next node."""
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError(f"it has an alias, *{self.peek_event().anchor}")
            return super().compose_node(parent, index)

    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} has over {MOST_BYTES:,} bytes")
        content = yaml.load(path.read_bytes(), Loader)
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        first = str(error).strip().partition("\n")[0]
        raise InputError(f"{path} is no table of latencies: {first}") from None
    if not isinstance(content, dict) or not content:
        raise InputError(
            f"{path} is no table of latencies: expected blocks, each with its mean in milliseconds"
        )
    return {_name(path, key): _seconds(path, key, value) for key, value in content.items()}


def _name(path: Path, key: Any) -> str:
    if not isinstance(key, str):
        raise InputError(f"{path}: {_shown(key)} names no block")
    return key


def _seconds(path: Path, key: Any, value: Any) -> float:
    """Return the mean of a block, which is in milliseconds, in seconds."""
    mean = value.get("mean") if isinstance(value, dict) else value
    if not isinstance(mean, int | float) or isinstance(mean, bool) or not 0 < mean < MOST_MS:
        raise InputError(f"{path}: {_shown(key)} has the mean {_shown(mean)}; expected milliseconds")
    return mean / 1e3


def _shown(value: Any) -> str:
    """Return a value as it is quoted in a message."""
    try:
        return f"{value!r:.120}"
    except ValueError:  # Python writes no whole numbers of thousands of digits
        return "a number of thousands of digits"


def write_tables(folder: Path, tables: Mapping[int, Mapping[str, float]], counts: Mapping[str, int]) -> None:
    """Write the seconds of blocks by image size, a file each, and how many samples each is the median of.

    Raises
    ------
    InputError
        If the folder cannot be written to.
    """
    import yaml

    make_folder(folder, "folder of tables")
    for size, seconds in tables.items():
        content = {
            key: {"mean": float(1e3 * value), "count": int(counts.get(key, 1))}
            for key, value in seconds.items()
        }
        with replacing(folder / f"{size}_lookup_table.yaml") as partial:
            partial.write_text(yaml.safe_dump(content), encoding="utf-8")


def block_times(tables: Mapping[int, Mapping[str, float]], width: float, place: str) -> BlockTimes:
    """Return what the blocks of a width take.

    Parameters
    ----------
    tables : mapping
        What :func:`read_tables` returned.
    place : str
        Where the tables are from, for messages.

    Raises
    ------
    InputError
        If a block is missing: the tables are for another width, or incomplete.
    """
    shapes, sizes = ofa(width), sorted(tables)
    variants = np.empty((len(sizes), len(shapes.keys(sizes[0]))))
    fixed = np.empty(len(sizes))
    for at, size in enumerate(sizes):
        seconds = tables[size]
        names = [*shapes.keys(size), *shapes.fixed_keys(size, _classes(seconds))]
        if missing := [name for name in names if name not in seconds]:
            others = [
                other
                for other in WIDTHS
                if other != width and all(name in seconds for name in ofa(other).keys(size))
            ]
            why = f"it is for width {others[0]}" if others else f"{len(missing)} blocks are missing"
            raise InputError(f"table {place!r} of size {size} has no {missing[0]!r} of width {width}: {why}")
        values = [seconds[name] for name in names]
        variants[at], fixed[at] = values[: variants.shape[1]], sum(values[variants.shape[1] :])
    return BlockTimes(np.array(sizes, dtype=float), variants, fixed)


def _classes(seconds: Mapping[str, float]) -> int:
    """Return the number of classes that a table's last layer has."""
    outputs = [name.rpartition(":")[2] for name in seconds if name.startswith("Logits-input:")]
    return int(outputs[0]) if outputs and outputs[0].isdecimal() else CLASSES
