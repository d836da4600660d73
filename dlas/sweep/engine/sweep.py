"""Run a study: every point gets a row, also if it fails.

points -> network, build and check steps -> turns on a device -> rows
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dlas.bench.measuring.machine import Machine
from dlas.bench.processes.events import ChildEnd, Event, Said, Task, TaskEnd, TurnRequest
from dlas.bench.processes.interface import Runner
from dlas.bench.processes.outcome import OK, DiskFull, Outcome, failure
from dlas.bench.store.cache import Cache
from dlas.bench.store.locks import Lock
from dlas.sweep.engine.planning import Planner, Step
from dlas.sweep.engine.point_run import PointRun, Summary, notes, steadier, without_second
from dlas.sweep.engine.progress import Progress
from dlas.sweep.engine.row import make_row, tuning_curves
from dlas.sweep.engine.slices import KeptSlices
from dlas.sweep.engine.turns import Turns, device_holder
from dlas.sweep.engine.writers import RowWriter
from dlas.sweep.rows.results import CURVES
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study

AHEAD = 4
"""Look this many times further ahead for points of one comparison if several alternate."""
REMAKES = 2
"""How often a point's damaged or missing artifacts are made again before it fails."""
SHOWN_EVERY = 256
"""Points with a current row between two looks at the progress."""
END = "end"
"""Stands for a point behind the last one."""
IDLE_SECONDS = 0.1
"""Interval of looks for a point where there was none."""
WAIT_SECONDS = 0.5
"""Interval of checks whether another sweep has released a lock."""


@dataclass(frozen=True)
class SweepOptions:
    """How far, how often and how many at a time points are run."""

    jobs: int = 1
    """Network and build steps that may run at a time; tuning and measuring pause them while they use the
    device.
    """
    retry: Collection[str] = ()
    """Statuses whose rows are run again."""
    keep_builds: bool = False
    """Whether built libraries are kept after their rows."""
    until: str = "measure"
    """The last step of each point: ``measure``, or ``tune`` or ``build``, after which nothing is measured."""


