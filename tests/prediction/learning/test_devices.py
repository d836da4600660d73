"""Several devices: held out one by one, told apart by what is known of them; what several gain over one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlas
from dlas.errors import InputError
from dlas.prediction.learning.features.kernels import COLUMNS
from dlas.prediction.learning.fitting import HeldOut
from dlas.prediction.learning.gains import MEAN, gains
from dlas.prediction.learning.metrics import WITHIN
from dlas.prediction.learning.points import Points, read_points
from dlas.prediction.learning.splits import Fold
from dlas.prediction.predictors.boosted_kernels import BoostedKernels
from dlas.prediction.predictors.fitted.kernel_sums import KernelSum
from dlas.prediction.predictors.mean import Mean
from dlas.stack import Samples, Workspace
from dlas.sweep.rows.example import Example
from dlas.sweep.rows.labels import MISSING
from tests.fixtures.kernel_rows import board, kernel_rows
from tests.fixtures.rows import write
from tests.fixtures.training_rows import WIDTHS

TARGET = "latency_s"
ALIKE = {"one": 0.97, "two": 1.0, "three": 1.03}
"""Boards of one model, and how long each takes."""
CLOCKS = {"one": 2e9, "two": 1.2e9}
"""Boards of one model with clocks that their owners set."""
SLOWER, OVERHEAD_S = 1.7, 3e-6


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Rows of three boards of one model."""
    folder = tmp_path_factory.mktemp("alike")
    return [
        write(folder / name, list(kernel_rows(board("Board", name), factor, seed=place)))
        for place, (name, factor) in enumerate(ALIKE.items())
    ]


