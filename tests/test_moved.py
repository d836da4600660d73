"""Modules are found by the names that they had before."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from dlas.bench.store.fingerprint import SourceTree
from dlas.moved import NEW_NAMES, new_name
from tests.fixtures.package import ROOT, modules


@pytest.mark.parametrize("old", sorted(NEW_NAMES))
def test_an_old_name_means_a_module_of_today(old: str) -> None:
    assert NEW_NAMES[old] in modules()
    assert old not in modules()


SAME = """
import dlas.compression.pruning.masked as old
import dlas.axes.compression.pruning.masked as new
from dlas.compression.pruning import iterative
assert old is new and new.__name__ == new.__spec__.name == "dlas.axes.compression.pruning.masked"
"""


@pytest.mark.slow
def test_a_module_is_one_under_both_names_and_its_users_are_told_once() -> None:
    ran = subprocess.run([sys.executable, "-c", SAME], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("Warning") == 1
    assert "FutureWarning: dlas.compression is dlas.axes.compression now" in ran.stderr


def test_a_network_of_ones_own_needs_no_new_name() -> None:
    code = "import dlas.models; from dlas.models import from_torch; import dlas; dlas.models.from_torch"
    command = [sys.executable, "-W", "error::FutureWarning", "-c", code]
    assert subprocess.run(command, cwd=ROOT).returncode == 0


def test_what_did_not_move_has_no_other_name() -> None:
    assert new_name("dlas.stack.part") is None
    assert new_name("numpy.random") is None
    assert importlib.util.find_spec("dlas.compression.no_such_module") is None


def test_keys_follow_old_names() -> None:
    part = "from dlas.compression.pruning.masked import MaskedPruning\nimport dlas.networks.torch_model\n"
    closure = SourceTree({"mine": part}).closure(["mine"])
    assert {"dlas.axes.compression.pruning.masked", "dlas.networks.torch.model"} <= closure
    assert not any(new_name(module) for module in closure)
