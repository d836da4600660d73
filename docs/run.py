"""Write what the documentation's measuring blocks print, with date and machine: ``make docs-run``.

    python -m docs.run [--again] [PAGE...]

Each page that has recorded outputs is run from its first block to its last, in a copy of the repository, and
then replaced at once.  A page whose outputs belong to its blocks is left as it is, so that an interrupted run
goes on; ``--again`` runs it all the same.
"""

from __future__ import annotations

import datetime
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from dlas.bench.measuring.machine import Machine
from dlas.bench.store.replacing import replacing
from dlas.sweep.rows.machines import machine_name
from docs.blocks import PAGES, Block, blocks, digest
from docs.building.places import ROOT
from docs.running import copy, environment, run

COLUMNS = 118
"""Width of a recorded output."""


def main(
    pages: Annotated[list[Path] | None, typer.Argument(help="Pages; without, all that record.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Also those whose outputs belong to them.")] = False,
) -> None:
    """Record outputs."""
    for page in pages or PAGES:
        text = page.read_text()
        if stale(text) or (again and recorded(text)):
            print(page.resolve().relative_to(ROOT), flush=True)
            with replacing(page) as new:
                new.write_text(with_outputs(text))


def recorded(text: str) -> dict[Block, str]:
    """Return the blocks of recorded outputs, each with the digest of what is run before it."""
    found: dict[Block, str] = {}
    before: list[Block] = []
    for block in blocks(text):
        if block.recorded is not None:
            found[block] = digest(before)
        elif block.runs:
            before.append(block)
    return found


def stale(text: str) -> bool:
    """Return whether an output of a page belongs to other blocks than those before it."""
    return any(not str(block.recorded).endswith(f"of {name}") for block, name in recorded(text).items())


def with_outputs(text: str) -> str:
    """Return a page with the outputs of its blocks, which are run."""
    names, written, printed, done = recorded(text), [], "", 0
    note = f"{datetime.datetime.now(datetime.UTC).date()}, {machine_name(Machine().describe())}"
    with tempfile.TemporaryDirectory() as scratch:
        folder, variables = copy(Path(scratch) / "tree"), environment(Path(scratch), COLUMNS)
        for block in blocks(text):
            if block in names:
                output = f"<!-- recorded: {note}; of {names[block]} -->\n```text\n{printed.rstrip()}\n```"
                written += [text[done : block.span[0]], output]
                done = block.span[1]
            elif block.runs:
                printed = run(block, folder, variables)
    return "".join([*written, text[done:]])


if __name__ == "__main__":
    typer.run(main)