@pytest.fixture(scope="module")
def different(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Rows of a fast board, and of one with a lower clock that takes 1.7 times as long, and an overhead."""
    folder = tmp_path_factory.mktemp("different")
    fast, slow = board("Board", clock_max_hz=2e9), board("Board", clock_max_hz=1.2e9)
    return [
        write(folder / "fast", list(kernel_rows(fast))),
        write(folder / "slow", list(kernel_rows(slow, SLOWER, OVERHEAD_S, seed=1))),
    ]


def test_instances_of_a_board_are_held_out_of_one_predictor(alike: list[Path]) -> None:
    view = dlas.evaluate(alike, predictors=["additive"], target=TARGET, hold_out="instance")
    frame = view.frame[view.frame["predictor"] == "additive"].set_index("held_out")
    assert list(frame.index) == ["", *(f"instance={name}" for name in sorted(ALIKE))]
    assert frame["mape"].max() < 0.06 and "3 instances" in str(view)
    # What was fitted to the two others is nearest to the one between them.
    assert frame["mape"].idxmin() == "instance=two"
    told = str(view)
    assert "additive: gain by fitting to all other values of instance in place of one" in told
    for name in (*WIDTHS, MEAN):
        assert re.search(rf"^{name} +\d+ ( +[+-]\d+\.\d% to [+-]\d+\.\d%| +{MISSING}){{4}}", told, re.M), name


def test_one_instance_is_no_other(alike: list[Path], tmp_path: Path) -> None:
    first, second, _ = alike
    dlas.fit("additive", first, target=TARGET, to=tmp_path / "p", hold_out="batch")
    known = dlas.predictor(tmp_path / "p")
    assert known.predict(first)[TARGET].gt(0).all()
    with pytest.raises(InputError, match=r"instance 'two' was never fitted \(fitted: one\)"):
        known.predict(second)


def test_one_predictor_is_for_all_instances_and_for_others(alike: list[Path], tmp_path: Path) -> None:
    first, second, third = alike
    with pytest.raises(InputError, match="`dlas evaluate` tells how wrong"):
        dlas.fit("additive", alike, target=TARGET, to=tmp_path / "p", hold_out="device")
    dlas.fit("additive", [first, third], target=TARGET, to=tmp_path / "p", hold_out="instance")
    known = dlas.predictor(tmp_path / "p")
    found = known.predict(second)
    measured = dlas.read(second)[TARGET].to_numpy(dtype=float)
    assert np.abs(found[TARGET].to_numpy() / measured - 1).mean() < 0.03
    assert found["in_range"].all() and not found["doubt"].str.contains("setting").any()
    elsewhere = write(tmp_path / "rows", list(kernel_rows(board("Other", "two"))))
    with pytest.raises(InputError, match=r"machine 'Other.*' was never fitted \(fitted: Board") as refused:
        known.predict(elsewhere)
    assert "instance" not in str(refused.value)


def test_rows_without_an_instance_are_named(different: list[Path]) -> None:
    with pytest.raises(InputError, match=r"`hold_out='instance'`: row \w+ has no value in this column"):
        dlas.evaluate(different, predictors=["additive"], target=TARGET, hold_out="instance")


def held_out_devices(folders: list[Path]) -> dict[str, float]:
    """Return the mean error of each device while it was held out, by its name."""
    view = dlas.evaluate(folders, predictors=["additive"], target=TARGET, hold_out="device")
    frame = view.frame[view.frame["predictor"] == "additive"].set_index("held_out")
    return {str(name).removeprefix("device="): float(error) for name, error in frame["mape"].items() if name}


def test_a_device_is_a_runtime_with_a_number_of_threads(tmp_path: Path) -> None:
    folders = []
    for compiler, speed in (("onnxruntime", 1.0), ("torch_eager", 2.0)):
        for threads in (1, 2):
            rows = kernel_rows(board("Board", threads=threads), speed / threads, compiler=compiler)
            folders.append(write(tmp_path / f"{compiler}{threads}", list(rows)))
    found = held_out_devices(folders)
    expected = [f"{name}/{threads}" for name in ("onnxruntime", "torch_eager") for threads in (1, 2)]
    assert list(found) == expected
    assert min(found, key=lambda name: found[name]) != "torch_eager/1", "the slowest is like no other"
    assert found["torch_eager/1"] > 0.3


def test_a_slower_board_is_as_far_off_as_it_is_slower(different: list[Path]) -> None:
    fast, slow = (read_points([folder], TARGET, kernels=True) for folder in different)
    part = BoostedKernels(rounds=20)
    fitted, tried = (points.samples(part, TARGET, [""] * len(points)) for points in (fast, slow))
    ratio = tried.target / part.fit(fitted, quiet()).predict(tried)
    assert tried.kernels is not None
    kernels = np.bincount(tried.kernels.points)
    assert np.median((tried.target - OVERHEAD_S * kernels) / part.fit(fitted, quiet()).predict(tried)) == (
        pytest.approx(SLOWER, rel=0.05)
    )
    assert np.median(ratio) > SLOWER


def test_one_predictor_tells_devices_apart_by_what_is_known_of_them(different: list[Path]) -> None:
    points = read_points(different, TARGET, kernels=True)
    part = BoostedKernels(rounds=60, learning_rate=0.2)
    samples = points.samples(part, TARGET, list(points.frame["model"]))
    assert samples.kernels is not None
    seconds = samples.kernels.seconds
    fitted = part.fit(samples, quiet())
    assert isinstance(fitted, KernelSum) and fitted.columns == (*COLUMNS, "device.clock_max_hz")
    told = np.mean(np.abs(fitted.of_kernels(samples.kernels) / seconds - 1))
    blind = KernelSum.of_kernels(fitted, samples.kernels.with_columns(COLUMNS))
    assert told < 0.1 < np.mean(np.abs(blind / seconds - 1))
    alone = part.fit(samples.take(np.flatnonzero(points.frame["folder"] == str(different[0]))), quiet())
    assert isinstance(alone, KernelSum) and alone.columns == COLUMNS


def test_a_point_on_several_devices_has_the_facts_of_each() -> None:
    (first, *_), (second, *_) = (
        list(kernel_rows(board("Board", name, clock_max_hz=clock))) for name, clock in CLOCKS.items()
    )
    assert first.id == second.id
    points = Points.of([Example(row, {row.batch: row.layers}, row.layers) for row in (first, second)])
    assert [facts["clock_max_hz"] for facts in points.devices()] == list(CLOCKS.values())
    assert points.take(np.array([1])).devices()[0]["clock_max_hz"] == CLOCKS["two"]


def test_what_is_unknown_of_a_device_that_others_were_told_apart_by_is_a_doubt(tmp_path: Path) -> None:
    folders = [
        write(tmp_path / name, list(kernel_rows(board("Board", name, clock_max_hz=clock))))
        for name, clock in CLOCKS.items()
    ]
    to, few = tmp_path / "p", {"rounds": 3}
    dlas.fit("boosted_kernels", folders, target=TARGET, to=to, hold_out="instance", options=few)
    known = dlas.predictor(to)
    (setting,) = known.stored.record.settings
    assert setting.facts["clock_max_hz"] == (1.2e9, 2e9) and setting.hardware == "local_cpu"
    row = next(kernel_rows(board("Board", "three")))
    told = {}
    for name, clock in {"none": None, "between": 1.5e9, "beyond": 3e9}.items():
        device: Any = {**row.device, "clock_max_hz": clock}
        (told[name],) = known.predict(write(tmp_path / name, [replace(row, device=device)]))["doubt"]
    assert "unknown of its device: clock_max_hz" in told["none"]
    assert "outside the fitted range of its device: clock_max_hz" in told["beyond"]
    assert "device" not in told["between"]


def quiet() -> Workspace:
    return Workspace(0, Path(), lambda line: None)


def test_gains_compare_all_others_with_each_of_them() -> None:
    times = {"a": 1 / 1.03, "b": 1.0, "c": 1.03}
    count = Mean.fewest
    target = np.repeat([*times.values()], count)
    groups = tuple(np.repeat([*times], count))
    samples = Samples(groups, (), np.zeros((len(target), 0)), target, groups)
    places = np.arange(len(target)).reshape(3, count)
    others = {"a": 1.03**0.5, "b": 1.0, "c": 1.03**-0.5}  # the geometric mean of what is not held out
    tried = [
        HeldOut(Fold(name, np.delete(np.arange(len(target)), own), own), np.full(count, others[name]), None)
        for name, own in zip(times, places, strict=True)
    ]
    by_model, mean = gains(Mean(), samples, ["net"] * len(target), tried, 0, lambda line: None)
    error = {
        (fitted, held): abs(value - times[held])
        for held in times
        for fitted, value in [*((name, times[name]) for name in times if name != held), ("all", others[held])]
    }
    pairs = [pair for pair in error if pair[0] != "all"]
    expected = [1 - error["all", held] / error[fitted, held] for fitted, held in pairs]
    assert (by_model.name, by_model.comparisons, mean.name) == ("net", 6, MEAN)
    for found in (by_model.mae, by_model.rmse, mean.mae):
        assert found == pytest.approx((min(expected), max(expected)))
    assert min(expected) < 0 < max(expected) == pytest.approx(1)
    assert WITHIN[0] == 0.05 and by_model.within[0] == pytest.approx((0.0, 0.0)), "all but where none was"
    assert gains(Mean(), samples, ["net"] * len(target), tried[:2], 0, lambda line: None) == []
