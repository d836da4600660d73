"""The 56 columns equal those that an independent script worked out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dlas.prediction.learning.features.training_cost import Convolutions, columns, training_cost
from dlas.stack import Operator

WORKED = json.loads((Path(__file__).parent / "perf4sight_worked.json").read_text())


def layer(sizes: dict[str, int]) -> Operator:
    """Return a convolution of the paper's letters."""
    output = 1 + (sizes["ip"] + 2 * sizes["p"] - sizes["k"]) // sizes["s"]
    return {
        "name": "conv",
        "operator": "Conv",
        "n": sizes["bs"],
        "c": sizes["m"],
        "h": sizes["ip"],
        "w": sizes["ip"],
        "k": sizes["n"],
        "r": sizes["k"],
        "s": sizes["k"],
        "p": output,
        "q": output,
        "groups": sizes["g"],
    }


@pytest.mark.parametrize("name", WORKED)
def test_columns_of_worked_layers(name: str) -> None:
    found = training_cost([layer(WORKED[name]["layer"])])
    np.testing.assert_allclose(list(found.values()), list(WORKED[name]["columns"].values()), rtol=1e-12)


def test_a_networks_columns_are_the_sums_over_its_convolutions() -> None:
    layers = [layer(case["layer"]) for case in WORKED.values()]
    both = training_cost([*layers, {"name": "relu", "operator": "Relu"}])
    each = [training_cost([one]) for one in layers]
    for name, value in both.items():
        assert value == pytest.approx(sum(one[name] for one in each))


def test_there_are_56_columns_also_without_convolutions() -> None:
    assert len(columns(Convolutions.of([]))) == 56
    assert set(training_cost([]).values()) == {0.0}


def test_height_and_width_are_interchangeable_in_most_columns() -> None:
    sizes = WORKED["resnet18 conv1"]["layer"]
    wide, high = layer(sizes), layer(sizes)
    wide["w"], high["h"] = 100, 100
    first, second = training_cost([wide]), training_cost([high])
    apart = {name for name in first if first[name] != pytest.approx(second[name])}
    # The FFT of real values keeps half of the frequencies along the width.
    assert all(name.startswith("fft") for name in apart)
