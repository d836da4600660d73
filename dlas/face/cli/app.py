"""The command line: ``dlas run | explore | list | show | table | compare | report | export | ...``."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from dlas.bench.processes.forking import ASKS_THE_DRIVER
from dlas.errors import DamagedRows, InputError, Unfinished
from dlas.face.cli import parts, predictors, rows, serving, sweeps, tuning
from dlas.face.cli.commands import Command
from dlas.face.console import terminal
from dlas.face.console.installation import broken_package

app = typer.Typer(
    name="dlas",
    help="Measure what dataset, model, compression, algorithm, compiler and hardware do to each other.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
COMMANDS: dict[str, Callable[..., None]] = {
    "run": sweeps.run,
    "explore": sweeps.explore,
    "status": sweeps.status,
    "merge": rows.merge,
    "tune": tuning.tune,
    "list": parts.list_parts,
    "check": parts.check,
    "fit": predictors.fit,
    "fit-device": predictors.fit_device,
    "evaluate": predictors.evaluate,
    "predict": predictors.predict,
    "search": sweeps.search,
    "blocks": sweeps.blocks,
    "serve": serving.serve,
    "show": rows.show,
    "table": rows.table,
    "compare": rows.compare,
    "history": rows.history,
    "report": rows.report,
    "atlas": rows.atlas,
    "watch": serving.watch,
    "observations": rows.observations,
    "paths": rows.paths,
    "variability": rows.variability,
    "export": rows.export,
    "import": rows.import_rows,
    "choose": rows.choose,
    "deploy": rows.deploy,
    "doctor": serving.doctor,
}
"""In the order in which help lists them."""
for name, command in COMMANDS.items():
    app.command(name, cls=Command)(command)
app.add_typer(tuning.records)


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


def _shown_once(otherwise: Callable[..., None]) -> Callable[..., None]:
    """Return what shows a warning of damaged rows as one line, once, however often they are read."""
    told: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *place: object, **more: object) -> None:
        if not issubclass(category, DamagedRows):
            otherwise(message, category, *place, **more)
        elif str(message) not in told:
            told.add(str(message))
            terminal.warn(str(message))

    return show


def run_command() -> NoReturn:
    """Run the command line; bad input ends in one message and exit code 2."""
    sys.path.append(os.getcwd())  # for a study's "module:Class"
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it interrupts like Ctrl-C
    os.environ.setdefault(ASKS_THE_DRIVER, "1")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", DamagedRows)
            warnings.showwarning = _shown_once(warnings.showwarning)
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
        if hasattr(error, "format_message"):  # a usage error of click
            terminal.complain(error.format_message())
            code = 2
        elif broken := broken_package(error):
            terminal.complain(broken)
            code = 1
        else:
            raise
    sys.exit(code)
