"""The rows kept in ``experiments/kernels`` predict two networks that are not among them."""

from __future__ import annotations

import numpy as np
import pytest

from dlas.prediction.learning.fitting import fit
from dlas.prediction.learning.metrics import relative_errors
from dlas.prediction.learning.points import Points, read_points
from dlas.sweep.study import parts
from tests.fixtures.package import ROOT

KEPT = ROOT / "experiments/kernels"
SETTING = ["compiler=onnxruntime", "hardware.threads=1"]
HELD_OUT = ("mobilenet_v2", "resnet50")


def predicted_errors(name: str, drawn: Points, networks: Points) -> np.ndarray:
    """Return the relative errors of a predictor fitted to drawn networks alone."""
    part = parts.make("predictor", name, {})
    samples, tried = (
        points.samples(part, "latency_s", points.frame["network"].tolist()) for points in (drawn, networks)
    )
    return relative_errors(fit(part, samples, say=lambda line: None).predict(tried), tried.target)


@pytest.mark.slow
def test_kernels_of_drawn_networks_add_up_to_networks_held_out() -> None:
    drawn = read_points([KEPT / "rows"], "latency_s", SETTING, kernels=True)
    networks = read_points([KEPT / "networks"], "latency_s", [*SETTING, f"model in {HELD_OUT}"], kernels=True)
    assert len(networks) == 2 * len(HELD_OUT), "each at two batch sizes"
    assert not set(drawn.frame["network"]) & set(networks.frame["network"])
    kernels = predicted_errors("boosted_kernels", drawn, networks)
    line = predicted_errors("flops", drawn, networks)
    assert kernels.mean() < 0.2 and kernels.mean() < line.mean() / 2
