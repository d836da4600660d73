"""Run a study: every point to a row, whatever happens on the way."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from dlas.engine.planning import Planner, Step
from dlas.engine.point_run import Active, Summary
from dlas.engine.progress import Progress
from dlas.engine.row import make_row, tuning_curves
from dlas.engine.turns import Heat, next_heat
from dlas.measuring.machine import Machine
from dlas.processes.outcome import OK, Outcome, failure
from dlas.processes.server import Server, Task
from dlas.rows.results import CURVES, Results
from dlas.store.cache import Cache
from dlas.store.locks import take_lock
from dlas.study.point import Point
from dlas.study.study import Study

INTERLEAVE = 12
"""At most so many points of a comparison take turns on the device, each with its program in memory."""
AHEAD = 4
"""How many times that many are looked through for those of one comparison, where several alternate."""
ROOM = 0.25
"""Share of the memory that is free when one more of them starts; with less, it waits for those before it."""
REMAKES = 2
"""How often a point's damaged or vanished artifacts are made again before it fails."""
WAIT_SECONDS = 0.5
"""How often to look again for what another sweep holds."""


class Sweep:
    """Runs the points of a study that have no current row.

    Parameters
    ----------
    study : Study
    results : Results
    cache : Cache
    server : Server
    progress : Progress
    jobs : int
        Network and build steps that may run at a time; tuning and measuring
        have the device to themselves and pause them.
    retry : collection of str
        Statuses whose rows are run again.
    keep_builds : bool
        Keep built libraries after their rows.
    tune_only : bool
        End each point once it is tuned.
    """

    def __init__(
        self,
        study: Study,
        results: Results,
        cache: Cache,
        server: Server,
        progress: Progress,
        *,
        jobs: int = 1,
        retry: Collection[str] = (),
        keep_builds: bool = False,
        tune_only: bool = False,
    ) -> None:
        self.study, self.results, self.cache = study, results, cache
        self.server, self.progress = server, progress
        self.jobs, self.retry, self.keep_builds = jobs, frozenset(retry), keep_builds
        self.tune_only = tune_only
        self.summary = Summary()
        self._threads = Machine().most_threads()
        self._planner = Planner(study.measure, cache.root)
        self._points = study.points()
        self._exhausted = False
        self._active: list[Active] = []
        self._running: dict[int, tuple[Active, int | None]] = {}
        self._heat: Heat | None = None
        self._ended_badly: dict[str, Outcome] = {}
        self._logs = results.folder / "logs"
        self._logs.mkdir(exist_ok=True)

    def run(self) -> Summary:
        """Return when every point has its row.

        Raises
        ------
        DiskFull, OSError
            When nothing more can be written; what was written stays.
        """
        self.cache.tidy()
        while True:
            self._take_points()
            self._start_steps()
            self._start_heat()
            if not self._active:
                return self.summary
            idle = not self._running and self._heat is None
            for event in self.server.events(WAIT_SECONDS):
                self._handle(event)
            self.progress.show(self._active, self.summary, idle)

    # ------------------------------------------------------------ points in

    def _take_points(self) -> None:
        """Keep enough points under way to fill the jobs and the next heat, and no more."""
        while not self._exhausted and self._too_few():
            point = next(self._points, None)
            if point is None:
                self._exhausted = True
            else:
                self._take(point)

    def _too_few(self) -> bool:
        """Return whether jobs may run short, or the first group may have too few for a heat and one more."""
        window = self.jobs + INTERLEAVE
        if len(self._active) < window:
            return True
        first = sum(active.group == self._active[0].group for active in self._active)
        return first <= INTERLEAVE and len(self._active) < AHEAD * window

    def _take(self, point: Point) -> None:
        plan = (self._planner.plan_tuning if self.tune_only else self._planner.plan)(point)
        status, key = self.results.known.get(point.id, (None, None))
        if key == plan.key and status not in self.retry:
            self.summary.kept += 1
            return
        active = Active(point, plan, _now(), self._logs / f"{point.id}.log")
        self._active.append(active)
        unsupported = active.device.unsupported()
        if unsupported:
            self._finish(active, Outcome("unsupported", f"{point.hardware.name}: {unsupported}"))

    # ------------------------------------------------------------ network, build and check steps

    def _start_steps(self) -> None:
        """Move every point as far as it can get, in order, within the number of jobs."""
        for active in list(self._active):
            if active.job is None and not active.ready:
                self._advance(active)

    def _advance(self, active: Active) -> None:
        """Pass over the steps whose artifacts are there, then start the next one if there is room."""
        while not active.ready:
            step = active.step
            known = self._ended_badly.get(step.key) if step.kind else None
            if known is not None:
                self._finish(active, known)
                return
            if step.kind is None or self.cache.get(step.kind, step.key) is None:
                break
            active.done += 1
        if active.ready and self.tune_only:
            self._finish(active, OK)
        elif active.ready or active.step.alone or len(self._running) >= self.jobs or self._device_busy():
            return
        elif active.step.kind is None:
            self._launch(active, None)
        elif not any(other.step.key == active.step.key for other, _ in self._running.values()):
            self._launch_locked(active, active.step.kind)

    def _launch_locked(self, active: Active, kind: str) -> None:
        """Start making an artifact, unless another sweep is making it or has just made it."""
        key = active.step.key
        lock = self.cache.try_lock(f"{kind}-{key}")
        if lock is None:
            return
        if self.cache.get(kind, key) is None:
            self._launch(active, lock)
        else:
            os.close(lock)

    def _device_busy(self) -> bool:
        return self._heat is not None and self._heat.members[0].device.local

    def _launch(self, active: Active, lock: int | None) -> None:
        """Start a step, with the steps behind it that make no artifact in the same child."""
        steps = [active.step]
        for step in active.plan.steps[active.done + 1 :]:
            if step.kind:
                break
            steps.append(step)
        active.job = self.server.start(
            [self._task(step) for step in steps],
            log=active.log,
            memory=self.study.limits.memory,
            threads=max(1, self._threads // self.jobs),
        )
        self._running[active.job] = (active, lock)

    def _task(self, step: Step) -> Task:
        return Task(step.function, step.arguments, getattr(self.study.limits, step.name), step.imports)

    def _handle(self, event: dict[str, Any]) -> None:
        job = event["job"]
        if event["event"] == "say":
            self.progress.say(event["text"])
        elif job in self._running:
            active, lock = self._running.pop(job)
            if lock is not None:
                os.close(lock)
            self._step_ended(active, event)
        elif self._heat is not None:
            self._turn_ended(event)

    def _step_ended(self, active: Active, end: dict[str, Any]) -> None:
        """Take the results of the steps that ran; finish the point if one did not get through."""
        steps = active.plan.steps[active.done :]
        for step, value, seconds in zip(steps, end["results"], end["seconds"], strict=False):
            active.took(step.name, seconds)
            active.found.update(value)
            active.done += 1
        if len(end["seconds"]) == len(end["results"]):
            active.job = None
            return
        step = active.step
        active.took(step.name, end["seconds"][-1])
        became = self._failure(step, end)
        if not self._remade(active, became):
            if step.kind:
                self._ended_badly[step.key] = became
            self._finish(active, became)

    def _failure(self, step: Step, end: dict[str, Any]) -> Outcome:
        return failure(step.name, end, getattr(self.study.limits, step.name), self.study.limits.memory)

    def _remade(self, active: Active, became: Outcome) -> bool:
        """Send a point back to its first step if only its artifacts were damaged."""
        if not became.corrupt or active.remakes >= REMAKES:
            return False
        active.remakes += 1
        active.done = 0
        active.job = None
        return True

    # ------------------------------------------------------------ tuning and measuring

    def _start_heat(self) -> None:
        """Give a device to the first points that can be measured, or to the first that has to be tuned."""
        if self._heat is not None:
            return
        self._heat = self._measuring_heat() or self._tuning_heat()
        if self._heat is None:
            return
        if self._device_busy():
            for job in self._running:
                self.server.pause(job)
        self._give_turn()

    def _tuning_heat(self) -> Heat | None:
        """Return the first point that needs the device for a step on its way, alone."""
        for active in self._active:
            if active.job is None and not active.ready and active.step.alone:
                locks = self._locks(active)
                if locks:
                    return Heat([active], locks)
        return None

    def _locks(self, active: Active) -> list[int]:
        """Return locks of the device and of what is made on it; none if either is taken, or it is there."""
        step = active.step
        assert step.kind is not None
        device = _lock_device(active.device.device)
        artifact = self.cache.try_lock(f"{step.kind}-{step.key}") if device is not None else None
        locks = [lock for lock in (device, artifact) if lock is not None]
        if len(locks) == 2 and self.cache.get(step.kind, step.key) is None:
            return locks
        for lock in locks:
            os.close(lock)
        return []

    def _measuring_heat(self) -> Heat | None:
        """Return the first group's next heat whose points are all ready."""
        for group in dict.fromkeys(active.group for active in self._active):
            together = next_heat([active for active in self._active if active.group == group], INTERLEAVE)
            if all(active.ready for active in together):
                lock = _lock_device(together[0].device.device)
                if lock is not None:
                    return Heat(together, [lock])
        return None

    def _give_turn(self) -> None:
        """Start the next member, or let the one go on that waited longest; end the heat after the last."""
        heat = self._heat
        assert heat is not None
        unstarted = [member for member in heat.members if member.job is None]
        if 0 < len(unstarted) < len(heat.members) and Machine().free_memory() < ROOM:
            heat.members = [member for member in heat.members if member.job is not None]
            unstarted = []
        if unstarted:
            heat.turn_of = unstarted[0]
            self._start_alone(unstarted[0])
        elif heat.members:
            heat.turn_of = heat.members.pop(0)
            heat.members.append(heat.turn_of)
            assert heat.turn_of.job is not None
            self.server.turn(heat.turn_of.job)
        else:
            for lock in heat.locks:
                os.close(lock)
            self._heat = None
            for job in self._running:
                self.server.resume(job)

    def _start_alone(self, active: Active) -> None:
        self.summary.measured += active.ready
        active.job = self.server.start(
            [self._task(active.step)], log=active.log, memory=self.study.limits.memory
        )

    def _turn_ended(self, event: dict[str, Any]) -> None:
        heat = self._heat
        assert heat is not None
        active = next(member for member in heat.members if member.job == event["job"])
        if event["event"] == "end":
            heat.members.remove(active)
            (self._measured if active.ready else self._step_ended)(active, event)
        if active is heat.turn_of:
            self._give_turn()

    def _measured(self, active: Active, end: dict[str, Any]) -> None:
        active.took("measure", end["seconds"][0])
        if end["results"]:
            active.found.update(end["results"][0])
            self._finish(active, OK)
            return
        became = self._failure(active.step, end)
        if not self._remade(active, became):
            self._finish(active, became)

    # ------------------------------------------------------------ rows out

    def _finish(self, active: Active, became: Outcome) -> None:
        row = make_row(
            self.study.name,
            active.point,
            active.plan,
            self.cache,
            status=became.status,
            reason=became.reason,
            step=None if became.status == "ok" else active.step.name,
            found=active.found,
            seconds=active.seconds,
            started=active.started,
        )
        self.results.append(row)
        self._keep_curves(active)
        self._active.remove(active)
        self.summary.written[row.status] += 1
        self._drop_build(active)
        self.cache.bound()
        self.progress.row(row)

    def _keep_curves(self, active: Active) -> None:
        """Write how a point's search went beside the rows."""
        curves = tuning_curves(active.plan, self.cache)
        if curves:
            (self.results.folder / CURVES).mkdir(exist_ok=True)
            path = self.results.folder / CURVES / f"{active.point.id}.json"
            path.write_text(json.dumps(curves, indent=1))

    def _drop_build(self, active: Active) -> None:
        """Drop the built library: it can be made again, and thousands would fill a disk."""
        key = active.plan.artifacts().get("build")
        shared = any(other.plan.artifacts().get("build") == key for other in self._active)
        if key and not shared and not self.keep_builds:
            self.cache.discard("build", key)


def _now() -> str:
    """Return the time as rows write it: ISO 8601, UTC, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _lock_device(device: str) -> int | None:
    """Return a descriptor that holds the device for this process, or None while another sweep has it."""
    folder = Path(tempfile.gettempdir()) / f"dlas-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return take_lock(folder / f"device-{device}.lock")
