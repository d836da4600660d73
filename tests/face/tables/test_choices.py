"""An algorithm for each layer: what is chosen, what it gains, and that a network is then computed so."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from torch import nn
from torch.nn import functional as F
from typer.testing import CliRunner

from dlas.analysis.choosing import elimination, layers
from dlas.analysis.choosing.layers import best, changes, gained, layer_costs
from dlas.bench.store import toml
from dlas.errors import InputError
from dlas.face.cli.app import app
from dlas.face.tables.choices import choose
from dlas.networks.torch.model import CifarModel
from dlas.sweep.rows.results import Row
from dlas.sweep.study.study import Study
from tests.fixtures.engine import rows as rows_of
from tests.fixtures.engine import run_apart
from tests.fixtures.lowering import Net
from tests.fixtures.rows import row, write

PLAIN, BLOCKED = ("NCHW", "NCHW"), ("NCHW16c", "NCHW16c")
PACKED = {"name": "spatial_pack", "layout": "blocked"}
CHAIN = ("a", "b", "c")
MEGABYTE = 10**6


def edge(writer: str | None, value: int, reader: str | None, port: str = "input") -> dict[str, Any]:
    """Return a read of a megabyte."""
    return {"writer": writer, "value": value, "bytes": MEGABYTE, "reader": reader, "port": port}


IN_A_ROW = [edge("a", 1, "b"), edge("b", 2, "c"), edge("c", 3, None)]


def timed(
    algorithm: str | dict[str, Any],
    times: dict[str, float],
    layouts: tuple[str, str] = PLAIN,
    change_s: float | None = None,
    **given: Any,
) -> Row:
    """Return a row whose layers, and all changes of layout together, took so many seconds."""
    name = algorithm if isinstance(algorithm, str) else algorithm["name"]
    layers: list[dict[str, Any]] = [
        {
            "name": layer,
            "algorithm": name,
            "declined": None,
            "latency_s": latency,
            "input_layout": layouts[0],
            "output_layout": layouts[1],
        }
        for layer, latency in times.items()
    ]
    if change_s is not None:
        layers += [
            {"name": kernel, "latency_s": change_s / 2} for kernel in ("change_layout", "change_layout1")
        ]
    whole_ms = 1e3 * sum(layer["latency_s"] for layer in layers)
    given = {"edges": IN_A_ROW, "ms": whole_ms, "spread": 0.0} | given
    return row(algorithm=algorithm, layers=layers, **given)


def chosen_of(rows: list[Row]) -> dict[str, str]:
    """Return the name of what is chosen for each layer."""
    chosen, _ = best(layer_costs(rows))
    return {layer: json.loads(one.algorithm)["name"] for layer, one in chosen.items()}


@pytest.mark.parametrize(
    ("change_s", "chosen"),
    [
        (0.1, ["direct", "spatial_pack", "direct"]),  # two changes are less than what b saves
        (0.45, ["spatial_pack", "spatial_pack", "direct"]),  # one is more than a loses in blocks
        (4.5, ["direct", "direct", "direct"]),  # one is more than anything saves
    ],
)
def test_a_layout_is_changed_where_it_pays(change_s: float, chosen: list[str]) -> None:
    direct = timed("direct", {"a": 1.0, "b": 1.5, "c": 1.0})
    packed = timed(PACKED, {"a": 1.3, "b": 0.5, "c": 1.6}, BLOCKED, change_s)
    assert list(chosen_of([direct, packed]).values()) == chosen


def test_changes_count_once_for_all_readers_of_a_value() -> None:
    edges = [edge("a", 1, "b"), edge("a", 1, "c"), edge("a", 2, "c", "output")]
    assert changes(edges, {"a": PLAIN, "b": BLOCKED, "c": BLOCKED}) == {
        ("a", 1, "NCHW16c"): MEGABYTE,
        ("a", 2, "NCHW16c"): MEGABYTE,
    }
    assert changes(edges, {"a": BLOCKED, "b": BLOCKED, "c": BLOCKED}) == {}


def test_a_residual_is_read_in_the_layout_of_the_output() -> None:
    layouts = {"a": ("NCHW", "NCHW16c"), "b": ("NCHW16c", "NCHW")}
    assert changes([edge("a", 1, "b")], layouts) == {}
    assert len(changes([edge("a", 1, "b", "output")], layouts)) == 1


def test_from_block_to_block_goes_by_nchw() -> None:
    found = changes([edge("a", 1, "b")], {"a": BLOCKED, "b": ("NCHW8c", "NCHW8c")})
    assert found == {("a", 1, "NCHW8c"): 2 * MEGABYTE}


def test_the_rate_is_that_of_all_changes_in_the_rows() -> None:
    packed = timed(PACKED, dict.fromkeys(CHAIN, 1.0), BLOCKED, change_s=0.5)
    known = layer_costs([timed("direct", dict.fromkeys(CHAIN, 1.0)), packed])
    assert known.cost_a_byte == pytest.approx(0.5 / MEGABYTE)
    assert known.cost(known.of(known.singles[1])) == pytest.approx(3.5)


def test_no_layout_is_changed_without_a_measured_rate() -> None:
    """Blocks from the images to the end: nothing was changed, so nothing is known of changes."""
    inside = [edge("a", 1, "b"), edge("b", 2, "c")]
    rows = [
        timed("direct", {"a": 1.0, "b": 9.0, "c": 1.0}, edges=inside),
        timed(PACKED, {"a": 4.0, "b": 4.0, "c": 4.0}, BLOCKED, edges=inside),
    ]
    assert layer_costs(rows).cost_a_byte is None
    assert set(chosen_of(rows).values()) == {"direct"}


def test_many_layers_that_all_read_each_other_end_where_no_single_change_helps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layers, "cheapest", lambda costs: elimination.cheapest(costs, most=2))
    direct = timed("direct", {"a": 1.0, "b": 1.5, "c": 1.0})
    packed = timed(PACKED, {"a": 1.3, "b": 0.5, "c": 1.6}, BLOCKED, 0.1)
    chosen, proven = best(layer_costs([direct, packed]))
    assert not proven
    assert [json.loads(one.algorithm)["name"] for one in chosen.values()] == [
        "direct",
        "spatial_pack",
        "direct",
    ]


def test_rows_that_do_not_say_who_reads_what_are_refused_where_it_counts() -> None:
    direct = timed("direct", dict.fromkeys(CHAIN, 1.0), edges=[])
    assert set(chosen_of([direct]).values()) == {"direct"}
    with pytest.raises(InputError, match="no row says which layer reads which"):
        layer_costs([direct, timed(PACKED, dict.fromkeys(CHAIN, 1.0), BLOCKED, edges=[])])


def test_rows_without_times_of_all_layers_are_refused() -> None:
    with pytest.raises(InputError, match="no algorithm has the times of all layers"):
        layer_costs([timed("direct", {"a": 1.0}), timed("gemm", {"b": 1.0})])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["out"], "several: batch 1, 8; choose one as in --where 'batch=1'"),
        (["out", "--where", "batch=2"], "unknown batch in --where '2'"),
        (["nowhere"], "no results.jsonl in 'nowhere'"),
        (["out", "--where", "batch=1", "--to", "nowhere/choices.toml"], "cannot write the table of layers"),
        (["out", "--where", "status=failed"], "no row with status ok has times of layers"),
    ],
)
def test_bad_input_is_one_message_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    failed = row(status="failed", algorithm="gemm", layers=[])
    write(tmp_path / "out", [*(timed("direct", {"a": 1.0}, batch=batch) for batch in (1, 8)), failed])
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    result = CliRunner().invoke(app, ["choose", *words])
    assert isinstance(result.exception, InputError) and said in str(result.exception)
    assert sorted(tmp_path.rglob("*")) == before


def told(folder: Path, rows: list[Row]) -> str:
    """Return what `dlas choose` prints of rows, and let it write its table."""
    write(folder, rows)
    console = Console(file=io.StringIO(), width=150)
    console.print(choose([folder], (), folder / "choices.toml"))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_gain_is_printed_against_the_best_single_algorithm(tmp_path: Path) -> None:
    direct = timed("direct", {"a": 4e-3, "b": 1e-3}, ms=5.0, spread=0)
    gemm = timed("gemm", {"a": 2e-3, "b": 4e-3}, ms=6.0, spread=0)
    text = told(tmp_path, [direct, gemm])
    assert (
        "layers and changes of layout: 3.000 ms, with the best single algorithm 5.000 ms: 1.67 times as fast"
        in text
    )
    assert (
        "Predicted: 3.000 ms an inference, 1.67 times as fast as direct alone, measured with 5.000 ms."
        in text
    )
    table = toml.read(tmp_path / "choices.toml", "table of layers")
    assert table["layers"] == {"a": "gemm", "b": "direct"}
    comment = (tmp_path / "choices.toml").read_text().partition("[layers]")[0]
    assert str(tmp_path) in comment and "1.67 times as fast as direct alone" in comment
    (line,) = (line.split() for line in text.splitlines() if line.startswith("a "))
    assert line == ["a", "gemm", "direct", "2.000", "4.000", "2.00"]


def test_layout_changes_are_printed_with_their_estimated_rate(tmp_path: Path) -> None:
    direct = timed("direct", {"a": 1.0, "b": 1.5, "c": 1.0})
    packed = timed(PACKED, {"a": 1.3, "b": 0.5, "c": 1.6}, BLOCKED, 0.1)
    text = told(tmp_path, [direct, packed])
    assert "2 changes of layout between layers: 200.0 ms, estimated at 0.01 GB/s" in text


def test_the_time_outside_of_layers_is_not_predicted_to_shrink() -> None:
    direct = timed("direct", {"a": 2.0, "b": 1.0}, ms=4000.0, spread=0)
    direct.layers.append({"name": "max_pool2d", "latency_s": 1.0})
    known = layer_costs([direct, timed("gemm", {"a": 1.0, "b": 2.0}, ms=9000.0)])
    gain = gained(known, best(known)[0])
    assert (gain.before, gain.after) == (3.0, 2.0)
    assert gain.predicted == pytest.approx(3.0)


def test_a_lone_algorithm_gains_nothing(tmp_path: Path) -> None:
    text = told(tmp_path, [timed("direct", {"a": 4e-3})])
    assert "1.00 times as fast as direct alone" in text


@dataclasses.dataclass(frozen=True)
class Mixed(CifarModel):
    """Three convolutions, and an operator between them that reads NCHW."""

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the network with random weights; it has 16 classes."""
        return Net(lambda y, x, norm: F.softmax(y, 1))


