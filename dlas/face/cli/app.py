"""The command line: ``dlas run | explore | list | show | table | compare | report | export | ...``."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.markup import escape
from rich.table import Table

from dlas.errors import InputError, Unfinished
from dlas.face.cli import parts, predictors, searching, serving, shared_options, sweeps, tuning
from dlas.face.console import terminal

app = typer.Typer(
    name="dlas",
    help="Measure what dataset, model, compression, algorithm, compiler and hardware do to each other.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)

app.command()(sweeps.run)
app.command()(sweeps.explore)
app.command()(sweeps.status)
app.command()(tuning.tune)
app.command("list")(parts.list_parts)
app.command()(parts.check)
app.command()(predictors.fit)
app.command("fit-device")(predictors.fit_device)
app.command()(predictors.evaluate)
app.command()(predictors.predict)
app.command()(searching.search)
app.command()(searching.blocks)
app.command()(serving.serve)
app.add_typer(tuning.records)

Folder = Annotated[Path, typer.Argument(help="A folder that `dlas run --out` wrote.")]
Folders = Annotated[list[Path], typer.Argument(help="Folders that `dlas run --out` wrote.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        help="Keep the rows that match: model=cifar_*, compression.level=0.8, "
        "or a condition: \"algorithm == 'gemm' and batch > 1\".",
    ),
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON: times in seconds, null for what is missing.")]
All = Annotated[bool, typer.Option("--all", help="Print all lines, also where there are thousands.")]


def _version(asked: bool) -> None:
    """Print the version and end, if asked for it."""
    if asked:
        from dlas.bench.store.fingerprint import version as installed

        terminal.console().print(f"dlas {installed('dlas') or 'unknown'}", highlight=False)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measure what dataset, model, compression, algorithm, compiler and hardware do to each other."""


def run_command() -> NoReturn:
    """Run the command line; bad input ends in one message and exit code 2."""
    sys.path.append(os.getcwd())  # for a study's "module:Class"
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it interrupts like Ctrl-C
    try:
        code = app(standalone_mode=False) or 0
    except InputError as error:
        terminal.complain(str(error))
        code = 2
    except Unfinished as error:
        terminal.complain(str(error))
        code = 1
    except KeyboardInterrupt:
        terminal.complain("interrupted")
        code = 130
    except Exception as error:
        if not hasattr(error, "format_message"):  # not a usage error of click
            raise
        terminal.complain(error.format_message())
        code = 2
    sys.exit(code)


@app.command()
def show(
    folder: Folder,
    row: Annotated[str | None, typer.Argument(help="A row's id, or enough of its beginning.")] = None,
    fastest: Annotated[bool, typer.Option("--fastest", help="The fastest row.")] = False,
    where: Where = None,
    json: Json = False,
) -> None:
    """Show everything about one row."""
    from dlas.analysis.winners import fastest_id
    from dlas.face.console import as_json
    from dlas.face.console.show import show as render
    from dlas.sweep.rows.finding import find

    if fastest == (row is not None):
        raise InputError("give the row's id, as `dlas table` prints it, or --fastest")
    if where and not fastest:
        raise InputError("--where chooses among the rows of --fastest")
    chosen = row or fastest_id(_read([folder], where))
    if json:
        terminal.show_json(as_json.of_row(find(folder, chosen)))
    else:
        terminal.show(render(folder, chosen))


@app.command()
def table(
    folders: Folders,
    where: Where = None,
    sort: Annotated[
        str, typer.Option(help="latency, accuracy, error, memory, size, ... or an axis.")
    ] = "latency",
    every: All = False,
    json: Json = False,
) -> None:
    """Print every point's row, beside the fastest of its kind; predicted points are marked."""
    from dlas.face.api import results
    from dlas.face.console import as_json

    rows = _read(folders, where, predictions=True)
    if json:
        terminal.show_json(as_json.of_table(rows, sort))
    else:
        terminal.show(results.table(rows, sort=sort, every=every))


@app.command()
def compare(
    folders: Folders,
    axis: Annotated[str, typer.Option(help="The axis whose values are compared.")],
    baseline: Annotated[str | None, typer.Option(help="The value that the others are divided by.")] = None,
    where: Where = None,
    every: All = False,
    json: Json = False,
) -> None:
    """Compare the values of one axis on matched points."""
    from dlas.analysis.compare import compare as matched
    from dlas.face.api import results
    from dlas.face.console import as_json

    rows = _read(folders, where)
    if json:
        terminal.show_json(as_json.of_comparison(matched(rows, axis, baseline)))
    else:
        terminal.show(results.compare(rows, axis, baseline=baseline, every=every))


@app.command()
def report(
    folders: Folders,
    out: Annotated[
        Path | None, typer.Option(help="The HTML file (default: report.html in the first folder).")
    ] = None,
    files: Annotated[
        bool, typer.Option("--files", help="Also write figures (SVG, PDF, PNG) and tables (md, csv, tex).")
    ] = False,
    where: Where = None,
    predictors: Annotated[
        list[Path] | None, typer.Option("--predictor", help="Show how wrong this predictor is.")
    ] = None,
) -> None:
    """Write one HTML page that shows everything, and opens without a network."""
    from dlas.face.api import results

    page = results.report(folders, out, where=where or (), files=files, predictors=predictors or ())
    beside = results.files_beside(page) if files else None
    terminal.console().print(
        f"{page}" + (f", figures and tables: {beside}" if beside else ""), highlight=False, markup=False
    )


