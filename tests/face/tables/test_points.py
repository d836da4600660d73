"""The table of points, and everything about one of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlas.errors import InputError
from dlas.face.console.show import show
from dlas.face.tables.points import relative_to_fastest, table
from dlas.face.tables.text import Grid
from dlas.sweep.rows.finding import find
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.labels import MISSING
from dlas.sweep.rows.results import CURVES, STATUSES
from tests.fixtures.printing import printed
from tests.fixtures.rows import CPU, failing, row, write
from tests.fixtures.sweeps import curve

PRUNED = {"name": "weight_pruning", "level": 0.95}
CHAIN = {"name": "chain", "chain": [{"name": "compact_channel_pruning", "level": 0.5}, {"name": "int8"}]}


def body(text: str) -> list[str]:
    """The lines of a table between its rule and its notes, empty ones left out."""
    lines = text.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("───"))
    return [line for line in lines[start + 1 :] if line.strip()]


def test_a_folder_whose_sweep_has_no_row_yet_says_so(tmp_path: Path) -> None:
    text = printed(table(read(write(tmp_path, []))))
    assert text.startswith("no rows yet\n") and "no study" not in text


def test_the_fastest_of_each_group_stands_first(tmp_path: Path) -> None:
    rows = [
        row(30, batch=1),
        row(10, batch=1, algorithm="gemm"),
        row(8, batch=8),
        failing("timeout", batch=8, algorithm="gemm"),
    ]
    frame = read(write(tmp_path, rows))
    text = printed(table(frame))
    lines = [line.split() for line in body(text)]
    assert [line[:2] for line in lines[:4]] == [
        ["1", "gemm"],
        ["1", "direct"],
        ["8", "direct"],
        ["8", "gemm"],
    ]
    assert [line[6] for line in lines[:3]] == ["1.00", lines[1][6], "1.00"]
    assert relative_to_fastest(frame).tolist()[1:3] == [1, 1]
    assert relative_to_fastest(frame)[0] == pytest.approx(1 / 3, rel=0.01)
    assert "all: dataset digits, model cifar_resnet18" in text
    assert "(1) timeout, 1 point: it was timeout" in text
    assert "4 points: 3 ok, 1 timeout" in text


def test_machines_are_not_compared_with_each_other(tmp_path: Path) -> None:
    other = {**CPU, "cpu": "Real 1", "physical_cores": 1}
    rows = [row(30), row(10, algorithm="gemm", device=other), row(20, algorithm="spatial_pack")]
    frame = read(write(tmp_path, rows))
    assert relative_to_fastest(frame).round(2).tolist() == [pytest.approx(0.67, rel=0.02), 1, 1]
    assert "Real 1, 1 core, otherwise unknown" in printed(table(frame))


def test_a_folder_of_failures_a_lone_point_and_nothing_are_tables_too(tmp_path: Path) -> None:
    failures = [failing(status, batch=i) for i, status in enumerate(STATUSES[2:], start=1)]
    text = printed(table(read(write(tmp_path / "failures", failures))))
    assert "4 points: 1 failed, 1 timeout, 1 unsupported, 1 wrong" in text
    assert "ms [95 % interval]" in text and "(4) wrong, 1 point: it was wrong" in text
    assert "cifar_resnet18" in body(printed(table(read(write(tmp_path / "one", [row()])))))[0]
    assert "nothing has been run" in printed(table(read(write(tmp_path / "none", []))))


def test_a_reason_is_printed_once_and_shortened(tmp_path: Path) -> None:
    reason = "build: RuntimeError: " + "x" * 1000 + "\nTraceback"
    rows = [failing(batch=batch, reason=reason) for batch in (1, 2, 4)] + [failing(batch=8, reason=None)]
    text = printed(table(read(write(tmp_path, rows))))
    assert text.count("failed (1)") == 3 and "(1) failed, 3 points: build: RuntimeError" in text
    assert "Traceback" not in text and "…" in text


def test_brackets_in_a_reason_are_not_markup(tmp_path: Path) -> None:
    text = printed(table(read(write(tmp_path, [failing(reason="shape [/n] and [bold]")]))))
    assert "shape [/n] and [bold]" in text


def test_noisy_rows_are_marked_and_counted(tmp_path: Path) -> None:
    text = printed(table(read(write(tmp_path, [row(noisy=True), row(batch=2)]))))
    assert len(re.findall(r"\]~", text)) == 1 and "2 points: 2 ok; 1 noisy (~)" in text


def test_throttled_rows_are_marked_and_counted(tmp_path: Path) -> None:
    rows = [row(throttled=True, noisy=True), row(batch=2, throttled=False), row(batch=3)]
    text = printed(table(read(write(tmp_path, rows))))
    assert len(re.findall(r"\]~°", text)) == text.count("]~") == 1
    assert "3 points: 3 ok; 1 noisy (~); 1 throttled (°)" in text


def test_energy_and_power_are_shown_where_they_are_known(tmp_path: Path) -> None:
    metered: dict[str, Any] = {
        "energy_j": 0.21,
        "power_w": 21.0,
        "idle_power_w": 6.0,
        "power_rails_w": {"CPU": 15.0, "GPU": 6.0},
        "power_sensor": "ina3221",
        "power_readings": 50,
        "power_missing": 2,
        "power_drift": 0.0312,
        "temperature_c": 71.5,
        "throttled": True,
        "throttled_reason": "cooling device cpu-balanced at state 3",
    }
    rows = [row(10, **metered), row(20, batch=2, power_note="no sensor of power that may be read")]
    folder = write(tmp_path, rows)
    text = printed(table(read(folder), sort="energy"), 200)
    assert "energy" in text and "0.21 J" in text and "21 W" in text
    shown = printed(show(folder, rows[0].id))
    for line in (
        "21 W, 6 W of it when idle",
        "CPU 15 W, GPU 6 W",
        "50 of ina3221, 2 of them missing; the last third +3.1% from the first",
        "71.5 °C at most",
        "cooling device cpu-balanced at state 3",
    ):
        assert line in shown
    assert "no sensor of power that may be read" in printed(show(folder, rows[1].id))


def test_filters_and_order(tmp_path: Path) -> None:
    rows = [row(10, algorithm="b", accuracy=0.5), row(20, algorithm="a", accuracy=0.9), row(5, batch=2)]
    frame = read(write(tmp_path, rows))
    assert "2 of 3 points" in printed(table(frame, where=["batch=1"]))
    for sort, first in (("latency", "b"), ("accuracy", "a"), ("algorithm", "a")):
        assert body(printed(table(frame, ["batch=1"], sort)))[0].split()[0] == first
    assert "0 of 3 points" in printed(table(frame, ["batch=2", "algorithm=a"]))
    with pytest.raises(InputError, match="did you mean 'latency'"):
        table(frame, sort="latencys")


def wide(tmp_path: Path) -> Grid:
    rows = [
        row(
            3 + batch,
            compression=compression,
            algorithm=algorithm,
            compiler=compiler,
            batch=batch,
            macs=batch,
        )
        for batch in (1, 8)
        for compression in (PRUNED, CHAIN)
        for algorithm, compiler in (
            ("csr_direct", {"name": "metaschedule", "trials": 64}),
            ("library", "torch_compile"),
        )
    ]
    return table(read(write(tmp_path, [*rows, failing("unsupported")])))


@pytest.mark.parametrize("width", [40, 60, 80, 100, 130, 200])
def test_nothing_is_wider_than_the_terminal(tmp_path: Path, width: int) -> None:
    grid = wide(tmp_path)
    text = printed(grid, width, terminal=True)
    assert max(map(len, text.split("\n"))) <= width
    assert "unsupported" in text and "all: " in text
    if width < 130:
        assert "left out for want of width: MACs" in text and "\nbatch 8\n" in text


def test_without_a_terminal_each_point_has_one_whole_line(tmp_path: Path) -> None:
    text = printed(wide(tmp_path))
    lines = [line for line in body(text) if "Imag" not in line][:9]
    assert all(re.search(r"(ok|unsupported \(1\)) ", line) for line in lines)
    assert sum("compact_channel_pruning+int8" in line for line in lines) == 4
    assert "left out" not in text
    assert not any(line.endswith(" ") for line in text.split("\n"))


OUTCOMES = st.tuples(st.sampled_from(STATUSES), st.integers(1, 3), st.sampled_from(["a", "b"]), st.booleans())


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(OUTCOMES, min_size=1, max_size=20), st.sampled_from([60, 80, 200]))
def test_every_row_is_in_the_table(
    tmp_path_factory: pytest.TempPathFactory, outcomes: list[tuple[str, int, str, bool]], width: int
) -> None:
    rows = [
        row(5 + batch, status=status, batch=batch, model=model, noisy=noisy, seed=seed, samples=3)
        for seed, (status, batch, model, noisy) in enumerate(outcomes)
    ]
    grid = table(read(write(tmp_path_factory.mktemp("rows"), rows)))
    assert all(len(line.cells) == len(grid.table.columns) for line in grid.table.lines)
    text = printed(grid, width, terminal=True)
    statuses = [status for status, *_ in outcomes]
    for status in set(statuses):
        assert f"{statuses.count(status)} {status}" in " ".join(text.split())
    noted = sum(int(count) for count in re.findall(r"^\(\d+\) \w+, (\d+) point", text, re.MULTILINE))
    assert noted == sum(status != "ok" for status in statuses)


def layer(name: str, latency_s: float | None, **changes: object) -> dict[str, object]:
    shape = {"c": 64, "h": 32, "w": 32, "k": 128, "r": 3, "s": 3, "strides": [2, 2], "groups": 1}
    kept = {"algorithm": "gemm", "declined": None, "macs": 10**7, "nonzeros": 1000, "latency_s": latency_s}
    return {"name": name, **shape, **kept, **changes}


def test_everything_about_a_row_is_shown(tmp_path: Path) -> None:
    layers = [
        layer("conv1", 0.001),
        layer("conv2", 0.003, declined="odd strides", algorithm="direct"),
        {"name": "linear", "latency_s": None},
    ]
    given_row = row(
        compression=PRUNED, layers=layers, note="untrained", reached={"ratio": 0.95}, expected_speedup=20.0
    )
    folder = write(tmp_path, [given_row, row(batch=2)])
    text = printed(show(folder, given_row.id))
    for told in (
        "weight_pruning(level=0.95)",
        "untrained",
        "reached.ratio",
        "versions.torch",
        "8 GB",
        "11.2 M (11,173,962)",
        "97.12%",
        "20.0 times as fast by compression alone",
        "declined, odd strides",
        f"logs/{given_row.id}.log (not there)",
        "64x32x32 > 128, 3x3 / 2",
    ):
        assert told in text
    assert text.index("conv2") < text.index("conv1") < text.index("linear")
    assert "75.0%" in text and "25.0%" in text
    assert max(map(len, printed(show(folder, given_row.id), 80, terminal=True).split("\n"))) <= 80


def test_the_compression_of_a_network_is_shown_in_tables(tmp_path: Path) -> None:
    steps = curve([0.5, 0.9], 0.98, 0.96)
    reached = {
        "level": 0.9,
        "units": 0.9,
        "ratio": 0.875,
        "layers": {"conv1": 0.25, "fc": 0.5},
        "curve": steps,
    }
    told: dict[str, Any] = {
        "compression": PRUNED,
        "reached": reached,
        "effective_macs": 77,
        "csr_bytes": 9000,
        "packed_bytes": 8000,
    }
    timed = row(layers=[{"name": "conv1", "latency_s": 1e-3}, {"name": "other", "latency_s": 1e-3}], **told)
    folder = write(tmp_path, [timed, failing(batch=2, layers=[], **told)])
    text = printed(show(folder, timed.id), 200)
    lines = [line.split() for line in text.split("\n")]
    assert ["0.5", "50.00%", "87.00%", "97.00%", "97.00%", "2", "10", "s"] in lines
    assert "compression: 2 levels in 20 s" in text and "{" not in text
    assert ["reached.ratio", "87.50%", "of", "the", "weights"] in lines and ["reached.level", "0.9"] in lines
    assert "size as packed  8 kB (8,000)" in text
    assert "size as CSR     9 kB (9,000)" in text and "effective MACs  77 (77)" in text
    (conv1,) = [line for line in lines if line[:1] == ["conv1"]]
    assert conv1[-1] == "25.00%" and "fc" not in [line[0] for line in lines if line]
    failed = printed(show(folder, failing(batch=2, **told).id), 200)
    assert [line.split() for line in failed.split("\n")].count(["fc", "50.00%"]) == 1


def test_a_table_shows_what_compression_changes_where_it_varies(tmp_path: Path) -> None:
    told = {"nonzeros": 1000, "effective_macs": 2000, "csr_bytes": 3000}
    rows = [row(**told), row(compression=PRUNED, reached={"ratio": 0.95}, **told | {"csr_bytes": 300})]
    frame = read(write(tmp_path, rows))
    text = printed(table(frame, sort="csr"), 200)
    assert "pruned %" in text and "95.0" in text and "as CSR" in text and "nonzeros" not in text
    assert [line.split()[0] for line in body(text)[:2]] == ["weight_pruning", "none"]
    narrow = body(printed(table(frame), 80, terminal=True))
    assert not [line for line in narrow if "3 kB" in line]


def test_a_table_shows_what_builds_store_where_it_varies(tmp_path: Path) -> None:
    rows = [row(packed_bytes=4000), row(algorithm="winograd", packed_bytes=16_000), row(algorithm="library")]
    text = printed(table(read(write(tmp_path, rows)), sort="packed"), 200)
    assert "as packed" in text
    assert [line.split()[0] for line in body(text)[:3]] == ["direct", "winograd", "library"]
    assert "4 kB" in body(text)[0] and "16 kB" in body(text)[1]


def test_trials_time_and_curves_of_tuning_are_shown(tmp_path: Path) -> None:
    chosen = layer("conv1", 0.001, trials=32, decisions={"columns": 14, "order": "rows"})
    tuning = {"trials": 64, "valid": 61, "seconds": 125.0}
    tuned = row(compiler="metaschedule", tuning=tuning, layers=[chosen])
    folder = write(tmp_path, [row(20), tuned])
    lines = printed(table(read(folder)), 200).split("\n")
    assert any("trials" in line and "search" in line for line in lines)
    assert any("metaschedule" in line and " 64 " in line and "2 min 05 s" in line for line in lines)
    assert any("untuned" in line and MISSING in line for line in lines)
    assert "trials" not in printed(table(read(write(tmp_path / "untuned", [row()]))), 200)
    bare = printed(show(folder, tuned.id), 200)
    assert "64 trials, 61 of them valid, 2 min 05 s when they were made" in bare
    assert "columns 14, order rows" in bare and "its curves are not there" in bare
    best = [[1, 2.0, 4e-3], [5, 3.0, 3e-3], *([n, 9.0, 1e-3 / n] for n in range(6, 11))]
    curves = [{"layers": ["conv1"], "space": "rules", "trials": 32, "minimal_s": 9e-3, "best": best}]
    (folder / CURVES).mkdir()
    (folder / CURVES / f"{tuned.id}.json").write_text(json.dumps(curves))
    whole = printed(show(folder, tuned.id), 200)
    assert "tuning: 1 workloads" in whole and "9.000" in whole
    assert "..., 0.1667 (6), 0.1429 (7), 0.1250 (8), 0.1111 (9), 0.1000 (10)" in whole


def test_a_failure_shows_its_whole_reason_and_its_log(tmp_path: Path) -> None:
    failure = failing("wrong", reason="differs by 3\n" + "x" * 300)
    folder = write(tmp_path, [failure])
    (folder / "logs").mkdir()
    (folder / "logs" / f"{failure.id}.log").touch()
    text = printed(show(folder, failure.id[:6]), 100, terminal=True)
    assert text.replace(" ", "").replace("\n", "").count("x" * 300) == 1
    assert "in step build" in text and "not there" not in text


def test_a_bare_row_is_shown(tmp_path: Path) -> None:
    bare = row(samples=1, device={}, environment={}, layers=[{"name": "a"}], compiled_accuracy={}, seconds={})
    assert "cifar_resnet18" in printed(show(write(tmp_path, [bare]), bare.id))


def test_a_prefix_that_fits_none_or_several_lists_candidates(tmp_path: Path) -> None:
    rows = [row(id=name, batch=i) for i, name in enumerate(("abc", "abd", "xyz"), start=1)]
    folder = write(tmp_path, rows)
    assert find(folder, "x").id == "xyz"
    with pytest.raises(InputError, match=r"2 ids begin with 'ab'; there are:\n  abc .*\n  abd "):
        find(folder, "ab")
    with pytest.raises(InputError, match=r"no id begins with 'q'(.|\n)*xyz"):
        find(folder, "q")
    with pytest.raises(InputError, match="no id begins with ''"):
        find(folder, "")
    with pytest.raises(InputError, match="has no rows yet"):
        find(write(tmp_path / "none", []), "a")


def test_a_whole_id_is_never_ambiguous(tmp_path: Path) -> None:
    folder = write(tmp_path, [row(id="abc"), row(id="abcd", batch=2)])
    assert find(folder, "abc").batch == 1


def test_options_that_all_rows_of_a_part_share_are_said_once(tmp_path: Path) -> None:
    technique = {"name": "weight_pruning", "recipe": "none"}
    rows = [row(compression={**technique, "level": level}) for level in (0.5, 0.9)]
    told = printed(table(read(write(tmp_path, rows))), 160)
    assert "weight_pruning(level=0.5)" in told and "weight_pruning(level=0.9)" in told
    assert told.count("recipe") == 1 and "; weight_pruning with recipe=none" in told
