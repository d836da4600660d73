"""Options of torch.compile: checked, handed on, and no part of a point where they are the defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dlas.axes.compilers.torch_compile import TorchCompile
from dlas.errors import InputError, Unsupported
from dlas.sweep.study.point import Choice
from dlas.testing.algorithms import HOST
from tests.fixtures.small_network import error, images, network


def test_defaults_are_no_part_of_a_point() -> None:
    written = Choice.checked("compiler", "torch_compile", {"mode": "default", "freezing": False})
    assert written.content() == {"name": "torch_compile"}
    other = Choice.checked("compiler", "torch_compile", {"mode": "max-autotune", "freezing": True})
    assert other.content() == {"name": "torch_compile", "freezing": True, "mode": "max-autotune"}


def test_modes_that_do_not_exist_are_refused_with_those_that_do() -> None:
    with pytest.raises(InputError, match=r"mode = 'fast': .*'default', 'max-autotune', .*'reduce-overhead'"):
        Choice.checked("compiler", "torch_compile", {"mode": "fast"})
    with pytest.raises(InputError, match="freezing = 1"):
        Choice.checked("compiler", "torch_compile", {"freezing": 1})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        ({"freezing": True}, {"freezing": True}),
        ({"mode": "max-autotune", "freezing": True}, {"max_autotune": True, "freezing": True}),
    ],
)
def test_options_reach_inductor(
    options: dict[str, Any], expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(torch, "compile", lambda module, **settings: given.update(settings) or module)
    TorchCompile(**options).load(Path(), network, HOST)
    found = given["options"] or {}
    assert {name: found[name] for name in expected} == expected and bool(found) == bool(expected)


def test_frozen_weights_cannot_be_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda module, **settings: module)
    program = TorchCompile(freezing=True).load(Path(), network, HOST)
    with pytest.raises(Unsupported, match="freezing = true weights are constants"):
        program.training(images(2), np.zeros(2, np.int64))


@pytest.mark.slow
def test_tuned_kernels_on_frozen_weights_compute_what_the_network_does() -> None:
    small, x = network(), images(2)
    program = TorchCompile(mode="max-autotune", freezing=True).load(Path(), lambda: small, HOST)
    for _ in range(2):
        assert error(program.run(x), small.reference(x)) <= 1e-5
