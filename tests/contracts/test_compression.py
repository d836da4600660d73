"""Every compression part there is: saved and restored bit for bit, and the same every time."""

from __future__ import annotations

import json
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from dlas.engine.steps.artifacts import network_facts
from dlas.stack import Compression
from dlas.study import parts
from dlas.study.point import Choice
from tests.fixtures.tiny import make_network, the_point

NEEDED = {"level": 0.25}
"""Values for options without a default."""
COUNTS = ("parameters", "nonzeros", "model_bytes")
DATA = {
    "trained": 'dataset = ["tests.fixtures.tiny:TinyDataset"]',
    "noise": 'dataset = [{ name = "random", size = 8, images = 16, classes = 4 }]',
}


def table_of(name: str) -> str:
    """Return a part as a study would write it, with what it cannot do without."""
    options = parts.find("compression", name).options()
    given = {key: NEEDED[key] for key, default in options.items() if default is MISSING}
    return "{ " + ", ".join(f"{key} = {value!r}" for key, value in {"name": name, **given}.items()) + " }"


@pytest.mark.parametrize("data", sorted(DATA))
@pytest.mark.parametrize("name", parts.names("compression"))
def test_compression_keeps_its_contract(name: str, data: str, tmp_path: Path) -> None:
    point = the_point(f"{DATA[data]}\ncompression = [{table_of(name)}]")
    made = make_network(point, tmp_path / "a")[-1]
    assert made.files == make_network(point, tmp_path / "b")[-1].files, "two results from one seed"

    facts = network_facts(made)
    compression: Compression = point.compression.make("compression")
    restored = compression.restore(point.model.make("model"), made.folder, facts)
    sample = load_file(made.folder / "sample.safetensors")
    np.testing.assert_array_equal(restored.reference(sample["images"]), sample["outputs"])
    again = tmp_path / "again"
    again.mkdir()
    restored.save(again)
    saved = sorted(path.name for path in again.iterdir())
    assert saved == sorted(set(made.files) - {"sample.safetensors"})
    assert all((again / each).read_bytes() == (made.folder / each).read_bytes() for each in saved)

    _check_facts(made.facts, labelled=data == "trained")


def _check_facts(facts: dict[str, Any], labelled: bool) -> None:
    assert all(facts[count] > 0 for count in COUNTS)
    assert facts["nonzeros"] <= facts["parameters"]
    assert (facts["accuracy"] is not None) == (facts["validation_accuracy"] is not None) == labelled
    reached = facts["reached"]
    assert 0 <= reached.get("ratio", 0) < 1 and 0 < reached.get("bits", 32) <= 32
    json.dumps(facts, allow_nan=False)


@pytest.mark.parametrize("name", sorted(set(parts.names("compression")) - {"none"}))
def test_compression_says_what_it_reached(name: str, tmp_path: Path) -> None:
    point = the_point(f"{DATA['noise']}\ncompression = [{table_of(name)}]")
    dense, *_, made = make_network(point, tmp_path)
    reached = made.facts["reached"]
    assert reached.get("ratio", 0) > 0 or reached.get("bits", 32) < 32, (
        "it compresses, and does not say by how much"
    )
    assert dense.facts["reached"] == {}
    if "level" in reached:
        assert reached["level"] == dict(Choice.of(point.compression.content()).options)["level"]
