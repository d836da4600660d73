"""Times of layers without the profiler's cost."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dlas.analysis.choosing.layers import layer_costs
from dlas.analysis.roles import with_roles
from dlas.face.console.show import show
from dlas.face.reporting import report
from dlas.sweep.rows.details import read_details
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.layer_times import LARGEST_COST, profile
from dlas.sweep.rows.results import Row
from tests.fixtures.printing import printed
from tests.fixtures.rows import row, write

TRUE_US = (100.0, 40.0, 10.0, 40.0)


def profiled(
    costs_us: float, algorithm: str = "direct", scale: float = 1.0, compiler: str = "untuned"
) -> Row:
    """Return a row of a network of 190 µs, each of whose layers a profiler slowed by a cost."""
    layers = [
        {"name": f"conv{n}", "algorithm": algorithm, "latency_s": scale * (true + costs_us) * 1e-6}
        for n, true in enumerate(TRUE_US)
    ]
    return row(0.19, spread=0.0, algorithm=algorithm, layers=layers, compiler=compiler)


def test_what_a_profiler_adds_to_every_layer_is_taken_out() -> None:
    for cost in (0.0, 1.0, 20.0):
        found = profile(profiled(cost))
        assert found is not None
        assert [1e6 * time for time in found.seconds if time] == pytest.approx(TRUE_US)
        assert found.profiled_s == pytest.approx((190 + 4 * cost) * 1e-6)
        assert found.cost_s == pytest.approx(cost * 1e-6) and found.scale == pytest.approx(1)


def test_a_slower_machine_while_profiling_scales_all_layers_alike() -> None:
    found = profile(profiled(0.0, scale=2.0))
    assert found is not None and found.total_s == pytest.approx(190e-6)
    assert found.cost_s == pytest.approx(LARGEST_COST * 20e-6) and 0 < found.scale < 1
    assert all(time and time > 0 for time in found.seconds)


def test_layers_that_add_up_to_less_than_the_network_stay() -> None:
    found = profile(profiled(0.0, scale=0.5))
    assert found is not None and found.total_s == pytest.approx(95e-6) and found.scale == 1
    assert profile(row(layers=[{"name": "conv", "latency_s": None}])) is None


def test_show_gives_the_sum_as_profiled_beside_the_networks_time(tmp_path: Path) -> None:
    shown = profiled(80.0)
    text = printed(show(write(tmp_path, [shown]), shown.id), 200)
    assert "its layers add up to 0.5100 ms as profiled, and the network takes 0.1900 ms" in text
    assert "µs of the profiler's own are taken from each layer" in text and "together 0.1900 ms" in text


def test_choosing_takes_no_algorithm_for_what_its_profiler_cost() -> None:
    slow_profiler, quick_profiler = profiled(60.0), profiled(0.0, "gemm")
    measured = layer_costs([slow_profiler, quick_profiler])
    for candidates in measured.layers.values():
        times = [candidate.cost for candidate in candidates.values()]
        assert times[0] == pytest.approx(times[1], rel=0.5)
    assert all(single.operators == pytest.approx(190e-6) for single in measured.singles)


def test_the_report_compares_corrected_layers_and_names_both_points(tmp_path: Path) -> None:
    rows = [profiled(0.0), profiled(80.0, "library", compiler="onnxruntime")]
    folder = write(tmp_path / "rows", rows)
    points: pd.DataFrame = with_roles(read(folder))
    details = read_details(points)
    sums = [sum(layer.latency_s for layer in details.layers[line]) for line in (0, 1)]
    assert sums == pytest.approx([190e-6, 190e-6])
    report([folder], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "its layers add up to 0.5100 ms as profiled, and the network takes 0.1900 ms" in page
    legend = page.partition('id="figure-layers"')[2].partition("</ul>")[0]
    assert "onnxruntime" in legend and "untuned" in legend and "first" not in legend
