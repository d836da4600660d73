"""Paths of a flexible network as one program: equal to their builds alone, and sharing what is equal."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi
import typer
from safetensors.numpy import load_file
from tvm import relax
from typer.testing import CliRunner

from benchmarks.paths import main as benchmark
from dlas.axes.compilers.hand import Hand
from dlas.axes.compilers.programs.contents import CONTENTS
from dlas.axes.compilers.programs.paths import join, write_joined
from dlas.axes.compilers.programs.tvm import LIBRARY, PARAMETERS
from dlas.axes.compilers.untuned import MinimalSchedules
from dlas.bench.processes.memory import quick_bytes
from dlas.deployment.runtimes.tvm import TvmDeployment
from dlas.schedules.direct import Direct
from dlas.schedules.spatial_pack import SpatialPack
from dlas.testing.algorithms import HOST
from dlas.testing.networks import SHAPE, random_images
from tests.fixtures.flexible import PATHS, networks, staged
from tests.fixtures.tiny import network_of

BATCH = 2
CASES = {"untuned": (MinimalSchedules(), Direct()), "hand": (Hand(), SpatialPack(layout="blocked"))}
ALONE = {MinimalSchedules: PATHS, Hand: ["00", "11"]}
"""Paths that are built alone, too; a few seconds each."""


@pytest.fixture(scope="module", params=["hand", pytest.param("untuned", marks=pytest.mark.slow)])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the joined paths, their folder, and what made them."""
    compiler, algorithm = CASES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    scheduled = {
        f"path_{path}": compiler.schedule(network, algorithm, HOST, BATCH, folder)
        for path, network in networks().items()
    }
    joined = join(scheduled.items())
    write_joined(joined, HOST, folder)
    return joined, folder, compiler, algorithm


def test_every_path_computes_what_its_build_alone_does(built: Any, tmp_path: Path) -> None:
    _, folder, compiler, algorithm = built
    program, images = TvmDeployment(folder, 1, {"function": "path_00"}), random_images(BATCH)
    for path, network in networks().items():
        once = program.entry(f"path_{path}", (BATCH, *SHAPE))
        assert np.allclose(once(images), network.reference(images), atol=1e-4)
        if path in ALONE[type(compiler)]:
            compiler.compile(network, algorithm, HOST, BATCH, tmp_path / path)
            alone = compiler.load(tmp_path / path, lambda: network, HOST)  # noqa: B023 - it loads at once
            assert np.array_equal(once(images), alone.run(images))
    assert np.array_equal(program.run(images), program.entry("path_00", (BATCH, *SHAPE))(images))
    program.bind(images)()


def test_what_paths_share_is_there_once(built: Any) -> None:
    joined, folder, *_ = built
    functions = [name for name, function in _named(joined.module) if isinstance(function, relax.Function)]
    kernels = [name for name, function in _named(joined.module) if not isinstance(function, relax.Function)]
    assert sorted(functions) == [f"path_{path}" for path in PATHS]
    assert sorted(kernels) == sorted({name for names in joined.kernels.values() for name in names})
    assert len(kernels) < 0.75 * sum(map(len, joined.kernels.values()))
    assert joined.shared() == 1 - len(kernels) / sum(map(len, joined.kernels.values()))
    stored = load_file(folder / PARAMETERS)
    assert len(stored) < sum(map(len, joined.functions.values()))
    digests = {(str(array.dtype), array.shape, array.tobytes()) for array in stored.values()}
    assert len(digests) == len(stored)
    assert json.loads((folder / CONTENTS).read_text()) == {"functions": joined.functions}
    assert (folder / LIBRARY).is_file()


def _named(module: Any) -> list[tuple[str, Any]]:
    return [(variable.name_hint, function) for variable, function in module.functions_items()]


def test_equal_kernels_of_other_weights_keep_their_parameters(tmp_path: Path) -> None:
    # Same shapes, other numbers: kernels are shared, parameters are not.
    compiler, algorithm = MinimalSchedules(), Direct()
    first, second = networks()["00"], networks()["00"]
    next(second.module.get_submodule("layer1.1").parameters()).data += 1
    scheduled = {
        name: compiler.schedule(network, algorithm, HOST, 1, tmp_path)
        for name, network in (("first", first), ("second", second))
    }
    joined = join(scheduled.items())
    assert joined.kernels["first"] == joined.kernels["second"]
    assert joined.functions["first"] != joined.functions["second"]
    write_joined(joined, HOST, tmp_path)
    program, images = TvmDeployment(tmp_path, 1, {"function": "first"}), random_images(1)
    for name, network in (("first", first), ("second", second)):
        found = program.entry(name, (1, *SHAPE))(images)
        assert np.allclose(found, network.reference(images), atol=1e-4)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("switches", [4000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_switching_takes_no_memory(built: Any, switches: int) -> None:
    _, folder, *_ = built
    program, images = TvmDeployment(folder, 1, {"function": "path_00"}), random_images(BATCH)
    entries = [program.entry(f"path_{path}", (BATCH, *SHAPE)) for path in PATHS]

    def switch(times: int) -> None:
        for number in range(times):
            entries[number % len(entries)](images)

    switch(400)
    before = quick_bytes(os.getpid())
    switch(switches)
    # An output kept at each switch would be 64 bytes and more each, an intermediate tensor tens of kilobytes.
    assert quick_bytes(os.getpid()) - before < 2**20


def test_the_path_of_zeros_is_the_program_of_the_legacy_network(tmp_path: Path) -> None:
    compiler, algorithm = MinimalSchedules(), Direct()
    scheduled = {
        name: compiler.schedule(network, algorithm, HOST, 1, tmp_path)
        for name, network in (("legacy", network_of(staged())), ("path_00", networks()["00"]))
    }
    joined = join(scheduled.items())
    assert joined.kernels["legacy"] == joined.kernels["path_00"]
    assert joined.functions["legacy"] == joined.functions["path_00"]
    legacy, path = (joined.module[name].without_attr("global_symbol") for name in scheduled)
    assert tvm_ffi.structural_equal(legacy, path)


def test_threads_share_a_program(built: Any) -> None:
    _, folder, *_ = built
    program = TvmDeployment(folder, 1, {"function": "path_00"})
    entries = [program.entry(f"path_{path}", (BATCH, *SHAPE)) for path in PATHS]
    given = [random_images(BATCH, seed=seed) for seed in range(len(PATHS))]
    expected = [entry(images) for entry, images in zip(entries, given, strict=True)]

    def wrong(number: int) -> int:
        return sum(not np.array_equal(entries[number](given[number]), expected[number]) for _ in range(500))

    with ThreadPoolExecutor(len(PATHS)) as pool:
        assert list(pool.map(wrong, range(len(PATHS)))) == [0] * len(PATHS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--network", "resnet_none"], "resnet_none"),
        (["--network", "squeezenet1_1"], "leaf cannot narrow|leaf finds no phases"),
        (
            ["--network", "cifar_resnet18", "--size", "32", "--paths", "0000,011"],
            "path '011'; .* has 0000, 0001",
        ),
        (["--batch", "0"], "batch"),
    ],
)
def test_the_benchmark_refuses_what_there_is_not(
    monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    for name in ("TVM_NUM_THREADS", "TVM_BIND_THREADS"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # the benchmark sets them
    app = typer.Typer()
    app.command()(benchmark)
    done = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    assert done.exit_code == 2 and re.search(said, done.output), done.output
