"""The law of the simulated board does what its parts say, whatever a predictor makes of it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from dlas.axes.hardware.simulation.clocks import CPU_HZ, GPU_HZ, MEMORY_HZ, SimulatedClocks
from dlas.axes.hardware.simulation.law import (
    BOARDS,
    CAP_W,
    HIDDEN_SHARE,
    NOISE,
    BoardFactors,
    Work,
    board_factors,
    compute_seconds,
    cost,
    moving_seconds,
    voltage,
)
from dlas.axes.hardware.simulation.runs import noisy, simulate
from dlas.axes.hardware.simulation.work import work_of
from dlas.errors import InputError
from dlas.stack import Layer, MeasureSettings

IDEAL = BoardFactors(1.0, 1.0, 1.0)
CONVOLUTION = Work("conv", 1e9, 4e6)
MOVING = Work("other", 0.0, 8e6)
WORKS = (CONVOLUTION, MOVING, Work("depthwise", 1e7, 4e6), Work("linear", 1e8, 4e8))
SOME = [SimulatedClocks(*hertz) for hertz in itertools.product(CPU_HZ[::9], GPU_HZ[::4], MEMORY_HZ[::4])]


def test_the_clocks_have_as_many_steps_as_the_board_of_the_paper() -> None:
    assert (len(CPU_HZ), len(GPU_HZ), len(MEMORY_HZ)) == (29, 14, 9)
    assert (CPU_HZ[0], GPU_HZ[-1], MEMORY_HZ[0]) == (115.2e6, 1.377e9, 204e6)


def test_a_clock_that_is_no_step_names_the_nearest_two() -> None:
    with pytest.raises(InputError, match=r"gpu_hz = 250000000 is no step.*211850000 and 308950000"):
        replace(SimulatedClocks.highest(), gpu_hz=250e6).verify()


@pytest.mark.parametrize("work", WORKS)
def test_more_work_and_slower_clocks_take_longer(work: Work) -> None:
    for clocks in SOME:
        seconds = cost(work, clocks, IDEAL).seconds
        assert cost(replace(work, moved_bytes=2 * work.moved_bytes), clocks, IDEAL).seconds >= seconds
        for name, steps in (("cpu_hz", CPU_HZ), ("gpu_hz", GPU_HZ)):
            slower = replace(clocks, **{name: steps[0]})
            assert cost(work, slower, IDEAL).seconds >= seconds * (1 - 1e-12)


def test_power_grows_with_the_clock_of_the_gpu_and_with_its_voltage() -> None:
    watts = [cost(MOVING, replace(SimulatedClocks.highest(), gpu_hz=step), IDEAL).watts for step in GPU_HZ]
    assert watts == sorted(watts)
    volts = [voltage(share) for share in np.linspace(0, 1, 50)]
    assert volts == sorted(volts) and volts[0] < volts[-1]


def test_a_cap_of_power_throttles_the_gpu() -> None:
    found = cost(CONVOLUTION, SimulatedClocks.highest(), IDEAL)
    assert found.gpu_hz < GPU_HZ[-1] and found.watts <= CAP_W
    assert found == cost(CONVOLUTION, replace(SimulatedClocks.highest(), gpu_hz=found.gpu_hz), IDEAL)
    hungry = cost(CONVOLUTION, SimulatedClocks.highest(), BoardFactors(1.0, 1.3, 1.3))
    assert hungry.gpu_hz < found.gpu_hz and hungry.seconds > found.seconds
    assert cost(MOVING, SimulatedClocks.highest(), IDEAL).gpu_hz == GPU_HZ[-1]


def test_the_clock_of_the_memory_counts_only_above_a_share() -> None:
    slow, fast = (
        replace(SimulatedClocks.highest(), memory_hz=step, gpu_hz=GPU_HZ[5]) for step in MEMORY_HZ[::8]
    )
    for work in WORKS:
        moving = moving_seconds(work, slow.memory_hz)
        share = moving / (moving + compute_seconds(work, slow.gpu_hz))
        equal = cost(work, slow, IDEAL).seconds == cost(work, fast, IDEAL).seconds
        assert equal == (share <= HIDDEN_SHARE)
    assert {cost(work, slow, IDEAL).seconds == cost(work, fast, IDEAL).seconds for work in WORKS} == {
        True,
        False,
    }


def test_boards_differ_by_up_to_thirty_percent_in_power_and_ten_in_time() -> None:
    boards = [board_factors(board) for board in range(BOARDS)]
    assert len(set(boards)) == BOARDS and boards == [board_factors(board) for board in range(BOARDS)]
    low = replace(SimulatedClocks.highest(), gpu_hz=GPU_HZ[4])
    costs = [cost(CONVOLUTION, low, board) for board in boards]
    for values, most in (([each.watts for each in costs], 1.3), ([each.seconds for each in costs], 1.1)):
        assert 1 + (most - 1) / 2 < max(values) / min(values) < most


def test_samples_have_three_percent_of_noise_of_their_own() -> None:
    read = noisy(np.ones(20_000), np.random.default_rng(0))
    assert np.log(read).std() == pytest.approx(NOISE, rel=0.05)
    assert np.log(read).mean() == pytest.approx(0, abs=1e-3)


CONV: Layer = {
    "name": "c",
    "operator": "Conv",
    "inputs": [[1, 8, 4, 4]],
    "output": [1, 16, 4, 4],
    "c": 8,
    "k": 16,
    "r": 3,
    "s": 3,
    "groups": 1,
    "macs": 18_432,
}


def test_a_kernel_moves_its_tensors_and_its_weights() -> None:
    assert work_of(CONV) == Work("conv", 18_432.0, 4.0 * (128 + 256 + 16 * 8 * 9))
    assert work_of({**CONV, "groups": 8}).kind == "depthwise"
    assert work_of({**CONV, "r": 1, "s": 1}).kind == "conv1x1"
    assert work_of({"name": "p", "operator": "MaxPool", "inputs": [[1, 2]], "output": [1, 2]}).macs == 0


def test_a_run_is_its_kernels_and_what_comes_around_them() -> None:
    settings = MeasureSettings(repeats=400, layer_repeats=400)
    clocks, rng = SimulatedClocks.highest(), np.random.default_rng(0)
    told = simulate([CONV, CONV], clocks, IDEAL, settings, rng)
    own = [cost(work_of(CONV), clocks, IDEAL)] * 2
    assert [layer["latency_s"] for layer in told["timed_layers"]] == pytest.approx(
        [each.seconds for each in own], rel=0.01
    )
    assert [layer["energy_j"] for layer in told["timed_layers"]] == pytest.approx(
        [each.joules for each in own], rel=0.01
    )
    assert np.mean(told["latency_s"]) > sum(each.seconds for each in own)
    assert told["energy_j"] == pytest.approx(told["power_w"] * np.mean(told["latency_s"]))
    assert simulate([CONV], clocks, IDEAL, replace(settings, layer_repeats=0), rng)["timed_layers"] is None
