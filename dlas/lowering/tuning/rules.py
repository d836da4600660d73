"""Search of TVM's default design space: MetaSchedule's rules, evolution and learned cost model.

TVM proposes candidates; :mod:`dlas.lowering.tuning` runs them, records them and ends the
search.  Every round starts a new evolution from the records, so that another process
can continue a search.
"""

from __future__ import annotations

import logging
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm_ffi
from tvm import s_tir
from tvm.s_tir import meta_schedule as ms

from dlas.bench.processes.workers import Handlers, Reply, RequestFailed, WorkerPool
from dlas.lowering.target import tvm_target
from dlas.lowering.tuning.records import Records
from dlas.lowering.tuning.search import NoSchedule
from dlas.lowering.tuning.workload import MAIN, Workload
from dlas.stack import Target

PROPOSE_S = 600.0
"""Time limit for proposing a round."""
POPULATION = 8
"""Size of the evolving population for each requested candidate."""
GENERATIONS = 2
"""Generations of evolution; each takes about 20 ms of processor time for each schedule."""
PATIENCE = 10
"""Rounds of boosting without improvement that end training."""
ATTEMPTS = 3
"""Number of evolutions to run in search of untried candidates."""
NO_LIMIT = 2**30
"""No limit of trials for TVM; :class:`dlas.lowering.tuning.search.Search` decides when to stop."""

Results = Sequence[tuple[list[Any], float | None]]
"""Traces, each with its seconds a call, None if it failed."""


@dataclass
class Rules:
    """Proposes candidates of the default rules."""

    number: int
    """The workload's index in the worker."""
    seed: int
    per_round: int
    workers: Callable[[], WorkerPool]
    """Returns the pool of the one worker that runs :class:`Evolution`."""
    sent: int = 0
    """Number of first trials whose results the worker has."""

    def propose(self, records: Records) -> list[dict[str, Any]]:
        """Return the candidates of the next round; empty if all have been tried.

        Raises
        ------
        NoSchedule
            If the rules cannot handle the workload.
        """
        reply = self._request(records)
        if reply.get("gone") and self.sent:  # the new worker has no results yet
            self.sent = 0
            reply = self._request(records)
        if "failed" in reply:
            raise NoSchedule(f"TVM's rules propose nothing: {reply['words']}")
        self.sent = len(records.candidates)
        return [{"trace": trace} for trace in reply["traces"]]

    def _request(self, records: Records) -> Reply:
        trials = [records.trials[number] for number in range(self.sent, len(records.candidates))]
        results = [(records.candidates[t.number]["trace"], t.median_s if t.valid else None) for t in trials]
        return self.workers().call(
            0,
            PROPOSE_S,
            do="propose",
            workload=self.number,
            sent=self.sent,
            results=results,
            seed=[self.seed, len(records.rounds)],
            count=self.per_round,
        )


@dataclass
class _State:
    """The worker's state for one workload."""

    database: ms.database.MemoryDatabase = field(default_factory=ms.database.MemoryDatabase)
    """Schedules with their times."""
    tried: set[int] = field(default_factory=set)
    """Hashes of proposed schedules."""
    received: int = 0
    """Number of trials whose results have arrived."""
    model: ms.CostModel | None = None


