"""A deployed flexible network: its paths, and policies that choose one for each batch."""

from __future__ import annotations

import hashlib
import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dlas.bench.store import finite
from dlas.deployment.run import Array, DeployedNetwork, Refused
from dlas.deployment.runtimes.tvm import FILES, TvmDeployment

ROUTES = "routes.json"
FORMAT = 1
MOST_BYTES = 2**24
"""Of ``routes.json``."""


@dataclass(frozen=True)
class Route:
    """A path as it was measured with one batch size."""

    path: str
    """A digit for each phase, 1 for the shallow one."""
    accuracy: float | None
    """Share of the test images; None where the network is untrained or images have no labels."""
    latency_s: float
    latency_low_s: float
    latency_high_s: float
    """Of a batch: the median and its 95 % interval."""


@dataclass(frozen=True)
class State:
    """What a policy may look at."""

    batch: int
    """Images that are run at once."""
    queue: int = 0
    """Images that wait, those of this batch among them."""
    deadline_s: float = math.inf
    """Time until the first of them must be done; infinite where there is no hurry."""
    least_accuracy: float = 1.0
    """The accuracy that is enough."""
    runs: int = 1
    """Inferences of this batch size that the given images take: one, unless they exceed the largest batch."""


TOLD = {field.name for field in fields(State)} - {"batch", "runs"}
"""What a caller tells a policy."""
Policy = Callable[[Sequence[Route], State], str]
"""Returns the path to take, of the Pareto set of the batch size, the fastest first."""


def latency(routes: Sequence[Route], state: State) -> str:
    """Return the most accurate path with which all runs are done in time, the fastest where none is."""
    in_time = [route for route in routes if state.runs * route.latency_high_s <= state.deadline_s]
    return max(in_time, key=_accuracy).path if in_time else routes[0].path


def accuracy(routes: Sequence[Route], state: State) -> str:
    """Return the fastest path that is accurate enough, the most accurate where none is.

    Raises
    ------
    Refused
        If no path has an accuracy.
    """
    if all(route.accuracy is None for route in routes):
        raise Refused("policy 'accuracy' compares accuracies, and no path has one")
    enough = [route for route in routes if _accuracy(route) >= state.least_accuracy]
    return enough[0].path if enough else max(routes, key=_accuracy).path


def load(routes: Sequence[Route], state: State) -> str:
    """Return the most accurate path with which all that wait would be done by the deadline."""
    return latency(routes, replace(state, runs=max(state.runs, math.ceil(state.queue / state.batch))))


POLICIES: dict[str, Policy] = {"latency": latency, "accuracy": accuracy, "load": load}


def _accuracy(route: Route) -> float:
    """Return a path's accuracy; of paths without, the slower one counts as the better."""
    return route.accuracy if route.accuracy is not None else route.latency_s


def policy_of(name: str | Policy) -> Policy:
    """Return a policy by its name, or as ``module:function``; a function is its own.

    Raises
    ------
    Refused
        If there is none.
    """
    if callable(name):
        return name
    module, colon, function = str(name).partition(":")
    if module in POLICIES and not colon:
        return POLICIES[module]
    if not colon:
        raise Refused(f"unknown policy {name!r} (there are: {', '.join(POLICIES)}, or 'module:function')")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, TypeError, ValueError) as error:  # the last two of "" and ".mine"
        raise Refused(f"policy {name!r}: {error}") from None
    if not callable(found):
        raise Refused(f"policy {name!r} is no function")
    return found  # type: ignore[no-any-return]  # as its user declares it