@app.command()
def observations(folders: Folders, where: Where = None) -> None:
    """Check the paper's observations I to XIII on the rows."""
    from dlas.face.api import results

    terminal.show(results.observations(folders, where=where or ()))


@app.command()
def paths(folders: Folders, where: Where = None) -> None:
    """Print which paths of flexible networks are worth taking, and whether batch or device changes that."""
    from dlas.face.api import results

    terminal.show(results.paths(folders, where=where or ()))


@app.command()
def export(
    folders: Folders,
    path: Annotated[Path, typer.Option("--to", help="Where to write: *.parquet or *.csv.")],
    layers: Annotated[
        bool, typer.Option("--layers", help="One line for each layer of each row, with shapes and times.")
    ] = False,
    where: Where = None,
) -> None:
    """Write the rows as Parquet (with every sample) or CSV (without), or their layers."""
    from dlas.sweep.rows.export import export as write
    from dlas.sweep.rows.frame import read, select

    write(select(read(folders, layers=layers), where or ()), path)


@app.command("import")
def import_rows(
    file: Annotated[Path, typer.Argument(help="A table of measurements: *.csv, *.csv.xz or *.parquet.")],
    out: Annotated[Path, typer.Option(help="A new folder for the rows.")],
) -> None:
    """Make rows of a table from elsewhere, with the columns that `dlas export` writes, or some of them."""
    from dlas.analysis.importing.rows import import_rows as write
    from dlas.sweep.rows.labels import rows

    done = write(file, out)
    machines = ", ".join(f"{count:,} of {name}" for name, count in done.machines.items())
    terminal.say(f"{rows(done.rows)} imported ({machines or 'none with a machine'}): {out}")
    terminal.say(f"next: dlas table {out}")


@app.command()
def choose(
    folders: Folders,
    path: Annotated[
        Path | None,
        typer.Option("--to", help="The table to write (default: choices.toml in the first folder)."),
    ] = None,
    where: Where = None,
) -> None:
    """Write the table for `per_layer` that makes a network fastest, and say what it gains."""
    from dlas.face.api import results

    terminal.show(results.choose(folders, to=path, where=where or ()))


@app.command()
def deploy(
    folder: Folder,
    to: Annotated[Path, typer.Option(help="The folder to write; it must not exist, or be empty.")],
    row: Annotated[str | None, typer.Argument(help="A row's id, or enough of its beginning.")] = None,
    fastest: Annotated[bool, typer.Option("--fastest", help="Deploy the fastest row.")] = False,
    paths: Annotated[
        bool, typer.Option("--paths", help="Deploy all paths of a flexible network as one program.")
    ] = False,
    where: Where = None,
    cache: shared_options.Cache = None,
) -> None:
    """Write a row's program, or that of all paths, with all that it needs to run elsewhere."""
    from dlas.deployment.deploying import DeploymentFailed
    from dlas.deployment.deploying import deploy as write
    from dlas.deployment.flexible import deploy_paths

    if (row is not None) + fastest + paths != 1:
        raise InputError("give the row's id, as `dlas table` prints it, or --fastest, or --paths")
    if where and not (fastest or paths):
        raise InputError("--where chooses among the rows of --fastest or --paths")
    try:
        if paths:
            deploy_paths(folder, to=to, where=where or (), cache=cache, say=terminal.say)
        else:
            write(folder, row, to=to, where=where or (), cache=cache, say=terminal.say)
    except DeploymentFailed as error:
        terminal.complain(str(error))
        raise typer.Exit(1) from None
    terminal.say(f"deployed to {to}: its README.md says how to run it")


@app.command()
def doctor(
    device: Annotated[
        str | None, typer.Option(help="A board's profile: check what reaching it takes, from here.")
    ] = None,
) -> None:
    """Check toolchain, threads, clocks, load and disk, or a board, and say what to do."""
    from dlas.sweep.engine.diagnosis import examine

    colours = {"ok": "green", "warn": "yellow", "fail": "red"}
    table = Table("", "check", "found", "what to do", box=None, pad_edge=False)
    results = examine(device)
    for check in results:
        colour = colours[check.status]
        table.add_row(
            f"[{colour}]{check.status}[/{colour}]", check.name, escape(check.finding), escape(check.advice)
        )
    terminal.show(table)
    if any(check.status == "fail" for check in results):
        raise typer.Exit(1)


def _read(folders: list[Path], where: list[str] | None, predictions: bool = False) -> Any:
    """Return the rows of all folders that match every pattern, and predictions of points without one."""
    from dlas.sweep.rows.frame import read, select, without_measured

    return select(without_measured(read(folders, predictions=predictions)), where or ())
