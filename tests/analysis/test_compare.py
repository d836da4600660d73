"""One axis compared on matched points."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlas.analysis.compare import Comparison, compare
from dlas.errors import InputError
from dlas.face.tables.comparison import grid
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import Row
from tests.fixtures.printing import printed
from tests.fixtures.rows import CPU, again, failing, row, write

TUNED = {"name": "metaschedule", "trials": 64}


def frame_of(folder: Path, *rows: Row) -> pd.DataFrame:
    return read(write(folder, rows))


def ratio(comparison: Comparison, value: str, group: int = 0) -> float:
    found = comparison.groups[group].rows[value].ratio
    assert found is not None
    return found[0]


def test_a_ratio_above_one_is_faster_than_the_baseline(tmp_path: Path) -> None:
    frame = frame_of(tmp_path, row(20), row(10, compiler=TUNED))
    comparison = compare(frame, "compiler")
    assert comparison.baseline == "untuned" and comparison.values == ["untuned", "metaschedule(trials=64)"]
    assert ratio(comparison, "metaschedule(trials=64)") == pytest.approx(2, rel=0.02)
    text = printed(grid(comparison))
    assert "speed against untuned" in text and "times as fast" in text and "1 of 1 group matched" in text


def test_trials_and_time_of_tuning_are_printed_for_tuned_values(tmp_path: Path) -> None:
    took = [{"trials": trials, "valid": trials, "seconds": trials / 4} for trials in (320, 640)]
    frame = frame_of(
        tmp_path,
        row(20),
        row(10, compiler=TUNED, tuning=took[0]),
        row(20, batch=2),
        row(10, batch=2, compiler=TUNED, tuning=took[1]),
        row(10, batch=4, compiler=TUNED, tuning={"trials": 9000, "valid": 1, "seconds": 9000.0}),
    )
    comparison = compare(frame, "compiler")
    assert comparison.searches == {"metaschedule(trials=64)": (480.0, 120.0)}, "of complete groups"
    assert "metaschedule(trials=64) was searched for: 480 trials in 2 min 00 s" in printed(grid(comparison))


def test_the_change_of_accuracy_is_printed_for_each_compression(tmp_path: Path) -> None:
    pruned: dict[str, Any] = {
        "compression": {"name": "weight_pruning", "level": 0.9},
        "reached": {"ratio": 0.9},
    }
    frame = frame_of(
        tmp_path,
        row(20, accuracy=0.97),
        row(10, accuracy=0.95, **pruned),
        row(20, accuracy=0.9, model="m"),
        row(10, accuracy=0.89, model="m", **pruned),
        row(30, accuracy=0.8, model="alone", **pruned),
        row(5, accuracy=0.6, compression="int8"),
        row(5, accuracy=0.5, compression="int8", model="m"),
        row(20, accuracy=0.9, model="without int8"),
        row(10, accuracy=0.1, model="without int8", **pruned),
    )
    comparison = compare(frame, "compression", "none")
    found = comparison.accuracies["weight_pruning(level=0.9)"]
    assert found == pytest.approx((0.9, -0.015, 2)), "of the networks that int8 has, too"
    assert set(comparison.accuracies) == {"weight_pruning(level=0.9)", "int8"}
    text = " ".join(printed(grid(comparison), width=200).split())
    assert "90.0% of the weights pruned, accuracy -1.50 points against none, the median of 2 networks" in text
    assert "int8: accuracy -38.50 points against none" in text
    assert compare(frame, "model").accuracies == {}


def test_a_librarys_row_matches_every_algorithm(tmp_path: Path) -> None:
    ort = row(5, algorithm="library", compiler="onnxruntime")
    frame = frame_of(tmp_path, row(20), row(10, algorithm="gemm"), ort, row(8, compiler=TUNED))
    comparison = compare(frame, "compiler", "onnxruntime")
    assert [group.key["algorithm"] for group in comparison.groups] == ["direct", "gemm"]
    assert [round(ratio(comparison, "untuned", i), 2) for i in (0, 1)] == [
        pytest.approx(0.25, abs=0.02),
        pytest.approx(0.5, abs=0.02),
    ]
    assert len(comparison.complete) == 1
    assert comparison.total == 4 and "4 points: 4 ok" in printed(grid(comparison))


def test_libraries_alone_are_compared_too(tmp_path: Path) -> None:
    rows = [row(5, algorithm="library", compiler=name) for name in ("torch_eager", "onnxruntime")]
    comparison = compare(frame_of(tmp_path, *rows), "compiler")
    assert comparison.baseline == "onnxruntime"
    assert comparison.groups[0].key["algorithm"] == "library"


def test_along_the_algorithms_a_library_is_left_out_and_counted(tmp_path: Path) -> None:
    ort = row(5, algorithm="library", compiler="onnxruntime")
    comparison = compare(frame_of(tmp_path, row(20), row(10, algorithm="gemm"), ort), "algorithm")
    assert comparison.values == ["direct", "gemm"] and comparison.library == 1
    assert "1 point left out: the compiler brings kernels of its own" in printed(grid(comparison))


def test_only_points_equal_in_everything_else_match(tmp_path: Path) -> None:
    elsewhere = row(10, compiler=TUNED, batch=8, device={**CPU, "cpu": "Real 1"})
    frame = frame_of(tmp_path, row(20), row(10, compiler=TUNED, seed=1), row(20, batch=8), elsewhere)
    comparison = compare(frame, "compiler")
    assert not comparison.groups and len(comparison.unmatched) == 4
    text = printed(grid(comparison))
    assert "0 of 4 groups matched" in text and text.count("not matched:") == 4 and "Real 1" in text


def test_hardware_is_compared_across_machines(tmp_path: Path) -> None:
    board = row(40, hardware="board", device={"name": "board", "title": "A board"})
    comparison = compare(frame_of(tmp_path, row(20), board), "hardware")
    assert comparison.baseline == "local_cpu" and ratio(comparison, "board") == pytest.approx(0.5, rel=0.02)


def test_batches_are_compared_by_the_image(tmp_path: Path) -> None:
    comparison = compare(frame_of(tmp_path, row(20), row(80, batch=8), row(40, batch=16)), "batch")
    assert comparison.values == ["1", "8", "16"]
    assert ratio(comparison, "8") == pytest.approx(2, rel=0.02)
    assert "in ms an image" in printed(grid(comparison))


def test_what_is_not_ok_is_named_and_kept_out_of_the_mean(tmp_path: Path) -> None:
    rows = [row(20, batch=batch) for batch in (1, 2, 4)]
    rows += [row(10, batch=1, algorithm="gemm"), row(5, batch=2, algorithm="gemm")]
    rows += [failing("timeout", batch=4, algorithm="gemm", reason="build took longer than 3 s")]
    rows += [failing("wrong", batch=8), row(20, batch=16)]
    comparison = compare(frame_of(tmp_path, *rows), "algorithm")
    assert comparison.means()["gemm"] == pytest.approx(8**0.5, rel=0.02)
    assert len(comparison.groups) == 2 and len(comparison.unmatched) == 3
    text = printed(grid(comparison))
    assert "geometric mean of 2" in text and "2.83" in text
    assert "not matched: batch 4: direct ok, gemm timeout (1)" in text
    assert "not matched: batch 8: direct wrong (2)" in text and "not matched: batch 16: direct ok" in text
    assert "(1) timeout, 1 point: build took longer than 3 s" in text
    assert "8 points: 6 ok, 1 timeout, 1 wrong" in text


def test_a_value_that_is_never_ok_leaves_the_mean_to_the_others(tmp_path: Path) -> None:
    rows = [row(20, batch=b) for b in (1, 2)] + [row(10, batch=b, algorithm="gemm") for b in (1, 2)]
    rows += [failing("unsupported", batch=b, algorithm="csr_direct") for b in (1, 2)]
    comparison = compare(frame_of(tmp_path, *rows), "algorithm")
    assert comparison.never == ["csr_direct"] and len(comparison.complete) == 2
    text = printed(grid(comparison))
    assert "never ok: csr_direct: 2 unsupported (1)" in text and "(1) unsupported, 2 points" in text


def test_a_tie_is_called_one(tmp_path: Path) -> None:
    comparison = compare(
        frame_of(tmp_path, row(20, spread=0.1), row(20.1, algorithm="gemm", spread=0.1)), "algorithm"
    )
    assert comparison.groups[0].rows["gemm"].tie and "] tie" in printed(grid(comparison))


def test_a_point_in_two_folders_counts_once_with_the_samples_of_both(tmp_path: Path) -> None:
    later = again(row(10), started="2026-02-01T00:00:00+00:00")
    failed_since = again(failing(algorithm="gemm"), started="2026-02-02T00:00:00+00:00", device=CPU)
    first = write(tmp_path / "a", [row(20), row(40, algorithm="gemm")])
    comparison = compare(read([first, write(tmp_path / "b", [later, failed_since])]), "algorithm")
    assert (comparison.repeated, comparison.left_out, comparison.total) == (1, 1, 4)
    direct, gemm = (comparison.groups[0].rows[name] for name in ("direct", "gemm"))
    assert direct.latency_s == pytest.approx((0.015, 0.01, 0.02), rel=0.03)
    assert gemm.ok and gemm.ratio == pytest.approx((15 / 40, 10 / 40, 20 / 40), rel=0.05)
    text = printed(grid(comparison))
    assert "1 point in several folders: the samples of all runs count" in text
    assert "1 row left out: a copy, or one that a later row replaces" in text


def test_machines_of_one_hardware_are_devices_of_their_own(tmp_path: Path) -> None:
    other = {**CPU, "cpu": "Real 1"}
    later = "2026-02-01T00:00:00+00:00"
    first = write(tmp_path / "a", [row(20), row(40, hardware="board")])
    second = write(tmp_path / "b", [row(10, device=other, started=later)])
    comparison = compare(read([first, second]), "hardware")
    assert (comparison.repeated, comparison.left_out) == (0, 0)
    seconds = {name: found.latency_s[0] for name, found in comparison.groups[0].rows.items()}
    assert {name.split(",")[0]: round(1e3 * time) for name, time in seconds.items()} == {
        "local_cpu on Imaginary 9000": 20,
        "board": 40,
        "local_cpu on Real 1": 10,
    }


def test_the_baseline_is_in_most_groups_then_the_default_then_first(tmp_path: Path) -> None:
    rows = [row(batch=b, algorithm=a) for b in (1, 2) for a in ("gemm", "csr_direct")]
    assert compare(frame_of(tmp_path / "a", *rows), "algorithm").baseline == "csr_direct"
    rows.append(row(batch=1))
    assert compare(frame_of(tmp_path / "b", *rows), "algorithm").baseline == "csr_direct"
    rows.append(row(batch=2))
    assert compare(frame_of(tmp_path / "c", *rows), "algorithm").baseline == "direct"


def test_a_baseline_is_named_by_its_label_or_its_name(tmp_path: Path) -> None:
    frame = frame_of(tmp_path, row(), row(compiler=TUNED), row(compiler={**TUNED, "trials": 8}))
    assert compare(frame, "compiler", "metaschedule(trials=8)").baseline == "metaschedule(trials=8)"
    for ambiguous_or_unknown in ("metaschedule", "metashedule(trials=8)"):
        with pytest.raises(InputError, match="there are: metaschedule"):
            compare(frame, "compiler", ambiguous_or_unknown)
    assert compare(frame_of(tmp_path / "b", row(), row(compiler=TUNED)), "compiler", "metaschedule")


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    frame = frame_of(tmp_path, row(), row(batch=2))
    with pytest.raises(InputError, match="did you mean 'compiler'"):
        compare(frame, "compilers")
    with pytest.raises(InputError, match=r"the one value 'untuned'.*what varies is: batch"):
        compare(frame, "compiler")
    with pytest.raises(InputError, match="no value"):
        compare(frame_of(tmp_path / "none"), "compiler")


def test_a_folder_of_failures_is_compared_without_a_crash(tmp_path: Path) -> None:
    frame = frame_of(tmp_path, failing(), failing("timeout", algorithm="gemm"))
    comparison = compare(frame, "algorithm")
    text = printed(grid(comparison))
    assert (
        comparison.groups == [] and "0 of 1 group matched" in text and "never ok: gemm: 1 timeout (1)" in text
    )


@pytest.mark.parametrize("width", [50, 80, 120])
def test_many_values_continue_in_further_tables(tmp_path: Path, width: int) -> None:
    rows = [
        row(10 + i, algorithm=name, batch=batch, model=model)
        for batch, model in itertools.product((1, 8), ("cifar_resnet18", "cifar_mobilenet_v2"))
        for i, name in enumerate(("direct", "gemm", "spatial_pack", "csr_direct", "csr_gemm", "winograd"))
    ]
    text = printed(grid(compare(frame_of(tmp_path, *rows), "algorithm")), width, terminal=True)
    assert max(map(len, text.split("\n"))) <= width
    for name in ("direct", "gemm", "spatial_pack", "csr_direct", "csr_gemm", "winograd"):
        assert name in text
    assert "geometric" in text


TIMES = st.lists(st.tuples(st.floats(1, 5), st.floats(1, 5), st.integers(0, 99)), min_size=1, max_size=4)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(TIMES, st.sampled_from([0.0, 0.05, 0.5]))
def test_exchanging_the_baseline_inverts_every_ratio(
    tmp_path_factory: pytest.TempPathFactory, times: list[tuple[float, float, int]], spread: float
) -> None:
    rows = []
    for batch, (one, other, seed) in enumerate(times, start=1):
        rows.append(row(one, batch=batch, sampled=seed, spread=min(spread, 0.2)))
        rows.append(
            row(other, batch=batch, sampled=seed, spread=min(spread, 0.2), algorithm="gemm", samples=15)
        )
    frame = read(write(tmp_path_factory.mktemp("rows"), rows))
    forth, back = compare(frame, "algorithm", "direct"), compare(frame, "algorithm", "gemm")
    for left, right in zip(forth.groups, back.groups, strict=True):
        (ratio, low, high), inverse = (
            left.rows["gemm"].ratio or (0, 0, 0),
            right.rows["direct"].ratio or (0, 0, 0),
        )
        assert (1 / ratio, 1 / high, 1 / low) == pytest.approx(inverse, rel=1e-9)
        assert low <= ratio <= high
        assert left.rows["gemm"].tie == right.rows["direct"].tie
    assert forth.means()["gemm"] * back.means()["direct"] == pytest.approx(1)


STATUS = st.sampled_from(["ok", "failed", "absent"])


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(STATUS, STATUS, STATUS), min_size=1, max_size=6))
def test_every_row_is_matched_or_counted(
    tmp_path_factory: pytest.TempPathFactory, outcomes: list[tuple[str, str, str]]
) -> None:
    rows = [
        row(5, status=status, batch=batch, algorithm=name, samples=3)
        for batch, statuses in enumerate(outcomes, start=1)
        for name, status in zip(("direct", "gemm", "csr_direct"), statuses, strict=True)
        if status != "absent"
    ]
    frame = read(write(tmp_path_factory.mktemp("rows"), rows))
    if frame["algorithm"].nunique() < 2:
        return
    comparison = compare(frame, "algorithm")
    seen = [each.row for group in (*comparison.groups, *comparison.unmatched) for each in group.rows.values()]
    assert sorted(seen) == list(range(len(rows)))
    printed(grid(comparison))