class Sweep:
    """Runs the points of a study that have no current row.

    Parameters
    ----------
    study : Study
    results : RowWriter
    cache : Cache
    runner : Runner
        Runs the steps.
    progress : Progress
    options : SweepOptions
    """

    def __init__(
        self,
        study: Study,
        results: RowWriter,
        cache: Cache,
        runner: Runner,
        progress: Progress,
        options: SweepOptions,
    ) -> None:
        self.study, self.results, self.cache = study, results, cache
        self.runner, self.progress = runner, progress
        self.options = options
        self.summary = Summary()
        self._threads = max(1, Machine().most_threads() // options.jobs)
        self._planner = Planner(study.measure, cache.root)
        self._points: Iterator[Point | None] = iter(())
        self._exhausted = self._idle = False
        self._runs: list[PointRun] = []
        self._again: list[PointRun] = []
        self._jobs: dict[int, tuple[PointRun, Lock | None]] = {}
        self._turns = Turns(runner, cache, self._launch_alone, study.limits.turns)
        self._failed_artifacts: dict[str, Outcome] = {}
        self._missing: set[str] = set()
        self._looked = 0.0
        self._slices = KeptSlices(results.folder)
        self._logs = results.folder / "logs"
        self._logs.mkdir(exist_ok=True)

    def run(self, points: Iterable[Point | None] | None = None) -> Summary:
        """Run until every point has its row; on any exception end all jobs.

        Interrupted, points that are being measured have rows where their times so far are a result; what all
        of them have taken is kept for the next sweep.

        Parameters
        ----------
        points : iterable of Point, optional
            By default all of the study.  None among them means that there is none now.

        Raises
        ------
        DiskFull, OSError
            If the disk is full or a file cannot be written; the rows so far stay.
        """
        self._points = self.study.points() if points is None else iter(points)
        self.cache.tidy()
        try:
            while True:
                self._take_points()
                self._start_steps()
                self._turns.start(self._runs, self._jobs)
                if not self._runs:
                    if self._exhausted and not self._again:
                        return self.summary
                    if self._idle:
                        self.progress.show(self._runs, self.summary, "")
                        time.sleep(IDLE_SECONDS)
                    continue  # the points taken so far needed no step, or failed with another's artifact
                waiting_for = self._waiting_for()
                for event in self.runner.events(WAIT_SECONDS):
                    self._handle(event)
                self.progress.show(self._runs, self.summary, waiting_for)
        except BaseException as error:
            self.runner.close()  # before another sweep may take the locks of its jobs
            if isinstance(error, KeyboardInterrupt):
                self._write_interrupted()
            self._release_locks()
            raise

    def _write_interrupted(self) -> None:
        """Write rows, which the next start completes, where the times so far are a result."""
        for run in self._turns.members():
            found, _ = self._slices.usable(run.plan) if run.ready and not run.first_round else (None, "")
            if found is None or found.slices == run.earlier_slices:
                continue
            if fields := found.fields(self.study.measure):
                self._keep(run, {**fields, "started": run.started})
                run.took.worked[run.step.name], run.took.waited[run.step.name] = found.seconds()
                self.results.append(make_row(self.study.name, run, OK, self.cache))

    def _release_locks(self) -> None:
        """Release all locks for other sweeps."""
        for _, lock in self._jobs.values():
            if lock is not None:
                lock.release()
        self._turns.release_locks()

    def _take_points(self) -> None:
        """Take as many points as all jobs and the next turns need."""
        for taken in itertools.count(1):
            if self._exhausted or not self._too_few():
                break
            if taken % SHOWN_EVERY == 0:
                self.progress.show(self._runs, self.summary, "")
            point = next(self._points, END)
            self._idle = point is None
            if point is END:
                self._exhausted = True
            elif isinstance(point, Point):
                self._take(point)
            else:
                break
        if not self._runs:
            # What disturbed these points, or took their device, has had the time of the others to pass.
            self._runs, self._again = self._again, []

    def _waiting_for(self) -> str:
        """Return what all points wait for, because another sweep has it; empty while one is worked on."""
        if self._jobs or self._turns.taken:
            return ""
        run = self._runs[0]
        device, step = run.plan.device.device, run.step
        if run.ready or step.alone:
            what, process = f"device {device!r}", device_holder(device)
        else:
            what, process = f"{step.kind} {step.key[:8]}", self.cache.lock_holder(f"{step.kind}-{step.key}")
        return f"{what}, which {'another sweep' if process is None else f'process {process}'} holds"

    def _too_few(self) -> bool:
        """Return whether jobs may run short, or the first comparison lacks points that take turns."""
        window = self.options.jobs + self.runner.room_elsewhere + self._turns.most
        if len(self._runs) < window:
            return True
        first = sum(run.plan.comparison == self._runs[0].plan.comparison for run in self._runs)
        return first <= self._turns.most and len(self._runs) < AHEAD * window

    def _take(self, point: Point) -> None:
        """Take a point unless it has a current row; finish it at once if it needs no step."""
        until = self.options.until
        plan = self._planner.plan(point, kernels=until == "kernels").until(until)
        status, key = self.results.existing.get(point.id, (None, None))
        run = PointRun(plan, self._logs / f"{point.id}.log")
        if status is not None and key == plan.key and status not in self.options.retry:
            self.summary.kept[status] += 1
            self.progress.kept(point.id)
            if self._slices.has(point.id):
                self._drop_slices(run, "its row stands")
            return
        self._runs.append(run)
        if reason := point.unsupported():
            self._finish(run, Outcome("unsupported", reason))

    def _start_steps(self) -> None:
        """Advance every point as far as possible, in order, within the number of jobs."""
        if time.monotonic() - self._looked > WAIT_SECONDS:  # another sweep may have made what was missing
            self._missing.clear()
            self._looked = time.monotonic()
        for run in list(self._runs):
            if run.job is None and not run.ready:
                self._advance(run)

    def _advance(self, run: PointRun) -> None:
        """Skip the steps whose artifacts exist, then start the next one if a job is free."""
        while not run.ready:
            step = run.step
            if step.kind and step.key in self._failed_artifacts:
                self._finish(run, self._failed_artifacts[step.key])
                return
            if step.kind is None or not self._made(step.kind, step.key):
                break
            run.took.add_artifact(step, self.cache.notes(step.kind, step.key), self._owner(run))
            run.done += 1
        if run.ready and self.options.until != "measure":
            self._finish(run, OK)
        elif not run.ready and not run.step.alone and self._has_room(run.step):
            self._launch(run)

    def _made(self, kind: str, key: str) -> bool:
        """Return whether an artifact exists; what was missing a moment ago is not looked for again."""
        if key not in self._missing and self.cache.get(kind, key) is None:
            self._missing.add(key)
        return key not in self._missing

    def _has_room(self, step: Step) -> bool:
        """Return whether a step can start here, or, if it makes an artifact, elsewhere."""
        here = len(self._jobs) - self.runner.elsewhere
        if here < self.options.jobs and not self._turns.fills_machine:
            return True
        return step.kind is not None and self.runner.goes_elsewhere(step.key)

    def _launch(self, run: PointRun) -> None:
        """Start a step, unless its artifact exists by now or is being made."""
        kind, key = run.step.kind, run.step.key
        if kind is None:
            self._start(run, None)
            return
        if any(other.step.key == key for other, _ in self._jobs.values()):
            return
        lock = self.cache.try_lock(f"{kind}-{key}")
        if lock is None:
            return
        if self.cache.get(kind, key) is None:
            self._start(run, lock)
        else:
            lock.release()
            self._missing.discard(key)

    def _start(self, run: PointRun, lock: Lock | None) -> None:
        """Start a step, and the following steps that make no artifact, in one child."""
        steps = [run.step]
        for step in run.plan.steps[run.done + 1 :]:
            if step.kind or step.fresh or step.alone:
                break
            steps.append(step)
        tasks = [self._task(step) for step in steps]
        run.started = _now()
        run.job = self.runner.start(
            tasks, log=run.log, memory=self.study.limits.memory, threads=self._threads
        )
        self._jobs[run.job] = (run, lock)

    def _launch_alone(self, run: PointRun) -> int:
        """Start a point's step on the device that it has locked."""
        task = self._task(run.step)
        if run.ready:
            run.rounds += 1
            self.summary.measured += run.rounds == 1
            self.summary.again += run.rounds == 2
            task = replace(task, arguments={**task.arguments, "slices": self._earlier_slices(run)})
        run.started = _now()
        return self.runner.start([task], log=run.log, memory=self.study.limits.memory)

    def _earlier_slices(self, run: PointRun) -> dict[str, Any]:
        """Return where a measurement keeps its slices, and those of an earlier start; drop another's."""
        found, reason = self._slices.usable(run.plan)
        if reason:
            self._drop_slices(run, reason)
        if found is not None and run.rounds == 1:
            run.took.add(run.step, *found.seconds())
        run.earlier_slices = found.slices if found else 0
        return self._slices.arguments(run.plan, found)

    def _drop_slices(self, run: PointRun, reason: str) -> None:
        """Delete the slices of a point that no measurement goes on with, and say so."""
        self._slices.drop(run.plan)
        self.progress.note(run, f"slices of an interrupted measurement are dropped: {reason}")

    def _task(self, step: Step) -> Task:
        makes = (step.kind, step.key) if step.kind and not step.alone else ()
        return Task(step.function, step.arguments, self._seconds(step), step.imports, makes, step.needs)

    def _seconds(self, step: Step) -> float:
        """Return the time limit of a step; one of the network may not take longer than training."""
        limits = self.study.limits
        seconds: float = getattr(limits, step.time_limit)
        return min(seconds, limits.network) if step.name == "network" else seconds

    def _handle(self, event: Event) -> None:
        match event:
            case Said(job=job, text=text):
                self.progress.say(self._run_of(job), text)
            case TurnRequest(job=job):
                self._turns.turn_asked(job)
            case TaskEnd(job=job):
                self._task_ended(self._run_of(job), event)
            case ChildEnd(job=job) if job in self._jobs:
                run, lock = self._jobs.pop(job)
                if lock is not None:
                    lock.release()
                self._step_ended(run, event)
            case ChildEnd(job=job):
                run = self._turns.member(job)
                (self._measured if run.ready else self._step_ended)(run, event)
                self._turns.ended(job)

    def _run_of(self, job: int) -> PointRun:
        """Return the point that a job works on."""
        return self._jobs[job][0] if job in self._jobs else self._turns.member(job)

    def _task_ended(self, run: PointRun, end: TaskEnd) -> None:
        """Note beside a new artifact how long it took: a sweep that is interrupted now finds it there."""
        step = run.to_do[end.task]
        run.ended = end.task + 1
        if step.kind:
            self._missing.discard(step.key)
            self.cache.annotate(step.kind, step.key, notes(end, self._owner(run)))

    def _owner(self, run: PointRun) -> str:
        """Return the name of a point in this results folder, for the artifacts that are made for it."""
        return str(self.results.folder.resolve() / run.plan.id)

    def _step_ended(self, run: PointRun, end: ChildEnd) -> None:
        """Store the results of the steps that ran; finish the point if one failed."""
        for step, facts, *times in zip(run.to_do, end.results, end.seconds, end.waited, strict=False):
            run.took.add(step, *times)
            run.facts.update(facts)
            run.done += 1
        run.ended = 0
        if not end.complete:
            self._failed(run, end)
            return
        run.job = None
        if run.ready and self.options.until != "measure":
            self._finish(run, OK)

    def _measured(self, run: PointRun, end: ChildEnd) -> None:
        """Finish a point whose measurement has ended, or measure it again later if its times are unstable."""
        if not end.complete:
            self._failed(run, end)
            return
        run.took.add(run.step, end.seconds[0], end.waited[0])
        found = {**end.results[0], "started": run.started}
        if run.first_round is None and found.get("unstable"):
            self._measure_again(run, found)
        else:
            self._keep(run, found if run.first_round is None else steadier(run.first_round, found))
            self._finish(run, OK)

    def _measure_again(self, run: PointRun, found: dict[str, Any]) -> None:
        """Write a row that stands if the sweep is interrupted, and set the point aside until its end."""
        run.first_round = found
        self._keep(run, found)
        self.results.append(make_row(self.study.name, run, OK, self.cache))
        self._slices.drop(run.plan)
        self._set_aside(run, f"measured again at the end: {found.get('unstable_reason')}")

    def _set_aside(self, run: PointRun, reason: str) -> None:
        """Let a point go on when all others have ended."""
        self.progress.say(run, reason)
        run.job, run.ended = None, 0
        self._runs.remove(run)
        self._again.append(run)

    def _keep(self, run: PointRun, found: Mapping[str, Any]) -> None:
        """Let the row have the facts of this measurement."""
        run.facts.update(found)
        run.started = run.facts.pop("started")

    def _failed(self, run: PointRun, end: ChildEnd) -> None:
        """Finish a point whose step failed; if only artifacts were damaged, make them again."""
        step = run.step
        run.took.add(step, end.seconds[-1], end.waited[-1])
        outcome = failure(step.name, end, self._seconds(step), self.study.limits.memory)
        if outcome.status == "timeout" and step.time_limit != step.name:
            outcome = replace(outcome, reason=f"{outcome.reason}, `{step.time_limit}` in [limits]")
        if outcome.status == "failed" and self.cache.is_full():
            raise DiskFull(f"no room in the cache {str(self.cache.root)!r}; {outcome.reason}")
        if outcome.corrupt and run.remakes < REMAKES:
            run.restart()
            return
        if outcome.unreachable and not run.unreachable:
            run.unreachable = True
            self._set_aside(run, f"tried again at the end: {outcome.reason}")
            return
        if step.kind:
            self._failed_artifacts[step.key] = outcome
        if run.first_round is not None:
            self._keep(run, without_second(run.first_round, run.started, outcome.reason))
            outcome = OK
        self._finish(run, outcome)

    def _finish(self, run: PointRun, outcome: Outcome) -> None:
        """Write a point's row, and drop its build."""
        run.started = run.started or _now()
        row = make_row(self.study.name, run, outcome, self.cache)
        self.results.append(row)
        self._slices.drop(run.plan)
        self._write_curves(run)
        self._runs.remove(run)
        self.summary.written[row.status] += 1
        self._drop_build(run)
        self.cache.evict()
        self.progress.row(row)

    def _write_curves(self, run: PointRun) -> None:
        """Write the curves of a point's search beside the rows."""
        curves = tuning_curves(run.plan.artifacts(), self.cache)
        if curves:
            (self.results.folder / CURVES).mkdir(exist_ok=True)
            path = self.results.folder / CURVES / f"{run.plan.id}.json"
            path.write_text(json.dumps(curves, indent=1))

    def _drop_build(self, run: PointRun) -> None:
        """Drop the built library unless another point needs it: thousands would fill a disk."""
        key = run.plan.artifacts().get("build")
        needing = (*self._runs, *self._again)
        shared = any(other.plan.artifacts().get("build") == key for other in needing)
        if key and not shared and not self.options.keep_builds:
            self.cache.discard("build", key)


def _now() -> str:
    """Return the time as rows write it: ISO 8601, UTC, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
