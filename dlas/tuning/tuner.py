"""Tune a network's kernels: equal ones together, each from where its records end to a choice."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any, Literal

from dlas.errors import Unsupported
from dlas.lowering.kernels import Kernel
from dlas.measuring.machine import Machine
from dlas.processes.workers import CANDIDATE_BYTES, Crew
from dlas.stack import Bench
from dlas.tuning import choosing
from dlas.tuning.choosing import Budget
from dlas.tuning.identity import header, place
from dlas.tuning.lab import Lab
from dlas.tuning.records import Choice, Header, RecordFile, Records, Store
from dlas.tuning.rules import Evolution, Rules
from dlas.tuning.search import OwnSpace
from dlas.tuning.trials import NoSchedule, Proposer, Search
from dlas.tuning.workload import Workload, short_form

Space = Literal["rules", "algorithm"]


@dataclass(frozen=True)
class Settings:
    """How to search.

    Parameters
    ----------
    space : {"rules", "algorithm"}
        TVM's default rules, or the algorithms' own spaces where they have one.
    trials : int
        A workload's, or of all workloads together where ``shared``.
    shared : bool
        Whether workloads share the trials by their weight in the network's time.
    early_stop : int
        End a workload's search after so many trials without a better one; 0 for never.
    per_round : int
        Candidates proposed together.
    seed : int
    """

    space: Space
    trials: int
    shared: bool = False
    early_stop: int = 0
    per_round: int = 16
    seed: int = 0


@dataclass
class Task:
    """One workload with the layers that need it.

    Parameters
    ----------
    workload : Workload
    points : list of mapping
        The algorithm's own space; empty where TVM's rules are searched.
    header : Header
    kernels : list of Kernel
    """

    workload: Workload
    points: list[dict[str, Any]]
    header: Header
    kernels: list[Kernel] = field(default_factory=list)

    @property
    def space(self) -> Space:
        """What is searched."""
        return "algorithm" if self.points else "rules"

    @property
    def layers(self) -> list[str]:
        """Names of the layers."""
        return [kernel.conv.name for kernel in self.kernels]


@dataclass(frozen=True)
class Tuned:
    """What became of a task: its records, how many of them count, and the choice among those."""

    task: Task
    records: Records
    count: int
    choice: Choice

    def summary(self) -> dict[str, Any]:
        """Return what a layer of a row says of its search."""
        trials = choosing.first(self.records, self.count)
        chosen = self.records.candidates[self.choice.number]
        return {
            "space": self.task.space,
            "trials": self.count,
            "valid_trials": sum(trial.valid for trial in trials),
            "trial": self.choice.number,
            "decisions": chosen.get("decisions") or short_form(self.trace),
            "tuned_s": statistics.median(self.choice.finalists[str(self.choice.number)]),
        }

    @property
    def trace(self) -> list[Any]:
        """The chosen schedule as MetaSchedule writes it."""
        return self.records.trace(self.choice.number)

    @property
    def seconds(self) -> float:
        """What the trials that count and the choice took, whenever that was."""
        return sum(t.seconds for t in choosing.first(self.records, self.count)) + self.choice.seconds


def tune(kernels: Iterable[Kernel], settings: Settings, bench: Bench) -> list[Tuned]:
    """Return a schedule for every kernel, equal kernels together.

    Parameters
    ----------
    kernels : iterable of Kernel
    settings : Settings
    bench : Bench

    Raises
    ------
    NoSchedule
        If no candidate of some workload is valid.
    Unsupported
        If candidates cannot be timed on the device from here.
    """
    if not bench.hardware.local:
        raise Unsupported("tuning times its candidates on this machine's own devices only")
    tasks = make_tasks(kernels, settings, bench)
    with ExitStack() as stack:
        session = _Session(tasks, settings, bench, stack)
        budgets = session.budgets()
        return [session.tune(number, budget) for number, budget in enumerate(budgets)]


def make_tasks(kernels: Iterable[Kernel], settings: Settings, bench: Bench) -> list[Task]:
    """Return the distinct workloads among kernels, in order."""
    tasks: dict[str, Task] = {}
    target, where = bench.hardware.target(), place(bench.hardware)
    for kernel in kernels:
        workload = Workload.of(kernel)
        own = kernel.algorithm.space(kernel.conv, target) if settings.space == "algorithm" else ()
        points = [dict(point) for point in own]
        about = header(workload, points, where, settings.seed, settings.per_round)
        tasks.setdefault(about.key, Task(workload, points, about)).kernels.append(kernel)
    return list(tasks.values())


class _Session:
    """What the searches of one network share: the store, and workers that start when they are needed."""

    def __init__(self, tasks: Sequence[Task], settings: Settings, bench: Bench, stack: ExitStack) -> None:
        self.tasks, self.settings, self.bench, self.stack = tasks, settings, bench, stack
        self.workloads = [task.workload for task in tasks]
        self.store = Store(bench.records)
        self.answered: set[int] = set()

    @functools.cached_property
    def crew(self) -> Crew:
        """The workers that build and time."""
        lab = functools.partial(Lab, self.workloads, self.bench.hardware, self.bench.workspace.folder)
        count = min(Machine().most_threads(), self.settings.per_round)
        # A GPU's driver reserves more addresses than any limit would allow.
        on_processors = self.bench.hardware.target().on_processors
        memory = CANDIDATE_BYTES if on_processors else None
        return self.stack.enter_context(Crew(count, lambda: lab().verbs(), memory))

    @functools.cached_property
    def evolution(self) -> Crew:
        """The one worker that proposes candidates of TVM's rules."""
        target, threads = self.bench.hardware.target(), Machine().most_threads()
        return self.stack.enter_context(Crew(1, lambda: Evolution(self.workloads, target, threads).verbs()))

    def budgets(self) -> list[Budget]:
        """Return how long to search for each task."""
        settings = self.settings
        if not settings.shared:
            return [Budget(settings.trials, settings.early_stop)] * len(self.tasks)
        weights = [self._weight(number) for number in range(len(self.tasks))]
        shares = [int(settings.trials * weight / sum(weights)) for weight in weights]
        return [Budget(max(1, share), settings.early_stop) for share in shares]

    def tune(self, number: int, budget: Budget) -> Tuned:
        """Search for one task."""
        task = self.tasks[number]
        with self._open(task) as file, closing(self._search(number, file)) as search:
            try:
                count = search.run(budget)
                choice = search.choose(count)
            except NoSchedule as error:
                raise NoSchedule(f"{task.layers[0]}: {error}") from None
            return Tuned(task, file.records, count, choice)

    def _weight(self, number: int) -> float:
        """Return the seconds that a task's layers take with the minimal schedule."""
        task = self.tasks[number]
        with self._open(task) as file, closing(self._search(number, file)) as search:
            baseline = file.records.baseline or search.answer()
        return len(task.kernels) * min(baseline.run_s)

    def _search(self, number: int, file: RecordFile) -> Search:
        task = self.tasks[number]
        where = f"{task.layers[0]} ({number + 1} of {len(self.tasks)}): "
        return Search(
            number,
            file,
            self._proposer(number),
            lambda: self.crew,
            lambda text: self.bench.workspace.say(where + text),
            self.answered,
        )

    def _proposer(self, number: int) -> Proposer:
        settings, points = self.settings, self.tasks[number].points
        if points:
            return OwnSpace(points, settings.seed, settings.per_round)
        return Rules(number, settings.seed, settings.per_round, lambda: self.evolution)

    def _open(self, task: Task) -> RecordFile:
        return self.store.open(task.header, self.bench.workspace.say)
