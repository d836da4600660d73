"""The commands that read rows: ``dlas table``, ``compare``, ``report``, ``export``, ``deploy``, ..."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlas.deployment.page import SUFFIX
from dlas.errors import InputError
from dlas.face.cli.commands import Call, like
from dlas.face.console import terminal

if TYPE_CHECKING:
    import pandas as pd


Json = Annotated[bool, typer.Option("--json", help="Print JSON: times in seconds, null for what is missing.")]
SLOWER = 3
"""Exit code of a comparison that finds a point slower."""
MOST_NAMED = 3
"""Most folders that are named while they are read."""
LARGE_BYTES = 2_000_000_000
"""Files of rows beyond this size take minutes and gigabytes, which filters lessen."""
RowId = Annotated[
    str | None,
    typer.Argument(help="A row's id, or enough of its beginning; of a predictor, the number of a setting."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        help="Keep the rows that match: model=cifar_*, compression.level=0.8, "
        "or a condition: \"algorithm == 'gemm' and batch > 1\"."
    ),
]


def show(
    folder: Annotated[
        Path,
        typer.Argument(help="A folder that `dlas run --out` wrote, or a predictor that `dlas fit` wrote."),
    ],
    row: RowId = None,
    fastest: Annotated[bool, typer.Option("--fastest", help="The fastest row.")] = False,
    against: Annotated[
        Path | None,
        typer.Option(
            help="Say what differs from the point's row in this folder; in the same, an earlier one."
        ),
    ] = None,
    where: Where = None,
    json: Json = False,
) -> None:
    """Show everything about one row, what differs between two of a point, or a predictor's card."""
    if not fastest and against is None and not where and _is_predictor(folder, row):
        _show_predictor(folder, row, json)
        return

    from dlas.analysis.against.differences import difference_of
    from dlas.analysis.winners import fastest_id
    from dlas.face.console import as_json, differences
    from dlas.face.console.show import show as render
    from dlas.sweep.rows.finding import find

    if fastest == (row is not None):
        raise InputError("give the row's id, as `dlas table` prints it, or --fastest")
    if where and not fastest:
        raise InputError("--where chooses among the rows of --fastest")
    chosen = row or fastest_id(_told(_read([folder], where or ()), where or ()))
    if against is not None:
        found = difference_of(folder, chosen, against)
        if json:
            terminal.show_json(as_json.of_difference(found))
        else:
            terminal.show(differences.show(found))
    elif json:
        terminal.show_json(as_json.of_row(find(folder, chosen)))
    else:
        terminal.show(render(folder, chosen))


def _is_predictor(folder: Path, row: str | None) -> bool:
    """Return whether a folder holds a predictor that is asked for, not a row that is beside it."""
    from dlas.prediction.predictors.fitted.folders import FILE
    from dlas.sweep.rows.files import holds_rows

    return (folder / FILE).is_file() and (row is None or not holds_rows(folder))


def _show_predictor(folder: Path, number: str | None, json: bool) -> None:
    """Print a predictor's card, of all settings or of the one with a number."""
    from dlas.face.console import as_json
    from dlas.face.console.cards import show as card
    from dlas.prediction.learning import stored

    if json:
        terminal.show_json(as_json.of_predictor(stored.read(folder), number))
    else:
        terminal.show(card(folder, number))


@like("table", "rows")
def table(call: Call, rows: list[Path], where: Sequence[str], sort: str, json: Json = False) -> None:
    """Print every point's row, beside the fastest of its kind; predicted points are marked."""
    from dlas.face.console import as_json

    if json:
        found = _told(_read(rows, where, predictions=True), where, predictions=True)
        terminal.show_json(as_json.of_table(found, sort))
    else:
        _print(call, rows)


