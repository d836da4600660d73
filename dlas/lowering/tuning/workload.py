"""Workloads: the computation of a kernel, without the names of its network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.s_tir import meta_schedule as ms

from dlas.bench.store import fingerprint
from dlas.lowering.kernels.kernel import Kernel, run_passes
from dlas.stack import BFLOAT16_BITS, Array, Decisions, Target, to_bfloat16

MAIN = "main"
"""Name of the one function of a workload, in traces too."""
SHORT = {
    "SamplePerfectTile": "tile",
    "SamplePartitionedTile": "tile",
    "SampleCategorical": "choice",
    "SampleComputeLocation": "place",
}
"""What :func:`short_form` calls the instructions that sample."""


@dataclass(frozen=True)
class Workload:
    """A computation to search a fast schedule for."""

    kernel: Kernel
    """One of the kernels that compute it."""
    module: tvm.IRModule
    """Its PrimFunc alone, as ``main``."""
    digest: str
    """Equal for kernels whose schedules can be exchanged."""

    @classmethod
    def of(cls, kernel: Kernel) -> Workload:
        """Return the workload of a kernel."""
        function = kernel.function.without_attr("op_pattern").with_attr("global_symbol", MAIN)
        # The structure leaves names out, but traces find blocks by their names.
        structure = f"{tvm_ffi.structural_hash(function):x}"
        digest = fingerprint.key(
            structure=structure, blocks=_block_names(function), takes=_arguments(function)
        )
        return cls(kernel, tvm.IRModule({MAIN: function}), digest)

    def apply(self, decisions: Decisions, target: Target) -> s_tir.Schedule:
        """Return a schedule that follows a point of the kernel's own space."""
        schedule = s_tir.Schedule(self.module)
        self.kernel.apply(schedule, target, decisions)
        return schedule

    def replay(self, trace: list[Any]) -> s_tir.Schedule:
        """Return a schedule that follows a trace in MetaSchedule's format."""
        schedule = s_tir.Schedule(self.module)
        s_tir.Trace.apply_json_to_schedule(trace, schedule)
        return schedule

    def finish(self, schedule: s_tir.Schedule, target: Target) -> tirx.PrimFunc:
        """Return the scheduled PrimFunc after the kernel's own passes."""
        return run_passes(self.kernel, schedule.mod, target)[MAIN].with_attr("tirx.is_scheduled", True)

    def trace_of(self, schedule: s_tir.Schedule) -> list[Any]:
        """Return a schedule's trace as plain lists."""
        record = ms.database.TuningRecord(schedule.trace, ms.database.Workload(self.module))
        try:
            trace: list[Any] = record.as_json()[0]
        except TypeError:  # it takes no index maps, which a trace by itself writes as text
            trace = _plain(schedule.trace.as_json())
        return trace

    def arguments(self, seed: int = 0) -> list[Array]:
        """Return arguments for the PrimFunc: random arrays, or those of the kernel; output last."""
        draw = np.random.default_rng(seed)
        arrays = [_random(draw, shape, np.dtype(name)) for shape, name in _arguments(self.module[MAIN])]
        real = self.kernel.arguments()
        if real is not None:
            arrays[1 : 1 + len(real)] = [np.ascontiguousarray(array) for array in real]
        return arrays

    def about(self) -> dict[str, Any]:
        """Return a description for people, with the keys of a row's layer."""
        omitted = ("kernel", "declined", "nonzeros")
        return {name: value for name, value in self.kernel.describe().items() if name not in omitted}


def short_form(trace: list[Any]) -> str:
    """Return the sampled decisions of a trace, in order: ``tile 1x4x2x8, tile 2x32, choice 2, place -1``."""
    instructions, sampled = trace
    pieces = []
    for number, decision in sampled:
        name = instructions[number][0]
        value = "x".join(map(str, decision)) if isinstance(decision, list) else str(decision)
        pieces.append(f"{SHORT.get(name, name)} {value}")
    return ", ".join(pieces)


def _plain(value: Any) -> Any:
    """Return nested lists with Python's numbers for TVM's."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value.value if isinstance(value, tirx.IntImm | tirx.FloatImm) else value


def _random(draw: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if np.issubdtype(dtype, np.floating):
        return draw.standard_normal(shape).astype(dtype)
    if dtype == BFLOAT16_BITS:
        return to_bfloat16(draw.standard_normal(shape))
    # Sums of products of wider integers would overflow.
    low, high = max(np.iinfo(dtype).min, -128), min(np.iinfo(dtype).max, 127)
    return draw.integers(low, high, shape, dtype, endpoint=True)


def _arguments(function: tirx.PrimFunc) -> list[tuple[tuple[int, ...], str]]:
    """Return the shape and type of each argument of a PrimFunc."""
    infos = ms.arg_info.ArgInfo.from_prim_func(function)
    return [(tuple(map(int, info.shape)), str(info.dtype)) for info in infos]


def _block_names(function: tirx.PrimFunc) -> list[str]:
    names: list[str] = []
    tvm_ffi.structural_walk(function.body, (s_tir.SBlock, lambda block: names.append(block.name_hint)))
    return names
