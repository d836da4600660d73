"""The C library's allocator: what a process keeps of freed blocks, and what it returns."""

from __future__ import annotations

import resource
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dlas.axes.compilers.torch_eager import TorchEager
from dlas.bench.measuring import allocator
from dlas.errors import Unsupported
from dlas.networks.torch.network import TorchNetwork
from dlas.stack import Facts, Target
from tests.fixtures.commands import WARM

BLOCK = 48 * 2**20
"""More than glibc ever keeps by itself."""


def in_process(work: Callable[..., Any], *given: object) -> Any:
    """Return what a function returns in a process of its own."""
    ours, theirs = WARM.Pipe()
    process = WARM.Process(target=_send, args=(theirs, work, *given))
    process.start()
    assert ours.poll(60), "no answer"
    found = ours.recv()
    process.join()
    return found


def _send(to: object, work: Callable[..., Any], *given: object) -> None:
    to.send(work(*given))  # type: ignore[attr-defined]


def resident() -> int:
    """Return the bytes of this process in memory."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


def left_of_a_block(keep: bool, measured: bool) -> float:
    """Return the bytes that stay with the process when a block is freed."""
    with allocator.repeatable() if measured else nullcontext():
        if keep:
            allocator.keep_freed()
        before = resident()
        block = np.ones(BLOCK, np.uint8)
        del block
        return resident() - before


def left_while_and_after() -> tuple[float, float]:
    """Return the bytes that stay of a freed block while freed ones are kept, and afterwards."""
    before = resident()
    with allocator.kept():
        block = np.ones(BLOCK, np.uint8)
        del block
        inside = resident() - before
    return inside, resident() - before


def faults_of_a_run(option: str) -> float:
    """Return the page faults of an inference whose outputs are large."""
    compiler = TorchEager(allocator=option)  # type: ignore[arg-type]
    torch.set_num_threads(1)
    module = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Sigmoid())
    network = TorchNetwork(module, Facts((3, 2000, 2000), 10))
    program = compiler.load(Path(), lambda: network, Target({"kind": "llvm"}, 1))
    run = program.bind(np.ones((1, 3, 2000, 2000), np.float32))
    for _ in range(3):
        run()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        run()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.slow
def test_freed_blocks_stay_with_the_process() -> None:
    assert in_process(left_of_a_block, False, False) < BLOCK / 2
    assert in_process(left_of_a_block, True, False) > BLOCK / 2


def test_freed_blocks_stay_while_a_network_is_trained_and_no_longer() -> None:
    inside, after = in_process(left_while_and_after)
    assert inside > BLOCK / 2 > after


def test_where_memory_is_measured_nothing_is_kept() -> None:
    assert in_process(left_of_a_block, True, True) < BLOCK / 2


def test_a_pinned_allocator_spares_inferences_their_faults() -> None:
    faults = {option: in_process(faults_of_a_run, option) for option in ("default", "pinned")}
    assert faults["pinned"] < faults["default"] / 2, faults


def test_another_c_library_is_no_allocator_to_pin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "_set", lambda parameters: "this C library is not glibc")
    with pytest.raises(Unsupported, match="allocator 'pinned': this C library is not glibc"):
        allocator.keep_freed()
