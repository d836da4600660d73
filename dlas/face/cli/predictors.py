"""The commands around predictors: ``dlas fit``, ``fit-device``, ``evaluate`` and ``predict``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dlas.face.cli import commands
from dlas.face.cli.commands import Call, like
from dlas.face.console import terminal


@like("fit", "part", "rows")
def fit(call: Call, to: Path) -> None:
    """Fit a predictor to rows, and say how wrong it is on groups that were held out."""
    terminal.show(call(say=terminal.progress).shown)
    terminal.say(f"fitted: {to}")


@like("fit_device", "to", to="FOLDER")
def fit_device(call: Call, to: Path, hardware: str | Mapping[str, Any]) -> None:
    """Make a predictor of latency for this machine: draw networks, measure, fit, and try it on others."""
    from dlas.prediction.adaptive.device.record import predicting

    terminal.show(call(steps=commands.STEPS, say=terminal.say).shown)
    terminal.say(f"fitted: {to}\nnext: {predicting(to, hardware)}")


@like("evaluate", "rows")
def evaluate(
    call: Call,
) -> None:
    """Compare predictors on groups that were held out."""
    terminal.show(call(say=terminal.progress).shown)


@like("predict", "folder", "study", folder="predictor")
def predict(
    call: Call,
    out: Path | None,
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="[STUDY | FOLDER | FILE.onnx | MODULE:NAME]",
            help="A study file, whose points are predicted; a folder with rows; an ONNX file; or a torch "
            "module to import, mine.py:Net or package.module:factory.",
        ),
    ] = None,
) -> None:
    """Predict a network, or the points of a study, without building or measuring them."""
    # Reading a predictor may have run kernels here.
    terminal.show(call(steps="spawned").shown)
    if out is not None:
        terminal.say(f"written: {out / 'predictions.jsonl'}")
