"""All paths of a flexible network as one program, against the static build of each.

Networks are untrained: times do not depend on the weights.  It prints what paths share, the sizes against the
legacy network's, the time of each path against its static build, in turns, and what switching costs.

    python -m benchmarks.paths [--network resnet50] [--batch 1] [--threads 2] [--size 224] [--rounds 30]
                               [--paths 0000,1111] [--switches 100000]
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from dlas.bench.measuring.allocator import MAPPED_BYTES, release
from dlas.bench.processes.memory import quick_bytes
from dlas.deployment.runtimes.tvm import FILES
from dlas.sweep.rows import intervals

WARM_UP = 100
"""Inferences of each path before its memory is watched."""
PAGE = resource.getpagesize()


@dataclass(frozen=True)
class Sizes:
    """Bytes of a program."""

    library: int
    parameters: int

    @property
    def total(self) -> int:
        """Both together."""
        return self.library + self.parameters

    @classmethod
    def of(cls, folder: Path) -> Sizes:
        """Return the sizes of a program's files."""
        return cls(*((folder / name).stat().st_size for name in FILES[:2]))


def main(
    network: str = "resnet50",
    batch: Annotated[int, typer.Option(min=1)] = 1,
    threads: Annotated[int, typer.Option(min=1)] = 2,
    size: Annotated[int, typer.Option(min=1)] = 224,
    rounds: Annotated[int, typer.Option(min=1, help="Turns that every program gets.")] = 30,
    paths: Annotated[str, typer.Option(help="Paths to build alone and time; all are in the program.")] = "",
    switches: Annotated[int, typer.Option(min=0)] = 100_000,
) -> None:
    """Print the comparison."""
    os.environ.update(TVM_NUM_THREADS=str(threads), TVM_BIND_THREADS="0")
    with TemporaryDirectory() as scratch:
        _compare(Path(scratch), network, batch, threads, size, rounds, paths, switches)


def _compare(
    root: Path, network: str, batch: int, threads: int, size: int, rounds: int, chosen: str, switches: int
) -> None:
    # Here, since TVM reads the number of threads once.
    from dlas.axes.compilers.programs.paths import join, write_joined
    from dlas.deployment.runtimes.tvm import TvmDeployment
    from dlas.sweep.study import parts

    compiler = parts.make("compiler", "hand", {})
    algorithm = parts.make("algorithm", "blocked", {})
    target = parts.make("hardware", "local_cpu", {"threads": threads}).target()
    networks = _networks(network, size)
    timed = chosen.split(",") if chosen else list(networks)
    if unknown := [path for path in timed if path not in networks]:
        raise typer.BadParameter(f"path {unknown[0]!r}; {network} has {', '.join(networks)}")
    for path in dict.fromkeys((min(networks), *timed)):
        compiler.compile(networks[path], algorithm, target, batch, root / path)
    joined = join(
        (path, compiler.schedule(made, algorithm, target, batch, root)) for path, made in networks.items()
    )
    write_joined(joined, target, root / "joined")
    legacy, together = Sizes.of(root / min(networks)), Sizes.of(root / "joined")
    print(f"{len(networks)} paths: {joined.shared():.1%} of their kernels are shared")
    print(
        f"library and parameters take {together.total / legacy.total:.3f} of the legacy network's "
        f"(library {together.library / legacy.library:.2f}, "
        f"parameters {together.parameters / legacy.parameters:.3f})"
    )
    images = np.random.default_rng(0).standard_normal((batch, 3, size, size)).astype(np.float32)
    program = TvmDeployment(root / "joined", threads, {"function": min(networks)})
    served = {path: program.entry(path, images.shape) for path in timed}
    alone = {path: TvmDeployment(root / path, threads, {}).entry("main", images.shape) for path in timed}
    for path in timed:
        assert np.array_equal(served[path](images), alone[path](images)), f"{path} is another"
    print("every timed path equals its static build bit for bit")
    _print_times(images, served, alone, rounds)
    _print_switching(images, served, rounds)
    if switches:
        fastest = sorted(timed, key=lambda path: _seconds(served[path], images))[:2]
        _print_memory(root / "joined", fastest, images, threads, switches)


