"""Networks in float16: stored in 16 bits, computed in 32."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlas.axes.compression.float16 import Float16
from dlas.lowering.lower import lower
from dlas.networks.onnx.network import OnnxNetwork
from dlas.schedules.spatial_pack import SpatialPack
from dlas.schedules.spatial_packing.chains import InChains
from dlas.stack import Algorithm, Conv, Target
from tests.fixtures.compressed import check_build, compressed
from tests.fixtures.quantised_graphs import built
from tests.fixtures.small_network import error, images, network


@pytest.fixture(scope="module")
def half() -> OnnxNetwork:
    return compressed(Float16())


OTHERS = ("gemm", "blocked", "csr_direct")


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("direct", "untuned"),
        ("spatial_pack", "hand"),
        *(pytest.param(name, "hand", marks=pytest.mark.slow) for name in OTHERS),
    ],
)
def test_a_network_of_halves_is_right(name: str, how: str, half: OnnxNetwork, tmp_path: Path) -> None:
    check_build(half, name, how, ("float16", "float16", "float32"), tmp_path)


def test_kernels_store_halves_and_no_copies_in_float32(half: OnnxNetwork) -> None:
    lowered = lower(half, SpatialPack(layout="blocked"), 1)
    stored = sum(array.nbytes for array in lowered.parameters.values())
    single = lower(network(), SpatialPack(layout="blocked"), 1)
    assert stored < 0.6 * sum(array.nbytes for array in single.parameters.values())
    single_reader = [layer["name"] for layer in lowered.layers if layer["types"]["output"] == "float32"]
    assert single_reader == ["squeeze"], "what one small operator reads is not rounded"
    wide = [o for o in lowered.operators if o["operator"] == "Cast" and np.prod(o["output"]) > 2000]
    assert len(wide) <= 1, "only the images are converted by a kernel of their own"


@dataclass(frozen=True)
class Chained(SpatialPack):
    """Adds chains of halves on any processor."""

    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        """Return the form that does so where vectors are halves."""
        form, halves = InChains(self.layout), conv.input_type == conv.weight_type == "float16"
        return form if halves and form.takes(form.laid_out(conv, target)) else self


@pytest.mark.parametrize(
    ("layout", "how"), [("blocked", "hand"), pytest.param("nchw", "untuned", marks=pytest.mark.slow)]
)
def test_chains_of_halves_are_right(layout: Any, how: str, half: OnnxNetwork, tmp_path: Path) -> None:
    x = images(3)
    build, program = built(half, Chained(layout), how, tmp_path, 3)
    assert any("first_sums" in layer.get("types", {}) for layer in build.layers)
    assert 0 < error(program.run(x), half.reference(x)) < half.tolerance
