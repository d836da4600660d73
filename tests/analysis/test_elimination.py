from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlas.analysis.choosing.elimination import CostFactor, cheapest, descend, total

NAMES = "abcde"


@st.composite
def costs(draw: st.DrawFn) -> list[CostFactor]:
    """Return costs of up to five variables with up to three values, each on its own and in groups."""
    extents = {name: draw(st.integers(1, 3)) for name in NAMES[: draw(st.integers(1, 5))]}
    groups = draw(
        st.lists(st.lists(st.sampled_from(list(extents)), min_size=1, max_size=3, unique=True), max_size=5)
    )
    entries = st.sampled_from([0.0, 1.0, 2.0, 3.5, np.inf])
    found = []
    for group in [*([name] for name in extents), *groups]:
        shape = [extents[name] for name in group]
        values = [0.0 if len(group) == 1 else draw(entries) for _ in range(int(np.prod(shape)))]
        values = [draw(st.sampled_from([0.0, 1.0, 5.0])) for _ in values] if len(group) == 1 else values
        found.append(CostFactor(tuple(group), np.array(values).reshape(shape)))
    return found


@given(costs())
def test_nothing_is_cheaper_than_the_cheapest(found: list[CostFactor]) -> None:
    chosen = cheapest(found)
    assert chosen is not None
    names = [cost.variables[0] for cost in found if len(cost.variables) == 1]
    extents = {cost.variables[0]: len(cost.table) for cost in found if len(cost.variables) == 1}
    every = itertools.product(*(range(extents[name]) for name in dict.fromkeys(names)))
    least = min(total(found, dict(zip(dict.fromkeys(names), values, strict=True))) for values in every)
    assert total(found, chosen) == least


@given(costs())
def test_no_single_change_is_cheaper_than_where_a_descent_ends(found: list[CostFactor]) -> None:
    names = dict.fromkeys(name for cost in found for name in cost.variables)
    chosen = descend(found, dict.fromkeys(names, 0))
    assert total(found, chosen) <= total(found, dict.fromkeys(names, 0))
    for cost in found:
        for name, extent in zip(cost.variables, cost.table.shape, strict=True):
            assert all(total(found, {**chosen, name: at}) >= total(found, chosen) for at in range(extent))


def test_a_table_too_large_is_not_made() -> None:
    table = np.random.default_rng(0).random((2,) * 6)
    found = [CostFactor(tuple("abcdef"), table)]
    assert cheapest(found, most=63) is None
    chosen = cheapest(found, most=64)
    assert chosen is not None and total(found, chosen) == pytest.approx(table.min())