def _networks(name: str, size: int) -> dict[str, Any]:
    """Return the untrained network at each of its paths.

    Raises
    ------
    typer.BadParameter
        If there is no such network, or it has no paths.
    """
    from dlas.axes.compression.flexible.module import flexible
    from dlas.errors import InputError, Unsupported
    from dlas.networks.torch.model import TorchModel
    from dlas.networks.torch.network import TorchNetwork
    from dlas.stack import Facts
    from dlas.sweep.study import parts

    shape, classes = (3, size, size), 1000
    try:
        model = parts.make("model", name, {})
        if not isinstance(model, TorchModel):
            raise Unsupported(f"network {name!r} is no torch module, which has phases")
        module = flexible(model.construct(Facts(shape, classes), 0).module, 0.25, 0)
    except (InputError, Unsupported) as error:
        raise typer.BadParameter(str(error)) from None
    return {path: TorchNetwork(module.at(path), Facts(shape, classes)) for path in module.paths}


Once = Callable[[Any], Any]


def _print_times(images: Any, served: dict[str, Once], alone: dict[str, Once], rounds: int) -> None:
    """Print each path's time against its static build's; the two take turns."""
    table = Table("path", "in one program, ms", "alone, ms", "ratio [95 % interval]", box=None)
    for path, entry in served.items():
        samples = _in_turns(images, [entry, alone[path]], rounds)
        (ratio,) = intervals.ratios([samples[0]], [samples[1]]).tolist()
        one, other = (f"{1e3 * float(np.median(own)):.3f}" for own in samples)
        table.add_row(path, one, other, f"{ratio[0]:.4f} [{ratio[1]:.4f}, {ratio[2]:.4f}]")
    Console().print(table)


def _in_turns(images: Any, entries: Sequence[Once], rounds: int) -> list[Any]:
    """Return samples of seconds of each entry."""
    samples: list[list[float]] = [[] for _ in entries]
    for number in range(rounds + 3):
        for own, entry in zip(samples, entries, strict=True):
            seconds = _seconds(entry, images)
            if number >= 3:
                own.append(seconds)
    return [np.array(own) for own in samples]


def _print_switching(images: Any, served: dict[str, Once], rounds: int) -> None:
    """Print what switching every batch costs against never."""
    entries = list(served.values())
    never, every = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        for entry in entries:
            for _ in entries:
                entry(images)
        never.append(time.perf_counter() - start)
        start = time.perf_counter()
        for number in range(len(entries) ** 2):
            entries[number % len(entries)](images)
        every.append(time.perf_counter() - start)
    (ratio,) = intervals.ratios([np.array(every)], [np.array(never)]).tolist()
    print(f"switching every batch against never: {ratio[0]:.4f} [{ratio[1]:.4f}, {ratio[2]:.4f}]")


def _print_memory(folder: Path, paths: Sequence[str], images: Any, threads: int, switches: int) -> None:
    """Print what many switches take of memory, in a process that has compiled nothing.

    There every block of 64 KiB or more that does not come from TVM's pool is a mapping of its own: it
    would take a page fault for each of its pages, at each switch.
    """
    os.environ.update(MALLOC_MMAP_THRESHOLD_=str(MAPPED_BYTES), MALLOC_TOP_PAD_="0")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        grown, faults = pool.apply(switched, (folder, paths, images, threads, switches))
    print(
        f"{switches:,} switches: memory grew by {grown:,} bytes, {faults / switches:.3f} page faults each "
        f"(a block of {MAPPED_BYTES // 1024} KiB outside the pool takes {MAPPED_BYTES // PAGE} or more)"
    )


def switched(folder: Path, paths: Sequence[str], images: Any, threads: int, switches: int) -> tuple[int, int]:
    """Return by how many bytes this process grows while paths take turns, and its page faults meanwhile.

    Parameters
    ----------
    folder : Path
        Of the program of all paths.
    """
    from dlas.deployment.runtimes.tvm import TvmDeployment

    program = TvmDeployment(folder, threads, {"function": paths[0]})
    entries = [program.entry(path, images.shape) for path in paths]
    for number in range(WARM_UP * len(entries)):
        entries[number % len(entries)](images)
    release()
    before, faults = quick_bytes(os.getpid()), _faults()
    for number in range(switches):
        entries[number % len(entries)](images)
    return quick_bytes(os.getpid()) - before, _faults() - faults


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _seconds(entry: Once, images: Any) -> float:
    start = time.perf_counter()
    entry(images)
    return time.perf_counter() - start


if __name__ == "__main__":
    typer.run(main)
