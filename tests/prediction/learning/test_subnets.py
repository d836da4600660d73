"""Encodings of subnetworks by hand, and predictors on published latencies of real devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dlas
from dlas.errors import InputError
from dlas.networks.subnets.shapes import ofa
from dlas.networks.subnets.tables import write_tables
from dlas.networks.subnets.written import EXAMPLE
from dlas.prediction.learning.features import OF_OPTIONS, columns
from dlas.prediction.learning.features.subnets import SubnetOptions
from dlas.prediction.learning.points import Points, read_points
from dlas.prediction.predictors.additive import Additive
from dlas.prediction.predictors.subnet_mlp import SubnetMlp
from dlas.stack import Predictor, Samples, Workspace
from tests.fixtures.package import ROOT

GPUS, PHONE = ROOT / "tests/data/ofa_gpus.csv.xz", ROOT / "tests/data/ofa_note10.csv.xz"
TARGET = "latency_s"


def options(size: float = 176, **given: Any) -> Any:
    values: dict[str, Any] = {
        "model_name": "ofa_mobilenet_v3",
        "model.subnet": EXAMPLE,
        "model.width": 1.2,
        "dataset.size": size,
        "batch": 1,
        **given,
    }
    return lambda name: [values.get(name)]


def test_the_encoding_is_that_worked_by_hand() -> None:
    (row,) = OF_OPTIONS["subnet"].values(SubnetOptions(options()))
    kernels = [0, 3, 7, 11, 12, 16, 24, 27, 30, 36, 39, 43, 46, 50, 53]
    expansions = [62, 65, 67, 69, 73, 77, 85, 88, 91, 98, 101, 103, 106, 108, 111]
    assert np.flatnonzero(row).tolist() == [*kernels, *expansions, 124]
    names = columns(("subnet", "subnet_size", "subnet_device"))
    assert len(columns(("subnet",))) == 128 and len(columns(("subnet", "subnet_device"))) == 131
    assert names[7] == "subnet.stage1_layer3_kernel5" and names[77] == "subnet.stage2_layer2_expansion6"
    assert names[124] == "subnet.size_from_176" and names[128] == "subnet_size.pixels"


@pytest.mark.parametrize(("size", "place"), [(112, 0), (127, 0), (128, 1), (224, 7), (239, 7), (240, 7)])
def test_the_last_interval_of_sizes_is_closed(size: int, place: int) -> None:
    (row,) = OF_OPTIONS["subnet"].values(SubnetOptions(options(size)))
    assert np.flatnonzero(row[120:]).tolist() == [place]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dataset.size": 241}, "images of 241x241.*112 to 240"),
        ({"dataset.size": 111}, "images of 111x111"),
        ({"dataset.size": None}, "no option 'size'"),
        ({"model_name": "resnet18"}, "a point has 'resnet18'"),
        ({"model.subnet": "33:33"}, "option subnet: '33:33' has 1 stages"),
    ],
)
def test_what_has_no_encoding_is_told(given: Mapping[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        OF_OPTIONS["subnet"].values(SubnetOptions(options(**given)))


@pytest.mark.parametrize("family", ["subnet", "subnet_blocks"])
def test_features_that_do_not_tell_the_batch_are_for_one(family: str) -> None:
    first, second = options(batch=1), options(batch=32)
    with pytest.raises(InputError, match=f"{family!r} do not tell the batch, and points have 1, 32"):
        OF_OPTIONS[family].values(SubnetOptions(lambda name: first(name) + second(name)))


def test_costs_of_stages_add_up_to_those_of_the_operators() -> None:
    names = columns(("subnet_costs",))
    (row,) = OF_OPTIONS["subnet_costs"].values(SubnetOptions(options(164, batch=4)))
    found = dict(zip(names, row, strict=True))
    from dlas.networks.subnets.shapes import operators
    from dlas.networks.subnets.written import parse

    listed = operators(ofa(1.2), parse(EXAMPLE), 164, 1000, batch=4)
    own = [layer for layer in listed if str(layer["name"]).startswith("block")]
    depthwise = [layer for layer in own if layer.get("groups", 1) > 1]
    pointwise = [layer for layer in own if layer["operator"] == "Conv" and ".gate." not in layer["name"]]
    assert len(names) == 25
    for kind, layers in (
        ("depthwise", depthwise),
        ("pointwise", [x for x in pointwise if x not in depthwise]),
    ):
        total = sum(value for name, value in found.items() if name.endswith(f"{kind}_macs"))
        assert total == sum(layer["macs"] for layer in layers)
    moved = sum(np.prod(layer["inputs"][0]) + np.prod(layer["output"]) for layer in depthwise)
    assert sum(value for name, value in found.items() if name.endswith("_values")) == moved
    assert sum(value for name, value in found.items() if name.endswith("_layers")) == len(depthwise)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    for file in (GPUS, PHONE):
        dlas.import_rows(file, folder / file.name.partition(".")[0])
    return folder


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with 60 rows of the phone, where it does not matter how well they are predicted."""
    folder = tmp_path_factory.mktemp("few")
    pd.read_csv(PHONE).head(60).to_csv(folder / "few.csv", index=False)
    dlas.import_rows(folder / "few.csv", folder / "rows")
    return folder / "rows"


