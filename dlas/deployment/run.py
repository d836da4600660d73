"""Run a deployed network: the folder that `dlas deploy` wrote, with its runtime and NumPy alone.

    python run.py                                               check it on its example
    python run.py IMAGES.npy --out OUTPUTS.npy --top 3 --time

In Python: ``import run; outputs = run.load(folder)(images)``.  ``README.md`` says how images are prepared.
"""

# A copy lies in every deployed folder, so it imports NumPy alone; ``program.py`` there imports the runtime.
from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import platform
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FORMAT = 1
"""Of ``deployed.json``."""
HASHES = "SHA256SUMS"
DESCRIPTION = "deployed.json"
SOURCE = "program.py"
EXAMPLE, EXAMPLE_OUTPUTS = "example.npy", "example_outputs.npy"
CPUINFO = Path("/proc/cpuinfo")
MOST_CHARACTERS = 2**24
"""Of a text file; more is no description of a program."""


class Refused(ValueError):
    """The program cannot run here, or not on these images; the message says why."""


class RuntimeProgram(Protocol):
    """A loaded program, for images of the one shape that it was compiled for."""

    def bind(self, images: Array) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images``."""

    def run(self, images: Array) -> Array:
        """Return the outputs for ``images``."""


Opener = Callable[[Path, int, dict[str, Any]], RuntimeProgram]
"""Opens the program in a folder, with a number of threads and the runtime's options."""


