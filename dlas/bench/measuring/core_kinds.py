"""Big and little cores: which cores of a machine are of its fast kind, and which of its slow one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from dlas.bench.measuring.kernel_files import read_text
from dlas.bench.measuring.machine import Machine, processor_numbers

Core = tuple[int, ...]
"""The logical processors of a physical core."""
SAME_KIND = 1.15
"""Cores whose speeds differ by less are of one kind, where the kernel names none: processors of one kind
may differ in their highest frequency, since each core is tested on its own."""
HYBRID = ("cpu_core", "cpu_atom", "cpu_lowpower")
"""Kinds of cores of Intel's processors, by the name of their counters."""


def big_and_little(machine: Machine) -> tuple[list[Core], list[Core]]:
    """Return the usable cores of the fast kind and those of the slow one; none of these if all are alike.

    Kinds are those that the kernel names, and otherwise steps of speed.  Where there are more than two,
    as on a phone's processor, the largest step parts big from little.
    """
    cores = machine.cores()
    speeds = _speeds(machine, cores)
    kinds = {core: _kind(machine, core[0]) for core in cores}
    named = None not in kinds.values() and len(set(kinds.values())) > 1
    fastest: dict[object, int] = {}
    for core in cores:
        kind = kinds[core] if named else speeds[core]
        fastest[kind] = max(speeds[core], fastest.get(kind, 0))
    ordered = sorted(set(fastest.values()), reverse=True)
    steps = {below: above / below for above, below in itertools.pairwise(ordered) if below}
    if max(steps.values(), default=1.0) <= (1.0 if named else SAME_KIND):
        return cores, []
    slow = max(steps, key=lambda below: steps[below])
    little = [core for core in cores if (fastest[kinds[core]] if named else speeds[core]) <= slow]
    return [core for core in cores if core not in little], little


def _speeds(machine: Machine, cores: Sequence[Core]) -> dict[Core, int]:
    """Return the capacity of each core, or where these are all alike its highest frequency."""
    both = {core: machine.speed(core[0]) for core in cores}
    differ = len({capacity for capacity, _ in both.values()}) > 1
    return {core: capacity if differ else frequency for core, (capacity, frequency) in both.items()}


def _kind(machine: Machine, processor: int) -> str | None:
    """Return the kernel's name for the kind of a core: Arm's number of the design, or Intel's counters."""
    devices = machine.root / "sys/devices"
    register = read_text(devices / f"system/cpu/cpu{processor}/regs/identification/midr_el1")
    if register is not None:
        value = int(register, 16)
        return f"{value >> 24:#x} {value >> 4 & 0xFFF:#x}"  # its maker and its design, without the revision
    for name in HYBRID:
        if processor in processor_numbers(read_text(devices / name / "cpus") or ""):
            return name
    return None
