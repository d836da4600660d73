"""Changes of layout in vectors: the same numbers as the loops they replace, and whole vectors in the code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te
from tvm.target import codegen

from dlas.lowering.operators.layout_changes import schedule_changes
from dlas.lowering.target import tvm_target
from dlas.schedules.loops.vectors import vector_unit
from dlas.stack import CHANGE_LAYOUT, Target
from dlas.testing.algorithms import HOST
from tests.fixtures.targets import AVX2, AVX512, NEON


def change(shape: tuple[int, int, int, int], block: int, to_blocks: bool, dtype: str = "float32") -> Any:
    """Return a change of layout as it is lowered, with zeros behind the last channel."""
    n, c, h, w = shape
    plain, blocked = (n, c, h, w), (n, -(-c // block), h, w, block)

    def to(n: Any, k: Any, h: Any, w: Any, lane: Any) -> Any:
        channel = k * block + lane
        return te.if_then_else(channel < c, x[n, channel, h, w], tvm.tirx.const(0, dtype))

    if to_blocks:
        x = te.placeholder(plain, dtype, "x")
        y = te.compute(blocked, to, name=CHANGE_LAYOUT)
    else:
        x = te.placeholder(blocked, dtype, "x")
        y = te.compute(plain, lambda n, k, h, w: x[n, k // block, h, w, k % block], name=CHANGE_LAYOUT)
    return te.create_prim_func([x, y])


def arrays(shape: tuple[int, int, int, int], block: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return random numbers in NCHW, and in blocks."""
    n, c, h, w = shape
    plain = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    filled = np.pad(plain, ((0, 0), (0, -c % block), (0, 0), (0, 0)))
    return plain, np.ascontiguousarray(filled.reshape(n, -1, block, h, w).transpose(0, 1, 3, 4, 2))


def rewritten(function: Any, target: Target) -> Any:
    return schedule_changes(tvm.IRModule({"main": function}), target)["main"]


SHAPES = {
    "whole vectors": ((1, 32, 8, 8), 16, "float32"),
    "a batch of 7 by 7": ((3, 16, 7, 7), 8, "float32"),
    "shared by threads": ((2, 64, 14, 14), 16, "float32"),
    "blocks of 4": ((1, 20, 5, 3), 4, "float32"),
    "blocks of 12": ((1, 24, 5, 5), 12, "float32"),
    "less than a vector": ((2, 16, 1, 5), 16, "float32"),
    "channels left over": ((2, 35, 7, 6), 16, "float32"),
    "fewer channels than a piece": ((1, 3, 9, 9), 16, "float32"),
    "half precision": ((2, 32, 7, 7), 16, "float16"),
}


@pytest.mark.parametrize("target", [HOST, AVX2], ids=["host", "avx2"])
@pytest.mark.parametrize("to_blocks", [True, False], ids=["to blocks", "from blocks"])
@pytest.mark.parametrize("name", SHAPES)
def test_numbers_arrive_where_they_should(name: str, to_blocks: bool, target: Target) -> None:
    here = Target({"kind": "llvm", "mcpu": codegen.llvm_get_system_cpu()}, 2)
    if vector_unit(target).lanes > vector_unit(here).lanes:
        pytest.skip("wider vectors than this processor's")
    shape, block, dtype = SHAPES[name]
    given, expected = arrays(shape, block, dtype)[:: 1 if to_blocks else -1]
    function = rewritten(change(shape, block, to_blocks, dtype), target)
    assert "T.Shuffle" in function.script()
    kernel = tvm.tirx.build(function.with_attr("global_symbol", "main"), target=tvm_target(target))
    output = tvm.runtime.tensor(np.full(expected.shape, 7, dtype))
    kernel["main"](tvm.runtime.tensor(given), output)
    np.testing.assert_array_equal(output.numpy(), expected)


@pytest.mark.parametrize(("channels", "size", "block"), [(9, 4, 3), (32, 1, 16), (7, 8, 1)])
def test_what_has_no_squares_keeps_the_common_schedule(channels: int, size: int, block: int) -> None:
    function = change((1, channels, size, size + 1), block, True)
    assert rewritten(function, HOST).same_as(function)


@pytest.mark.parametrize("to_blocks", [True, False], ids=["to blocks", "from blocks"])
@pytest.mark.parametrize(
    ("target", "shuffles"),
    [(AVX2, ["vunpcklps", "vunpckhps"]), (AVX512, ["zmm"]), (NEON, ["zip2"])],
    ids=["avx2", "avx512", "neon"],
)
def test_squares_are_transposed_in_registers(target: Target, shuffles: list[str], to_blocks: bool) -> None:
    function = rewritten(change((1, 32, 14, 14), 16, to_blocks), target).with_attr("global_symbol", "main")
    code = tvm.tirx.build(function, target=tvm_target(target)).inspect_source("asm")
    assert all(shuffle in code for shuffle in shuffles)
    assert not any(one in code for one in ("vinsertps", "vpinsrd", "vgather"))
