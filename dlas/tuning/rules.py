"""Search of TVM's default design space: MetaSchedule's rules, evolution and learned cost model.

TVM's own loop is not used, only its parts: who builds and times, what is on
record and when to stop are ours.  Every round starts an evolution of its own
from the records, so that a search can be taken up by another process.
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
from tvm.s_tir import meta_schedule as ms

from dlas.lowering.target import tvm_target
from dlas.processes.workers import Crew, Failed, Reply, Verbs
from dlas.stack import Target
from dlas.tuning.records import Records
from dlas.tuning.trials import NoSchedule
from dlas.tuning.workload import MAIN, Workload

PROPOSE_S = 600.0
"""How long proposing a round may take."""
POPULATION = 8
"""Schedules that evolve for each candidate that is wanted."""
GENERATIONS = 2
"""Each costs as much as the first: about 20 ms of processor time a schedule, more than all else together."""
PATIENCE = 10
"""Rounds of boosting without a better model, after which training ends."""
ATTEMPTS = 3
"""How often to look for candidates that were not tried before."""
NEVER = 2**30
"""More trials than there will be: when to stop is decided elsewhere."""


@dataclass
class Rules:
    """Proposes candidates of the default rules.

    Parameters
    ----------
    number : int
        The workload's place among those that the crew knows.
    seed, per_round : int
    crew : callable
        Returns the one worker that runs :class:`Evolution`.
    """

    number: int
    seed: int
    per_round: int
    crew: Callable[[], Crew]
    told: int = 0

    def propose(self, records: Records) -> list[dict[str, Any]]:
        """Return the candidates of the next round; none where all have been tried.

        Raises
        ------
        NoSchedule
            If the rules cannot handle the workload.
        """
        reply = self._ask(records)
        if reply.get("gone"):  # its successor knows nothing yet
            self.told = 0
            reply = self._ask(records)
        if "failed" in reply:
            raise NoSchedule(f"TVM's rules propose nothing: {reply['words']}")
        self.told = len(records.candidates)
        return [{"trace": trace} for trace in reply["traces"]]

    def _ask(self, records: Records) -> Reply:
        trials = [records.trials[number] for number in range(self.told, len(records.candidates))]
        results = [(records.candidates[t.number]["trace"], t.median_s if t.valid else None) for t in trials]
        return self.crew().ask(
            0,
            PROPOSE_S,
            do="propose",
            workload=self.number,
            known=self.told,
            results=results,
            seed=[self.seed, len(records.rounds)],
            count=self.per_round,
        )


@dataclass
class _State:
    """What is known of one workload."""

    database: Any = field(default_factory=ms.database.MemoryDatabase)
    tried: set[int] = field(default_factory=set)
    known: int = 0
    model: Any = None


class Evolution:
    """The worker's side: evolves schedules of some workloads.

    Parameters
    ----------
    workloads : sequence of Workload
    target : Target
    threads : int
    """

    def __init__(self, workloads: Sequence[Workload], target: Target, threads: int) -> None:
        logging.getLogger("tvm").setLevel(logging.WARNING)  # it tells of every generation
        self.workloads, self.threads = workloads, threads
        self.target = tvm_target(target)
        self.kind = "llvm" if target.on_processors else "cuda"
        self.states: dict[int, _State] = {}

    def verbs(self) -> Verbs:
        """Return what others may ask for."""
        return {"propose": self.propose}

    def propose(self, workload: int, known: int, results: list[Any], seed: list[int], count: int) -> Reply:
        """Take in new results and return the traces of the next candidates."""
        state = self.states.setdefault(workload, _State())
        if state.known != known:
            raise Failed("run", f"told of results from {known} on, but knows {state.known}")
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

    def _learn(self, workload: int, state: _State, results: list[Any]) -> None:
        """Add results to the database, and train the model with them."""
        each = self.workloads[workload]
        context = self._context(each, seed=1, generations=0, count=1)
        token = state.database.commit_workload(each.module)
        info = ms.arg_info.ArgInfo.from_prim_func(each.module[MAIN])
        candidates, times = [], []
        for trace, seconds in results:
            schedule = each.replay(trace)
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
        state.known += len(results)

    def _evolved(self, workload: int, state: _State, seed: int, count: int) -> list[Any]:
        """Return schedules, the most promising first; those of the records come up again among them."""
        each = self.workloads[workload]
        trained = state.model is not None
        context = self._context(each, seed, GENERATIONS if trained else 0, count)
        model = state.model if trained else ms.cost_model.RandomModel(seed=seed)
        designs = context.generate_design_space()
        wanted = 2 * count + min(len(state.tried), POPULATION * count)
        context.pre_tuning(NEVER, wanted, designs, state.database, model)
        found = context.generate_measure_candidates() or []
        context.post_tuning()
        return [candidate.sch for candidate in found]

    def _context(self, workload: Workload, seed: int, generations: int, count: int) -> Any:
        space = ms.space_generator.PostOrderApply(
            sch_rules=self.kind, postprocs=self.kind, mutator_probs=self.kind
        )
        strategy = ms.search_strategy.EvolutionarySearch(
            population_size=POPULATION * count, init_min_unmeasured=1, genetic_num_iters=generations
        )
        with _without_intrinsics():
            return ms.TuneContext(
                workload.module,
                target=self.target,
                space_generator=space,
                search_strategy=strategy,
                rand_state=seed,
                num_threads=self.threads,
            )


def _new_model(warm_up: int) -> Any:
    """Return a model that guesses until it has learned from so many trials."""
    import xgboost  # takes seconds, and a first round does not need it

    # So few trials are learned from as fast without threads, and whoever forked us may have used them.
    xgboost.set_config(nthread=1)
    config = ms.cost_model.xgb_model.XGBConfig(nthread=1)
    return ms.cost_model.XGBModel(config=config, num_warmup_samples=warm_up, early_stopping_rounds=PATIENCE)


@contextmanager
def _without_intrinsics() -> Iterator[None]:
    """Keep TVM from loading every processor's intrinsics: half a minute for what no rule here uses."""
    name = "tvm.s_tir.tensor_intrin"
    absent = name not in sys.modules
    if absent:
        sys.modules[name] = types.ModuleType(name)
    try:
        yield
    finally:
        if absent:
            del sys.modules[name]
