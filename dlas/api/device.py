"""A predictor for a device, from nothing: draw and measure networks, fit, and try it on others."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dlas.console.views import View
from dlas.errors import InputError
from dlas.rows.labels import duration, points

if TYPE_CHECKING:
    from dlas.api.device_bench import Bench
    from dlas.api.device_rounds import Rounds
    from dlas.api.running import Progress, Steps
    from dlas.learning.device_runs import Asked, DeviceRun
    from dlas.learning.spending import Clock
    from dlas.learning.stored import Stored

Say = Callable[[str], None]
UNSEEN = ("resnet18", "mobilenet_v2", "squeezenet1_0", "googlenet", "efficientnet_b0")
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
    hardware: str = "local_cpu",
    compiler: str = "onnxruntime",
    threads: int = 1,
    algorithm: str | None = None,
    model: str = "random_layers",
    target: str = "latency_s",
    unseen: Sequence[str] = UNSEEN,
    seed: int = 0,
    cache: str | os.PathLike[str] | None = None,
    steps: Steps = "spawned",
    progress: Progress = "auto",
    say: Say = lambda line: None,
) -> View:
    """Make a predictor for a device within some minutes, and return how wrong it is on networks never seen.

    Networks are drawn and measured, first as they come, then those on which predictors that were fitted to
    the others disagree most for the seconds that measuring them costs.  ``boosted_kernels`` is fitted to
    all, and predicts real networks, which are then measured.  Interrupted, the same call goes on.

    Parameters
    ----------
    to : path
        The predictor's folder; it must not exist, or hold an unfinished run of the same call.
    minutes : float
        All that it may take.  A call that goes on may have more.
    hardware, compiler : str
        As studies name them; the compiler must tell the kernels of programs that it has not run.
    threads : int
    algorithm : str, optional
        Of a compiler that takes algorithms; by default ``spatial_pack`` in blocks of channels.
    model : str
        The part that draws networks.
    target : str
        ``latency_s``, or ``latency_min_s`` for what an inference takes undisturbed.
    unseen : sequence of str
        Networks that it is tried on, and never fitted to.
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
        nothing has been written then.
    Unfinished
        If the minutes turn out too few; the same call with more of them goes on.
    """
    from dlas.api.device_bench import DeviceBench, check_device, drawn_study, unseen_study
    from dlas.api.running import runner_of
    from dlas.learning.device_runs import Asked, opened
    from dlas.learning.spending import Clock, check_minutes, usual_s
    from dlas.measuring.machine import Machine
    from dlas.study import parts

    asked = Asked.checked(
        hardware=hardware,
        compiler=compiler,
        threads=threads,
        algorithm=algorithm,
        model=model,
        target=target,
        unseen=list(unseen),
        seed=seed,
    )
    folder = Path(to)
    run = opened(folder, asked)
    clock = Clock(minutes, run.spent_s)
    studies = drawn_study(asked), unseen_study(asked)
    check_device(asked, *studies)
    if not run.spent_s:
        check_minutes(minutes, compiler, usual_s(parts.find("compiler", compiler).cls), len(unseen))
    jobs = min(MOST_JOBS, Machine().most_threads())
    with runner_of(steps) as runner:
        _examine(hardware, say)
        place = None if cache is None else Path(cache)
        bench = DeviceBench(folder, *studies, runner, place, jobs, progress)
        return make_predictor(folder, run, bench, clock, say)


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
    from dlas.api.device_rounds import Rounds
    from dlas.learning import stored
    from dlas.learning.device_runs import save

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
    from dlas.hardware import diagnosis
    from dlas.measuring import doctor
    from dlas.study import parts

    profile = parts.find("hardware", hardware).fixed.get("profile")
    if profile is not None and profile.driver == "rpc":
        found = list(diagnosis.checks(profile))
    else:
        found = doctor.checks()
    say(f"doctor: {sum(check.status == 'ok' for check in found)} of {len(found)} checks are ok")
    for check in found:
        told = f"{check.name}: {check.finding}; {check.advice}"
        if check.status == "fail":
            raise InputError(f"doctor: {told}")
        if check.status == "warn":
            say(f"  {told}")


def _fitted(folder: Path, asked: Asked, rounds: Rounds, say: Say) -> Stored:
    """Fit a predictor to what was measured, and write it."""
    from dlas.console.device import held_out
    from dlas.learning import stored
    from dlas.learning.device_runs import BESIDE
    from dlas.learning.points import NETWORK
    from dlas.learning.settings import evaluate_settings, fit_settings
    from dlas.learning.splits import Criterion
    from dlas.study import parts

    known, predictor = rounds.points(), parts.make("predictor", PART, {})
    say(f"fitting {PART} to {points(known.frame['id'].nunique())}")
    how = asked.target, Criterion(NETWORK, parts=HELD_OUT), asked.seed, _quiet
    evaluated = evaluate_settings({PART: predictor}, known, *how)
    stored.write(folder, *fit_settings(PART, predictor, evaluated, *how), beside=BESIDE)
    say(held_out(evaluated[0].evaluations[0].overall()))
    return stored.read(folder)


def _quiet(line: str) -> None:
    """Say nothing of single fits."""


def _tried(folder: Path, known: Stored, rounds: Rounds) -> View:
    """Predict networks that were never seen, and measure them in turns with points that were fitted."""
    from dlas.console.device import compared, never_seen
    from dlas.learning.device_runs import UNSEEN as PLACE
    from dlas.learning.noise import noise_floor
    from dlas.learning.points import planned_points
    from dlas.learning.predictions import predict
    from dlas.rows.frame import read

    bench, target = rounds.bench, known.record.target
    made = bench.plan(bench.unseen())
    asked = planned_points(made.rows, made.networks, made.kernels)
    found = predict(known, asked, anyway=True).frame(asked)
    told = [point for point in bench.unseen() if point.id in set(found["id"])]
    found = found.set_index("id", drop=False).loc[[point.id for point in told]].reset_index(drop=True)
    for _, own in itertools.groupby(told, key=lambda point: point.model):
        bench.measure(list(own), PLACE)
        rounds.measure_again()
    rows = read(folder / PLACE)
    timed = rows[rows["status"].eq("ok") & ~rows["unstable"].fillna(False).astype(bool)]
    left_out = rows[~rows["id"].isin(timed["id"])]["reason"].fillna("its times are unstable")
    failed = made.failed + Counter(left_out.astype(str))
    frame = compared(found, dict(zip(timed["id"], timed[target], strict=True)), target)
    floor = noise_floor(rounds.points().frame, target)
    return View(frame, never_seen(frame, target, floor, failed))
