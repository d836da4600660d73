from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from dlas.analysis.choosing.layers import best, layer_costs
from dlas.axes.choosers.per_layer import write
from dlas.errors import InputError
from dlas.schedules.direct import Direct
from dlas.schedules.gemm import Gemm
from dlas.stack import GENERIC, Conv
from dlas.sweep.rows.results import Row
from dlas.sweep.study import parts
from tests.fixtures.rows import CPU, failing, row

Times = dict[str, float]


def timed(algorithm: str | dict[str, Any], times: Times, declined: Times | None = None, **given: Any) -> Row:
    """Return a row whose layers took so many seconds; those that were declined are computed by direct."""
    name = algorithm if isinstance(algorithm, str) else algorithm["name"]
    layers: list[dict[str, Any]] = [
        {"name": layer, "algorithm": name, "declined": None, "latency_s": latency}
        for layer, latency in times.items()
    ]
    layers += [
        {"name": layer, "algorithm": "direct", "declined": "why not", "latency_s": latency}
        for layer, latency in (declined or {}).items()
    ]
    layers.append({"name": "max_pool2d", "latency_s": 1e-9})
    whole_ms = 1e3 * sum(layer["latency_s"] for layer in layers)
    return row(whole_ms, spread=0.0, algorithm=algorithm, layers=layers, **given)


def fastest_by_layer(rows: Iterable[Row]) -> dict[str, dict[str, Any]]:
    """Return what is chosen for each layer, as a row would write it."""
    chosen, proven = best(layer_costs(rows))
    assert proven
    return {layer: json.loads(candidate.algorithm) for layer, candidate in chosen.items()}


def test_each_layer_gets_its_fastest_algorithm() -> None:
    rows = [timed("direct", {"a": 3.0, "b": 1.0}), timed("gemm", {"a": 2.0, "b": 2.0})]
    assert fastest_by_layer(rows) == {"a": {"name": "gemm"}, "b": {"name": "direct"}}


def test_repetitions_count_by_their_median() -> None:
    gemm = [timed("gemm", {"a": latency}, seed=seed) for seed, latency in enumerate([1.0, 4.0, 5.0])]
    assert fastest_by_layer([*gemm, timed("direct", {"a": 3.0})]) == {"a": {"name": "direct"}}


def test_options_of_an_algorithm_are_kept_apart() -> None:
    wide, narrow = ({"name": "spatial_pack", "layout": layout} for layout in ("blocked", "plain"))
    assert fastest_by_layer([timed(wide, {"a": 2.0}), timed(narrow, {"a": 1.0})]) == {"a": narrow}


def test_a_declined_layer_was_computed_by_the_one_in_its_place() -> None:
    rows = [timed("gemm", {"a": 1.0}, declined={"b": 1.0}), timed("spatial_pack", {"a": 2.0, "b": 2.0})]
    assert fastest_by_layer(rows) == {"a": {"name": "gemm"}, "b": {"name": "direct"}}
    stock = timed("gemm", {"a": 1.0})
    stock.layers += [{"name": "b", "algorithm": "stock", "declined": "grouped", "latency_s": 1e-6}]
    assert fastest_by_layer([stock]) == {"a": {"name": "gemm"}}


def test_by_energy_each_layer_gets_the_algorithm_of_least_power_times_time() -> None:
    quick = timed("gemm", {"a": 2.0, "b": 2.0}, power_w=30.0, energy_j=120.0)
    frugal = timed("direct", {"a": 3.0, "b": 9.0}, power_w=10.0, energy_j=120.0)
    chosen, proven = best(layer_costs([quick, frugal], "energy_j"))
    assert proven and {layer: one.cost for layer, one in chosen.items()} == pytest.approx(
        {"a": 30.0, "b": 60.0}, rel=0.05
    )
    assert [json.loads(chosen[layer].algorithm)["name"] for layer in "ab"] == ["direct", "gemm"]
    frugal.layers[0]["energy_j"] = 70.0
    chosen, _ = best(layer_costs([quick, frugal], "energy_j"))
    assert json.loads(chosen["a"].algorithm)["name"] == "gemm", "what was measured of a layer goes before"
    with pytest.raises(InputError, match="`by='energy_j'`: no row has energy"):
        layer_costs([timed("gemm", {"a": 2.0})], "energy_j")
    with pytest.raises(InputError, match=r"'accuracy' \(there are: energy_j, latency_s"):
        layer_costs([quick], "accuracy")


def test_what_is_no_choice_is_passed_over() -> None:
    rows = [
        timed("direct", {"a": 3.0}),
        timed("library", {"a": 1.0}, compiler="onnxruntime"),
        timed({"name": "per_layer", "path": "choices.toml"}, {"a": 1.0}),
        failing(algorithm="gemm", layers=[{"name": "a", "algorithm": "gemm", "latency_s": 1.0}]),
        failing(model="cifar_vgg16"),
    ]
    assert fastest_by_layer(rows) == {"a": {"name": "direct"}}


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        (
            {"model": "cifar_vgg16"},
            "model cifar_resnet18, cifar_vgg16; choose one as in `where='model=cifar_resnet18'`",
        ),
        ({"dataset": "cifar10"}, "dataset digits, cifar10; choose one"),
        (
            {"compression": {"name": "pruned", "level": 0.5}},
            r"compression none, pruned\(level=0.5\); choose one",
        ),
        ({"compiler": "hand"}, "compiler untuned, hand; choose one"),
        (
            {"hardware": {"name": "local_cpu", "threads": 1}},
            r"hardware local_cpu, local_cpu\(threads=1\); choose one",
        ),
        ({"batch": 8}, "batch 1, 8; choose one"),
        (
            {"device": {**CPU, "cpu": "Other 1"}},
            r"machine Imaginary 9000, 2 cores, otherwise unknown, Other 1, 2 cores, otherwise unknown; ",
        ),
        ({"model": "cifar_vgg16", "batch": 8}, "model cifar_resnet18, cifar_vgg16; batch 1, 8; choose one"),
    ],
)
def test_times_of_several_settings_are_not_compared(other: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        fastest_by_layer([timed("direct", {"a": 3.0}), timed("gemm", {"a": 2.0}, **other)])


def test_rows_without_times_are_refused() -> None:
    with pytest.raises(InputError, match="no row with status ok has times of layers"):
        fastest_by_layer([failing(), row()])


def test_the_choice_is_what_per_layer_reads(tmp_path: Path) -> None:
    rows = [timed("direct", {"a": 3.0, "b.0#2": 1.0}), timed("gemm", {"a": 2.0, "b.0#2": 2.0})]
    write(tmp_path / "choices.toml", fastest_by_layer(rows))
    chosen = parts.make("algorithm", "per_layer", {"path": str(tmp_path / "choices.toml")})
    convs = [Conv(name, 1, 4, 8, 8, 4, 3, 3) for name in ("a", "b.0#2")]
    assert [chosen.for_layer(conv, GENERIC) for conv in convs] == [Gemm(), Direct()]
