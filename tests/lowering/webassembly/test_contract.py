"""Every algorithm keeps its contract in WebAssembly."""

from __future__ import annotations

from typing import Any

import pytest

from dlas.sweep.study import parts
from dlas.testing.algorithms import check_algorithm
from dlas.testing.cases import CASES
from tests.fixtures.algorithms import choices
from tests.fixtures.webassembly import TARGET, needs_wasmtime, run_in_wasmtime

pytestmark = needs_wasmtime
FEW = [case for case in CASES if case.conv.name in ("padded", "depthwise", "batch")]


@pytest.mark.parametrize("name", ["csr_direct", "spatial_pack", "winograd"])
def test_a_few_algorithms_are_right_on_a_few_convolutions(name: str) -> None:
    check_algorithm(parts.make("algorithm", name, {}), TARGET, FEW[:2], run_in_wasmtime, points=0)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("algorithm", choices())
def test_algorithm_keeps_its_contract(algorithm: Any) -> None:
    declined = check_algorithm(algorithm, TARGET, CASES, run_in_wasmtime, points=2)
    assert len(declined) < len(CASES), f"{algorithm} declines every convolution"