class Evolution:
    """The worker's side: evolves schedules of some workloads.

    Parameters
    ----------
    workloads : sequence of Workload
    target : Target
    threads : int
    """

    def __init__(self, workloads: Sequence[Workload], target: Target, threads: int) -> None:
        logging.getLogger("tvm").setLevel(logging.WARNING)  # by default it reports every generation
        self.workloads, self.threads = workloads, threads
        self.target = tvm_target(target)
        self.kind = "llvm" if target.on_processors else "cuda"
        self.states: dict[int, _State] = {}

    def handlers(self) -> Handlers:
        """Return the handlers of messages."""
        return {"propose": self.propose}

    def propose(self, workload: int, sent: int, results: Results, seed: list[int], count: int) -> Reply:
        """Learn from new results and return the traces of the next candidates.

        Parameters
        ----------
        sent : int
            Number of trials before those of ``results``.
        results : sequence of (trace, float or None)
            Seconds a call, None for a candidate that failed.
        count : int
            Number of candidates to propose.
        """
        state = self.states.setdefault(workload, _State())
        if state.received != sent:
            raise RequestFailed("run", f"got results from {sent} on, but has {state.received}")
        draws = np.random.SeedSequence(seed).generate_state(ATTEMPTS + 1) % (2**31 - 2) + 1
        np.random.seed(int(draws[-1]))  # the untrained model guesses with numpy's global generator
        self._learn(workload, state, results)
        traces: list[Any] = []
        for draw in map(int, draws[:ATTEMPTS]):
            for schedule in self._evolved(workload, state, draw, count):
                digest = tvm_ffi.structural_hash(schedule.mod)
                if digest not in state.tried and len(traces) < count:
                    state.tried.add(digest)
                    traces.append(self.workloads[workload].trace_of(schedule))
            if len(traces) == count:
                break
        return {"traces": traces}

    def _learn(self, workload: int, state: _State, results: Results) -> None:
        """Add results to the database, and train the model with them."""
        computation = self.workloads[workload]
        context = self._context(computation, seed=1, generations=0, count=1)
        token = state.database.commit_workload(computation.module)
        info = ms.arg_info.ArgInfo.from_prim_func(computation.module[MAIN])
        candidates, times = [], []
        for trace, seconds in results:
            schedule = computation.replay(trace)
            state.tried.add(tvm_ffi.structural_hash(schedule.mod))
            candidates.append(ms.MeasureCandidate(schedule, info))
            times.append(
                ms.runner.RunnerResult([seconds] if seconds else None, None if seconds else "failed")
            )
            if seconds:
                record = ms.database.TuningRecord(schedule.trace, token, [seconds], self.target, info)
                state.database.commit_tuning_record(record)
        if candidates:
            if state.model is None:
                state.model = _new_model(len(candidates))
            state.model.update(context, candidates, times)
        state.received += len(results)

    def _evolved(self, workload: int, state: _State, seed: int, count: int) -> list[s_tir.Schedule]:
        """Return schedules, the most promising first; some may have been tried already."""
        trained = state.model is not None
        context = self._context(self.workloads[workload], seed, GENERATIONS if trained else 0, count)
        model = state.model if trained else ms.cost_model.RandomModel(seed=seed)
        designs = context.generate_design_space()
        size = 2 * count + min(len(state.tried), POPULATION * count)
        context.pre_tuning(NO_LIMIT, size, designs, state.database, model)
        candidates = context.generate_measure_candidates() or []
        context.post_tuning()
        return [candidate.sch for candidate in candidates]

    def _context(self, workload: Workload, seed: int, generations: int, count: int) -> ms.TuneContext:
        space = ms.space_generator.PostOrderApply(
            sch_rules=self.kind, postprocs=self.kind, mutator_probs=self.kind
        )
        strategy = ms.search_strategy.EvolutionarySearch(
            population_size=POPULATION * count, init_min_unmeasured=1, genetic_num_iters=generations
        )
        with without_intrinsics():
            return ms.TuneContext(
                workload.module,
                target=self.target,
                space_generator=space,
                search_strategy=strategy,
                rand_state=seed,
                num_threads=self.threads,
            )


def _new_model(warm_up: int) -> ms.CostModel:
    """Return a cost model that guesses until it has learned from ``warm_up`` trials."""
    import xgboost  # takes seconds, and a first round does not need it

    # Threads do not help with so few trials, and fail if the parent process has used them.
    xgboost.set_config(nthread=1)
    config = ms.cost_model.xgb_model.XGBConfig(nthread=1)
    return ms.cost_model.XGBModel(config=config, num_warmup_samples=warm_up, early_stopping_rounds=PATIENCE)


@contextmanager
def without_intrinsics() -> Iterator[None]:
    """Keep TVM from loading every processor's intrinsics: it takes half a minute, and no rule uses them."""
    name = "tvm.s_tir.tensor_intrin"
    absent = name not in sys.modules
    if absent:
        sys.modules[name] = types.ModuleType(name)
    try:
        yield
    finally:
        if absent:
            del sys.modules[name]