STUDY = """
name = "choose"
[axes]
dataset = [{ name = "random", size = 12, images = 8, classes = 16 }]
model = ["tests.face.tables.test_choices:Mixed"]
algorithm = [%s]
hardware = [{ name = "local_cpu", threads = 1 }]
[measure]
repeats = 5
seconds = 1
"""


@pytest.mark.slow
def test_a_network_is_computed_as_was_chosen(tmp_path: Path) -> None:
    swept = '"direct", "gemm", { name = "spatial_pack", layout = "blocked" }'
    run_apart(Study.parse(STUDY % swept), tmp_path)
    rows = rows_of(tmp_path)
    assert [one.status for one in rows] == ["ok"] * 3, [one.reason for one in rows]
    packed = rows[-1]
    kernels = [layer["name"] for layer in packed.layers if layers.CHANGES.fullmatch(layer["name"])]
    assert kernels and changes(
        packed.edges, {layer["name"]: layers.layer_layouts(layer) for layer in packed.layers}
    )
    table = tmp_path / "choices.toml"
    result = CliRunner().invoke(app, ["choose", str(tmp_path / "out"), "--to", str(table)])
    assert result.exit_code == 0, result.output
    run_apart(Study.parse(STUDY % f'{{ name = "per_layer", path = "{table}" }}'), tmp_path)
    (mixed,) = (one for one in rows_of(tmp_path) if one.algorithm["name"] == "per_layer")
    assert mixed.status == "ok", mixed.reason
    computed = {layer["name"]: layer["algorithm"] for layer in mixed.layers if "macs" in layer}
    named = toml.read(table, "table of layers")["layers"].items()
    assert computed == {layer: one if isinstance(one, str) else one["name"] for layer, one in named}
    known = layer_costs(rows)
    assert math.isfinite(gained(known, best(known)[0]).predicted)
