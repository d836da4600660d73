"""Predictors of other devices as bases: what they may stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlas.errors import InputError
from dlas.prediction.predictors.fitted.bases import Base


def test_a_base_of_another_unit_is_refused() -> None:
    base = Base("additive", "energy_j", "Pi", (), Path("p"))
    base.check_quantity("p", "energy_idle_j")
    base.check_quantity("p", "")
    with pytest.raises(InputError, match="base 'p' predicts energy_j, and latency_s is to be predicted"):
        base.check_quantity("p", "latency_s")
