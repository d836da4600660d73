"""A flexible network under load: how many images are late, and how accurate the others are.

Images arrive as a seeded trace says, wait in a queue, and are run in batches; time is simulated, and each
batch takes as long as it really took.  The static network and the cheapest path are beside the policies.

    python -m benchmarks.load SERVED [--traces steady,bursts,doubling] [--seconds 20] [--deadline 4]
                              [--batch N] [--seed 0]

``SERVED`` is what ``dlas deploy FOLDER --paths --to SERVED`` wrote.  Rates are multiples of what the static
network can serve; the deadline of an image is a multiple of the time of its batch.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console
from rich.table import Table

import dlas
from dlas.deployment.routing import POLICIES, Policy, Route, Served, State

Times = npt.NDArray[np.float64]
STATIC, CHEAPEST = "static", "cheapest"
ENOUGH = 0.01
"""Loss of accuracy that the policy ``accuracy`` accepts."""
PERIODS = 10
"""Periods of a trace."""
RATES: dict[str, Sequence[float]] = {
    "steady": [0.7] * PERIODS,
    "bursts": [0.4, 0.4, 2.0, 0.4, 0.4] * (PERIODS // 5),
    "doubling": [2.0 ** (number / 3 - 2) for number in range(PERIODS)],
}
"""Rates of the periods of a trace, as multiples of what the static network can serve."""

Run = Callable[[str, int], float]
"""Runs a path on a number of images, and returns the seconds."""


@dataclass(frozen=True)
class Outcome:
    """What became of a trace.

    Parameters
    ----------
    late : float
        Share of the images that were done after their deadline.
    accuracy : float
        Mean accuracy of the paths that images took.
    rate : float
        Images a second of working time.
    paths : int
        Number of paths that were taken.
    """

    late: float
    accuracy: float
    rate: float
    paths: int


def arrivals(rates: Sequence[float], capacity: float, seconds: float, seed: int) -> Times:
    """Return the times at which images arrive: a Poisson process whose rate changes by period.

    Parameters
    ----------
    rates : sequence of float
        Of the periods, as multiples of ``capacity``.
    capacity : float
        Images a second.
    seconds : float
        Of all periods together.
    seed : int
    """
    rng = np.random.default_rng(seed)
    period = seconds / len(rates)
    found = []
    for number, rate in enumerate(rates):
        count = rng.poisson(rate * capacity * period)
        found.append(np.sort(rng.uniform(number * period, (number + 1) * period, count)))
    return np.concatenate(found)


def serve(
    times: Times, routes: Sequence[Route], policy: Policy, run: Run, batch: int, deadline_s: float
) -> Outcome:
    """Return what becomes of images that arrive at ``times``.

    Parameters
    ----------
    times : ndarray
        In order.
    routes : sequence of Route
        The Pareto set, the fastest first.
    policy : callable
    run : callable
    batch : int
        Images that are run at once, or fewer if fewer wait.
    deadline_s : float
        From an image's arrival on.
    """
    accuracy = {route.path: route.accuracy or 0.0 for route in routes}
    queue: deque[float] = deque()
    now = worked = total = 0.0
    late = place = 0
    taken = set()
    while place < len(times) or queue:
        if not queue:
            now = max(now, times[place])
        while place < len(times) and times[place] <= now:
            queue.append(times[place])
            place += 1
        count = min(batch, len(queue))
        path = policy(routes, State(batch, len(queue), queue[0] + deadline_s - now))
        seconds = run(path, count)
        now, worked = now + seconds, worked + seconds
        done = [queue.popleft() for _ in range(count)]
        late += sum(now > arrived + deadline_s for arrived in done)
        total += accuracy[path] * count
        taken.add(path)
    images = max(1, len(times))
    return Outcome(late / images, total / images, images / worked if worked else 0.0, len(taken))


def always(path: str) -> Policy:
    """Return the policy that takes one path."""
    return lambda routes, state: path


def servers(routes: Sequence[Route]) -> dict[str, Policy]:
    """Return the static network, the cheapest path, and each policy by name."""
    most_accurate = max(routes, key=lambda route: route.accuracy or 0.0)
    enough = (most_accurate.accuracy or 0.0) - ENOUGH

    def accurate_enough(found: Sequence[Route], state: State) -> str:
        return POLICIES["accuracy"](found, replace(state, least_accuracy=enough))

    policies = {name: policy for name, policy in POLICIES.items() if name != "accuracy"}
    static = min((route.path for route in routes), key=lambda path: path.count("1"))
    return {
        STATIC: always(static),
        CHEAPEST: always(routes[0].path),
        **policies,
        f"accuracy within {ENOUGH:.0%}": accurate_enough,
    }


def running(network: Served) -> Run:
    """Return what runs a path of a served network on images of its example's shape."""
    images = np.random.default_rng(0).standard_normal(network.shape).astype(np.float32)

    def run(path: str, count: int) -> float:
        start = time.perf_counter()
        network.run(images[:count], path=path)
        return time.perf_counter() - start

    return run


def main(
    served: Annotated[Path, typer.Argument(help="What `dlas deploy FOLDER --paths --to SERVED` wrote.")],
    traces: str = ",".join(RATES),
    seconds: float = 20.0,
    deadline: Annotated[float, typer.Option(help="In times of the static network's batch.")] = 4.0,
    batch: Annotated[int, typer.Option(help="Images at once; by default the largest that was measured.")] = 0,
    seed: int = 0,
) -> None:
    """Print what the static network, the cheapest path and each policy make of each trace."""
    network = dlas.load(served)
    assert isinstance(network, Served)
    batch = batch or max(network.routes.measured)
    for given, known in (([batch], network.routes.measured), (traces.split(","), RATES)):
        if missing := [value for value in given if value not in known]:
            raise typer.BadParameter(f"{missing[0]!r}; there are: {', '.join(map(str, known))}")
    routes, run = network.routes.measured[batch], running(network)
    for route in routes:
        for _ in range(20):  # warm up
            run(route.path, batch)
    by_name = servers(routes)
    static = by_name[STATIC](routes, State(batch))
    static_s = float(np.median([run(static, batch) for _ in range(50)]))
    capacity, deadline_s = batch / static_s, deadline * static_s
    title = f"batch {batch}, {len(routes)} paths; rates of {capacity:,.0f} images/s, the static network's"
    table = Table("trace", "server", "in time", "accuracy", "images/s", "paths taken", title=title, box=None)
    for name in traces.split(","):
        times = arrivals(RATES[name], capacity, seconds, seed)
        for server, policy in by_name.items():
            outcome = serve(times, routes, policy, run, batch, deadline_s)
            in_time, accuracy = f"{1 - outcome.late:.2%}", f"{outcome.accuracy:.2%}"
            table.add_row(name, server, in_time, accuracy, f"{outcome.rate:,.0f}", str(outcome.paths))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
