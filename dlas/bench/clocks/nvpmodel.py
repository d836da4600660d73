"""Power modes of a Jetson, which cap its clocks (nvpmodel)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dlas.bench.measuring.kernel_files import read_text

MODES = "etc/nvpmodel.conf"
ASK_S = 10.0
UNCAPPED_HZ = 2**31 - 1
"""What this tool writes for no cap, besides 0 and -1."""
DOMAINS = {"CPU": ("cpu", 1e3), "GPU": ("gpu", 1.0), "EMC": ("memory", 1.0)}
"""By the start of a clock's name in the file: its domain, and the Hz of a unit."""


@dataclass(frozen=True)
class PowerMode:
    """The power mode that a Jetson is in."""

    name: str
    caps_hz: Mapping[str, float] = field(default_factory=dict)
    """The highest clock by domain, of those that it caps."""


def find_power_mode(root: Path, ask: Callable[[], str | None] | None = None) -> PowerMode | None:
    """Return the power mode; None on what is no Jetson.

    Parameters
    ----------
    root : Path
        The folder that holds etc.
    ask : callable, optional
        Returns what ``nvpmodel -q`` prints, None where there is no such program.
    """
    modes = read_text(root / MODES)
    if modes is None:
        return None
    named = re.search(r"^NV Power Mode:\s*(\S+)", (ask or _asked)() or "", re.MULTILINE)
    return PowerMode(named[1], _caps_hz(modes, named[1])) if named else None


def _caps_hz(modes: str, name: str) -> dict[str, float]:
    """Return what a mode caps; of several clusters of processors, the lowest."""
    caps: dict[str, float] = {}
    inside = False
    for line in modes.splitlines():
        if line.startswith("<"):
            inside = bool(re.search(rf"POWER_MODEL .*NAME={re.escape(name)}\s", line))
        cap = re.fullmatch(r"(CPU|GPU|EMC)\w* MAX_FREQ (\d+)\s*", line)
        if inside and cap and 0 < int(cap[2]) < UNCAPPED_HZ:
            domain, unit = DOMAINS[cap[1]]
            caps[domain] = min(unit * int(cap[2]), caps.get(domain, float("inf")))
    return caps


def _asked() -> str | None:
    try:
        done = subprocess.run(["nvpmodel", "-q"], capture_output=True, text=True, timeout=ASK_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout
