"""The commands for tuning: ``dlas tune`` and ``dlas records list | export | merge``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from dlas.bench.store import cache as caches
from dlas.bench.store.toml import check_regular
from dlas.errors import InputError
from dlas.face.cli import commands
from dlas.face.cli.values import PART, part_of
from dlas.face.console import terminal
from dlas.face.console.records import COLUMNS, cells

if TYPE_CHECKING:
    from dlas.lowering.tuning.record_files import RecordStore

records = typer.Typer(
    name="records", help="What tuning has tried so far, on all machines.", no_args_is_help=True
)
CacheFolder = Annotated[
    Path | None, typer.Option("--cache", help="The cache with the records (default: $DLAS_CACHE).")
]


def tune(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help=f"Networks to tune. {PART}")],
    dataset: Annotated[str, typer.Option(help=PART)] = "digits",
    compression: Annotated[list[str], typer.Option(help=PART)] = ["none"],  # noqa: B006 - typer copies it
    algorithm: Annotated[list[str], typer.Option(help=PART)] = ["direct"],  # noqa: B006
    hardware: Annotated[list[str], typer.Option(help=PART)] = ["local_cpu"],  # noqa: B006
    batch: Annotated[list[int], typer.Option(min=1)] = [1],  # noqa: B006
    preset: Annotated[str | None, typer.Option(help="smoke, quick or paper.")] = None,
    trials: Annotated[int | None, typer.Option(help="For each workload.")] = None,
    early_stop: Annotated[int | None, typer.Option(help="Trials without a better one; 0 for never.")] = None,
    per_round: Annotated[int | None, typer.Option(help="Candidates proposed together.")] = None,
    space: Annotated[str | None, typer.Option(help="algorithm, or rules for TVM's own.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the search.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Networks made at a time.")] = 1,
    cache: CacheFolder = None,
) -> None:
    """Tune networks ahead, and record the trials for studies with the same choices."""
    from dlas.face.console.progress import ConsoleDisplay
    from dlas.sweep.engine.session import Session
    from dlas.sweep.study.study import Study

    options = {
        "preset": preset,
        "trials": trials,
        "early_stop": early_stop,
        "per_round": per_round,
        "space": space,
        "seed": seed,
    }
    chosen = {name: value for name, value in options.items() if value is not None}
    axes = {
        "dataset": [part_of(dataset)],
        "model": [*map(part_of, models)],
        "compression": [*map(part_of, compression)],
        "algorithm": [*map(part_of, algorithm)],
        "compiler": [{"name": "metaschedule", **chosen}],
        "hardware": [*map(part_of, hardware)],
        "batch": batch,
    }
    study = Study(axes, name="tune")
    with Session.open(commands.STEPS, cache=cache, jobs=jobs, display=ConsoleDisplay.of()) as session:
        session.check(study)
        made = session.make(study, until="tune", workspace="tune")
    failed = [row for row in made.rows if row.status != "ok"]
    if failed:
        count = f"{len(failed)} of {len(made.rows)} points were not tuned"
        terminal.complain(f"{count}; logs are in {made.folder / 'logs'}")
        raise typer.Exit(1)


@records.command("list")
def list_records(cache: CacheFolder = None) -> None:
    """Show what has been tuned: each workload, how long, and how fast it became."""
    from dlas.lowering.tuning.exchange import all_records

    table = Table(*COLUMNS, box=None, pad_edge=False)
    workloads = all_records(_store(cache))
    for workload in workloads:
        table.add_row(*map(escape, cells(workload)))
    terminal.show(table)
    trials = sum(len(workload.trials) for workload in workloads)
    terminal.console().print(f"{len(workloads):,} workloads, {trials:,} trials", highlight=False)


@records.command("export")
def export_records(
    path: Annotated[Path, typer.Option("--to", help="The file to write, for `dlas records merge`.")],
    cache: CacheFolder = None,
) -> None:
    """Write all records into one file, for another machine or to keep."""
    from dlas.lowering.tuning.exchange import export

    count = export(_store(cache), path)
    terminal.console().print(f"{count:,} workloads written to {path}", highlight=False, markup=False)


@records.command("merge")
def merge_records(
    files: Annotated[list[Path], typer.Argument(help="Files that `dlas records export` wrote.")],
    cache: CacheFolder = None,
) -> None:
    """Add the records of other stores to this one; existing records stay unchanged."""
    from dlas.lowering.tuning.exchange import merge

    for file in files:
        check_regular(file, "records")
    report = merge(_store(cache), files)
    line = f"{report.workloads:,} workloads, {report.new:,} of them new; {report.trials:,} trials added"
    if report.diverged:
        line += f"; of {report.diverged:,} workloads only the trials before the searches parted"
    terminal.console().print(line, highlight=False)


def _store(cache: Path | None) -> RecordStore:
    from dlas.lowering.tuning.record_files import RecordStore

    root = cache or caches.default_root()
    if root.exists() and not root.is_dir():
        raise InputError(f"the cache {str(root)!r} is a file, and a folder is expected")
    return RecordStore(root / caches.RECORDS)
