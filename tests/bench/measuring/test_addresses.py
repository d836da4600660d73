"""Processes at fixed addresses, so that what these do to a kernel is the same in every sweep."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext

import pytest

from dlas.bench.measuring.addresses import addresses, fixed
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
