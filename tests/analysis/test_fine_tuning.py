"""What fine-tuning gains: paired over paths that were kept, one number a seed."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.fine_tuning import gains, interval, main
from dlas.sweep.rows.results import Row, read_rows
from tests.fixtures.flexible import path_row
from tests.fixtures.package import ROOT
from tests.fixtures.rows import row, write

BASE = {"00": 0.95, "01": 0.90, "11": 0.80}
KEPT = ["00", "11"]
GAINED = {0: -0.94, 1: 1.11, 2: 0.17, 3: 1.56, 4: 0.22}
"""The gain of each seed, in points, in the table of `experiments/leaf-digits`."""


def rows(seed: int, gain: float) -> list[Row]:
    """Return rows of paths after both stages; the path that was not kept loses much."""
    base = [path_row(path, 1, accuracy, seed=seed) for path, accuracy in BASE.items()]
    told = {"stage": "fine_tuned", "kept": KEPT}
    after = {"00": 0.95, "01": 0.1, "11": BASE["11"] + gain}
    return base + [
        path_row(path, 1, accuracy, seed=seed, options={"stage": "fine_tuned"}, reached=told)
        for path, accuracy in after.items()
    ]


def test_a_seed_gains_what_its_kept_paths_gain_in_the_mean() -> None:
    found = gains([*rows(0, 0.02), *rows(1, -0.01), row(1)])
    assert {seed: paths for seed, (_, paths) in found.items()} == {0: ["11"], 1: ["11"]}
    assert [gain for gain, _ in found.values()] == pytest.approx([0.02, -0.01])
    assert gains(rows(0, 0.02)[:3]) == {}, "there is nothing to pair"


def test_the_interval_is_students() -> None:
    assert interval([1, 2, 3]) == pytest.approx((2, 2 - 2.4841, 2 + 2.4841), abs=1e-3)


def test_the_gain_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [str(write(tmp_path / str(seed), rows(seed, gain))) for seed, gain in enumerate((0.02, 0.04))]
    monkeypatch.setattr(sys, "argv", ["fine_tuning", *folders])
    main()
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "seed 0: +2.00 points over 1 paths (11)"
    assert printed[-1].startswith("mean: +3.00 points [") and printed[-1].endswith("over 2 seeds")
    bare = write(tmp_path / "bare", [row(1)])
    monkeypatch.setattr(sys, "argv", ["fine_tuning", str(bare)])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert f"no path with an accuracy after both stages in {bare}" in capsys.readouterr().err
    other = write(tmp_path / "other", [replace(row, seed=2, model={"name": "vgg16"}) for row in rows(2, 0)])
    monkeypatch.setattr(sys, "argv", ["fine_tuning", folders[0], str(other)])
    with pytest.raises(SystemExit):
        main()
    assert 'rows of one network are paired; these are of {"name": "digits"' in capsys.readouterr().err


def test_the_kept_rows_gain_what_they_gained_when_unstable_was_a_flag() -> None:
    kept = list(read_rows(ROOT / "experiments/leaf-digits/fine-tuned"))
    assert Counter(each.status for each in kept) == {"ok": 146, "unstable": 14}
    gained = {seed: round(100 * gain, 2) for seed, (gain, _) in gains(kept).items()}
    assert gained == GAINED
