"""Every compiler there is keeps its contract, and the contract notices what does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlas.axes.compilers.torch_eager import TorchEager
from dlas.stack import Backend, Build, Images, Layer, Network, Outputs, Program, Target
from dlas.sweep.study import parts
from dlas.testing import check_compiler
from tests.fixtures.optional import make_or_skip

CHEAP = {"metaschedule": {"preset": "smoke", "trials": 1}}
SLOW = {"torch_compile"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name in parts.names("compiler")
    ],
)
def test_compiler_keeps_its_contract(name: str) -> None:
    check_compiler(make_or_skip("compiler", name, **CHEAP.get(name, {})))


@dataclass(frozen=True)
class Wrong(Program):
    """A program with its outputs or its times changed."""

    program: Program
    outputs: Callable[[Outputs], Any]
    times: Callable[[list[Layer]], list[Layer] | None]

    def bind(self, images: Images) -> Callable[[], Any]:
        return self.program.bind(images)

    def run(self, images: Images) -> Any:
        return self.outputs(self.program.run(images))

    def layers(self, images: Images, repeats: int) -> list[Layer] | None:
        return self.times(self.program.layers(images, repeats) or [])


@dataclass(frozen=True)
class Changed(TorchEager):
    """A runtime after a change of its builds, outputs or times."""

    layers: Callable[[list[Any]], list[Any]] = list
    outputs: Callable[[Outputs], Any] = np.asarray
    times: Callable[[list[Layer]], list[Layer] | None] = list

    def prepare(self, network: Network, target: Target, batch: int, folder: Path) -> Build:
        build = super().prepare(network, target, batch, folder)
        return replace(build, layers=self.layers(build.layers))

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        return Wrong(super().load(folder, network, target), self.outputs, self.times)


def test_times_of_layers_may_be_left_out() -> None:
    check_compiler(Changed(times=lambda times: None))


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (Changed(outputs=lambda outputs: outputs + np.float32(1e-2)), "differ from the reference by"),
        (Changed(outputs=lambda outputs: outputs * np.float32("nan")), "differ from the reference by nan"),
        (Changed(outputs=lambda outputs: outputs[:1]), r"shape \(1, 4\), not \(2, 4\)"),
        (Changed(outputs=lambda outputs: outputs.astype(np.float64)), "float64, not float32"),
        (Changed(layers=lambda layers: layers[1:]), "it names the layers"),
        (Changed(layers=lambda layers: [*layers, layers[0]]), "two layers have one name"),
        (Changed(layers=lambda layers: [{**layer, "macs": 1} for layer in layers]), "has 1 multiply-adds"),
        (
            Changed(layers=lambda layers: [{**layer, "algorithm": "direct"} for layer in layers]),
            "computed by 'direct', with own_kernels = True",
        ),
        (
            Changed(times=lambda times: [{"name": "stem.0", "latency_s": 1e-6}]),
            "it times layers, and not depthwise",
        ),
        (Changed(times=lambda times: [{**layer, "latency_s": 0.0} for layer in times]), "not in seconds"),
        (Changed(times=lambda times: [*times, times[0]]), "two layers of one name"),
    ],
)
def test_a_broken_contract_is_noticed(wrong: Backend, complaint: str) -> None:
    with pytest.raises(AssertionError, match=f"Changed: .*{complaint}"):
        check_compiler(wrong)


def test_a_program_that_ignores_its_images_is_noticed() -> None:
    first: list[Outputs] = []

    def remember(outputs: Outputs) -> Outputs:
        first.append(outputs)
        return first[0]

    with pytest.raises(AssertionError, match="differ from the reference by"):
        check_compiler(Changed(outputs=remember))
