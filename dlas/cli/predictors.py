"""The commands around predictors: ``dlas fit``, ``fit-device``, ``evaluate`` and ``predict``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dlas.cli import shared_options
from dlas.cli.parts import PART, option_of, part_of
from dlas.console import terminal
from dlas.errors import InputError

Folders = Annotated[list[Path], typer.Argument(help="Folders that `dlas run --out` wrote.")]
Target = Annotated[str, typer.Option(help="The column to predict: latency_s, peak_memory_bytes.")]
HoldOut = Annotated[
    str | None,
    typer.Option(
        help="Groups held out in turn: model, compression.level, batch; in ten parts: network/10; "
        "a share: model=30%; or those named: model=resnet50,googlenet."
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


def fit_device(
    to: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="The predictor's folder. After Ctrl-C the same command goes on."
        ),
    ],
    minutes: Annotated[float, typer.Option(help="All that it may take.")] = 30.0,
    hardware: Annotated[str, typer.Option(help=f"The device. {PART}")] = "local_cpu",
    compiler: Annotated[str, typer.Option(help=f"What runs the networks. {PART}")] = "onnxruntime",
    threads: Annotated[int | None, typer.Option(help="Of hardware that takes a number (default: 1).")] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(help="Of a compiler that takes one (default: spatial_pack in blocks of channels)."),
    ] = None,
    model: Annotated[str, typer.Option(help=f"The part that draws networks. {PART}")] = "random_layers",
    target: Annotated[
        str, typer.Option(help="latency_s; or latency_min_s, undisturbed on a busy machine.")
    ] = "latency_s",
    unseen: Annotated[
        list[str] | None,
        typer.Option(help=f"A network to try it on, or several (default: five of torchvision). {PART}"),
    ] = None,
    seed: Seed = 0,
    cache: shared_options.Cache = None,
) -> None:
    """Make a predictor of latency for this machine: draw networks, measure, fit, and try it on others."""
    from dlas.api import device
    from dlas.learning.device_runs import predicting

    view = device.fit_device(
        to,
        minutes=minutes,
        hardware=part_of(hardware),
        compiler=part_of(compiler),
        threads=threads,
        algorithm=None if algorithm is None else part_of(algorithm),
        model=part_of(model),
        target=target,
        unseen=tuple(map(part_of, unseen or device.NEVER_SEEN)),
        seed=seed,
        cache=cache,
        steps="forked",
        say=terminal.say,
    )
    terminal.show(view.shown)
    terminal.say(f"fitted: {to}\nnext: {predicting(to, part_of(hardware))}")


def evaluate(
    folders: Folders,
    predictors: Annotated[
        list[str],
        typer.Option(
            "--predictor",
            help="A predictor's name; a table with options: {name = 'additive', costs = 'stage'}; or "
            "a folder that `dlas fit` wrote.",
        ),
    ],
    target: Target,
    hold_out: HoldOut = None,
    rows: Annotated[
        str | None,
        typer.Option(help="Numbers of rows to fit to, by which the errors are told: 50,100,400."),
    ] = None,
    where: Where = None,
    seed: Seed = 0,
) -> None:
    """Compare predictors on groups that were held out."""
    from dlas.api import predicting

    view = predicting.evaluate(
        folders,
        predictors=[part_of(each) for each in predictors],
        target=target,
        hold_out=hold_out,
        row_counts=_numbers("--rows", rows, "50,100,400"),
        where=where or (),
        seed=seed,
        say=terminal.progress,
    )
    terminal.show(view.shown)


def predict(
    predictor: Annotated[Path, typer.Argument(help="A folder that `dlas fit --to` wrote.")],
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="[STUDY | FOLDER | FILE.onnx | MODULE:NAME]",
            help="A study file, whose points are predicted; a folder with rows; an ONNX file; or a torch "
            "module to import, mine.py:Net or package.module:factory.",
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help=f"A network in place of a study. {PART}")] = None,
    batch: Annotated[
        str | None, typer.Option(help="A network's batches: 1,8 (default: 1; in training the least fitted).")
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Height and width of a network's images (default: what it is for).")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Threads, of those that were fitted (default: each).")
    ] = None,
    compiler: Annotated[
        str | None, typer.Option(help="Compiler, of those that were fitted (default: each).")
    ] = None,
    hardware: Annotated[
        str | None, typer.Option(help="Whose programs tell a network's kernels (default: local_cpu).")
    ] = None,
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
    cache: shared_options.Cache = None,
) -> None:
    """Predict a network, or the points of a study, without building or measuring them."""
    from dlas.api import predictions

    view = predictions.predict(
        predictor,
        study,
        model=None if model is None else part_of(model),
        batch=_numbers("--batch", batch, "1,8"),
        size=size,
        threads=threads,
        compiler=compiler,
        hardware=None if hardware is None else part_of(hardware),
        out=out,
        within=bounds_of(within or ()),
        where=where or (),
        anyway=anyway,
        cache=cache,
        jobs=jobs,
        steps="spawned",  # reading a predictor may run kernels here, whose threads a fork would lack
    )
    terminal.show(view.shown)
    if out is not None:
        terminal.say(f"written: {out / 'predictions.jsonl'}")


def _numbers(option: str, text: str | None, example: str) -> tuple[int, ...]:
    """Return the whole numbers in ``1,8``."""
    try:
        return tuple(int(number) for number in text.split(",")) if text is not None else ()
    except ValueError:
        raise InputError(f"{option} {text!r}: expected whole numbers, such as {example}") from None


def bounds_of(texts: Sequence[str]) -> dict[str, float]:
    """Return the most of each quantity in ``latency_s=0.05``, ...

    Raises
    ------
    InputError
        If a text is no bound, or two are for one quantity.
    """
    found: dict[str, float] = {}
    for text in texts:
        name, _, most = text.partition("=")
        try:
            value = float(most)
        except ValueError:
            value = -1.0
        if not name.strip() or not 0 < value < float("inf"):
            raise InputError(
                f"--within {text!r}: expected a quantity and a positive number, such as latency_s=0.05"
            )
        if name.strip() in found:
            raise InputError(f"--within {text!r}: {name.strip()} has another bound already")
        found[name.strip()] = value
    return found
