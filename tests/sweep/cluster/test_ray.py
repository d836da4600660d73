"""Studies on a cluster of two nodes on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dlas.bench.processes.events import Task
from dlas.bench.store.cache import Cache
from dlas.sweep.rows.results import Row, read_rows
from tests.fixtures.boards import STUDY, board_profile
from tests.fixtures.engine import HEAD, USUAL, same
from tests.fixtures.package import ROOT
from tests.fixtures.remote import served

pytest.importorskip("ray")
pytestmark = pytest.mark.timeout(900)
# An environment of its own: this machine alone, no token, and the stubs of these tests.
ENVIRONMENT = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "disabled",
    "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
}
LONGEST_S = 500
"""How long a command may take where two other tests have the processors."""
TIMED = {"ok", "unstable"}
OFFERS = {"dlas:local_cpu": 1}
REAL = """
name = "real"
[axes]
dataset   = [{ name = "random", size = 32, classes = 10, images = 4 }]
model     = [{ name = "cifar_mobilenet_v2", width = 0.25 }, { name = "cifar_resnet18", width = 0.25 }]
algorithm = ["direct"]
compiler  = ["untuned", "onnxruntime"]
hardware  = [{ name = "local_cpu", threads = 1 }]
[measure]
repeats = 5
"""
OFFERS_STUB = {"dlas:tests.fixtures.stubs:StubHardware": 1}
STUBS = HEAD + USUAL.replace(
    '["tests.fixtures.stubs:StubCompiler"]',
    f'[{{ name = "tests.fixtures.stubs:StubCompiler", number = {list(range(30))} }}]',
)
STUBS += "batch = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cluster whose first node offers nothing and has no core."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    made = new_cluster()
    yield made
    made.shutdown()


def new_cluster() -> Any:
    from ray.cluster_utils import Cluster

    return Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})


def add(cluster: Any, cache: Path, **resources: float) -> Any:
    """Add a node with a cache of its own."""
    node = cluster.add_node(num_cpus=1, resources=resources, env_vars={"DLAS_CACHE": str(cache)})
    cluster.wait_for_nodes()
    return node


def start(cluster: Any, folder: Path, study: str = REAL) -> subprocess.Popen[str]:
    """Start ``dlas run`` on a cluster."""
    (folder / "study.toml").write_text(study)
    command = ["run", str(folder / "study.toml"), "--ray", cluster.address, "--out", str(folder / "out")]
    return subprocess.Popen(
        [sys.executable, "-m", "dlas", *command],
        env={**os.environ, "DLAS_CACHE": str(folder / "driver")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(process: subprocess.Popen[str], code: int = 0) -> str:
    """Return what a command has printed, after it has ended with a code."""
    said, _ = process.communicate(timeout=LONGEST_S)
    assert process.returncode == code, said
    return said


def doctor(cluster: Any) -> str:
    """Return what ``dlas doctor`` says of a cluster."""
    command = [sys.executable, "-m", "dlas", "doctor", "--ray", cluster.address]
    ran = subprocess.run(command, env={**os.environ, "COLUMNS": "200"}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def rows(folder: Path) -> list[Row]:
    return list(read_rows(folder / "out"))


def written(folder: Path) -> int:
    """Return how many rows were written, of equal points too."""
    return len((folder / "out" / "results.jsonl").read_text().splitlines())


def wait_for_rows(folder: Path, count: int = 1) -> None:
    """Wait until a folder has so many rows."""
    until = time.monotonic() + 200
    while not (folder / "out" / "results.jsonl").exists() or len(rows(folder)) < count:
        assert time.monotonic() < until, "no row has come"
        time.sleep(0.2)


def go_on(cluster: Any, folder: Path) -> None:
    """Run the study of stubs again, which keeps the rows that are there and writes each other one once."""
    before = len(rows(folder))
    assert before < 300
    assert f"kept from before: {before}" in ended(start(cluster, folder, STUBS))
    assert written(folder) == 300


def alone(folder: Path, study: str = REAL) -> list[Row]:
    """Return the rows of a study on this machine."""
    folder.mkdir()
    (folder / "study.toml").write_text(study)
    command = [sys.executable, "-m", "dlas", "run", str(folder / "study.toml"), "--out", str(folder / "out")]
    subprocess.run(command, env={**os.environ, "DLAS_CACHE": str(folder / "cache")}, check=True)
    return rows(folder)


def what(found: list[Row]) -> list[tuple[Any, ...]]:
    """Return what two measurements of points have in common."""
    kernels = {row.id: [layer.get("kernel") for layer in row.layers] for row in found}
    return sorted((row.id, row.key, row.artifacts, kernels[row.id]) for row in found)


@pytest.mark.ci
def test_one_node_helps_and_the_rows_are_those_of_one_machine(cluster: Any, tmp_path: Path) -> None:
    add(cluster, tmp_path / "device", **OFFERS)
    add(cluster, tmp_path / "helper")
    ended(start(cluster, tmp_path))
    told = doctor(cluster)
    assert told.count("1 cores") == 2 and "offers local_cpu" in told and "offers no hardware" in told
    assert any((tmp_path / "helper" / "network").iterdir()), "networks were made there"
    assert not any((tmp_path / "driver" / "build").iterdir()), "nothing was built where rows are written"
    found = rows(tmp_path)
    assert {row.status for row in found} <= TIMED, "nodes that share a machine disturb each other"
    assert what(found) == what(alone(tmp_path / "alone"))


@pytest.mark.slow
def test_a_machine_that_is_lost_leaves_its_points_to_another(cluster: Any, tmp_path: Path) -> None:
    lost, _ = (add(cluster, tmp_path / name, **OFFERS_STUB) for name in ("one", "two"))
    add(cluster, tmp_path / "helper")
    process = start(cluster, tmp_path, STUBS)
    wait_for_rows(tmp_path, 40)
    cluster.remove_node(lost, allow_graceful=False)
    assert "300/300" in ended(process)
    assert written(tmp_path) == 300
    assert same(rows(tmp_path)) == same(alone(tmp_path / "alone", STUBS))


@pytest.mark.slow
def test_a_device_that_goes_and_comes_back_loses_and_doubles_nothing(cluster: Any, tmp_path: Path) -> None:
    node = add(cluster, tmp_path / "device", **OFFERS)
    process = start(cluster, tmp_path)
    wait_for_rows(tmp_path)
    cluster.remove_node(node, allow_graceful=False)
    time.sleep(20)
    add(cluster, tmp_path / "device", **OFFERS)
    ended(process)
    assert {row.status for row in rows(tmp_path)} <= TIMED and len(rows(tmp_path)) == 4


@pytest.mark.slow
def test_a_killed_driver_leaves_complete_rows_and_a_free_device(cluster: Any, tmp_path: Path) -> None:
    add(cluster, tmp_path / "device", **OFFERS_STUB)
    process = start(cluster, tmp_path, STUBS)
    wait_for_rows(tmp_path, 20)
    process.kill()
    process.communicate()
    go_on(cluster, tmp_path)


@pytest.mark.slow
def test_two_studies_take_turns_on_a_device(cluster: Any, tmp_path: Path) -> None:
    add(cluster, tmp_path / "device", **OFFERS)
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    for process in [start(cluster, folder) for folder in folders]:
        ended(process)
    started = [[str(row.started) for row in rows(folder)] for folder in folders]
    (_, last), (first, _) = sorted((min(each), max(each)) for each in started)
    assert last <= first, "a device measures one study at a time"


@pytest.mark.ci
def test_a_full_store_leaves_the_work_where_it_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    from dlas.sweep.cluster.actors import RemoteHelper

    def full(parcel: object) -> None:
        raise ray.exceptions.ObjectStoreFullError("no room")

    monkeypatch.setattr(ray, "put", full)
    cache = Cache(tmp_path)
    with cache.create("network", "key"):
        pass
    task = Task("module:function", {}, 1.0, makes=("build", "other"), needs=[("network", "key")])
    assert RemoteHelper(object(), "a machine", 1, cache).begin(task, 2**30, 1) is None


@pytest.mark.ci
def test_an_address_without_a_cluster_is_refused(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(REAL)
    command = ["run", "study.toml", "--ray", "127.0.0.1:1", "--out", "out"]
    ran = subprocess.run(
        [sys.executable, "-m", "dlas", *command],
        cwd=tmp_path,
        env={**os.environ, **ENVIRONMENT, "DLAS_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 2 and "no Ray cluster answers at '127.0.0.1:1'" in ran.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_what_no_node_offers_is_refused_and_nothing_is_written(cluster: Any, tmp_path: Path) -> None:
    add(cluster, tmp_path / "device", **{"dlas:local_cuda": 1})
    said = ended(start(cluster, tmp_path), code=2)
    assert "no machine of the cluster offers 'local_cpu' (offered: local_cuda)" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_board_is_a_device_of_the_node_that_reaches_it(cluster: Any, tmp_path: Path) -> None:
    with served(tmp_path) as server:
        board = str(board_profile(tmp_path, server))
        add(cluster, tmp_path / "device", **{f"dlas:{board}": 1})
        axes = 'algorithm = ["direct", "gemm"]\ncompiler = ["untuned", "hand"]'
        study = STUDY.format(axes=axes, board=board).replace('"local_cpu", ', "")
        ended(start(cluster, tmp_path, study))
        assert server.sessions_begun()
    found = rows(tmp_path)
    assert len(found) == 4 and {row.status for row in found} <= TIMED
    assert {row.device["title"] for row in found} == {"this machine as a board"}


@pytest.mark.slow
def test_a_head_that_is_lost_ends_a_study_and_another_cluster_goes_on(cluster: Any, tmp_path: Path) -> None:
    add(cluster, tmp_path / "device", **OFFERS_STUB)
    process = start(cluster, tmp_path, STUBS)
    wait_for_rows(tmp_path, 20)
    cluster.shutdown()
    assert "GCS may have been killed" in ended(process, code=1), "Ray ends the process itself"
    again = new_cluster()
    try:
        add(again, tmp_path / "device", **OFFERS_STUB)
        go_on(again, tmp_path)
    finally:
        again.shutdown()
