"""Instructions as callgrind counts them: its file, and what is said where it cannot count."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from dlas.bench.measuring import callgrind
from dlas.bench.measuring.callgrind import count, kernels
from dlas.errors import InputError, Unsupported
from dlas.stack import MeasureSettings, Target
from dlas.sweep.engine.checks import check_countable
from dlas.sweep.engine.steps.count import countable

FILE = """\
# callgrind format
version: 1
events: Ir
fl=(1) ???
fn=(1) main
16 5
cfn=(2) TVMFFIFunctionCall
calls=2 0
18 400
fn=(2)
20 10
cfn=(3) __tvm_ffi_conv_first
calls=1 +3
* 120
+2 4
cfn=(4) __tvm_ffi_conv_second
calls=1 0
-1 230
fn=(3)
7 20
cfn=(5) conv_first_compute_
calls=1 0
8 100
fn=(4)
7 230
fn=(2)
cfn=(3)
calls=1 0
20 121
"""


def test_a_kernel_has_the_instructions_of_what_it_calls_in_all_its_calls() -> None:
    assert kernels(FILE.splitlines(keepends=True)) == {"conv_first": 241, "conv_second": 230}


def test_a_file_that_is_something_else_has_no_kernels() -> None:
    assert kernels(["", "calls=3", "fn=(1", "16 5", "\x00\x01", "cfn=(9)", "calls=1 0", "* 4"]) == {}


def test_a_missing_valgrind_is_told_before_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match=r"callgrind = true.*not installed: `apt-get install valgrind`"):
        check_countable(MeasureSettings(callgrind=True))
    check_countable(MeasureSettings())
    with pytest.raises(Unsupported, match="not installed"):
        count(["-c", "pass"])


def test_what_valgrind_says_of_its_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = tmp_path / "valgrind"
    played.write_text("#!/bin/sh\necho 'vex: unhandled instruction bytes: 0x62 0xF1' >&2\nexit 132\n")
    played.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(Unsupported, match="exit code 132: vex: unhandled instruction bytes: 0x62 0xF1"):
        count(["-c", "pass"])
    played.write_text("#!/bin/sh\nsleep 9\n")
    monkeypatch.setattr(callgrind, "TOOL", str(played))
    with pytest.raises(Unsupported, match="took longer than 0 s"):
        count(["-c", "pass"], seconds=0.2)


def test_x86_programs_are_counted_without_the_instructions_that_valgrind_lacks() -> None:
    described = {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "znver4", "mattr": ["+avx512f"]}
    target, counter = countable(Target({**described, "num-cores": 2}, threads=2))
    assert counter == "callgrind, x86-64-v3"
    assert target.description == {
        "kind": "llvm",
        "mtriple": "x86_64-linux-gnu",
        "mcpu": "x86-64-v3",
        "num-cores": 2,
    }
    arm = Target({"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a76"}, threads=1)
    assert countable(arm) == (arm, "callgrind")
