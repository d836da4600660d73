"""Processes at fixed addresses, so that what these do to a kernel is the same in every sweep."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext

import pytest

from dlas.bench.measuring.addresses import addresses, fixed, on_own_stack
from tests.fixtures.package import ROOT

TELL = """
import ctypes
from dlas.bench.measuring.addresses import addresses
libc = ctypes.CDLL(None)
print(addresses(), ctypes.cast(libc.malloc, ctypes.c_void_p).value, id(object()))
"""


def told(meanwhile: object) -> list[str]:
    with meanwhile:  # type: ignore[attr-defined]
        run = subprocess.run(
            [sys.executable, "-c", TELL],
            cwd=ROOT,
            env={"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
    return run.stdout.split()


def test_programs_are_at_the_same_addresses_each_time_where_the_system_allows_it() -> None:
    here = addresses()
    runs = [told(fixed()) for _ in range(3)]
    with fixed() as allowed:
        if not allowed:
            pytest.skip("this system does not allow fixed addresses")
    assert runs[0][0] == "fixed" and runs[0] == runs[1] == runs[2]
    assert addresses() == here, "this process is as it was"
    assert told(nullcontext())[0] == here


STACK = """
from dlas.bench.measuring.addresses import on_own_stack
def offset():
    return int(open("/proc/thread-self/syscall").read().split()[-2], 16) % 4096
print(offset(), on_own_stack(offset)())
"""


def offsets(environment: str) -> list[str]:
    """Return how far the stack is from the beginning of a page, in the first thread and in one of its own."""
    run = subprocess.run(
        [sys.executable, "-c", STACK],
        cwd=ROOT,
        env={"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT), "LONG": environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.split()


def test_a_stack_of_its_own_is_at_the_same_place_of_a_page_whatever_the_environment() -> None:
    try:
        open("/proc/thread-self/syscall").close()
    except OSError:
        pytest.skip("this system does not tell where the stack is")
    with fixed() as allowed:
        (first, own), *others = [offsets(length * "x") for length in (1, 400, 1_500)]
    assert {other[1] for other in others} == {own}
    assert not allowed or first not in {other[0] for other in others}, "the environment is in front of it"


def test_what_a_function_raises_on_its_own_stack_is_raised() -> None:
    @on_own_stack
    def fails() -> None:
        raise KeyError("why")

    with pytest.raises(KeyError, match="why"):
        fails()
