"""A flexible network under load: how many images are late, and how accurate the others are.

Images arrive as a seeded trace says, wait in a queue, and are run in batches; time is simulated, and each
batch takes as long as it really took.  The static network and the cheapest path are beside the policies.

    python -m benchmarks.load SERVED [--traces steady,bursts,doubling] [--seconds 20] [--deadline 4]
                              [--batch N] [--seed 0]

``SERVED`` is what ``dlas deploy FOLDER --paths --to SERVED`` wrote.  Rates are multiples of what the static
network can serve; the deadline of an image is a multiple of the time of its batch.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console
from rich.table import Table

import dlas
from dlas.deployment.routing import POLICIES, DeployedPaths, Policy, Route, State
from dlas.deployment.run import Refused
from dlas.sweep.rows.labels import MISSING

Times = npt.NDArray[np.float64]
STATIC, CHEAPEST = "static", "cheapest"
ENOUGH = 0.01
"""Loss of accuracy that the policy ``accuracy`` accepts."""
WARM_UP = 5
"""Batches of each path and size before a trace."""
PERIODS = 10
"""Periods of a trace."""
RATES: dict[str, Sequence[float]] = {
    "steady": [0.7] * PERIODS,
    "bursts": [0.4, 0.4, 2.0, 0.4, 0.4] * (PERIODS // 5),
    "doubling": [2.0 ** (number / 3 - 2) for number in range(PERIODS)],
}
"""Rates of the periods of a trace, as multiples of what the static network can serve."""


@dataclass(frozen=True)
class Outcome:
    """What became of a trace."""

    late: float
    """Share of the images that were done after their deadline."""
    accuracy: float
    """Mean accuracy of the paths that images took."""
    rate: float
    """Images a second of working time."""
    paths: int
    """Number of paths that were taken."""


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
    """
    rng = np.random.default_rng(seed)
    period = seconds / len(rates)
    found = []
    for number, rate in enumerate(rates):
        count = rng.poisson(rate * capacity * period)
        found.append(np.sort(rng.uniform(number * period, (number + 1) * period, count)))
    return np.concatenate(found)


@dataclass(frozen=True)
class Site:
    """A flexible network that serves images."""

    run: Callable[[str, int], float]
    """Runs a path on a number of images, and returns the seconds."""
    routes: Callable[[int], Sequence[Route]]
    """Returns the Pareto set of the program that a number of images is run by, the fastest first."""
    accuracy: Mapping[str, float]
    """By path; NaN where it is unknown."""
    legacy: str
    """The path of the static network."""
    batch: int
    """Most images that are run at once."""

    @classmethod
    def of(cls, network: DeployedPaths, batch: int = 0) -> Site:
        """Return a deployed network that runs up to ``batch`` images at once; 0 for as many as were measured.

        Raises
        ------
        typer.BadParameter
            If no time is known with this batch, or the legacy network is not among its paths.
        """
        measured = network.routes.measured
        usable = [size for size, routes in measured.items() if routes]
        batch = batch or max(usable, default=0)
        if batch not in usable:
            raise typer.BadParameter(f"batch {batch!r}; with measured paths there are: {_listed(usable)}")
        known = network.routes.functions[batch]
        legacy = network.legacy
        if legacy not in known:
            raise typer.BadParameter(f"path {legacy!r}, the static network, is not among {_listed(known)}")
        images = np.random.default_rng(0).standard_normal((batch, *network.shape[1:])).astype(np.float32)

        def run(path: str, count: int) -> float:
            start = time.perf_counter()
            network.run(images[:count], path=path)
            return time.perf_counter() - start

        def routes_of(count: int) -> Sequence[Route]:
            return measured[network.batch_for(count)] or measured[batch]

        routes = (*measured[batch], *network.routes.others.get(batch, ()))
        told = {route.path: route.accuracy for route in routes}
        accuracy = {path: value if value is not None else math.nan for path, value in told.items()}
        return cls(run, routes_of, {path: accuracy.get(path, math.nan) for path in known}, legacy, batch)


