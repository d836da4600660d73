"""Settings that must stand before TVM is imported, and what tests of GPU code need."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from dlas.stack import Target, Workspace
from tests.fixtures import calm as calm
from tests.fixtures.commands import Command, runner
from tests.fixtures.splitting import Part, in_part

# TVM pins the main thread, and what PyTorch starts later would share its core.
os.environ.setdefault("TVM_BIND_THREADS", "0")
os.environ.setdefault("TVM_NUM_THREADS", "2")
if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    # Sweeps of one user share the device's lock, which lies in the temporary folder.
    tempfile.tempdir = str(Path(tempfile.gettempdir()) / f"dlas-tests-{os.getuid()}-{worker}")
    Path(tempfile.tempdir).mkdir(exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir
    # Threads of several workers share processors: those that wait should not spin.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", "0")

# The same examples everywhere, and no limit of time: processors are shared.
hypothesis.settings.register_profile("dlas", deadline=None, derandomize=True)
hypothesis.settings.load_profile("dlas")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that write golden files anew and run one part of the tests."""
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")
    parser.addoption("--part", metavar="K/N", help="run the K-th of N parts of the chosen tests")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a part that does not exist, before anything is collected."""
    if written := config.getoption("--part"):
        Part.read(written)


@pytest.hookimpl(trylast=True)  # after tests are deselected by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests of the part that is to run."""
    if written := config.getoption("--part"):
        kept = in_part(items, Part.read(written))
        left = set(items).difference(kept)
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = kept


def pytest_collection_finish() -> None:
    """Spare the collector, and the memory that forks share, what lives as long as the process."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written anew."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def same_threads_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo the numbers of threads that a study sets in the tests' own process."""
    for name in ("TVM_BIND", "TVM_NUM", "OMP_NUM", "MKL_NUM", "OPENBLAS_NUM", "NUMEXPR_NUM"):
        monkeypatch.setenv(f"{name}_THREADS", os.environ.get(f"{name}_THREADS", "1"))


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Return a workspace that says nothing."""
    return Workspace(0, tmp_path / "work", say=lambda line: None)


@pytest.fixture(scope="session")
def nvrtc() -> None:
    """Skip where NVIDIA's run-time compiler or its headers are missing."""
    pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")
    from cuda import pathfinder

    from dlas.bench.measuring.cuda_toolkit import compiler_missing

    if reason := compiler_missing():
        pytest.skip(reason)
    try:
        pathfinder.load_nvidia_dynamic_lib("nvrtc")
    except pathfinder.DynamicLibNotFoundError:
        pytest.skip("no CUDA run-time compiler is installed")


@pytest.fixture(params=["sm_90", "sm_72"])
def cuda(nvrtc: None, request: pytest.FixtureRequest) -> Iterator[Target]:
    """Return a GPU to compile for, while TVM has a compiler that knows it."""
    from dlas.bench.measuring.cuda_toolkit import PRECISE, headers
    from tests.fixtures.nvrtc import Nvrtc12
    from tests.fixtures.targets import CUDA, CUDA_SM72

    if request.param == "sm_90":
        yield CUDA
        return
    try:
        importlib.import_module("cuda.bindings.nvrtc")  # TVM imports it late, and then finds the other one
        compiler = Nvrtc12()
    except PackageNotFoundError as absent:
        pytest.skip(f"{absent.name} is not installed, and CUDA 13 builds for no sm_72")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cuda.bindings.nvrtc", compiler)
        patch.setattr("cuda.bindings.nvrtc", compiler)
        patch.setenv("CUDA_PATH", str(compiler.headers.parent))
        patch.setenv("TVM_CUDA_NVRTC_EXTRA_OPTS", f"{PRECISE} -I{(headers() or ('', ''))[1]}")
        yield CUDA_SM72


@pytest.fixture(scope="module")
def opencl() -> Any:
    """Return what runs OpenCL on this machine's processors."""
    cl = pytest.importorskip("pyopencl", reason="pyopencl[pocl] is not installed: no OpenCL")
    try:
        (device, *_) = cl.get_platforms()[0].get_devices()
        cl.Program(cl.Context([device]), "kernel void nothing() {}").build()
    except cl.LogicError as absent:
        pytest.skip(f"pyopencl finds no OpenCL device: {absent}")
    except cl.RuntimeError as error:
        if "unknown target CPU" not in str(error):
            raise
        pytest.skip(f"the compiler of {device.name} is older than this processor")
    from tests.fixtures import opencl

    return opencl


@pytest.fixture(scope="session")
def cifar_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small CIFAR-10."""
    from tests.fixtures.image_files import write_cifar10

    root = tmp_path_factory.mktemp("cifar")
    write_cifar10(root)
    return root


@pytest.fixture(scope="session")
def fashion_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small Fashion-MNIST."""
    from tests.fixtures.image_files import write_fashion_mnist

    root = tmp_path_factory.mktemp("fashion")
    write_fashion_mnist(root)
    return root


@pytest.fixture(scope="session")
def imagenet_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small ImageNet."""
    from tests.fixtures.image_files import write_imagenet

    root = tmp_path_factory.mktemp("imagenet")
    write_imagenet(root)
    return root


@pytest.fixture
def dlas_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return what runs a command in this process, its folder and cache the test's own."""
    return runner(tmp_path, monkeypatch, capsys)
