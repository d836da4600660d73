from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from dlas import parts
from dlas.convolution import Conv, Tail
from dlas.lowering.tail import Chain
from dlas.schedules.direct import Direct
from dlas.testing import CASES, check_algorithm, check_case


@pytest.mark.parametrize("name", parts.names("algorithm"))
def test_algorithm_keeps_its_contract(name: str) -> None:
    algorithm = parts.make("algorithm", name, {})
    declined = check_algorithm(algorithm)
    assert len(declined) < len(CASES), f"{name} declines every convolution"


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
        return super().compute(x, packed, conv, Chain())


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


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (Forgets(), "relative error"),
        (Shuffles(), "two results"),
        (Overwrites(), "changes the weight"),
        (Shrugs(), "without a reason"),
    ],
)
def test_a_broken_contract_is_noticed(wrong: Direct, complaint: str) -> None:
    case = next(case for case in CASES if case.conv.name == "bias and relu")
    with pytest.raises(AssertionError, match=complaint):
        check_case(wrong, case)


@dataclass(frozen=True)
class Exact(Direct):
    """Claims to round nowhere."""

    tolerance: ClassVar[float] = 0.0


def test_an_algorithm_is_held_to_the_accuracy_it_states() -> None:
    padded = next(case for case in CASES if case.conv.name == "padded")
    with pytest.raises(AssertionError, match="above 0"):
        check_case(Exact(), padded)