@like("compare", "rows")
def compare(
    call: Call,
    rows: list[Path],
    where: Sequence[str],
    axis: str | None,
    against: list[Path] | None,
    baseline: str | None,
    every: bool,
    json: Json = False,
    fail_if_slower: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="End with exit code 3 if a point is surely slower by this: 5%."),
    ] = None,
) -> None:
    """Compare the values of one axis on matched points, or the same points in two runs."""
    from dlas.analysis.against.changes import changes_between
    from dlas.analysis.compare import compare as matched
    from dlas.face.console import as_json
    from dlas.face.tables.changes import grid

    share = None if fail_if_slower is None else _share(fail_if_slower)
    if share is not None and against is None:
        raise InputError("`fail_if_slower=` compares two runs: give the earlier one, `against=`")
    if against is None or axis is not None or baseline is not None:
        if json and axis is not None and against is None:
            found = _told(_read(rows, where), where)
            terminal.show_json(as_json.of_comparison(matched(found, axis, baseline), found))
        else:
            _print(call, rows)
        return
    with terminal.working(f"comparing {_named(rows)} with {_named(against)}"):
        changes = changes_between(rows, against, where)
    if json:
        terminal.show_json(as_json.of_changes(changes))
    else:
        terminal.show(grid(changes, every))
    if share is not None and changes.slower_by(share):
        raise typer.Exit(SLOWER)


@like("history", "folders")
def history(
    call: Call, folders: list[Path], where: Sequence[str], to: Path | None, every: bool, json: Json = False
) -> None:
    """Print how the times of points went over versions, and at which of these their level changed."""
    from dlas.analysis.against.history import history_in
    from dlas.face.console import as_json
    from dlas.face.reporting.history import check_figure, write_history
    from dlas.face.tables.history import grid

    check_figure(to)
    found = history_in(folders, where)
    if to is not None:
        write_history(found, to)
    if json:
        terminal.show_json(as_json.of_history(found))
        return
    terminal.show(grid(found, every))
    if to is not None:
        terminal.say(f"written: {to}")


def _share(text: str) -> float:
    """Return the share in ``5%``."""
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not text.endswith("%") or not 0 <= share < float("inf"):
        raise InputError(f"`fail_if_slower={text!r}`: expected a percentage, such as 5%")
    return share


@like("report", "folders")
def report(call: Call, folders: list[Path], files: bool) -> None:
    """Write one HTML page that shows everything, and opens without a network."""
    from dlas.face.reporting import files_beside

    with terminal.working(f"drawing the report of {_named(folders)}"):
        page = call()
    beside = f", figures and tables: {files_beside(page)}" if files else ""
    terminal.say(f"{page}{beside}")


@like("atlas", "folders")
def atlas(call: Call, folders: list[Path]) -> None:
    """Write one HTML page with every row of many studies, to filter and sort without a network."""
    with terminal.working(f"reading {_named(folders)}"):
        page = call()
    terminal.say(f"{page}: open it in a browser")


@like("observations", "rows")
def observations(call: Call, rows: list[Path]) -> None:
    """Check the paper's observations I to XIII on the rows."""
    _print(call, rows)


@like("paths", "rows")
def paths(call: Call, rows: list[Path]) -> None:
    """Print which paths of flexible networks are worth taking, and whether batch or device changes that."""
    _print(call, rows)


@like("variability", "folders")
def variability(call: Call, folders: list[Path]) -> None:
    """Compare boards alike, or runs on one machine: which stand out, and how many it takes to see 2 %."""
    _print(call, folders)


@like("read", "folders")
def export(
    call: Call,
    path: Annotated[Path, typer.Option("--to", help="Where to write: *.parquet or *.csv.")],
    layers: Annotated[
        bool, typer.Option("--layers", help="One line for each layer of each row, with shapes and times.")
    ] = False,
    where: Where = None,
) -> None:
    """Write the rows as Parquet (with every sample) or CSV (without), or their layers."""
    from dlas.sweep.rows.export import export as write
    from dlas.sweep.rows.frame import read_each, select

    write(_told(select(call.of(read_each), where or ()), where or ()), path)