@dataclass(frozen=True)
class Routes:
    """What ``routes.json`` holds."""

    functions: Mapping[int, Mapping[str, str]]
    """By batch size and path, the library's function."""
    measured: Mapping[int, Sequence[Route]]
    """By batch size, the Pareto set of accuracy and latency, the fastest first."""
    device: Mapping[str, Any]
    """Hardware, machine and threads that the times were taken with."""
    others: Mapping[int, Sequence[Route]] = field(default_factory=dict)
    """By batch size, the paths that were measured, too, and are not in the Pareto set."""

    def content(self, folder: Path) -> dict[str, Any]:
        """Return what :meth:`read` takes, for the library in ``folder``."""
        return {
            "format": FORMAT,
            "library": library_digest(folder),
            "device": dict(self.device),
            "batches": [
                {
                    "batch": batch,
                    "functions": dict(self.functions[batch]),
                    "pareto": [vars(route) for route in self.measured[batch]],
                    "others": [vars(route) for route in self.others.get(batch, ())],
                }
                for batch in sorted(self.functions)
            ],
        }

    def without_accuracies(self) -> list[int]:
        """Return the batch sizes without a Pareto set, since paths were measured and none has an accuracy."""
        return [
            batch
            for batch in sorted(self.functions)
            if self.others.get(batch) and not self.measured.get(batch)
        ]

    @classmethod
    def read(cls, folder: Path) -> Routes:
        """Return the routes of a folder.

        Raises
        ------
        Refused
            If they are damaged, or of another library.
        """
        path = folder / ROUTES
        try:
            with path.open(encoding="utf-8") as file:
                content = finite.loads(file.read(MOST_BYTES))
            if content.get("format") != FORMAT:
                raise Refused(f"{path} has format {content.get('format')!r}, and this version reads {FORMAT}")
            if content["library"] != library_digest(folder):
                raise Refused(f"{path} is of another library than {folder / FILES[0]}: deploy them together")
            batches = {_batch(entry["batch"]): entry for entry in content["batches"]}
            if len(batches) < len(content["batches"]):
                raise ValueError("a batch size is there twice")
            functions = {batch: _functions(entry["functions"]) for batch, entry in batches.items()}
            if not functions:
                raise ValueError("no batch size")
            if not isinstance(content["device"], dict):
                raise ValueError(f"no device: {str(content['device'])[:200]!r}")
            return cls(
                functions,
                {batch: _routes(entry["pareto"], functions[batch]) for batch, entry in batches.items()},
                content["device"],
                {
                    batch: _routes(entry["others"], functions[batch])
                    for batch, entry in batches.items()
                    if entry.get("others")
                },
            )
        except Refused:
            raise
        except (
            OSError,
            LookupError,
            TypeError,
            AttributeError,
            ValueError,
            ArithmeticError,
            RecursionError,
        ) as error:
            raise Refused(f"{path} holds no routes: {type(error).__name__}: {error}") from None


