"""Write what each layer of trained, pruned networks lost: ``python -m benchmarks.layer_shares ROWS FOLDER``.

One file for each trained network and level, such as ``resnet50-weight_pruning-0.95.toml``, which the option
``layers`` of ``weight_pruning`` and ``channel_pruning`` takes.  A comment in it names the row, its accuracy,
and the share of multiply-adds left, which stands beside "pruned to" in the table that is printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from dlas.axes.compression.pruning import shares
from dlas.sweep.rows.results import COMPLETED, Row, read_rows

TECHNIQUES = ("weight_pruning", "channel_pruning")


def main() -> None:
    """Write the files, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rows", type=Path, help="a folder of rows")
    parser.add_argument("folder", type=Path, help="for the files")
    given = parser.parse_args()
    print("| network | technique | pruned to | weights zero | multiply-adds left | accuracy |")
    print("|---|---|---|---|---|---|")
    for row in pruned(read_rows(given.rows)):
        given.folder.mkdir(parents=True, exist_ok=True)
        shares.write(given.folder / file_name(row), row.reached["layers"], source(row, given.rows))
        left, ratio = left_of(row), row.reached["ratio"]
        network, technique = row.model["name"], row.compression["name"]
        level = row.reached["level"]
        print(f"| {network} | {technique} | {level:.0%} | {ratio:.1%} | {left:.1%} | {row.accuracy:.1%} |")


def pruned(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows of trained networks with weights set to zero, the first of each file's name."""
    seen = set()
    for row in rows:
        masked = row.status in COMPLETED and row.reached and row.compression["name"] in TECHNIQUES
        if masked and row.accuracy is not None and row.effective_macs and file_name(row) not in seen:
            seen.add(file_name(row))
            yield row


def file_name(row: Row) -> str:
    """Return the name of a row's file."""
    level = row.compression["level"]  # a number, or how the elbow was chosen
    named = f"{row.compression.get('elbow', 'tolerance')}" if level == "elbow" else f"{level:g}"
    return f"{row.model['name']}-{row.compression['name']}-{named}.toml"


def left_of(row: Row) -> float:
    """Return the share of a network's multiply-adds whose weight is not zero."""
    assert row.effective_macs is not None and row.macs is not None
    return row.effective_macs / row.macs


def source(row: Row, folder: Path) -> str:
    """Return where a row's shares come from."""
    return (
        f"What each layer lost in row {row.id} of {folder}, by `python -m benchmarks.layer_shares`:\n"
        f"trained on {row.dataset['name']}, accuracy {row.accuracy:.1%}, "
        f"{row.reached['ratio']:.1%} of weights zero, {left_of(row):.1%} of multiply-adds left."
    )


if __name__ == "__main__":
    main()
