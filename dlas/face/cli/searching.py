"""The commands around architecture search: ``dlas search`` and ``dlas blocks``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlas.errors import InputError
from dlas.face.cli import shared_options
from dlas.face.cli.parts import PART, part_of
from dlas.face.cli.predictors import bounds_of
from dlas.face.console import terminal


def search(
    study: Annotated[Path, typer.Argument(help="A study file that draws; one value on every other axis.")],
    out: Annotated[
        Path, typer.Option(help="Folder for search.json and winners' rows. Goes on where it was.")
    ],
    estimator: Annotated[
        list[str],
        typer.Option(
            metavar="FOLDER | measure",
            help="What tells costs: a predictor, a table, or `measure`; one a bound.",
        ),
    ],
    maximise: Annotated[
        str,
        typer.Option(
            metavar="FOLDER | FILE.pth | accuracy",
            help="What tells scores: a predictor, weights from 128 values, or `accuracy` of each network.",
        ),
    ],
    within: Annotated[list[str], typer.Option(help="The most that a cost may be: latency_s=0.03.")],
    population: Annotated[int, typer.Option(help="Candidates of a generation.")] = 100,
    generations: Annotated[int, typer.Option(help="Generations.")] = 500,
    parents: Annotated[float, typer.Option(help="Share of a population that has children.")] = 0.25,
    mutation: Annotated[float, typer.Option(help="Probability that a choice changes.")] = 0.1,
    winners: Annotated[int, typer.Option(help="The best, which are measured again.")] = 5,
    cache: shared_options.Cache = None,
) -> None:
    """Search what a study draws for the best score within a bound, and measure the winners again."""
    from dlas.face.api import studies

    view = studies.search(
        study,
        out,
        estimator=estimator,
        maximise=maximise,
        within=bounds_of(within),
        population=population,
        generations=generations,
        parents=parents,
        mutation=mutation,
        winners=winners,
        cache=cache,
        steps="spawned",  # predictors may have run kernels here before networks are made
        say=terminal.say,
    )
    terminal.show(view.shown)
    terminal.say(f"written: {out / 'search.json'}")


def blocks(
    to: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="For tables and their rows. Goes on where it was.")
    ],
    size: Annotated[str, typer.Option(help="Heights of images, each a table: 160,192,224.")] = "224",
    width: Annotated[float, typer.Option(help="1.0 or 1.2.")] = 1.2,
    compiler: Annotated[str, typer.Option(help=f"What runs the blocks. {PART}")] = "onnxruntime",
    hardware: Annotated[str, typer.Option(help=f"Where. {PART}")] = "local_cpu",
    algorithm: Annotated[str | None, typer.Option(help="Of a compiler that takes one.")] = None,
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 0,
    cache: shared_options.Cache = None,
) -> None:
    """Measure each block of Once-for-All's MobileNetV3 once, and write tables of their latencies."""
    from dlas.face.api import studies as tables

    try:
        sizes = [int(each) for each in size.split(",")]
    except ValueError:
        raise InputError(f"--size {size!r}: expected whole numbers, such as 160,192,224") from None
    view = tables.blocks(
        to,
        sizes=sizes,
        width=width,
        compiler=part_of(compiler),
        hardware="local_cpu" if hardware == "local_cpu" else part_of(hardware),
        algorithm=None if algorithm is None else part_of(algorithm),
        seed=seed,
        cache=cache,
        steps="forked",
        say=terminal.say,
    )
    terminal.show(view.shown)
