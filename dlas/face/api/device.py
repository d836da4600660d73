"""A predictor for a device, from nothing: draw and measure networks, fit, and try it on others."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dlas.face.console.progress import ConsoleDisplay, ProgressKind
from dlas.face.console.views import View
from dlas.sweep.engine.session import Session, Steps

Say = Callable[[str], None]
NEVER_SEEN = ("resnet18", "mobilenet_v2", "squeezenet1_0", "googlenet", "efficientnet_b0")
"""Networks that a predictor is tried on: residual, depthwise, of fire modules, of branches, with gates."""
MOST_JOBS = 4
"""Network and build steps at a time, on machines with many cores."""


def fit_device(
    to: str | os.PathLike[str],
    *,
    minutes: float = 30.0,
    hardware: str | Mapping[str, Any] = "local_cpu",
    compiler: str | Mapping[str, Any] = "onnxruntime",
    threads: int | None = None,
    algorithm: str | Mapping[str, Any] | None = None,
    model: str | Mapping[str, Any] = "random_layers",
    target: str = "latency_s",
    unseen: Sequence[str | Mapping[str, Any]] = NEVER_SEEN,
    seed: int = 0,
    cache: str | os.PathLike[str] | None = None,
    steps: Steps = "spawned",
    progress: ProgressKind = "auto",
    say: Say = lambda line: None,
) -> View:
    """Make a predictor for a device within some minutes, and return how wrong it is on networks never seen.

    Networks are drawn and measured, first as they come, then those on which predictors that were fitted to
    the others disagree most for the seconds that measuring them costs.  ``boosted_kernels`` is fitted to
    all, and predicts real networks, which are then measured.  Points that fail are left out; where no more
    can be drawn, it goes on with those that there are.  Interrupted, the same call goes on.

    Parameters
    ----------
    to : path
        The predictor's folder; it must not exist, or hold an unfinished run of the same call.  Other files in
        it stay.
    minutes : float
        All that it may take.  A call that goes on may have more.
    hardware, compiler : str or mapping
        As studies name them, by name or with options; the compiler must tell the kernels of programs that it
        has not run.
    threads : int, optional
        By default 1, of hardware that takes a number.
    algorithm : str or mapping, optional
        Of a compiler that takes algorithms; by default ``spatial_pack`` in blocks of channels.
    model : str or mapping
        The part that draws networks; options that are given are not drawn.
    target : str
        ``latency_s``, or ``latency_min_s`` for what an inference takes undisturbed.
    unseen : sequence of (str or mapping)
        Networks that it is tried on, and never fitted to, each on the images that it is for.
    seed : int
        Of all random numbers.
    cache, steps, progress
        As for :func:`dlas.run` and :func:`dlas.predict`.
    say : callable
        Takes a line for what was found and is done next.

    Returns
    -------
    View
        A line for each network and batch size that was not seen: what was predicted and measured.

    Raises
    ------
    InputError
        If an argument is invalid, the device cannot be used, or the minutes are too few for the first points;
        the folder is then as it was.
    Unfinished
        If the minutes turn out too few, and the same call with more of them goes on; or too few points could
        be measured to fit anything to them.
    """
    from dlas.bench.measuring.machine import Machine
    from dlas.face.console.device import of_networks_never_seen
    from dlas.prediction.adaptive.budget import LoopBudget
    from dlas.prediction.adaptive.device.budget import check_number
    from dlas.prediction.adaptive.device.record import DeviceRequest, opened
    from dlas.prediction.adaptive.device.strategy import DeviceStrategy
    from dlas.prediction.adaptive.device.studies import DeviceStudies, examine
    from dlas.prediction.adaptive.loop import Loop

    check_number(minutes)
    asked = DeviceRequest.checked(
        hardware=_plain(hardware),
        compiler=_plain(compiler),
        threads=threads,
        algorithm=_plain(algorithm),
        model=_plain(model),
        target=target,
        unseen=list(map(_plain, unseen)),
        seed=seed,
    )
    studies, folder = DeviceStudies.of(asked), Path(to)
    run = opened(folder, asked)
    budget = LoopBudget(minutes=minutes, before_s=run.spent_s)
    studies.check(asked, budget)
    jobs = 1 if steps == "inline" else min(MOST_JOBS, Machine().most_threads())
    display = ConsoleDisplay.of(progress)
    with Session.open(steps, cache=cache, jobs=jobs, display=display) as session:
        examine(asked, say)
        for place in DeviceStrategy.places:
            session.check(studies.study(place), folder / place, [])
        strategy = DeviceStrategy(folder, asked, studies, session, budget, say)
        Loop(strategy, session, folder, budget, say).run()
    return of_networks_never_seen(strategy)


def _plain(part: object) -> object:
    """Return a part as a file can hold it."""
    return dict(part) if isinstance(part, Mapping) else part
