"""A GPU of this machine: found or not, with what its programs need or without, and how it times."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from tvm.target import Target as TvmTarget

from dlas.bench.measuring import cuda_toolkit
from dlas.bench.measuring.gpu import Gpu, NoGpu, ask_driver, first_gpu
from dlas.errors import Unsupported
from dlas.stack import Hardware, MeasureSettings, Program
from dlas.sweep.study import parts
from dlas.sweep.study.point import NONE, Choice, Point
from dlas.testing.hardware import Sleeper
from tests.fixtures.gpu_driver import write_driver
from tests.fixtures.small_network import network
from tests.fixtures.targets import CUDA


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> Gpu:
    """An H100, as its driver describes it to a process of its own."""
    folder = tmp_path_factory.mktemp("driver")
    write_driver(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", str(folder))
        return ask_driver()


@pytest.fixture
def device(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> Hardware:
    """The hardware ``local_cuda`` on a machine with that GPU."""
    monkeypatch.setattr("dlas.axes.hardware.drivers.cuda.first_gpu", lambda: gpu)
    made: Hardware = parts.make("hardware", "local_cuda", {})
    return made


def test_a_gpu_is_the_target_in_full_so_that_tvm_asks_no_device(device: Hardware) -> None:
    description = device.target().description
    assert {"host": {"kind": "llvm"}, "arch": "sm_90", "thread_warp_size": 32}.items() <= description.items()
    attributes = TvmTarget(dict(description)).attrs
    assert int(attributes["max_threads_per_block"]) == 1024
    assert int(attributes["max_shared_memory_per_block"]) == 48 * 1024
    assert device.target().on_gpu


def test_a_row_names_the_gpu_and_the_machine_around_it(device: Hardware) -> None:
    told = json.loads(json.dumps(device.describe()))
    assert (told["gpu"], told["gpu_processors"], told["gpu_clock_hz"]) == ("NVIDIA H100", 132, 1.98e9)
    assert told["logical_cores"] >= 1
    assert device.recorded_as() == {"machine": "NVIDIA H100"}
    assert device.device == "local" and device.local, "kernels are started by this machine's processors"


@pytest.mark.parametrize(
    ("error", "reason"),
    [(100, "the driver finds no GPU"), (999, "cuInit fails with CUDA_ERROR_OF_A_TEST .999.")],
)
def test_a_driver_without_a_gpu_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, reason: str
) -> None:
    write_driver(tmp_path, error=error)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    with pytest.raises(NoGpu, match=reason):
        ask_driver()


@pytest.mark.usefixtures("nvrtc")
def test_what_its_programs_lack_is_told_before_any_is_built(gpu: Gpu, tmp_path: Path) -> None:
    absent = tmp_path / cuda_toolkit.RUNTIME
    assert "libtvm_runtime_cuda.so is not beside" in str(cuda_toolkit.unusable(gpu, absent))
    present = tmp_path / "present.so"
    present.write_bytes(b"\0libcudart.so.13\0")
    assert cuda_toolkit.unusable(gpu, present) is None
    older = replace(gpu, cuda=(12, 4))
    assert "its driver runs CUDA 12.4, and TVM's runtime was built for CUDA 13" in str(
        cuda_toolkit.unusable(older, present)
    )
    xavier = replace(gpu, name="Xavier", major=7, minor=2)
    assert "Xavier is sm_72, and the installed compiler builds for sm_75 and newer" in str(
        cuda_toolkit.unusable(xavier, present)
    )


def test_without_a_gpu_a_point_is_unsupported_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlas.axes.hardware.drivers.cuda.first_gpu", lambda: NoGpu("no NVIDIA driver"))
    choices = (Choice("random"), Choice("cifar_resnet18"), NONE, Choice("direct"), Choice("hand"))
    point = Point(*choices, Choice("local_cuda"), batch=1, seed=0)
    assert point.unsupported() == "local_cuda: no NVIDIA driver"
    device: Hardware = parts.make("hardware", "local_cuda", {})
    with pytest.raises(Unsupported, match="no NVIDIA driver"):
        device.measure(Sleeper(), None, MeasureSettings(), lambda: None)  # type: ignore[arg-type]


@pytest.mark.skipif(isinstance(first_gpu(), Gpu), reason="there is a GPU here")
def test_a_runtime_for_cuda_that_does_not_load_says_why() -> None:
    with pytest.raises(Unsupported, match=r"does not load: libcuda.*\.so"):
        cuda_toolkit.load_runtime()


class Counted(Sleeper):
    """Says that each run takes two seconds."""

    asked: list[int]

    def timer(self, images: Any) -> Any:
        self.asked = []

        def seconds(runs: int) -> float:
            self.asked.append(runs)
            return 2.0 * runs

        return seconds


def test_samples_are_what_the_devices_own_clock_says(
    device: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(device), "unsupported", lambda self: None)
    program = Counted()
    settings = MeasureSettings(repeats=4, minimum=4, slices=1, sample_seconds=0.02)
    measured = device.measure(program, None, settings, lambda: None)  # type: ignore[arg-type]
    assert measured["latency_s"] == [2.0] * 4
    assert measured["first_run_s"] < 1, "the first run has the process's clock"
    assert set(program.asked) == {measured["calls_per_sample"]} and len(program.asked) >= 4


@pytest.mark.parametrize("name", ["onnxruntime", "torch_eager"])
def test_a_library_without_cuda_is_unsupported_on_a_gpu(name: str, tmp_path: Path) -> None:
    there = "CUDAExecutionProvider" in onnxruntime.get_available_providers()
    if torch.cuda.is_available() and (there or name == "torch_eager"):
        pytest.skip("the library runs on CUDA here")
    with pytest.raises(Unsupported, match=r"has no CUDAExecutionProvider \(it has|finds no CUDA device"):
        parts.make("compiler", name, {}).build(network(), None, CUDA, 1, tmp_path)


def test_processors_have_no_clock_of_their_own() -> None:
    assert Program.timer(Sleeper(), None) is None  # type: ignore[arg-type]
