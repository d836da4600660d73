"""What slows kernels for a comparison to find, and the rules that it is compared with."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm.script import tirx as T

from benchmarks.slowed import Slowed, name_of, with_work
from benchmarks.two_runs import RULES, SLOWED, STEP_S, counts, work_for
from dlas.analysis.against.pairs import Pair
from dlas.errors import InputError
from dlas.lowering.machine_code import build_functions
from dlas.stack import Layer
from tests.fixtures.rows import row
from tests.fixtures.runs import run_of
from tests.fixtures.targets import AVX2


@T.prim_func(s_tir=True)
def threes(y: T.Buffer((4,), "float32")) -> None:  # type: ignore[valid-type]
    T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True, "global_symbol": "threes"})
    with T.sblock("root"):
        for i in range(4):
            with T.sblock("threes"):
                at = T.axis.spatial(4, i)
                y[at] = T.float32(3)


def test_work_takes_time_and_changes_no_result() -> None:
    seconds = []
    for steps in (1, 2_000_000):
        function = build_functions(tvm.IRModule({"threes": with_work(threes, steps)}), AVX2)["threes"]
        out = tvm.runtime.tensor(np.zeros(4, np.float32))
        begun = time.perf_counter()
        function(out)
        seconds.append(time.perf_counter() - begun)
        assert out.numpy().tolist() == [3.0] * 4
    assert seconds[1] > 5e-4 + seconds[0]


def test_steps_make_a_points_kernels_longer_by_a_share_of_its_time() -> None:
    layers: list[Layer] = [
        {"name": f"conv{at}", "kernel": f"k{at}", "k": at, "decisions": {}, "latency_s": 1e-3 * at}
        for at in (1, 3)
    ]
    rows = [row(compiler={"name": SLOWED}, latency_s=[8e-3], layers=layers), row(latency_s=[1.0])]
    steps = work_for(rows, 0.1)
    assert list(steps) == [name_of(layer) for layer in layers]
    assert [count * STEP_S for count in steps.values()] == pytest.approx([2e-4, 6e-4], rel=1e-3)


@pytest.mark.parametrize("text", ["[1]", '{"a": -1}', '{"a": 1.5}', "{"])
def test_a_file_that_is_no_work_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "work.json").write_text(text)
    with pytest.raises(InputError, match=re.escape(str(tmp_path / "work.json"))):
        Slowed(work=str(tmp_path / "work.json")).verify()
    (tmp_path / "work.json").write_text(json.dumps({"a": 0}))
    Slowed(work=str(tmp_path / "work.json")).verify()


@pytest.mark.parametrize("name", RULES)
def test_each_rule_finds_a_point_that_takes_twice_as_long(name: str) -> None:
    before, now = run_of(0), run_of(1, {5: 1.0}, compiler={"name": SLOWED})
    pairs = [Pair(*rows) for rows in zip(before, now, strict=True)]
    found, _ = counts(pairs, RULES[name](pairs))
    assert found >= 1 and RULES[name](pairs)[now[5].id] == 1
