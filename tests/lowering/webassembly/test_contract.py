"""Every algorithm keeps its contract in WebAssembly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dlas.bench.engines.chromium import Chromium
from dlas.bench.engines.wasmtime import Wasmtime
from dlas.stack.engine import Engine
from dlas.sweep.study import parts
from dlas.testing.algorithms import check_algorithm
from dlas.testing.cases import CASES
from dlas.testing.engines import runs_in
from tests.fixtures.algorithms import choices
from tests.fixtures.webassembly import TARGET, needs_chromium, needs_wasmtime

pytestmark = needs_wasmtime
FEW = [case for case in CASES if case.conv.name in ("padded", "depthwise", "batch")]
ENGINES = [
    pytest.param(Wasmtime, id="wasmtime"),
    pytest.param(Chromium, id="chromium", marks=needs_chromium),
]


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    started: Engine = request.param()
    yield started
    started.close()


@pytest.mark.parametrize("engine", ENGINES[:1], indirect=True)
@pytest.mark.parametrize("name", ["csr_direct", "spatial_pack", "winograd"])
def test_a_few_algorithms_are_right_on_a_few_convolutions(engine: Engine, name: str) -> None:
    check_algorithm(parts.make("algorithm", name, {}), TARGET, FEW[:2], runs_in(engine), points=0)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize("algorithm", choices())
def test_algorithm_keeps_its_contract(engine: Engine, algorithm: Any) -> None:
    declined = check_algorithm(algorithm, TARGET, CASES, runs_in(engine), points=2)
    assert len(declined) < len(CASES), f"{algorithm} declines every convolution"
