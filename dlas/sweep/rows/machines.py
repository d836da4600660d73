"""Machines: which rows were measured on the same one, and what to call it.

A machine is its processor's name, family, model and stepping, its vector extensions, its
caches and its cores, and its GPU where that was measured.  Its host's name would not do:
containers get a new one each time they start.  Memory, kernel, governor and clocks change
without making another machine; rows hold them for those who look.

How much of a machine a process may use is a setting and no part of the machine: the
number of threads, which follows from the profile's option, from the affinity (``taskset``)
or from a container's quota.  So rows of one machine with different numbers of threads are
settings of their own, as if the study had given ``threads``.

A fact that a row does not have is unknown, which is no value like others: rows of earlier
versions that lack facts make a machine of their own, whose name says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from dlas.bench.store import fingerprint
from dlas.sweep.rows.labels import amount

CACHES = ("l1d_bytes", "l1i_bytes", "l2_bytes", "l3_bytes")
"""Facts of a machine's caches, each the sum over all of a level."""
MODEL = ("family", "model", "stepping")
IDENTITY = ("cpu", "gpu", "vendor", *MODEL, "architecture", "extensions", *CACHES, "physical_cores")
"""Facts of a row's device that make a machine."""
NAMED = ("machine", "machine_id")
"""Facts of a machine elsewhere, in imported rows: what its name and its fingerprint are."""
FALLBACK = ("title", "name")
"""Facts that stand for a device of which neither processor nor GPU is known."""
SIMULATED = "simulated"
"""The fact of a device that does not exist; names of such machines begin with it."""
DIGITS = 8
"""Hexadecimal digits of a fingerprint."""
VECTORS = (
    ("avx512", "AVX-512"),
    ("avx2", "AVX2"),
    ("avx", "AVX"),
    ("sse4", "SSE4"),
    ("sve", "SVE"),
    ("asimd", "Neon"),
    ("neon", "Neon"),
)
"""Beginnings of extensions and their names, the widest vectors first."""
NOISE = ("(R)", "(TM)", "(r)", "(tm)", " Processor", " CPU")
"""Pieces of a processor's name that tell no two processors apart."""
Facts = Mapping[str, Any]


def machine_facts(device: Facts) -> dict[str, Any]:
    """Return the facts that make a machine, those that are known; empty where the device is unknown.

    Parameters
    ----------
    device : mapping
        As :class:`dlas.sweep.rows.schema.Device`.
    """
    known = device.get("cpu") or device.get("gpu") or device.get("model")
    named: tuple[str, ...] = NAMED if device.get("machine") else IDENTITY if known else FALLBACK
    if is_simulated(device):
        named = (SIMULATED, *FALLBACK)
    facts = {name: device.get(name) for name in named}
    return {name: value for name, value in facts.items() if value is not None}


def is_simulated(device: Facts) -> bool:
    """Return whether nothing was measured on a device, because a law tells its times."""
    return device.get(SIMULATED) is True


def names_simulated(machine: object) -> bool:
    """Return whether a machine's name is one of a simulated device."""
    return isinstance(machine, str) and machine.startswith(f"{SIMULATED}: ")


def with_core_caches(device: dict[str, Any]) -> dict[str, Any]:
    """Return a device with the bytes of cache for each of its cores, which no row older than them has.

    What makes the machine stays as it is, and a device that has them is returned itself.
    """
    cores = device.get("physical_cores")
    if not isinstance(cores, int) or cores < 1:
        return device
    sizes = {name: device.get(name) for name in CACHES}
    of_core = {
        f"{name.removesuffix('_bytes')}_core_bytes": size / cores
        for name, size in sizes.items()
        if isinstance(size, int | float)
    }
    return device if of_core.items() <= device.items() else {**device, **of_core}


def machine_id(device: Facts) -> str | None:
    """Return a machine's fingerprint, the same for equal facts; None where the device is unknown."""
    facts = machine_facts(device)
    if "machine_id" in facts:
        return str(facts["machine_id"])
    return fingerprint.key(**facts)[:DIGITS] if facts else None


def machine_name(device: Facts) -> str | None:
    """Return a machine's short name, such as ``Intel Xeon 6/207/2, AVX-512, 16 cores``.

    The numbers are the processor's family, model and stepping, with ``?`` for one that is unknown.
    """
    facts = machine_facts(device)
    if not facts:
        return None
    if is_simulated(facts):
        return f"{SIMULATED}: {facts.get('title') or facts['name']}"
    if not set(facts) & set(IDENTITY):
        return str(facts.get("machine") or facts.get("title") or facts["name"])
    numbers = "/".join(str(facts.get(name, "?")) for name in MODEL) if set(facts) & set(MODEL) else ""
    processor = _plain(str(facts.get("cpu") or facts.get("vendor") or ""))
    pieces = [facts.get("gpu"), " ".join(filter(None, (processor, numbers))), _vectors(facts)]
    if cores := facts.get("physical_cores"):
        pieces.append(f"{cores} core{'s' if cores != 1 else ''}")
    if not numbers and "extensions" not in facts:
        pieces.append("otherwise unknown")
    return ", ".join(str(piece) for piece in pieces if piece)


def machine_names(devices: Iterable[Facts]) -> dict[str, str]:
    """Return the name of each machine by its fingerprint; those that share a name have theirs in it."""
    by_id = {own: machine_name(device) or own for device in devices if (own := machine_id(device))}
    shared = Counter(by_id.values())
    return {own: f"{name} ({own})" if shared[name] > 1 else name for own, name in by_id.items()}


def differences(there: Facts, here: Facts) -> list[str]:
    """Return in which facts two machines differ, of those that are known of both, in words."""
    ours, theirs = machine_facts(here), machine_facts(there)
    different = [name for name in ours if name in theirs and ours[name] != theirs[name]]
    return [_difference(name, theirs[name], ours[name]) for name in different]


def with_threads(hardware: str, threads: int) -> str:
    """Return a hardware's label with its number of threads, as if the study had given it."""
    if "threads=" in hardware:
        return hardware
    name, _, options = hardware.removesuffix(")").partition("(")
    given = sorted([*filter(None, options.split(", ")), f"threads={threads}"])
    return f"{name}({', '.join(given)})"


def _difference(name: str, there: Any, here: Any) -> str:
    if name == "extensions":
        lacking = {"only there": {*there} - {*here}, "only here": {*here} - {*there}}
        told = [f"{where}: {', '.join(sorted(flags))}" for where, flags in lacking.items() if flags]
        return f"extensions ({'; '.join(told)})"
    if name in CACHES:
        there, here = amount(there, "B"), amount(here, "B")
    return f"{name} ({there!s} there, {here!s} here)"


def _plain(name: str) -> str:
    """Return a processor's name without marks and words that every name has."""
    for piece in NOISE:
        name = name.replace(piece, "")
    return " ".join(name.split())


def _vectors(facts: Facts) -> str:
    """Return the name of the widest vector extension, nothing where extensions are unknown."""
    known = facts.get("extensions") or ()
    return next((name for start, name in VECTORS if any(str(flag).startswith(start) for flag in known)), "")
