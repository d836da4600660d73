"""Random convolutions: what the list of cases in ``dlas.testing.algorithms`` did not think of."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dlas.stack import Conv
from dlas.testing.algorithms import ACTIVATIONS, Case

FEWEST_OUTPUTS = 8
"""Fewer may all be near zero by chance, and an error relative to them says nothing."""
CHANNELS = (1, 2, 3, 5, 8, 16)
"""Channels or filters of a group: blocks divide some of them."""


def common_or(common: Any, rare: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy that gives ``common`` half of the time: some algorithms take nothing else."""
    return st.just(common) | rare


@st.composite
def convolutions(draw: st.DrawFn) -> Conv:
    """Draw a convolution small enough to be quick, whose output is not empty."""
    r, s = draw(common_or((3, 3), st.tuples(st.integers(1, 5), st.integers(1, 5))))
    strides = draw(common_or((1, 1), st.tuples(st.integers(1, 3), st.integers(1, 3))))
    dilation = draw(common_or((1, 1), st.tuples(st.integers(1, 3), st.integers(1, 3))))
    padding = draw(common_or((1, 1, 1, 1), st.tuples(*[st.integers(0, 3)] * 4)))
    groups = draw(common_or(1, st.integers(2, 6)))
    return Conv(
        "drawn",
        n=draw(st.integers(1, 3)),
        c=groups * draw(st.sampled_from(CHANNELS)),
        h=draw(extents(dilation[0] * (r - 1) + 1 - padding[0] - padding[2])),
        w=draw(extents(dilation[1] * (s - 1) + 1 - padding[1] - padding[3])),
        k=groups * draw(st.sampled_from(CHANNELS)),
        r=r,
        s=s,
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )


def extents(least: int) -> st.SearchStrategy[int]:
    """Return a strategy for a height or width from ``least`` on."""
    return st.integers(max(least, 1), max(least, 1) + 11)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a convolution with or without bias, residual and activation, its weight dense or sparse."""
    few = st.sampled_from((False, True))
    conv = draw(convolutions().filter(lambda c: c.n * c.k * c.p * c.q >= FEWEST_OUTPUTS))
    activation = draw(st.none() | st.sampled_from(sorted(ACTIVATIONS)))
    return Case(conv, draw(few), draw(few), activation, draw(st.sampled_from((0.0, 0.5, 0.9, 1.0))))
