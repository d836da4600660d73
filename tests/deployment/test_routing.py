"""Policies that choose among the paths of a deployed network, and routes that cannot be trusted."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlas.bench.store.cache import Artifact, Cache
from dlas.deployment.flexible import PathEntry, changes, path_rows, routes_of
from dlas.deployment.remaking import CHANGED
from dlas.deployment.routing import ROUTES, DeployedPaths, Route, Routes, State, policy_of
from dlas.deployment.run import Refused
from dlas.errors import InputError
from dlas.stack import MeasureSettings
from dlas.sweep.engine.planning import Planner
from tests.fixtures.commands import Command
from tests.fixtures.flexible import Recorded, path_row
from tests.fixtures.rows import row, write
from tests.fixtures.tiny import the_point

FAST = Route("11", 0.80, 1e-3, 0.9e-3, 1.1e-3)
MIDDLE = Route("01", 0.90, 2e-3, 1.9e-3, 2.1e-3)
LEGACY = Route("00", 0.95, 4e-3, 3.9e-3, 4.2e-3)
ALL = [FAST, MIDDLE, LEGACY]
FUNCTIONS = {2: {"00": "a2", "01": "b2", "11": "c2"}, 4: {"00": "a4", "01": "b4", "11": "c4"}}
DEVICE = {"hardware": "local_cpu", "machine": "some", "threads": 1}
SHAPE = (3, 8, 8)


def served() -> tuple[DeployedPaths, Recorded]:
    program = Recorded()
    description = {"input": [4, *SHAPE], "labels": ["0"]}
    functions = {batch: dict(paths) for batch, paths in FUNCTIONS.items()}
    routes = Routes(functions, {2: ALL, 4: ALL}, DEVICE)
    return DeployedPaths(description, program, routes), program  # type: ignore[arg-type]


def images(count: int) -> Any:
    return np.zeros((count, *SHAPE), np.float32)


@pytest.mark.parametrize(
    ("policy", "state", "path"),
    [
        ("latency", {}, "00"),
        ("latency", {"deadline_s": 4.1e-3}, "01"),
        ("latency", {"deadline_s": 1e-4}, "11"),
        ("accuracy", {"least_accuracy": 0.85}, "01"),
        ("accuracy", {"least_accuracy": 0.7}, "11"),
        ("accuracy", {}, "00"),
        ("load", {"queue": 4, "deadline_s": 5e-3}, "00"),
        ("load", {"queue": 8, "deadline_s": 5e-3}, "01"),
        ("load", {"queue": 100, "deadline_s": 5e-3}, "11"),
    ],
)
def test_policies_take_the_best_path_that_serves(policy: str, state: dict[str, Any], path: str) -> None:
    network, _ = served()
    assert network.choose(policy, 4, **state) == path


def test_a_batch_takes_its_path_and_the_smallest_program_that_holds_it() -> None:
    network, program = served()
    assert network.paths == ["00", "01", "11"]
    assert len(network.run(images(1), path="01")) == 1
    assert len(network.run(images(3))) == 3
    assert len(network.run(images(9), policy="latency", deadline_s=1e-9)) == 9
    assert program.ran == ["b2", "a4", "c4", "c4", "c4"]


@pytest.mark.parametrize("policy", ["latency", "load"])
def test_a_deadline_is_that_of_all_given_images(policy: str) -> None:
    network, program = served()
    network.run(images(9), policy=policy, deadline_s=9e-3)  # three runs: 12 ms of the legacy network
    assert program.ran == ["b4", "b4", "b4"]
    network.run(images(9), policy=policy, deadline_s=13e-3)
    assert program.ran[3:] == ["a4", "a4", "a4"]


def test_without_a_path_the_legacy_networks_is_taken_or_missed() -> None:
    network, program = served()
    assert network.legacy == "00"
    for paths in network.routes.functions.values():
        del paths["00"]  # type: ignore[attr-defined]
    with pytest.raises(Refused, match=r"path '00', which is none of batch 2 \(there are: 01, 11\)"):
        network.run(images(1))
    assert not program.ran


def test_without_accuracies_there_is_nothing_to_choose_from() -> None:
    network, program = served()
    unknown = [replace(route, accuracy=None) for route in ALL]
    functions = network.routes.functions
    network.routes = Routes(functions, {2: [], 4: unknown}, DEVICE, {2: unknown})
    for policy in ("latency", "accuracy", "load", last):
        with pytest.raises(Refused, match=r"no path of batch 2 has an accuracy.*\(there are: 00, 01, 11\)"):
            network.choose(policy, 2)
    with pytest.raises(Refused, match="policy 'accuracy' compares accuracies, and no path has one"):
        network.choose("accuracy", 4, least_accuracy=0.98)
    assert network.choose("latency", 4, deadline_s=1.0) == "00", "as earlier versions deployed it"
    network.run(images(2), path="01")
    assert program.ran == ["b2"]


def test_paths_without_accuracies_make_no_pareto_set(tmp_path: Path) -> None:
    point = the_point('compression = [{ name = "leaf", path = "00" }]')
    network = Artifact("network", "key", tmp_path, {}, {})
    for accuracies, best, others in (
        ((None, None), [], ["11", "00"]),
        ((0.9, None), ["00"], ["11"]),
        ((0.9, 0.8), ["11", "00"], []),
    ):
        rows = [
            path_row(path, ms, own) for path, ms, own in zip(("00", "11"), (4, 1), accuracies, strict=True)
        ]
        routes = routes_of([PathEntry(each, point, network, None) for each in rows])
        assert [route.path for route in routes.measured[1]] == best
        assert [route.path for route in routes.others[1]] == others
        assert routes.without_accuracies() == ([] if best else [1])


def last(routes: Sequence[Route], state: State) -> str:
    """Return the slowest path."""
    return routes[-1].path


def lost(routes: Sequence[Route], state: State) -> str:
    """Return no path at all."""
    return "10"


def test_a_policy_of_ones_own_is_a_function_or_its_place() -> None:
    network, _ = served()
    for own in (last, f"{__name__}:last"):
        assert network.choose(own, 4) == "00"
    assert policy_of(last) is last


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"path": "011"}, r"path '011', which is none of batch 2 \(there are: 00, 01, 11\)"),
        ({"policy": lost}, r"policy 'lost' answers with path '10', which is none of batch 2 \(there are: 00"),
        ({"policy": lambda routes, state: None}, r"answers with path None, which is none"),
        ({"policy": "best"}, r"unknown policy 'best' \(there are: latency, accuracy, load, or "),
        ({"policy": "no_such_module:best"}, "policy 'no_such_module:best': No module named"),
        ({"policy": f"{__name__}:FAST"}, "is no function"),
        ({"policy": "load", "waiting": 3}, "waiting = 3 is told to no policy"),
        ({"policy": "load", "runs": 3}, "runs = 3 is told to no policy: deadline_s, least_accuracy"),
        ({"policy": "load", "queue": "many"}, "queue = 'many': a number is expected"),
        ({"policy": "latency", "deadline_s": float("nan")}, "deadline_s = nan: a number is expected"),
        ({"policy": ":best"}, "policy ':best': Empty module name"),
        ({"policy": ".mine:best"}, "policy '.mine:best': .*relative import"),
        ({"policy": 5}, "unknown policy 5"),
        ({"deadline_s": 0.01}, "deadline_s = 0.01: it is told to a policy alone"),
        ({"path": "01", "policy": "load", "queue": 8}, "queue = 8: it is told to a policy alone"),
    ],
)
def test_what_cannot_be_taken_is_refused(asked: dict[str, Any], said: str) -> None:
    network, program = served()
    with pytest.raises(Refused, match=said):
        network.run(images(2), **asked)
    assert not program.ran


def test_images_of_another_shape_are_refused() -> None:
    with pytest.raises(Refused, match=r"must be float32 \[n, 3, 8, 8\]"):
        served()[0].run(np.zeros((2, 3, 8, 9), np.float32))


# ---------------------------------------------------------------- routes.json


def test_routes_are_read_as_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "library.so").write_bytes(b"library")
    routes = Routes(FUNCTIONS, {2: ALL, 4: [FAST]}, DEVICE)
    (tmp_path / ROUTES).write_text(json.dumps(routes.content(tmp_path)))
    assert Routes.read(tmp_path) == routes


def changed(content: dict[str, Any], **given: Any) -> str:
    """Return routes as JSON, with other contents of their first batch size."""
    first, *others = content["batches"]
    return json.dumps({**content, "batches": [{**first, **given}, *others]})


def test_routes_of_another_library_are_refused(tmp_path: Path) -> None:
    (tmp_path / "library.so").write_bytes(b"library")
    content = Routes(FUNCTIONS, {2: ALL, 4: ALL}, DEVICE).content(tmp_path)
    (tmp_path / ROUTES).write_text(json.dumps(content))
    (tmp_path / "library.so").write_bytes(b"another")
    with pytest.raises(Refused, match=r"routes.json is of another library than .*library.so"):
        Routes.read(tmp_path)
    own = Routes(FUNCTIONS, {2: ALL, 4: ALL}, DEVICE).content(tmp_path)
    for text, said in (
        ("{", "holds no routes: JSONDecodeError"),
        ("[]", "holds no routes: AttributeError"),
        (json.dumps({**content, "format": 9}), "has format 9, and this version reads 1"),
        (json.dumps({"format": 1}), "holds no routes: KeyError: 'library'"),
        (json.dumps({**own, "batches": [{"batch": "many"}]}), "holds no routes: ValueError: .*'many'"),
        (json.dumps({**own, "batches": []}), "holds no routes: ValueError: no batch size"),
        (changed(own, functions={}), "holds no routes: ValueError: no functions by path"),
        (changed(own, functions={"00": 7}), "holds no routes: ValueError: no functions by path: .*7"),
        (changed(own, pareto=[vars(replace(FAST, path="10"))]), "no path with its accuracy and .*'10'"),
        (changed(own, others=[vars(replace(FAST, latency_s=math.nan))]), "NaN is no finite number"),
        (changed(own, others=[vars(replace(FAST, latency_s=10**400))]), "holds no routes: OverflowError"),
        (changed(own, batch=math.inf), "Infinity is no finite number"),
        (changed(own, batch=0), "batch = '0' is no number of images"),
        (changed(own, batch=4), "a batch size is there twice"),
        (json.dumps({**own, "device": 7}), "holds no routes: ValueError: no device: '7'"),
        ("[" * 100_000, "holds no routes: RecursionError"),
    ):
        (tmp_path / ROUTES).write_text(text)
        with pytest.raises(Refused, match=said):
            Routes.read(tmp_path)


# ---------------------------------------------------------------- rows


def test_rows_of_one_setting_are_taken(tmp_path: Path) -> None:
    rows = [path_row("00", 4, 0.9, batch=2), path_row("11", 1, 0.8, batch=2), path_row("00", 8, 0.9, batch=4)]
    runtime = path_row("01", 3, 0.9, algorithm="library", compiler="onnxruntime")
    others = [row(3), path_row("all", 3, 0.9), runtime]
    write(tmp_path, [*rows, *others])
    assert [found.id for found in path_rows(tmp_path)] == [given.id for given in rows]


def test_a_batch_without_the_network_itself_is_refused(tmp_path: Path) -> None:
    write(tmp_path, [path_row("00", 4, 0.9), *(path_row(path, 1, 0.8, batch=8) for path in ("11", "01"))])
    with pytest.raises(InputError, match=r"^batch 8 has no measured row of the path of zeros.* has 01, 11$"):
        path_rows(tmp_path)
    assert len(path_rows(tmp_path, ["batch=1"])) == 1


def test_rows_of_several_settings_are_refused_by_name(tmp_path: Path, dlas_here: Command) -> None:
    write(tmp_path / "rows", [path_row("00", 4, 0.9), path_row("00", 3, 0.9, compiler="hand")])
    refused = dlas_here("deploy", "rows", "--paths", "--to", "home")
    assert refused.returncode == 2
    assert "Choose one with --where axis=value (compiler: hand, untuned)" in refused.stderr.replace("\n", " ")
    with pytest.raises(InputError, match="nothing"):
        path_rows(tmp_path / "rows", ["compiler=nothing"])
    write(tmp_path / "none", [row(3)])
    refused = dlas_here("deploy", "none", "--paths", "--to", "home")
    assert refused.returncode == 2 and "has no measured row of a path" in refused.stderr
    for words in (("--paths", "--fastest"), ("--paths", "0123")):
        refused = dlas_here("deploy", "none", *words, "--to", "home")
        assert refused.returncode == 2 and "or --paths" in refused.stderr
    assert not (tmp_path / "home").exists()


def test_a_program_of_other_code_than_was_measured_says_so(tmp_path: Path) -> None:
    point = the_point('compression = [{ name = "leaf", path = "00" }]')
    key = Planner(MeasureSettings(), tmp_path).plan(point).artifacts()["build"]
    network = Artifact("network", "key", tmp_path, {}, {})
    for build, notes in ((key, []), ("another", [CHANGED])):
        measured = path_row("00", 4, 0.9, artifacts={"build": build})
        assert changes([PathEntry(measured, point, network, None)], Cache(tmp_path)) == notes
