"""Documentation of a row's fields: complete, and the page for users is up to date."""

from __future__ import annotations

import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from dlas.sweep.rows import schema
from dlas.sweep.rows.results import Row, read_rows
from docs import rows as pages

RECORDED = Path(__file__).parent / "recorded"


def test_every_field_is_described_and_stands_in_one_group() -> None:
    names = [field.name for field in dataclasses.fields(Row)]
    assert [entry.name for entry in pages.entries(Row)] == names
    assert sorted(" ".join(pages.GROUPS.values()).split()) == sorted(names)
    assert all(entry.meaning for entry in pages.entries(Row))


@pytest.mark.parametrize("mapping", pages.mappings(), ids=lambda mapping: mapping.__name__)
def test_every_key_of_a_mapping_is_described(mapping: type) -> None:
    entries = pages.entries(mapping)
    assert sorted(entry.name for entry in entries) == sorted(mapping.__annotations__)
    assert all(entry.kind and entry.meaning for entry in entries)
    assert (inspect.getdoc(mapping) or "").partition("\n")[0].endswith(".")


def test_null_is_explained_wherever_a_mapping_may_hold_it() -> None:
    for mapping in pages.mappings():
        optional = {name for name, kind in get_type_hints(mapping).items() if "None" in str(kind)}
        said = {entry.name for entry in pages.entries(mapping) if entry.null}
        assert said <= optional, mapping


def test_the_page_is_what_the_source_says() -> None:
    assert pages.PAGE.read_text(encoding="utf-8") == pages.page(), "run python -m docs.rows"


def test_recorded_rows_hold_no_key_that_is_not_described() -> None:
    for row in read_rows(RECORDED):
        content: dict[str, Any] = json.loads(row.line())
        _check(content["layers"], schema.Layer)
        _check(content["edges"], schema.Edge)
        _check(content["reached"].get("curve", []), schema.CurveStep)
        for name, mapping in (
            ("compiled_accuracy", schema.CompiledAccuracy),
            ("coverage", schema.Coverage),
            ("tuning", schema.TuningSummary),
            ("reached", schema.CompressionResult),
            ("seconds", schema.Seconds),
            ("waited", schema.Seconds),
            ("cached", schema.Seconds),
            ("other_round", schema.OtherRound),
            ("artifacts", schema.Artifacts),
            ("measure", schema.Measure),
            ("device", schema.Device),
            ("environment", schema.Environment),
        ):
            _check([content[name] or {}], mapping)


def _check(found: list[dict[str, Any]], mapping: type) -> None:
    unknown = {key for each in found for key in each} - set(mapping.__annotations__)
    assert not unknown, f"{mapping.__name__} has no {unknown}"