@pytest.fixture(scope="module")
def phone(published: Path) -> Points:
    return read_points([published / "ofa_note10"], TARGET)


@pytest.fixture(scope="module")
def gpus(published: Path) -> Points:
    return read_points([published / "ofa_gpus"], TARGET, ["batch=64"])


def of(points: Points, predictor: Predictor, **values: str) -> Samples:
    """Return the samples of rows with some values, in a fixed random order; each subnetwork is a group."""
    kept = np.ones(len(points), dtype=bool)
    for name, value in values.items():
        kept &= points.frame[name].eq(value).to_numpy()
    own = points.take(np.flatnonzero(kept))
    samples = own.samples(predictor, TARGET, own.frame["model.subnet"].tolist())
    return samples.take(np.random.default_rng(0).permutation(len(samples)))


def rmse(predictor: Predictor, samples: Samples, rows: int, folder: Path) -> float:
    """Return the root mean square error, relative to the mean, on all but the rows that were fitted."""
    fitted = predictor.fit(samples.take(range(rows)), Workspace(0, folder, lambda line: None))
    rest = samples.take(range(rows, len(samples)))
    errors = fitted.predict(rest) - rest.target
    return float(np.sqrt(np.mean(errors**2)) / rest.target.mean())


def test_rows_from_elsewhere_have_the_costs_of_their_networks(phone: Points) -> None:
    samples = phone.samples(Additive(), TARGET, [""] * len(phone))
    macs = samples.features[:, samples.columns.index("costs.macs")]
    assert stats.spearmanr(macs, samples.target).statistic > 0.95
    assert not phone.left_out and phone.frame["network"].nunique() == len(phone)


def test_costs_of_stages_reach_two_percent_from_fifty_subnetworks(
    phone: Points, gpus: Points, tmp_path: Path
) -> None:
    predictor = Additive("stage")
    assert rmse(predictor, of(phone, predictor), 50, tmp_path) < 0.02
    for machine in ("Titan RTX", "Tesla V100"):
        assert rmse(predictor, of(gpus, predictor, machine=machine), 50, tmp_path) < 0.02
    whole = Additive()
    assert rmse(predictor, of(phone, predictor), 400, tmp_path) < rmse(whole, of(phone, whole), 400, tmp_path)


def test_few_disturbed_rows_move_no_sum_of_costs(phone: Points, tmp_path: Path) -> None:
    predictor = Additive("stage")
    samples = of(phone, predictor)
    known, tried = samples.take(range(60)), samples.take(range(60, len(samples)))
    target = known.target.copy()
    target[::12] *= 3
    fitted = predictor.fit(replace(known, target=target), Workspace(0, tmp_path, lambda line: None))
    assert np.abs(fitted.predict(tried) / tried.target - 1).mean() < 0.03


def test_an_interval_of_sizes_that_no_row_had_changes_no_prediction(phone: Points, tmp_path: Path) -> None:
    predictor = SubnetMlp(epochs=2, settings=1)
    samples = of(phone, predictor)
    fitted = predictor.fit(samples, Workspace(0, tmp_path, lambda line: None))
    known = samples.take([0])
    features = np.repeat(known.features, 3, axis=0)
    features[:, 120:] = 0
    features[1, samples.columns.index("subnet.size_from_112")] = 1
    features[2, samples.columns.index("subnet.size_from_224")] = 1
    none, never, seen = fitted.predict(replace(samples.take([0, 1, 2]), features=features))
    assert never == pytest.approx(none, rel=1e-6) and seen != pytest.approx(none, rel=1e-3)


@pytest.mark.slow
def test_the_exact_size_helps_the_perceptron(phone: Points, tmp_path: Path) -> None:
    exact, blurred = (SubnetMlp(size=size, epochs=40, settings=1) for size in ("exact", "intervals"))
    errors = [rmse(each, of(phone, each), 400, tmp_path) for each in (exact, blurred)]
    assert errors[0] < errors[1] < 0.15


def fit(rows: Path, part: str, to: Path, *where: str, **options: Any) -> Path:
    dlas.fit(part, rows, target=TARGET, to=to, hold_out="model/2", where=where, options=options)
    return to


