"""What measures the points of studies: ``run``, ``explore``, ``search``, ``blocks``, ``fit_device``.

Each opens a session and hands it to the room that does the work; tables are DataFrames as ``.frame``.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.text import Text

from dlas.face.api.sessions import open_session
from dlas.face.console.progress import ConsoleDisplay, ProgressKind
from dlas.face.tables.view import View
from dlas.stack.types import Say
from dlas.sweep.engine.point_run import Summary
from dlas.sweep.engine.session import Session, Steps
from dlas.sweep.rows.frame import read_each, without_measured
from dlas.sweep.study.selecting import select_points
from dlas.sweep.study.study import Study

NEVER_SEEN = ("resnet18", "mobilenet_v2", "squeezenet1_0", "googlenet", "efficientnet_b0")
"""Networks that a predictor is tried on: residual, depthwise, of fire modules, of branches, with gates."""


def run(
    study: Study | Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    jobs: int = 1,
    retry: str | Collection[str] = (),
    where: str | Sequence[str] = (),
    sample: int | None = None,
    shard: str | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_gib: float = 20.0,
    keep_builds: bool = False,
    anyway: bool = False,
    in_process: bool = False,
    ray: str | None = None,
    progress: ProgressKind = "auto",
) -> pd.DataFrame:
    """Run every point of a study that has no current row yet, and return the rows of all its points.

    It may be called from any thread.  Interrupted, it leaves complete rows; the same call goes on.

    Parameters
    ----------
    study : Study, mapping or path
        A :class:`dlas.Study`, a mapping with the keys of a study file, or the file's path.
    out : path
        Folder for ``results.jsonl`` and ``logs/``.
    jobs : int
        Network and build steps at a time.
    retry : str or collection of str
        Run rows of this status again: ``failed``, ``timeout``, ``wrong``, ...
    where : str or collection of str
        Run the points that match: ``"algorithm=gemm"``, or ``"algorithm == 'gemm' and batch > 1"``.
    sample : int, optional
        Draw so many points at random, from ``[sample]`` axes or from the cross product, in place of the
        study's own number.
    shard : str, optional
        Run a part of the study, ``"3/16"``: whole networks, the same ones on every machine.
    cache : path, optional
        Artifact cache; by default ``$DLAS_CACHE``, or else ``~/.cache/dlas``.
    cache_gib : float
        Size that the cache is kept within, GiB.
    keep_builds : bool
        Keep built libraries after their rows.
    anyway : bool
        Go on in a folder with rows of another machine.
    in_process : bool
        Run all steps in this process, without limits: for debuggers and profilers.
    ray : str, optional
        Measure on the machines of a Ray cluster: ``host:port``, ``auto`` for the one that this machine
        belongs to, or ``local`` for a new one.
    progress : {"auto", "rich", "plain", "silent"}
        A line that is redrawn, lines of plain text, or nothing; ``auto`` redraws it on a terminal.

    Returns
    -------
    DataFrame
        As :func:`dlas.read` returns it.

    Raises
    ------
    InputError
        If the study or an argument is invalid; nothing has been written then.
    Unfinished
        If the disk is full, or the process that starts the steps was killed.
    """
    chosen, patterns = Study.of(study, sample), [where] if isinstance(where, str) else where
    run_into(
        chosen,
        Path(out),
        where=patterns,
        shard=shard,
        jobs=jobs,
        retry=retry,
        cache=None if cache is None else Path(cache),
        cache_gib=cache_gib,
        keep_builds=keep_builds,
        anyway=anyway,
        steps="inline" if in_process else "spawned",
        ray=ray,
        progress=progress,
    )
    frame = read_each(out)
    return frame[frame["id"].isin([point.id for point in chosen.points()])].reset_index(drop=True)


def explore(
    study: Study | Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    goal: str = "rest",
    share: float | None = None,
    jobs: int = 1,
    retry: str | Collection[str] = (),
    cache: str | os.PathLike[str] | None = None,
    cache_gib: float = 20.0,
    keep_builds: bool = False,
    in_process: bool = False,
    ray: str | None = None,
    progress: ProgressKind = "auto",
) -> View:
    """Measure a share of a study's points and predict the latencies of the others.

    The first points have every value of every axis; the others follow in batches, each of the points whose
    measurements are expected to tell most about those that are not measured.  For the fastest, points race:
    all of a share are built and run a few times, and those that come near the fastest of their rivals, which
    differ in algorithm and compiler alone, are measured in full; builds of the others stay in the cache.
    Interrupted, it leaves complete rows; the same call goes on, and one with a larger share extends them.
    Rows in the folder that are out of date are measured again within the share, and otherwise not relied on.

    Parameters
    ----------
    study : Study, mapping or path
        As for :func:`dlas.run`; of one with ``[sample]``, the points that it draws.
    out : path
        Folder for ``results.jsonl``, as :func:`dlas.run` writes it, and for ``predictions.jsonl``, in which
        predictions of other studies stay.
    goal : str
        What is looked for: ``rest``, the latencies of all other points, or ``fastest``, the fastest algorithm
        and compiler of each network.
    share : float, optional
        Of the points that can be measured here, above 0 and at most 1; a larger one extends a smaller one.
        By default a tenth for the rest, and all for the fastest.
    jobs, retry, cache, cache_gib, keep_builds, in_process, ray, progress
        As for :func:`dlas.run`.

    Returns
    -------
    View
        ``frame`` holds the measured and the predicted points, as :func:`dlas.read` returns them.

    Raises
    ------
    InputError
        If the study or an argument is invalid, the share is too small to have every value, or the
        folder holds rows of another machine; nothing has been written then.
    Unfinished
        If no measured point has a time, or as for :func:`dlas.run`.
    """
    from dlas.prediction.adaptive.share.strategy import measure_share

    chosen = Study.of(study)
    with open_session(
        "inline" if in_process else "spawned",
        ray,
        cache=cache,
        cache_gib=cache_gib,
        jobs=jobs,
        retry=retry,
        keep_builds=keep_builds,
        display=ConsoleDisplay.of(progress),
    ) as session:
        strategy, rest = measure_share(chosen, Path(out), share, session, goal)
    frame = without_measured(read_each(out, predictions=True))
    frame = frame[frame["id"].isin([point.id for point in chosen.points()])]
    return View(frame.reset_index(drop=True), Text("\n".join(strategy.summary(rest))))


def search(
    study: Study | Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    estimator: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    maximise: str | os.PathLike[str],
    within: Mapping[str, float],
    population: int = 100,
    generations: int = 500,
    parents: float = 0.25,
    mutation: float = 0.1,
    winners: int = 5,
    cache: str | os.PathLike[str] | None = None,
    ray: str | None = None,
    steps: Steps = "spawned",
    progress: ProgressKind = "auto",
    say: Say = lambda line: None,
) -> View:
    """Search the drawn part of a study by evolution, measure the winners again, and return them.

    A candidate keeps a bound if the upper end of its interval does.  What was estimated is remembered by
    the whole candidate.  Interrupted, the same call goes on.

    Parameters
    ----------
    study : Study, mapping or path
        It draws; every axis that it does not draw has one value.
    out : path
        Folder for ``search.json``, and for the rows of the winners; a search that is there goes on.
    estimator : path or str, or several
        What tells costs: a predictor's folder, tables of ``dlas blocks`` or Once-for-All, or ``"measure"``;
        one for each bound.
    maximise : path or str
        What tells scores: a predictor's folder, a file of weights from a subnetwork's 128 values to its
        accuracy, or ``"accuracy"``, by which each network is made and evaluated.
    within : mapping of str to float
        The most that each cost may be: ``{"latency_s": 0.03}``.
    population : int
        Candidates of a generation.
    generations : int
        How often a population is replaced.
    parents : float
        Share of the population that has children.
    mutation : float
        How probable a change of each choice is.
    winners : int
        How many of the best are measured again; 0 for none.  Of a search that is finished more may be
        measured later.
    cache, ray, steps, progress
        As for :func:`dlas.run`.
    say : callable
        Takes lines of progress.

    Returns
    -------
    View
        A line for each winner: score, estimate, upper end, what was measured, and whether it keeps the bound.

    Raises
    ------
    InputError
        If an argument is invalid, nothing that was drawn keeps the bound, of which the nearest is told, or
        the folder holds another search; nothing has been written then.
    """
    from dlas.face.tables.searches import listing
    from dlas.prediction.adaptive.evolution import strategy as evolution
    from dlas.prediction.adaptive.evolution.record import SearchRequest
    from dlas.prediction.adaptive.evolution.space import StudySpace

    space = StudySpace.of(Study.of(study))
    several = [estimator] if isinstance(estimator, str | os.PathLike) else estimator
    asked = SearchRequest.checked(
        study=space.study.toml(),
        seed=space.study.seed,
        estimators=[os.fspath(each) for each in several],
        maximise=os.fspath(maximise),
        within=dict(within),
        population=population,
        generations=generations,
        parents=parents,
        mutation=mutation,
    )
    with open_session(steps, ray, cache, display=ConsoleDisplay.of(progress)) as session:
        record = evolution.search(space, Path(out), asked, winners, session, say)
    return View(evolution.winners_frame(record), listing(record))


def blocks(
    to: str | os.PathLike[str],
    *,
    sizes: Sequence[int] = (224,),
    width: float = 1.2,
    compiler: str | Mapping[str, Any] = "onnxruntime",
    hardware: str | Mapping[str, Any] = "local_cpu",
    algorithm: str | Mapping[str, Any] | None = None,
    seed: int = 0,
    cache: str | os.PathLike[str] | None = None,
    steps: Steps = "spawned",
    progress: ProgressKind = "auto",
    say: Say = lambda line: None,
) -> View:
    """Measure each block of Once-for-All's MobileNetV3 once, and write tables of their latencies.

    Interrupted, it leaves complete rows; the same call goes on.

    Parameters
    ----------
    to : path
        Folder for ``160_lookup_table.yaml``, ... as Once-for-All has them, and for rows: ``rows/160``, ...
    sizes : sequence of int
        Heights of images, each a table.
    width : {1.0, 1.2}
        1.0 or 1.2.
    compiler : str or mapping
        What runs the blocks.
    hardware : str or mapping
        Where they run; ``local_cpu`` has one thread if nothing else is said.
    algorithm : str or mapping
        Of a compiler that takes one.
    seed : int
        Of all random numbers.
    cache, steps, progress
        As for :func:`dlas.run`.
    say : callable
        Takes lines of progress.

    Returns
    -------
    View
        A line for each table.

    Raises
    ------
    InputError
        If an argument is invalid; nothing has been written then.
    Unfinished
        If a block could not be measured.
    """
    from dlas.prediction.adaptive.blocks import block_studies, measure_tables

    studies = block_studies(sizes, width, compiler, hardware, algorithm, seed)
    with Session.open(steps, cache=cache, display=ConsoleDisplay.of(progress)) as session:
        frame = measure_tables(Path(to), width, studies, session, say)
    return View(frame, Text(frame.to_string(index=False)))


def fit_device(
    to: str | os.PathLike[str],
    *,
    minutes: float = 30.0,
    hardware: str | Mapping[str, Any] = "local_cpu",
    compiler: str | Mapping[str, Any] = "onnxruntime",
    threads: int | None = None,
    more_threads: int | None = None,
    algorithm: str | Mapping[str, Any] | None = None,
    model: str | Mapping[str, Any] = "random_layers",
    target: str = "latency_s",
    unseen: Sequence[str | Mapping[str, Any]] = NEVER_SEEN,
    seed: int = 0,
    cache: str | os.PathLike[str] | None = None,
    ray: str | None = None,
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
    hardware : str or mapping
        The device, as studies name it, by name or with options.
    compiler : str or mapping
        What runs the networks; it must tell the kernels of programs that it has not run.
    threads : int, optional
        By default 1, of hardware that takes a number.
    more_threads : int, optional
        A second number of threads to predict: a quarter of the points is measured on so many, too.
    algorithm : str or mapping, optional
        Of a compiler that takes algorithms; by default ``spatial_pack`` in blocks of channels.
    model : str or mapping
        The part that draws networks; options that are given are not drawn.
    target : str
        ``latency_s``, or ``latency_min_s`` for what an inference takes undisturbed.
    unseen : sequence of (str or mapping)
        Networks that it is tried on, and never fitted to, each on the images that it is for; by default five
        of torchvision.
    seed : int
        Of all random numbers.
    cache, ray, steps, progress
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
    from dlas.face.tables.device import of_networks_never_seen
    from dlas.prediction.adaptive.device.record import DeviceRequest
    from dlas.prediction.adaptive.device.strategy import fit_device, jobs_of

    asked = DeviceRequest.checked(
        hardware=hardware,
        compiler=compiler,
        threads=threads,
        more_threads=more_threads,
        algorithm=algorithm,
        model=model,
        target=target,
        unseen=list(unseen),
        seed=seed,
    )
    display = ConsoleDisplay.of(progress)
    with open_session(steps, ray, cache, jobs=jobs_of(steps), display=display) as session:
        return of_networks_never_seen(fit_device(Path(to), asked, minutes, session, say))


def run_into(
    study: Study,
    out: Path,
    *,
    where: Sequence[str] = (),
    shard: str | None = None,
    jobs: int = 1,
    retry: str | Collection[str] = (),
    cache: Path | None = None,
    cache_gib: float = 20.0,
    keep_builds: bool = False,
    anyway: bool = False,
    steps: Steps = "spawned",
    ray: str | None = None,
    progress: ProgressKind = "auto",
) -> Summary:
    """Run a study into a folder; parameters as for :func:`run` and :meth:`Session.open`."""
    with open_session(
        steps,
        ray,
        cache=cache,
        cache_gib=cache_gib,
        jobs=jobs,
        retry=retry,
        keep_builds=keep_builds,
        display=ConsoleDisplay.of(progress),
    ) as session:
        points = select_points(study, where, shard) if where or shard else None
        session.check(study, out, points, anyway=anyway)
        return session.run(study, out, points)