def serve(times: Times, site: Site, policy: Policy, deadline_s: float) -> Outcome:
    """Return what becomes of images that arrive at ``times``.

    Parameters
    ----------
    times : ndarray
        In order.
    deadline_s : float
        From an image's arrival on.
    """
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
        count = min(site.batch, len(queue))
        path = policy(site.routes(count), State(site.batch, len(queue), queue[0] + deadline_s - now))
        seconds = site.run(path, count)
        now, worked = now + seconds, worked + seconds
        done = [queue.popleft() for _ in range(count)]
        late += sum(now > arrived + deadline_s for arrived in done)
        total += site.accuracy[path] * count
        taken.add(path)
    images = max(1, len(times))
    return Outcome(late / images, total / images, images / worked if worked else 0.0, len(taken))


def always(path: str) -> Policy:
    """Return the policy that takes one path."""
    return lambda routes, state: path


def servers(site: Site) -> dict[str, Policy]:
    """Return the static network, the cheapest path, and each policy by name."""
    routes = site.routes(site.batch)
    enough = max(route.accuracy or 0.0 for route in routes) - ENOUGH

    def accurate_enough(found: Sequence[Route], state: State) -> str:
        return POLICIES["accuracy"](found, replace(state, least_accuracy=enough))

    policies = {name: policy for name, policy in POLICIES.items() if name != "accuracy"}
    return {
        STATIC: always(site.legacy),
        CHEAPEST: always(routes[0].path),
        **policies,
        f"accuracy within {ENOUGH:.0%}": accurate_enough,
    }


def opened(folder: Path) -> DeployedPaths:
    """Return a deployed flexible network.

    Raises
    ------
    typer.BadParameter
        If there is none in the folder.
    """
    try:
        network = dlas.load(folder)
    except (Refused, OSError) as error:
        raise typer.BadParameter(str(error)) from None
    if not isinstance(network, DeployedPaths):
        raise typer.BadParameter(
            f"{str(folder)!r} holds one network; `dlas deploy FOLDER --paths --to SERVED` writes all paths"
        )
    return network


def main(
    served: Annotated[Path, typer.Argument(help="What `dlas deploy FOLDER --paths --to SERVED` wrote.")],
    traces: str = ",".join(RATES),
    seconds: Annotated[float, typer.Option(min=0.01, max=3600, help="Length of a trace.")] = 20.0,
    deadline: Annotated[float, typer.Option(min=0.1, help="In times of the static network's batch.")] = 4.0,
    batch: Annotated[int, typer.Option(help="Images at once; by default the largest that was measured.")] = 0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Print what the static network, the cheapest path and each policy make of each trace."""
    if unknown := [name for name in traces.split(",") if name not in RATES]:
        raise typer.BadParameter(f"trace {unknown[0]!r}; there are: {_listed(RATES)}")
    network = opened(served)
    site = Site.of(network, batch)
    for path, size in itertools.product(site.accuracy, network.routes.functions):
        for _ in range(WARM_UP):
            site.run(path, min(size, site.batch))
    static_s = float(np.median([site.run(site.legacy, site.batch) for _ in range(10 * WARM_UP)]))
    Console().print(_compared(site, traces.split(","), static_s, deadline * static_s, seconds, seed))


def _compared(
    site: Site, traces: Sequence[str], static_s: float, deadline_s: float, seconds: float, seed: int
) -> Table:
    """Return what becomes of each trace with each server."""
    capacity = site.batch / static_s
    title = (
        f"batch {site.batch}, {len(site.routes(site.batch))} paths; "
        f"rates of {capacity:,.0f} images/s, the static network's"
    )
    table = Table("trace", "server", "in time", "accuracy", "images/s", "paths taken", title=title, box=None)
    for name in traces:
        times = arrivals(RATES[name], capacity, seconds, seed)
        for server, policy in servers(site).items():
            outcome = serve(times, site, policy, deadline_s)
            accuracy = MISSING if math.isnan(outcome.accuracy) else f"{outcome.accuracy:.2%}"
            in_time = f"{1 - outcome.late:.2%}"
            table.add_row(name, server, in_time, accuracy, f"{outcome.rate:,.0f}", str(outcome.paths))
    return table


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values)) or "none"


if __name__ == "__main__":
    typer.run(main)
