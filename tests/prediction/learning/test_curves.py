"""Learning curves: how the error falls with the number of rows that predictors are fitted to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dlas
from dlas.errors import InputError
from tests.fixtures.commands import Command
from tests.fixtures.rows import write
from tests.fixtures.training_rows import training_rows

ASKED: dict[str, Any] = {"target": "latency_s", "hold_out": "compression.level"}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with 45 rows, of which 36 are left where a level is held out."""
    return write(tmp_path_factory.mktemp("curves") / "rows", list(training_rows()))


def test_errors_are_told_by_the_number_of_rows(rows: Path) -> None:
    trees = {"name": "extra_trees", "trees": 10}
    counts = [36, 20, 28, 5, 1000]
    view = dlas.evaluate(rows, predictors=["additive", trees], row_counts=counts, **ASKED)
    assert sorted(set(view.frame["fitted"])) == [20, 28, 36] and view.frame["rows"].eq(45).all()
    frame = view.frame
    errors = {
        (str(name), int(count)): float(error)
        for name, count, error in zip(frame["predictor"], frame["fitted"], frame["rmse_of_mean"], strict=True)
    }
    named = "extra_trees(trees=10)"
    assert all(errors["additive", count] < errors[named, count] for count in (20, 28, 36))
    assert errors[named, 36] < errors[named, 20]
    assert "28 rows" in str(view) and "RMSE / mean of latency_s by rows fitted" in str(view)
    whole = dlas.evaluate(rows, predictors=["additive"], **ASKED).frame
    (overall,) = whole[whole["predictor"].eq("additive") & whole["held_out"].eq("")]["rmse_of_mean"]
    assert errors["additive", 36] == pytest.approx(overall, rel=1e-6)


def test_numbers_and_predictors_that_cannot_be_are_refused(rows: Path) -> None:
    with pytest.raises(InputError, match=r"`row_counts=5,1000`: expected numbers from 20.* to 36"):
        dlas.evaluate(rows, predictors=["additive"], row_counts=[1000, 5], **ASKED)
    with pytest.raises(InputError, match=r"\{'costs': 'stage'\} has no name"):
        dlas.evaluate(rows, predictors=[{"costs": "stage"}], **ASKED)


def test_the_command_takes_options_of_predictors_and_numbers(rows: Path, dlas_here: Command) -> None:
    command = ["evaluate", str(rows), "--target", "latency_s", "--hold-out", "compression.level"]
    additive = ["--predictor", "{name = 'additive', costs = 'network'}"]
    done = dlas_here(*command, *additive, "--rows", "20,36")
    assert done.returncode == 0 and "36 rows" in done.stdout and "additive" in done.stdout
    refused = dlas_here(*command, *additive, "--rows", "many")
    assert refused.returncode == 2 and "--rows 'many': expected whole numbers" in refused.stderr
