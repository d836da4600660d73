"""Tune a network's kernels: equal kernels once, each search resumed from its records."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any, Literal

from dlas.bench.measuring.machine import Machine
from dlas.bench.processes.workers import WorkerPool
from dlas.lowering.kernels.kernel import Kernel
from dlas.lowering.tuning.identity import describe_device, make_header
from dlas.lowering.tuning.measurers import make_measurer
from dlas.lowering.tuning.own_space import OwnSpace
from dlas.lowering.tuning.record_files import RecordFile, RecordStore
from dlas.lowering.tuning.records import Header, Records, Selection, Trial
from dlas.lowering.tuning.rules import Evolution, Rules
from dlas.lowering.tuning.search import NoSchedule, Proposer, Search
from dlas.lowering.tuning.selection import Budget, first_trials
from dlas.lowering.tuning.workload import Workload, short_form
from dlas.stack import Bench, ScheduleChoice

Space = Literal["rules", "algorithm"]


@dataclass(frozen=True)
class SearchSettings:
    """Settings of a search."""

    space: Space
    """TVM's default rules, or the kernels' own spaces if they have one."""
    trials: int
    """For each workload, or for all workloads together if ``shared``."""
    shared: bool = False
    """Whether workloads share the trials in proportion to their time."""
    early_stop: int = 0
    """End a workload's search after this many trials without improvement; 0 for never."""
    per_round: int = 16
    """Candidates proposed together."""
    seed: int = 0


@dataclass
class TuningTask:
    """A workload with the kernels that compute it."""

    workload: Workload
    points: list[dict[str, Any]]
    """The kernel's own space; empty if TVM's rules are searched."""
    header: Header
    kernels: list[Kernel] = field(default_factory=list)

    @property
    def space(self) -> Space:
        """The space that is searched."""
        return "algorithm" if self.points else "rules"

    @property
    def layers(self) -> list[str]:
        """Names of the layers."""
        return [kernel.layer for kernel in self.kernels]


@dataclass(frozen=True)
class TuningResult:
    """The result of a task."""

    task: TuningTask
    records: Records
    count: int
    """Number of first trials that count."""
    selection: Selection
    """Among these trials."""

    def summary(self) -> ScheduleChoice:
        """Return the entries of a row's layer about its search."""
        number = self.selection.number
        decisions = self.records.candidates[number].get("decisions")
        return {
            "space": self.task.space,
            "trials": self.count,
            "valid_trials": sum(trial.valid for trial in self.trials),
            "trial": number,
            "decisions": decisions or short_form(self.trace),
            "tuned_s": statistics.median(self.selection.finalists[str(number)]),
        }

    @property
    def trials(self) -> list[Trial]:
        """The trials that count."""
        return first_trials(self.records, self.count)

    @property
    def trace(self) -> list[Any]:
        """The selected schedule in MetaSchedule's format."""
        return self.records.trace(self.selection.number)

    @property
    def seconds(self) -> float:
        """Duration of the trials that count and of the selection, when they were made."""
        return sum(trial.seconds for trial in self.trials) + self.selection.seconds


def tune(kernels: Iterable[Kernel], settings: SearchSettings, bench: Bench) -> list[TuningResult]:
    """Search for the schedules of kernels; equal kernels share a result.

    Raises
    ------
    NoSchedule
        If no candidate of some workload is valid.
    Unsupported
        If the device is neither on this machine nor a board.
    Unreachable
        If the device is a board that is away, or lost meanwhile: all trials so far are recorded.
    """
    tasks = make_tasks(kernels, settings, bench)
    with ExitStack() as stack:
        session = _Session(tasks, settings, bench, stack)
        budgets = session.budgets()
        return [session.tune(number, budget) for number, budget in enumerate(budgets)]


def make_tasks(kernels: Iterable[Kernel], settings: SearchSettings, bench: Bench) -> list[TuningTask]:
    """Return the distinct workloads among kernels, in order."""
    tasks: dict[str, TuningTask] = {}
    target, device = bench.hardware.target(), describe_device(bench.hardware)
    for kernel in kernels:
        workload = Workload.of(kernel)
        own = kernel.space(target) if settings.space == "algorithm" else ()
        points = [dict(point) for point in own]
        header = make_header(workload, points, device, settings.seed, settings.per_round)
        tasks.setdefault(header.key, TuningTask(workload, points, header)).kernels.append(kernel)
    return list(tasks.values())


class _Session:
    """Shared state of a network's searches: the records, and what candidates are tried with."""

    def __init__(
        self, tasks: Sequence[TuningTask], settings: SearchSettings, bench: Bench, stack: ExitStack
    ) -> None:
        self.tasks, self.settings, self.bench, self.stack = tasks, settings, bench, stack
        self.workloads = [task.workload for task in tasks]
        self.store = RecordStore(bench.records)
        self.with_reference: set[int] = set()
        builders = min(Machine().most_threads(), settings.per_round)
        folder = bench.workspace.folder
        self.measurer = make_measurer(self.workloads, bench.hardware, folder, builders)
        stack.enter_context(closing(self.measurer))

    @functools.cached_property
    def evolution(self) -> WorkerPool:
        """A single worker that proposes candidates of TVM's rules."""
        workloads, threads = self.workloads, Machine().most_threads()
        target = self.bench.hardware.target()
        pool = WorkerPool(1, lambda: Evolution(workloads, target, threads).handlers())
        return self.stack.enter_context(pool)

    def budgets(self) -> list[Budget]:
        """Return the budget of each task."""
        settings = self.settings
        if not settings.shared:
            return [Budget(settings.trials, settings.early_stop)] * len(self.tasks)
        weights = [self._weight(number) for number in range(len(self.tasks))]
        shares = [int(settings.trials * weight / sum(weights)) for weight in weights]
        return [Budget(max(1, share), settings.early_stop) for share in shares]

    def tune(self, number: int, budget: Budget) -> TuningResult:
        """Search for one task."""
        task = self.tasks[number]
        with self._open(task) as file, closing(self._search(number, file)) as search:
            try:
                count = search.run(budget)
                selection = search.select(count)
            except NoSchedule as error:
                raise NoSchedule(f"{task.layers[0]}: {error}") from None
            return TuningResult(task, file.records, count, selection)

    def _weight(self, number: int) -> float:
        """Return the seconds that a task's layers take with the minimal schedule."""
        task = self.tasks[number]
        with self._open(task) as file, closing(self._search(number, file)) as search:
            baseline = file.records.baseline or search.baseline()
        return len(task.kernels) * min(baseline.run_s)

    def _search(self, number: int, file: RecordFile) -> Search:
        task = self.tasks[number]
        where = f"{task.layers[0]} ({number + 1} of {len(self.tasks)}): "
        return Search(
            number,
            file,
            self._proposer(number),
            self.measurer,
            lambda text: self.bench.workspace.say(where + text),
            self.with_reference,
        )

    def _proposer(self, number: int) -> Proposer:
        settings, points = self.settings, self.tasks[number].points
        if points:
            return OwnSpace(points, settings.seed, settings.per_round)
        return Rules(number, settings.seed, settings.per_round, lambda: self.evolution)

    def _open(self, task: TuningTask) -> RecordFile:
        return self.store.open(task.header, self.bench.workspace.say)
