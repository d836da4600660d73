"""Engines run modules, tell what goes wrong, and end with the process that started them."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
from tvm import s_tir, te

from dlas.bench.engines import node
from dlas.bench.engines.chromium import Chromium
from dlas.bench.engines.node import NodeJs
from dlas.bench.engines.process import EngineFailed
from dlas.bench.engines.wasmtime import Wasmtime
from dlas.bench.processes.forking import fork
from dlas.errors import Unsupported
from dlas.lowering.webassembly.writing import CODE, write_kernel
from dlas.stack.engine import Engine, WasmModule
from dlas.testing.engines import loaded
from tests.fixtures.processes import descendants, running, wait_for
from tests.fixtures.webassembly import TARGET, needs_chromium, needs_wasmtime

pytestmark = needs_wasmtime
needs_node = pytest.mark.skipif(NodeJs.missing() is not None, reason=str(NodeJs.missing()))
PROCESSES = [
    pytest.param(lambda: NodeJs(relaxed=True), id="node", marks=needs_node),
    pytest.param(Chromium, id="chromium", marks=[pytest.mark.ci, needs_chromium]),
]
ENGINES = [pytest.param(Wasmtime, id="wasmtime"), *PROCESSES]
SIZE = 1000


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("module")


@pytest.fixture(scope="session")
def module(folder: Path) -> WasmModule:
    """Return a module that adds one to numbers."""
    given = te.placeholder((SIZE,), name="given")
    kernel = te.create_prim_func([given, te.compute((SIZE,), lambda i: given[i] + 1, name="result")])
    return write_kernel(kernel, TARGET, folder)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    started: Engine = request.param()
    yield started
    started.close()
    started.close()


def test_an_engine_runs_a_module_and_tells_times(engine: Engine, module: WasmModule, folder: Path) -> None:
    loaded(module, folder, engine)
    array = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)
    engine.write(module.inputs[0], array)
    assert engine.run(3) >= 0
    assert np.array_equal(engine.read(module.output), array + 1)
    assert engine.call(0, 2) >= 0
    assert 0 < engine.clock_step_s() < 0.01
    assert engine.bytes_used() >= module.memory_bytes
    assert engine.run(200_000) > engine.run(100) > 0, "more runs take longer"
    assert engine.describe()["engine"].split()[1][0].isdigit(), "the version is told"


def test_a_damaged_module_is_refused(
    engine: Engine, module: WasmModule, folder: Path, tmp_path: Path
) -> None:
    code = (folder / CODE).read_bytes()
    (tmp_path / "damaged").write_bytes(code[: len(code) // 2])
    with pytest.raises(Unsupported, match="refuses the module"):
        engine.load(module, tmp_path / "damaged", tmp_path / "damaged")


def test_memory_that_nobody_has_is_refused(engine: Engine, module: WasmModule, folder: Path) -> None:
    huge = WasmModule.of({**module.content(), "memory_bytes": 5 * 2**30})
    with pytest.raises((Unsupported, EngineFailed)):
        loaded(huge, folder, engine)


@pytest.mark.parametrize("start", PROCESSES)
def test_an_engine_that_is_killed_is_told(start: type[Engine], module: WasmModule, folder: Path) -> None:
    before = set(descendants(os.getpid()))
    engine = start()
    try:
        wait_for(lambda: len(set(descendants(os.getpid())) - before) > 1)
        _, started, *_ = sorted(set(descendants(os.getpid())) - before)  # the first one is its guard
        os.kill(started, signal.SIGKILL)
        with pytest.raises(EngineFailed, match="ended"):
            loaded(module, folder, engine)
            engine.run(1)
    finally:
        engine.close()


def kill_its_parent(start: type[Engine], how: signal.Signals, after_s: float | None = None) -> None:
    """Kill a process that has an engine, once that has started or after a while, and see what is left."""

    def hold(connection: Connection) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        engine = start()
        connection.send(engine.describe())
        time.sleep(600)
        return 0

    pid, connection = fork(hold)
    if after_s is None:
        assert connection.poll(60)
    else:
        time.sleep(after_s)
    left = descendants(pid)
    os.kill(pid, how)
    os.waitpid(pid, 0)
    wait_for(lambda: not any(map(running, left)), 20)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("start", PROCESSES)
def test_nothing_is_left_of_an_engine_whose_parent_is_killed(
    start: type[Engine], how: signal.Signals
) -> None:
    kill_its_parent(start, how)


@pytest.mark.slow
@pytest.mark.parametrize("start", PROCESSES)
def test_nothing_is_left_after_thirty_kills_at_any_moment(
    start: type[Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    draw = random.Random(0)
    for _ in range(30):
        kill_its_parent(start, signal.SIGKILL, draw.uniform(0, 2))
    wait_for(lambda: not list(tmp_path.iterdir()), 20)


@pytest.mark.parametrize("start", PROCESSES)
def test_nothing_is_left_where_the_guard_is_killed_too(start: type[Engine]) -> None:
    before = set(descendants(os.getpid()))
    engine = start()
    started = sorted(set(descendants(os.getpid())) - before)
    os.kill(started[0], signal.SIGKILL)
    wait_for(lambda: not any(map(running, started)), 20)
    engine.close()


@needs_node
def test_an_engine_without_vectors_is_told(module: WasmModule, folder: Path) -> None:
    engine = NodeJs(relaxed=False)
    original = engine.ask
    engine.ask = lambda name, **given: (  # type: ignore[method-assign]
        {"simd": False, "relaxed_simd": False} if name == "features" else original(name, **given)
    )
    with pytest.raises(Unsupported, match=r"node .* runs no WebAssembly with vectors"):
        loaded(module, folder, engine)
    engine.close()


@needs_node
def test_an_old_engine_refuses_relaxed_vectors_with_advice(tmp_path: Path) -> None:
    """Node before 21 without its flag stands for any engine that lacks them."""
    if int(node.versions()["node"].partition(".")[0]) >= node.HAS_RELAXED:
        pytest.skip("this version of Node has relaxed vectors without a flag")
    a, b = (te.placeholder((8, 8), name=name) for name in "ab")
    k = te.reduce_axis((0, 8))
    product = te.compute((8, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="product")
    schedule = s_tir.Schedule(te.create_prim_func([a, b, product]))
    i, j, k_loop = schedule.get_loops(schedule.get_sblock("product"))
    schedule.reorder(i, k_loop, j)
    schedule.vectorize(j)
    fused = write_kernel(schedule.mod["main"], TARGET, tmp_path)
    engine = NodeJs(relaxed=False)
    with pytest.raises(Unsupported, match=r"relaxed_simd = false avoids"):
        loaded(fused, tmp_path, engine)
    engine.close()
