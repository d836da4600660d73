"""Labels with only the options that vary."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest

from dlas.sweep.rows.frame import read
from dlas.sweep.rows.short_labels import Abbreviations, with_short_labels
from tests.fixtures.rows import row, write


def shortened(folder: Path, *points: dict[str, Any]) -> tuple[list[dict[Hashable, Any]], Abbreviations]:
    """Return the lines of rows of these points with their short labels, and what these leave out."""
    frame, left_out = with_short_labels(read(write(folder, [row(**point) for point in points])))
    return frame.to_dict("records"), left_out


def pruning(name: str, **options: Any) -> dict[str, Any]:
    return {"compression": {"name": name, "recipe": "none", **options}}


def test_options_that_vary_are_told_and_others_once(tmp_path: Path) -> None:
    levels = [pruning("weight_pruning", criterion="random", level=level) for level in (0.5, 1)]
    block = pruning("block_pruning", criterion="random", level=0.9)
    lines, left_out = shortened(tmp_path, {}, *levels, block)
    labels = ["none", "weight_pruning(level=0.5)", "weight_pruning(level=1)", "block_pruning"]
    assert [line["compression"] for line in lines] == labels
    assert str(left_out) == (
        "weight_pruning with criterion=random, recipe=none; "
        "block_pruning with criterion=random, level=0.9, recipe=none"
    )
    whole = left_out.full["compression"]
    assert whole["block_pruning"] == "block_pruning(criterion=random, level=0.9, recipe=none)"


def test_parts_that_share_options_are_told_together(tmp_path: Path) -> None:
    models = [{"model": {"name": name, "recipe": "none"}} for name in ("a", "b", "c")]
    lines, left_out = shortened(tmp_path, *models)
    assert [line["model"] for line in lines] == ["a", "b", "c"]
    assert str(left_out) == "a, b and c with recipe=none"


def test_an_option_that_some_leave_at_its_default_varies(tmp_path: Path) -> None:
    packed = {"name": "spatial_pack", "layout": "blocked"}
    lines, left_out = shortened(tmp_path, {"algorithm": "spatial_pack"}, {"algorithm": packed})
    assert [line["algorithm"] for line in lines] == ["spatial_pack", "spatial_pack(layout=blocked)"]
    assert not str(left_out)


def test_an_axis_with_one_value_keeps_its_label(tmp_path: Path) -> None:
    dataset = {"name": "random", "size": 224}
    lines, left_out = shortened(tmp_path, {"dataset": dataset}, {"dataset": dataset, "batch": 8})
    assert [line["dataset"] for line in lines] == ["random(size=224)"] * 2 and not str(left_out)


def test_options_of_a_chain_stay_with_their_technique(tmp_path: Path) -> None:
    def chain(*levels: float) -> dict[str, Any]:
        links = [{"name": "channel_pruning", "level": level, "recipe": "none"} for level in levels]
        return {"compression": {"chain": [*links, {"name": "int8", "calibration": "none"}]}}

    lines, left_out = shortened(tmp_path, {}, chain(0.25, 0.5), chain(0.5, 0.5))
    one, other = (f"channel_pruning(level={level})+channel_pruning(level=0.5)+int8" for level in (0.25, 0.5))
    assert [line["compression"] for line in lines] == ["none", one, other]
    assert str(left_out) == "channel_pruning with recipe=none; int8 with calibration=none"
    assert left_out.full["compression"][one].startswith("channel_pruning(level=0.25, recipe=none)+channel_")


@pytest.mark.parametrize("odd", [{"name": "x+y", "a": 1}, {"name": "x", "chain": []}, {"name": "x(a=1)"}])
def test_values_that_differ_have_labels_that_differ(tmp_path: Path, odd: dict[str, Any]) -> None:
    values = ({"name": "x+y"}, {"name": "x"}, {"name": "x", "a": 1}, odd)
    rows = [row(model=value, batch=batch) for batch, value in enumerate(values, start=1)]
    frame = read(write(tmp_path, rows))
    short, left_out = with_short_labels(frame)
    assert short["model"].nunique() == frame["model"].nunique()
    assert short["model"].map(left_out.full["model"]).tolist() == frame["model"].tolist()