class DeployedNetwork:
    """A deployed network: call it on images.

    Parameters
    ----------
    description : mapping
        What ``deployed.json`` holds.
    program : RuntimeProgram
    """

    def __init__(self, description: Mapping[str, Any], program: RuntimeProgram) -> None:
        self.shape: tuple[int, ...] = tuple(description["input"])
        """What it was compiled for: batch, channels, height, width."""
        self.labels: list[str] = description["labels"]
        """Names of the classes, in the order of the outputs."""
        self._program = program

    def __call__(self, images: Array) -> npt.NDArray[np.float32]:
        """Return the outputs [n, classes].

        Parameters
        ----------
        images : ndarray of float32, [n, c, h, w]
            Any number of them: they are run in batches, the last one filled up.

        Raises
        ------
        Refused
            If the images have another shape or type.
        """
        outputs = np.concatenate([self._program.run(batch) for batch in self._batches(images)])
        return outputs[: len(images)].astype(np.float32, copy=False)

    def time(self, images: Array, runs: int) -> list[float]:
        """Return the seconds of each of ``runs`` inferences on the first batch, after some to warm up."""
        once = self._program.bind(next(iter(self._batches(images))))
        for _ in range(max(3, runs // 10)):
            once()
        seconds = []
        for _ in range(runs):
            start = time.perf_counter()
            once()
            seconds.append(time.perf_counter() - start)
        return seconds

    def _batches(self, images: Array, size: int | None = None) -> Iterable[Array]:
        """Yield the images ``size`` at a time, by default as many as the program was compiled for."""
        batch, *image = (size or self.shape[0], *self.shape[1:])
        kind, shape = getattr(images, "dtype", type(images).__name__), tuple(getattr(images, "shape", ()))
        if kind != np.float32 or list(shape[1:]) != image or not shape[0]:
            wanted = ", ".join(map(str, ("n", *image)))
            raise Refused(
                f"images must be float32 [{wanted}] with n at least 1; these are {kind} {list(shape)}"
            )
        for start in range(0, len(images), batch):
            yield np.ascontiguousarray(np.resize(images[start : start + batch], (batch, *image)))


def load(folder: str | os.PathLike[str], threads: int | None = None) -> DeployedNetwork:
    """Return a deployed network, after checking its files and this machine.

    Parameters
    ----------
    folder : path
        What ``dlas deploy --to`` wrote.
    threads : int, optional
        By default as many as it was measured with, if this process may use as many processors.

    Raises
    ------
    Refused
        If a file has changed, the processor lacks an extension, or the runtime is not installed.
    """
    path = Path(folder)
    description = check(path)
    spec = importlib.util.spec_from_file_location("program", path / SOURCE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return opened(path, description, module.Program, threads)


def check(folder: Path) -> dict[str, Any]:
    """Return what :func:`describe` does, after checking the folder's files, this machine and its packages.

    Raises
    ------
    Refused
    """
    check_files(folder)
    description = describe(folder)
    check_machine(description)
    check_packages(description["packages"])
    return description


def describe(folder: Path) -> dict[str, Any]:
    """Return what a folder's ``deployed.json`` says of its program.

    Raises
    ------
    Refused
        If another version of `dlas deploy` wrote it, with another format.
    """
    description: dict[str, Any] = json.loads(_text(folder / DESCRIPTION))
    if description.get("format") != FORMAT:
        found = description.get("format")
        raise Refused(f"{folder / DESCRIPTION} has format {found!r}, and this version reads format {FORMAT}")
    return description


def opened(
    folder: Path,
    description: dict[str, Any],
    opener: Opener,
    threads: int | None = None,
    network: Callable[[dict[str, Any], Any], DeployedNetwork] = DeployedNetwork,
) -> DeployedNetwork:
    """Return the network of a checked folder.

    Raises
    ------
    Refused
        If its program cannot be loaded.
    """
    threads = threads or min(description["threads"], len(os.sched_getaffinity(0)))
    try:
        return network(description, opener(folder, threads, description["options"]))
    except ValueError as error:
        raise Refused(str(error)) from error


def check_files(folder: Path) -> None:
    """Compare every file with its SHA-256 hash, which finds damage; forgers would change the hash too.

    Raises
    ------
    Refused
    """
    if not (folder / HASHES).is_file():
        raise Refused(f"no {HASHES} in {str(folder)!r}: give the folder that `dlas deploy --to` wrote")
    for line in _text(folder / HASHES).splitlines():
        expected, _, name = line.partition("  ")
        if Path(name).name != name or not (folder / name).is_file():
            raise Refused(f"{str(folder)!r} holds no file {name!r}, which {HASHES} lists")
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                raise Refused(f"{folder / name} has changed since it was deployed")


def check_machine(description: Mapping[str, Any], cpuinfo: Path = CPUINFO) -> None:
    """Refuse a machine without the instructions that the program was compiled for.

    Parameters
    ----------
    cpuinfo : Path
        The machine's ``/proc/cpuinfo``.

    Raises
    ------
    Refused
        Names every extension that is missing.
    """
    if not description["extensions"]:
        return
    if cpuinfo == CPUINFO and platform.machine() != description["architecture"]:
        raise Refused(f"compiled for {description['architecture']}, and this machine is {platform.machine()}")
    lines = re.findall(r"^(?:flags|Features)\s*:(.*)", _text(cpuinfo), re.MULTILINE)
    # Processors of one machine may differ, and a thread may run on each of them.
    present = set.intersection(*(set(line.split()) for line in lines)) if lines else set()
    missing = [name for name in description["extensions"] if name not in present]
    if missing:
        lacking = f"by {cpuinfo} the processor lacks {', '.join(missing)}"
        raise Refused(f"compiled for {description['processor']}, and {lacking}")


def check_packages(packages: Mapping[str, str]) -> None:
    """Refuse where the runtime is not installed, or TVM in a version that the library was not made for.

    Raises
    ------
    Refused
    """
    for name, version in packages.items():
        install = f"pip install {name}=={version}"
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            raise Refused(f"{name} is not installed; {install}") from None
        if name.startswith("apache-tvm") and found != version:
            raise Refused(f"compiled with {name} {version}, and {found} is installed; {install}")


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(MOST_CHARACTERS)
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from None


def _read(path: Path) -> Array:
    if not path.exists():
        raise Refused(f"there is no file {str(path)!r}")
    if not path.is_file():
        raise Refused(f"{path} is no .npy file: it is a folder, a pipe or a device")
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        return array
    except (OSError, ValueError, EOFError) as error:
        raise Refused(f"{path} is no .npy file: {error}") from None


def check_outputs(outputs: Array, expected: Array, tolerance: float) -> str:
    """Compare outputs with those of the network that was deployed; return by how much they differ.

    Raises
    ------
    Refused
        If they differ by more than ``tolerance``, as a share of the largest expected output.
    """
    error = float(np.abs(outputs - expected).max()) / (float(np.abs(expected).max()) or 1.0)
    found = f"differs from the network by {error:.3g} of the largest output; {tolerance:g} is accepted"
    if not error <= tolerance:  # a NaN is wrong too
        raise Refused(f"wrong: {found}")
    return f"right on {len(outputs)} images: {found}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run this network; README.md says how images are prepared.")
    images = "float32 [n, c, h, w] in a .npy file; without, the program is checked on its example"
    parser.add_argument("images", nargs="?", type=Path, metavar="IMAGES.npy", help=images)
    parser.add_argument(
        "--out", type=Path, metavar="OUTPUTS.npy", help="write the outputs, float32 [n, classes]"
    )
    parser.add_argument(
        "--top", type=int, default=0, metavar="N", help="print the N best labels of each image"
    )
    times = "print the time of a batch, the median of RUNS (100)"
    parser.add_argument("--time", type=int, nargs="?", const=100, metavar="RUNS", help=times)
    parser.add_argument("--threads", type=int, metavar="N", help="by default as many as it was measured with")
    other = "check this copy of another machine's /proc/cpuinfo too"
    parser.add_argument("--cpuinfo", type=Path, metavar="FILE", help=other)
    return parser.parse_args()


def main(folder: Path) -> None:
    """Run the program of ``folder`` as the command line says."""
    asked = _arguments()
    if asked.cpuinfo:
        check_machine(describe(folder), asked.cpuinfo)
    images = _read(asked.images or folder / EXAMPLE)
    network = load(folder, asked.threads)
    outputs = network(images)
    if asked.images is None:
        print(check_outputs(outputs, _read(folder / EXAMPLE_OUTPUTS), describe(folder)["tolerance"]))
    if asked.out:
        with asked.out.open("wb") as file:
            np.save(file, outputs)
    for number, output in enumerate(outputs if asked.top else ()):
        best = [
            f"{network.labels[index]} ({output[index]:.4g})" for index in np.argsort(-output)[: asked.top]
        ]
        print(f"image {number}: {', '.join(best)}")
    if asked.time:
        seconds = network.time(images, asked.time)
        low, middle, high = (
            1e3 * value for value in (min(seconds), statistics.median(seconds), max(seconds))
        )
        spread = f"median of {asked.time}, {low:.4g} to {high:.4g} ms"
        print(f"{middle:.4g} ms a batch of {network.shape[0]}: {spread}")


if __name__ == "__main__":
    try:
        main(Path(__file__).resolve().parent)
    except Refused as error:
        print(f"run.py: {error}", file=sys.stderr)
        sys.exit(2)
