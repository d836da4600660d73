"""The commands around predictors: ``dlas fit``, ``dlas evaluate`` and ``dlas predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlas.cli.parts import option_of
from dlas.console import terminal
from dlas.errors import InputError

Folders = Annotated[list[Path], typer.Argument(help="Folders that `dlas run --out` wrote.")]
Target = Annotated[str, typer.Option(help="The column to predict: latency_s, peak_memory_bytes.")]
HoldOut = Annotated[
    str | None,
    typer.Option(
        help="Groups held out in turn: model, compression.level, batch; a share: model=30%; "
        "or those named: model=resnet50,googlenet."
    ),
]
Where = Annotated[list[str] | None, typer.Option("--where", help="Use the rows that match: task=training.")]
Seed = Annotated[int, typer.Option(help="Of all random numbers.")]


def fit(
    part: Annotated[str, typer.Argument(help="The predictor, as `dlas list predictor` names it.")],
    folders: Folders,
    target: Target,
    to: Annotated[Path, typer.Option(help="The predictor's folder; it must not exist.")],
    hold_out: HoldOut = None,
    options: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the predictor: trees=100.")
    ] = None,
    where: Where = None,
    seed: Seed = 0,
) -> None:
    """Fit a predictor to rows, and say how wrong it is on groups that were held out."""
    from dlas.api import predicting

    values = dict(map(option_of, options or ()))
    view = predicting.fit(
        part,
        folders,
        target=target,
        to=to,
        hold_out=hold_out,
        options=values,
        where=where or (),
        seed=seed,
        say=terminal.progress,
    )
    terminal.show(view.shown)
    terminal.say(f"fitted: {to}")


def evaluate(
    folders: Folders,
    predictors: Annotated[
        list[str], typer.Option("--predictor", help="A predictor's name, or a folder that `dlas fit` wrote.")
    ],
    target: Target,
    hold_out: HoldOut = None,
    where: Where = None,
    seed: Seed = 0,
) -> None:
    """Compare predictors on groups that were held out."""
    from dlas.api import predicting

    view = predicting.evaluate(
        folders,
        predictors=predictors,
        target=target,
        hold_out=hold_out,
        where=where or (),
        seed=seed,
        say=terminal.progress,
    )
    terminal.show(view.shown)


def predict(
    predictor: Annotated[Path, typer.Argument(help="A folder that `dlas fit --to` wrote.")],
    study: Annotated[
        Path, typer.Argument(help="A study file, whose points are predicted, or a folder with rows.")
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for predictions.jsonl.")] = None,
    within: Annotated[
        list[str] | None, typer.Option(help="Keep points whose upper bound is at most: latency_s=0.05.")
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option("--where", help="Predict the points that match: batch=8.")
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Predict a machine, compiler or task that was never fitted too.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Networks made at a time.")] = 1,
    cache: Annotated[Path | None, typer.Option(help="Artifact cache (default: $DLAS_CACHE).")] = None,
) -> None:
    """Predict the points of a study without building or measuring them."""
    from dlas.api import predicting

    view = predicting.predict(
        predictor,
        study,
        out=out,
        within=dict(map(_bound, within or ())),
        where=where or (),
        anyway=anyway,
        cache=cache,
        jobs=jobs,
        steps="forked",
    )
    terminal.show(view.shown)
    if out is not None:
        terminal.say(f"written: {out / 'predictions.jsonl'}")


def _bound(text: str) -> tuple[str, float]:
    """Return the quantity and the most of it in ``latency_s=0.05``."""
    name, _, most = text.partition("=")
    try:
        value = float(most)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise InputError(
            f"--within {text!r}: expected a quantity and a positive number, such as latency_s=0.05"
        )
    return name.strip(), value
