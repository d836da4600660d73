from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import hypothesis
import numpy as np
import pytest
import torch
from tvm import relax, te, tirx

from dlas.lowering.kernels.tail import Epilogue
from dlas.schedules.direct import Direct
from dlas.schedules.gemm import Gemm
from dlas.stack import Algorithm, Conv, Decisions, Tail, Target
from dlas.testing.algorithms import POINTS, check_algorithm, check_case
from dlas.testing.cases import ACTIVATIONS, CASES, Case
from tests.fixtures.algorithms import choices
from tests.fixtures.convolutions import cases

PADDED, BIAS_AND_RELU = (
    next(case for case in CASES if case.conv.name == name) for name in ("padded", "bias and relu")
)


def check_random_cases(
    algorithm: Algorithm, examples: int, phases: Sequence[hypothesis.Phase] = tuple(hypothesis.Phase)
) -> None:
    """Hold an algorithm to its contract on as many convolutions that it takes, the same ones every time."""

    @hypothesis.settings(
        max_examples=examples,
        derandomize=True,
        phases=phases,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(cases())
    def check(case: Case) -> None:
        hypothesis.assume(check_case(algorithm, case) is None)

    check()


@pytest.mark.parametrize("points", [0, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("algorithm", choices())
def test_algorithm_keeps_its_contract(algorithm: Algorithm, points: int) -> None:
    """Quick runs take every second convolution, of one algorithm those that they leave out of another."""
    tried = CASES if points else CASES[len(str(algorithm)) % 2 :: 2]
    declined = check_algorithm(algorithm, cases=tried, points=points)
    assert len(declined) < len(tried), f"{algorithm} declines every convolution"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("algorithm", choices())
def test_algorithm_keeps_its_contract_on_random_convolutions(algorithm: Algorithm) -> None:
    check_random_cases(algorithm, 50)


def test_direct_declines_nothing_in_plain_layouts() -> None:
    assert all(Direct().supports(case.conv) is None for case in CASES)


def test_direct_says_why_it_declines_blocks() -> None:
    blocked = Conv("blocked", 1, 16, 8, 8, 16, 3, 3, input_layout="NCHW16c")
    assert "NCHW16c" in str(Direct().supports(blocked))


def test_cases_have_names_of_their_own() -> None:
    assert len({case.conv.name for case in CASES}) == len(CASES)


@dataclass(frozen=True)
class Forgets(Direct):
    """Leaves the tail out."""

    def compute(self, x: Any, packed: Sequence[Any], conv: Conv, tail: Tail) -> Any:
        return super().compute(x, packed, conv, Epilogue())


@dataclass(frozen=True)
class Shuffles(Direct):
    """Packs differently every time."""

    def pack(self, weight: np.ndarray, conv: Conv) -> tuple[np.ndarray, ...]:
        return (np.random.default_rng().permutation(weight),)


@dataclass(frozen=True)
class Overwrites(Direct):
    """Changes the weight it is given."""

    def pack(self, weight: np.ndarray, conv: Conv) -> tuple[np.ndarray, ...]:
        weight *= 2
        return (weight,)


@dataclass(frozen=True)
class Shrugs(Direct):
    """Declines without a reason."""

    def supports(self, conv: Conv) -> str | None:
        return ""


@dataclass(frozen=True)
class Flips(Direct):
    """Packs the kernels upside down and says that they are as they were."""

    def pack(self, weight: np.ndarray, conv: Conv) -> tuple[np.ndarray, ...]:
        return (weight[:, :, ::-1],)


@dataclass(frozen=True)
class Keeps(Gemm):
    """Packs into a format of its own and keeps it to itself."""

    def unpack(self, packed: Sequence[np.ndarray], conv: Conv) -> np.ndarray:
        return Algorithm.unpack(self, packed, conv)


@dataclass(frozen=True)
class Wavers(Direct):
    """Adds noise too small to be wrong and different in every run."""

    def compute(self, x: Any, packed: Sequence[Any], conv: Conv, tail: Tail) -> Any:
        right = super().compute(x, packed, conv, tail)
        noise = tirx.call_extern("int32", "rand").astype("float32") * tirx.const(1e-15, "float32")
        return te.compute(right.shape, lambda *at: right(*at) + noise)

    def schedule(self, schedule: Any, conv: Conv, target: Target) -> None:
        """Leave the loops as they are."""


BUILDS = itertools.count()


@dataclass(frozen=True)
class Counts(Direct):
    """Makes another program of every build."""

    def schedule(self, schedule: Any, conv: Conv, target: Target) -> None:
        schedule.annotate(schedule.get_sblock("conv"), "build", next(BUILDS))


@dataclass(frozen=True)
class Rounds(Direct):
    """Has a design space whose last point sums in half precision."""

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        return [{"sum": "float32"}] * 8 + [{"sum": "float16"}]

    def apply(self, schedule: Any, conv: Conv, target: Target, decisions: Decisions) -> None:
        schedule.unsafe_set_dtype(schedule.get_sblock("conv"), 0, decisions["sum"])


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (Forgets(), "compute: relative error"),
        (Shuffles(), "two results"),
        (Overwrites(), "changes the weight"),
        (Shrugs(), "without a reason"),
        (Flips(), "unpack: relative error"),
        (Keeps(), "Keeps packs the weight and has no unpack"),
        (Wavers(), "test_algorithm on 'bias and relu': two runs of one build"),
        (Counts(), "two builds are two programs"),
        (Rounds(), "point 9 of 9 of its space, {'sum': 'float16'}: relative error"),
    ],
)
def test_a_broken_contract_is_noticed(wrong: Algorithm, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_case(wrong, BIAS_AND_RELU)


def test_an_operator_left_out_of_the_kernel_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ACTIVATIONS, "cos", (relax.op.cos, torch.cos))
    with pytest.raises(AssertionError, match=r"the tail is not in the kernel, which has \['relax.add'\]"):
        check_case(Direct(), Case(BIAS_AND_RELU.conv, bias=True, activation="cos"))


@dataclass(frozen=True)
class Swaps(Direct):
    """Takes the padding's sides for one another, but only with strides: no listed case has both."""

    def compute(self, x: Any, packed: Sequence[Any], conv: Conv, tail: Tail) -> Any:
        if max(conv.strides) > 1:
            conv = dataclasses.replace(conv, padding=(*conv.padding[2:], *conv.padding[:2]))
        return super().compute(x, packed, conv, tail)


@pytest.mark.slow
def test_random_convolutions_find_what_the_list_does_not() -> None:
    assert check_algorithm(Swaps(), cases=[case for case in CASES if max(case.conv.strides) > 1]) == {}
    with pytest.raises(AssertionError, match="on 'drawn': compute: relative error"):
        check_random_cases(Swaps(), 200, [hypothesis.Phase.generate])


@dataclass(frozen=True)
class Exact(Direct):
    """Claims to round nowhere."""

    tolerance: ClassVar[float] = 0.0


def test_an_algorithm_is_held_to_the_accuracy_it_states() -> None:
    with pytest.raises(AssertionError, match="above 0"):
        check_case(Exact(), PADDED)


@dataclass(frozen=True)
class Plentiful(Direct):
    """Has a design space too large to be checked in full."""

    applied: list[int | str] = dataclasses.field(default_factory=list)

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        return [{"number": number} for number in range(1000)]

    def apply(self, schedule: Any, conv: Conv, target: Target, decisions: Decisions) -> None:
        self.applied.append(decisions["number"])


def test_a_large_space_is_checked_from_its_first_to_its_last_point() -> None:
    algorithm = Plentiful()
    assert check_case(algorithm, PADDED) is None
    assert algorithm.applied == [0, 333, 666, 999]
    assert len(algorithm.applied) == POINTS