def _batch(value: object) -> int:
    """Return a batch size.

    Raises
    ------
    ValueError
        If it is no whole number above zero.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"batch = {str(value)[:200]!r} is no number of images")
    return value


def _functions(entry: Mapping[str, str]) -> dict[str, str]:
    """Return the functions of a batch size by path.

    Raises
    ------
    ValueError
        If there are none, or something else than texts.
    """
    functions = dict(entry)
    if not functions or not all(isinstance(text, str) for pair in functions.items() for text in pair):
        raise ValueError(f"no functions by path: {str(functions)[:200]}")
    return functions


def _routes(entries: Sequence[Mapping[str, Any]], functions: Mapping[str, str]) -> list[Route]:
    """Return routes of JSON.

    Raises
    ------
    ValueError
        If one has no path of these functions, or something else than finite numbers.
    """
    routes = [Route(**{each.name: entry[each.name] for each in fields(Route)}) for entry in entries]
    for route in routes:
        path, accuracy, *times = vars(route).values()
        numbers = times if accuracy is None else [accuracy, *times]
        known = isinstance(path, str) and path in functions
        if not known or not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
            raise ValueError(f"no path with its accuracy and times: {str(vars(route))[:200]}")
    return routes


def library_digest(folder: Path) -> str:
    """Return the SHA-256 hash of the library in a folder."""
    with (folder / FILES[0]).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class DeployedPaths(DeployedNetwork):
    """A deployed flexible network: called, it takes its legacy network's path; :meth:`run` takes any.

    Parameters
    ----------
    description : mapping
        What ``deployed.json`` holds.
    program : TvmDeployment
    routes : Routes
    """

    def __init__(self, description: Mapping[str, Any], program: TvmDeployment, routes: Routes) -> None:
        super().__init__(description, program)
        self.routes = routes
        self._served = program

    @property
    def paths(self) -> list[str]:
        """The paths that can be taken with every batch size."""
        common = set.intersection(*(set(functions) for functions in self.routes.functions.values()))
        return sorted(common)

    @property
    def legacy(self) -> str:
        """The path of the legacy network, which takes no shallow phase."""
        return "0" * len(next(iter(next(iter(self.routes.functions.values())))))

    def run(
        self, images: Array, path: str | None = None, *, policy: str | Policy | None = None, **state: float
    ) -> npt.NDArray[np.float32]:
        """Return the outputs [n, classes] of a path.

        Parameters
        ----------
        images : ndarray of float32, [n, c, h, w]
            Any number: the smallest compiled batch that holds them is run, or the largest several times.
        path : str, optional
            By default what the policy chooses, or without one the path of the legacy network.
        policy : str or callable, optional
            ``latency``, ``accuracy`` or ``load``; ``module:function``; or a function of the Pareto set and
            a :class:`State`.
        **state
            What the policy may look at, of :class:`State`: ``queue``, ``deadline_s``, ``least_accuracy``.

        Raises
        ------
        Refused
            If the images have another shape or type, there is no such path or policy, or a state without one.
        """
        count = max(1, len(images)) if hasattr(images, "__len__") else 1
        batch = self.batch_for(count)
        if state and (policy is None or path is not None):
            told = ", ".join(f"{name} = {value!r}" for name, value in state.items())
            raise Refused(f"{told}: it is told to a policy alone; give policy=... and no path")
        if path is None and policy is not None:
            path = self._choose(policy, batch, math.ceil(count / batch), state)
        chosen = self.legacy if path is None else path
        self._check(chosen, batch, "path")
        return self.run_of(images, chosen, batch)

    def run_of(self, images: Array, path: str, batch: int) -> npt.NDArray[np.float32]:
        """Return the outputs of a path for images that are run ``batch`` at a time."""
        entry = self._served.entry(self.routes.functions[batch][path], (batch, *self.shape[1:]))
        outputs = np.concatenate([entry(part) for part in self._batches(images, batch)])
        return outputs[: len(images)].astype(np.float32, copy=False)

    def choose(self, policy: str | Policy, batch: int, **state: float) -> str:
        """Return the path that a policy takes for a batch size.

        Parameters
        ----------
        policy : str or callable
            As for :meth:`run`.
        batch : int
            One that was compiled.
        **state
            As for :meth:`run`.

        Raises
        ------
        Refused
            If there is no such policy, it is told what is no number, or it answers with an unknown path.
        """
        return self._choose(policy, batch, 1, state)

    def batch_for(self, count: int) -> int:
        """Return the compiled batch for a number of images: the smallest that holds them, or the largest."""
        batches = sorted(self.routes.functions)
        return next((batch for batch in batches if batch >= count), batches[-1])

    def _choose(self, policy: str | Policy, batch: int, runs: int, state: Mapping[str, float]) -> str:
        """Return the path that a policy takes for some runs of a batch size."""
        if batch in self.routes.without_accuracies():
            raise Refused(
                f"no path of batch {batch} has an accuracy, so that there is no Pareto set to choose from; "
                f"give path=... (there are: {', '.join(self.routes.functions[batch])})"
            )
        if not self.routes.measured.get(batch):
            raise Refused(f"no path was measured with batch {batch}: {self._known()}")
        for name, value in state.items():
            if name not in TOLD:
                raise Refused(f"{name} = {value!r} is told to no policy: {', '.join(sorted(TOLD))} are")
            if not isinstance(value, Real) or math.isnan(value):
                raise Refused(f"{name} = {value!r}: a number is expected")
        told = State(batch, runs=runs, **state)  # type: ignore[arg-type]  # a queue is an integer
        path = policy_of(policy)(self.routes.measured[batch], told)
        name = policy if isinstance(policy, str) else getattr(policy, "__name__", repr(policy))
        self._check(path, batch, f"policy {name!r} answers with path")
        return path

    def _check(self, path: object, batch: int, what: str) -> None:
        if not isinstance(path, str) or path not in self.routes.functions[batch]:
            known = ", ".join(self.routes.functions[batch])
            raise Refused(f"{what} {path!r}, which is none of batch {batch} (there are: {known})")

    def _known(self) -> str:
        measured = sorted(batch for batch, routes in self.routes.measured.items() if routes)
        return f"there are {', '.join(map(str, measured)) or 'none'}"