@pytest.mark.slow
def test_ten_rows_carry_predictors_over_to_another_device(
    published: Path, gpus: Points, tmp_path: Path
) -> None:
    others = 'batch == 64 and machine != "Tesla V100"'
    base = fit(published / "ofa_gpus", "additive", tmp_path / "others", others, costs="stage")
    from dlas.prediction.predictors.mixture import Mixture

    predictor = Mixture(str(base))
    predictor.verify()
    samples = of(gpus, predictor, machine="Tesla V100")
    fitted = predictor.fit(samples.take(range(10)), Workspace(0, tmp_path, lambda line: None))
    rest = samples.take(range(10, len(samples)))
    assert stats.spearmanr(fitted.predict(rest), rest.target).statistic > 0.95
    assert rmse(predictor, samples, 10, tmp_path) < 0.06
    phone = of(read_points([published / "ofa_note10"], TARGET), predictor)
    fitted = predictor.fit(phone.take(range(10)), Workspace(0, tmp_path, lambda line: None))
    rest = phone.take(range(10, len(phone)))
    assert stats.spearmanr(fitted.predict(rest), rest.target).statistic > 0.98, "no GPU is like a phone"
    with pytest.raises(InputError, match="is no predictor"):
        Mixture("nowhere").verify()
    with pytest.raises(InputError, match="expected folders"):
        Mixture(" , ").verify()


@pytest.mark.slow
def test_a_perceptron_is_carried_over_by_its_last_layer(
    published: Path, few: Path, gpus: Points, tmp_path: Path
) -> None:
    from dlas.prediction.predictors.fine_tuned import FineTuned

    given = {"epochs": 25, "settings": 1, "size": "exact"}
    base = fit(published / "ofa_note10", "subnet_mlp", tmp_path / "base", **given)
    ours, papers = (FineTuned(str(base), size="exact", target=way, epochs=20) for way in ("log", "as is"))
    samples = of(gpus, ours, machine="Titan RTX")
    assert rmse(ours, samples, 60, tmp_path) < 0.3
    assert rmse(papers, samples, 60, tmp_path) > rmse(ours, samples, 60, tmp_path)
    blurred = FineTuned(str(base))
    with pytest.raises(InputError, match="another encoding: 129 columns, and size = 'intervals'"):
        rmse(blurred, of(gpus, blurred, machine="Titan RTX"), 60, tmp_path)
    with pytest.raises(InputError, match="machine = 'Nexus'; choose one of its machines: 'Samsung"):
        FineTuned(str(base), machine="Nexus").verify()
    sums = fit(few, "additive", tmp_path / "sums", costs="stage")
    with pytest.raises(InputError, match="is a 'additive'; expected a fitted 'subnet_mlp'"):
        FineTuned(str(sums)).verify()


def test_a_changed_base_is_refused(few: Path, tmp_path: Path) -> None:
    from dlas.prediction.predictors.mixture import Mixture

    base = fit(few, "additive", tmp_path / "base", costs="stage")
    (file,) = (base / "0").iterdir()
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(InputError, match="its hash differs"):
        Mixture(str(base)).verify()


@pytest.mark.slow
def test_sums_of_a_table_are_its_blocks(few: Path, tmp_path: Path) -> None:
    shapes = ofa(1.2)
    seconds = {
        size: dict.fromkeys([*shapes.keys(size), *shapes.fixed_keys(size)], 1e-3 * size / 160)
        for size in (160, 192, 224)
    }
    write_tables(tmp_path / "tables", seconds, {})
    found = fit(few, "lookup_table", tmp_path / "p", table=str(tmp_path / "tables"))
    frame = dlas.read(few)
    predicted = dlas.predictor(found).predict(frame)[TARGET]
    layers = frame["model.subnet"].str.count(r"[0-9]") / 2 + 6
    assert predicted.to_numpy() == pytest.approx(
        (layers * 1e-3 * frame["dataset.size"] / 160).to_numpy(float)
    )
    with pytest.raises(InputError, match=r"of width 1.0: it is for width 1.2"):
        _narrow(tmp_path)


def _narrow(folder: Path) -> None:
    """Fit the table of width 1.2 to rows of width 1."""
    rows = pd.read_csv(PHONE).head(30).assign(**{"model.width": 1.0})
    rows.to_csv(folder / "narrow.csv", index=False)
    dlas.import_rows(folder / "narrow.csv", folder / "narrow")
    options = {"table": str(folder / "tables")}
    fit(folder / "narrow", "lookup_table", folder / "q", **options)


def test_numbers_of_devices_are_read_from_rows(few: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not tell its cores"):
        fit(few, "subnet_mlp", tmp_path / "p", hardware="as is", epochs=1, settings=1)
