"""Subnetworks as models: drawn in studies, built, and right in every runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dlas
from dlas.axes.models.ofa_block import OfaBlock
from dlas.axes.models.ofa_mobilenet_v3 import OfaMobilenetV3
from dlas.errors import InputError, Unsupported
from dlas.networks.counting import count_macs
from dlas.networks.subnets.shapes import ofa
from dlas.networks.subnets.written import EXAMPLE, is_in
from dlas.networks.torch.recording import record
from dlas.prediction.learning.examples import inherent
from dlas.prediction.learning.features import matrix
from dlas.stack import Facts
from dlas.sweep.rows.results import COMPLETED
from dlas.sweep.study.study import Study
from dlas.testing import check_model
from dlas.testing.networks import noise, workspace

MODEL: dict[str, Any] = {"name": "ofa_mobilenet_v3", "subnet": "drawn"}
AXES: dict[str, Any] = {"dataset": {"name": "random", "size": 128, "classes": 10}, "compiler": "onnxruntime"}
BLOCK = "expanded_conv-input:10x10x136-output:5x5x192-expand:408-kernel:5-stride:2-idskip:0-se:1-hs:1"


def models(points: int, **options: Any) -> list[dict[str, Any]]:
    study = {"axes": {**AXES, "model": {**MODEL, **options}}, "sample": {"points": points, "axes": ["model"]}}
    return [point.model.content() for point in Study.of(study).points()]


def test_a_space_decides_what_is_drawn_and_is_no_part_of_it() -> None:
    elastic = models(30, space="compofa_elastic", width=1.2)
    assert all(set(each) == {"name", "subnet", "width"} for each in elastic)
    assert all(is_in(each["subnet"], "compofa_elastic") for each in elastic)
    assert not all(is_in(each["subnet"], "compofa_elastic") for each in models(30))
    assert len(models(243, space="compofa_fixed")) == 243
    with pytest.raises(InputError, match=r"more points than there are|in a row gave none"):
        models(244, space="compofa_fixed")


def test_equal_networks_have_equal_ids() -> None:
    given = {"axes": {**AXES, "model": {**MODEL, "subnet": EXAMPLE}}}
    study = {"axes": {**AXES, "model": {**MODEL, "subnet": EXAMPLE, "width": 1.0, "space": "ofa"}}}
    ids = [[point.id for point in Study.of(each).points()] for each in (given, study)]
    assert ids[0] == ids[1]
    with pytest.raises(InputError, match="says where subnet = 'drawn' is drawn from"):
        OfaMobilenetV3(EXAMPLE, space="compofa_fixed").verify()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subnet": EXAMPLE.replace("35:46", "34:46")}, "option subnet = .*kernel size 4; expected 3, 5, 7"),
        ({"subnet": EXAMPLE + ",33:33"}, "has 6 stages"),
        ({"width": 1.1}, "option width = 1.1: .*expected 1.0 or 1.2"),
        ({"space": "fixed"}, "option space = 'fixed': "),
    ],
)
def test_bad_options_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        models(1, **options)


@pytest.mark.parametrize("size", [111, 241])
def test_images_of_other_sizes_are_unsupported(size: int) -> None:
    with pytest.raises(Unsupported, match="expected images of equal sides of 112 to 240"):
        OfaMobilenetV3(EXAMPLE).construct(Facts((3, size, size), 10), 0)


def test_the_module_has_the_operators_that_follow_from_the_options() -> None:
    model = OfaMobilenetV3(EXAMPLE, 1.2)
    module = model.module((3, 130, 130), 10).eval()
    listed = list(model.operators((3, 130, 130), 10, 1))
    with torch.inference_mode():
        recording = record(module, lambda: module(torch.zeros(1, 3, 130, 130)))
    assert recording is not None
    convolutions = [
        [(layer["c"], layer["h"], layer["k"], layer["r"], layer["p"], layer["groups"], layer["macs"])
         for layer in layers if layer.get("operator") == "Conv"]
        for layers in (recording.operators(), listed)
    ]  # fmt: skip
    assert convolutions[0] == convolutions[1] and len(convolutions[0]) > 40
    assert count_macs(module, (3, 130, 130)) == sum(layer.get("macs", 0) for layer in listed)
    with torch.device("meta"):
        grey = count_macs(model.module((1, 130, 130), 10), (1, 130, 130))
    assert grey == sum(layer.get("macs", 0) for layer in model.operators((1, 130, 130), 10, 1))
    families = ("totals", "costs")
    recorded, known = (
        matrix(families, [{1: inherent(layers)}], [1]) for layers in (recording.operators(), listed)
    )
    assert known == pytest.approx(recorded, rel=0.01)
    activations = sum(isinstance(layer, nn.Hardswish) for layer in module.modules())
    assert activations == sum(layer["operator"] == "HardSwish" for layer in listed)


def test_the_models_keep_the_contract() -> None:
    check_model(OfaMobilenetV3(",".join(["33:33"] * 5)), noise((3, 112, 112), 10))
    check_model(OfaBlock(BLOCK), noise((136, 10, 10), 5 * 5 * 192))


def test_a_block_takes_its_own_images_alone(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="it reads 136x10x10 and writes 4800 values"):
        OfaBlock(BLOCK).build(noise((136, 12, 12), 4800), workspace(tmp_path / "work"))
    with pytest.raises(InputError, match=r"option block = 'conv': .*names no block"):
        dlas.Study(axes={**AXES, "model": {"name": "ofa_block", "block": "conv"}})


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_drawn_subnetworks_are_right_in_every_runtime(tmp_path: Path) -> None:
    study = {
        "axes": {
            "dataset": {"name": "random", "size": [112, 144], "classes": 10, "images": 2},
            "model": {**MODEL, "width": 1.2},
            "algorithm": {"name": "spatial_pack", "layout": "blocked"},
            "compiler": ["onnxruntime", "torch_eager", "hand"],
        },
        "sample": {"points": 2, "axes": ["dataset", "model"]},
        "measure": {"repeats": 3, "seconds": 0.1, "layer_repeats": 0},
    }
    rows = dlas.run(study, tmp_path / "rows", cache=tmp_path / "cache", progress="silent")
    assert len(rows) == 6 and rows["status"].isin(COMPLETED).all(), rows[["compiler", "status", "reason"]]
    assert rows["error"].max() < 1e-4


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_table_is_measured_and_predicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = ofa(1.0)
    few = [*shapes.keys(112)[:3], shapes.fixed_keys(112)[0]]
    monkeypatch.setattr("dlas.prediction.adaptive.blocks._names", lambda width, size: few)
    fixed = type("Shapes", (), {"fixed_keys": lambda self, size: few[3:]})
    monkeypatch.setattr("dlas.prediction.adaptive.blocks.ofa", lambda width: fixed())
    view = dlas.blocks(tmp_path / "t", sizes=[112], width=1.0, cache=tmp_path / "cache", progress="silent")
    assert view.frame["blocks"].tolist() == [4] and view.frame["sum_s"][0] > view.frame["fixed_s"][0] > 0
    text = (tmp_path / "t/112_lookup_table.yaml").read_text()
    assert all(name in text for name in few)
    with pytest.raises(InputError, match="images of 100x100"):
        dlas.blocks(tmp_path / "u", sizes=[100])
    with pytest.raises(InputError, match=r"`width=1.1`: expected 1.0 or 1.2"):
        dlas.blocks(tmp_path / "u", width=1.1)
