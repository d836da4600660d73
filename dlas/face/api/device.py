"""A predictor for a device, from nothing: draw and measure networks, fit, and try it on others."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from dlas.errors import InputError, Unfinished
from dlas.face.console.progress import ConsoleDisplay, ProgressKind
from dlas.face.console.views import View
from dlas.sweep.engine.session import Session, Steps
from dlas.sweep.rows.labels import duration, points

if TYPE_CHECKING:
    from dlas.face.api.device_bench import Bench
    from dlas.face.api.device_rounds import Rounds
    from dlas.prediction.learning.device_runs import Asked, DeviceRun
    from dlas.prediction.learning.spending import Clock
    from dlas.prediction.learning.stored import Stored

Say = Callable[[str], None]
NEVER_SEEN = ("resnet18", "mobilenet_v2", "squeezenet1_0", "googlenet", "efficientnet_b0")
"""Networks that a predictor is tried on: residual, depthwise, of fire modules, of branches, with gates."""
PART = "boosted_kernels"
HELD_OUT = 10
"""Parts of the networks, each of which is held out in turn for the intervals."""
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
    from dlas.face.api.device_bench import DeviceBench, check_device, drawn_study, named, unseen_study
    from dlas.prediction.learning.device_runs import Asked, opened
    from dlas.prediction.learning.spending import Clock, check_minutes, check_number, usual_s
    from dlas.sweep.study import parts

    check_number(minutes)
    asked = Asked.checked(
        hardware=_plain(hardware),
        compiler=_plain(compiler),
        threads=threads,
        algorithm=_plain(algorithm),
        model=_plain(model),
        target=target,
        unseen=list(map(_plain, unseen)),
        seed=seed,
    )
    studies = drawn_study(asked), unseen_study(asked)
    folder = Path(to)
    run = opened(folder, asked)
    clock = Clock(minutes, run.spent_s)
    check_device(asked, *studies)
    if not run.spent_s:
        name, _ = named("compiler", asked.compiler)
        check_minutes(minutes, name, usual_s(parts.find("compiler", name).cls), len(asked.unseen))
    jobs = 1 if steps == "inline" else min(MOST_JOBS, Machine().most_threads())
    display = ConsoleDisplay.of(progress)
    with Session.open(steps, cache=cache, jobs=jobs, display=display) as session:
        _examine(named("hardware", asked.hardware)[0], say)
        return make_predictor(folder, run, DeviceBench(folder, *studies, session), clock, say)


def _plain(part: object) -> object:
    """Return a part as a file can hold it."""
    return dict(part) if isinstance(part, Mapping) else part


def make_predictor(folder: Path, run: DeviceRun, bench: Bench, clock: Clock, say: Say) -> View:
    """Measure, fit and try a predictor; what was done before is not done again.

    Parameters
    ----------
    folder : Path
        The predictor's.
    run : DeviceRun
        What was asked for; it is written to the folder, with the seconds spent, whatever happens.
    bench : Bench
    clock : Clock
    say : callable
    """
    from dlas.face.api.device_rounds import Rounds
    from dlas.prediction.learning import stored
    from dlas.prediction.learning.device_runs import save

    def noted(line: str) -> None:
        """Write down the seconds, which a process that is killed could not, and say the line."""
        save(folder, run.model_copy(update={"spent_s": clock.spent_s}))
        say(line)

    rounds = Rounds(folder, run.asked, bench, clock, noted)
    try:
        if (folder / stored.FILE).exists():
            known = stored.read(folder)
        else:
            rounds.run()
            known = _fitted(folder, run.asked, rounds, noted)
        view = _tried(folder, known, rounds)
        run = run.model_copy(update={"finished": True})
        return view
    except KeyboardInterrupt:
        spent = f"{points(len(rounds.tried()))} so far, {duration(clock.spent_s)} of {clock.minutes:g} min"
        say(f"interrupted; the same command goes on: {spent}")
        raise
    finally:
        save(folder, run.model_copy(update={"spent_s": clock.spent_s}))


def _examine(hardware: str, say: Say) -> None:
    """Say what is wrong with the device; refuse one that cannot be measured on.

    Raises
    ------
    InputError
        It says what to do.
    """
    from dlas.sweep.engine.diagnosis import examine_hardware

    found = examine_hardware(hardware)
    say(f"doctor: {sum(check.status == 'ok' for check in found)} of {len(found)} checks are ok")
    for check in found:
        told = f"{check.name}: {check.finding}; {check.advice}"
        if check.status == "fail":
            raise InputError(f"doctor: {told}")
        if check.status == "warn":
            say(f"  {told}")


def _fitted(folder: Path, asked: Asked, rounds: Rounds, say: Say) -> Stored:
    """Fit a predictor to what was measured, and write it.

    Raises
    ------
    Unfinished
        If it cannot be fitted to that.
    """
    from dlas.face.console.device import held_out
    from dlas.prediction.learning import stored
    from dlas.prediction.learning.fitting import quiet
    from dlas.prediction.learning.points import NETWORK
    from dlas.prediction.learning.settings import evaluate_settings, fit_settings
    from dlas.prediction.learning.splits import Criterion
    from dlas.sweep.study import parts

    known, predictor = rounds.points(), parts.make("predictor", PART, {})
    say(f"fitting {PART} to {points(known.frame['id'].nunique())}")
    how = asked.target, Criterion(NETWORK, parts=HELD_OUT), asked.seed, quiet
    try:
        evaluated = evaluate_settings({PART: predictor}, known, *how)
        fitted = fit_settings(PART, predictor, evaluated, *how)
    except InputError as error:
        raise Unfinished(f"no predictor can be fitted: {error}") from None
    stored.write(folder, *fitted, beside=True)
    say(held_out(evaluated[0].evaluations[0].overall()))
    return stored.read(folder)


def _tried(folder: Path, known: Stored, rounds: Rounds) -> View:
    """Predict networks that were never seen, and measure them in turns with points that were fitted."""
    from dlas.analysis.matching import timed
    from dlas.face.console.device import compared, never_seen, none_seen
    from dlas.prediction.learning.device_runs import UNSEEN as PLACE
    from dlas.prediction.learning.noise import noise_floor
    from dlas.prediction.learning.points import planned_points
    from dlas.prediction.learning.predictions import predict
    from dlas.sweep.rows.frame import read

    bench, target = rounds.bench, known.record.target
    made = bench.plan(bench.unseen(), PLACE)
    if not made.rows:
        return View(pd.DataFrame(), none_seen(made.failed))
    asked = planned_points(made.rows, made.networks, made.kernels)
    found = predict(known, asked, anyway=True).frame(asked)
    told = [point for point in bench.unseen() if point.id in set(found["id"])]
    found = found.set_index("id", drop=False).loc[[point.id for point in told]].reset_index(drop=True)
    for _, own in itertools.groupby(told, key=lambda point: point.model):
        bench.measure(list(own), PLACE)
        rounds.measure_again()
    rows = read(folder / PLACE)
    usable = rows[timed(rows)]
    left_out = rows[~rows["id"].isin(usable["id"])]["reason"].fillna("its times are unstable")
    failed = made.failed + Counter(left_out.astype(str))
    frame = compared(found, dict(zip(usable["id"], usable[target], strict=True)), target)
    floor = noise_floor(rounds.points().frame, target)
    return View(frame, never_seen(frame, target, floor, failed))