@like("import_rows", "path", path="file", folder="--out")
def import_rows(call: Call, folder: Path) -> None:
    """Make rows of a table from elsewhere, with the columns that `dlas export` writes, or some of them."""
    from dlas.analysis.importing.rows import import_rows as write
    from dlas.sweep.rows.labels import rows

    done = call.of(write)
    machines = ", ".join(f"{count:,} of {name}" for name, count in done.machines.items())
    terminal.say(f"{rows(done.rows)} imported ({machines or 'none with a machine'}): {folder}")
    terminal.say(f"next: dlas table {folder}")


@like("merge", "folders")
def merge(call: Call, out: Path) -> None:
    """Join the rows of folders of one study, such as its shards, into a new one."""
    call(say=terminal.say)
    terminal.say(f"next: dlas table {out}")


@like("choose", "folders")
def choose(call: Call, folders: list[Path]) -> None:
    """Write the table for `per_layer` that makes a network fastest, and say what it gains."""
    _print(call, folders)


@like("deploy", "folder", "row")
def deploy(
    call: Call,
    to: Path,
    where: Sequence[str],
    row: RowId = None,
    fastest: Annotated[bool, typer.Option("--fastest", help="Deploy the fastest row.")] = False,
    paths: Annotated[
        bool, typer.Option("--paths", help="Deploy all paths of a flexible network as one program.")
    ] = False,
    float16_weights: Annotated[
        bool, typer.Option("--float16-weights", help="Of a page: store weights in half as many bytes.")
    ] = False,
) -> None:
    """Write a row's program, or that of all paths, with all that it needs to run elsewhere.

    With a name that ends with .html it becomes one page, which runs the network in any browser.
    """
    if (row is not None) + fastest + paths != 1:
        raise InputError("give the row's id, as `dlas table` prints it, or --fastest, or --paths")
    if where and not (fastest or paths):
        raise InputError("--where chooses among the rows of --fastest or --paths")
    page = to.suffix == SUFFIX
    if float16_weights and not page:
        raise InputError(f"--float16-weights is of a page, and --to {str(to)!r} does not end with {SUFFIX}")
    with terminal.working("importing what makes programs"):
        from dlas.deployment.deploying import DeploymentFailed
        from dlas.deployment.deploying import deploy as write
        from dlas.deployment.flexible import deploy_paths
        from dlas.deployment.page.writing import deploy_page
    try:
        if page:
            call.of(deploy_page, say=terminal.say, paths=paths, float16_weights=float16_weights)
        else:
            call.of(deploy_paths if paths else write, say=terminal.say)
    except DeploymentFailed as error:
        terminal.complain(str(error))
        raise typer.Exit(1) from None
    told = "open it in a browser" if page else "its README.md says how to run it"
    terminal.say(f"deployed to {to}: {told}")


def _print(call: Call, folders: Sequence[Path]) -> None:
    """Print the table that a call returns."""
    from dlas.sweep.rows.files import FILE

    if not call.values.get("where"):
        files = [folder / FILE for folder in folders]
        size = sum(file.stat().st_size for file in files if file.is_file())
        if size > LARGE_BYTES:
            terminal.warn(
                f"{size / 1e9:.1f} GB of rows: with --where, such as model=resnet18, they take less memory"
            )
    with terminal.working(f"reading {_named(folders)}"):
        found = call()
    terminal.show(found.shown)


def _named(folders: Sequence[Path]) -> str:
    """Return the names of folders, or how many there are."""
    return ", ".join(map(str, folders)) if len(folders) <= MOST_NAMED else f"{len(folders):,} folders"


def _read(folders: Sequence[Path], where: Sequence[str], predictions: bool = False) -> pd.DataFrame:
    """Return the rows of all folders that match every pattern, and predictions of points without one."""
    from dlas.sweep.rows.frame import read_each, select, without_measured

    return select(without_measured(read_each(folders, predictions=predictions)), where)


def _told(frame: pd.DataFrame, where: Sequence[str], predictions: bool = False) -> pd.DataFrame:
    """Return rows, after a warning of the points of their studies that have none."""
    from dlas.sweep.rows.missing import told

    for line in told(frame, bool(where), predictions):
        terminal.warn(line)
    return frame
