"""Clocks of processors, which cpufreq sets by policy: cores that share one clock."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable
from pathlib import Path

from dlas.bench.clocks.domain import ClockDomain, ClockSteps
from dlas.bench.clocks.guard import ClockSetting
from dlas.bench.clocks.limits import LimitFiles

POLICIES = "sys/devices/system/cpu/cpufreq"


class CpuClocks(ClockDomain):
    """The clocks of the policies that hold the cores in use.

    Parameters
    ----------
    root : Path
        The folder that holds sys.
    policies : list of str
        Their names; at least one.
    """

    name = "cpu"

    def __init__(self, root: Path, policies: list[str]) -> None:
        self._policies = [_Policy(root, policy) for policy in policies]

    def steps_hz(self) -> ClockSteps:
        """Return the steps that all policies have."""
        return functools.reduce(ClockSteps.shared, (policy.steps_hz() for policy in self._policies))

    def plan(self, hz: float) -> list[ClockSetting]:
        """Return the changes of every policy, one after the other."""
        return [setting for policy in self._policies for setting in policy.plan(hz)]

    def applied_hz(self) -> tuple[float, ...]:
        """Return the upper limit of each policy."""
        return _known(policy.files.number("scaling_max_freq") for policy in self._policies)

    def observed_hz(self) -> tuple[float, ...]:
        """Return the clock of each policy: by the hardware where root may read that, else the kernel's."""
        return _known(
            policy.files.number("cpuinfo_cur_freq") or policy.files.number("scaling_cur_freq")
            for policy in self._policies
        )


class _Policy:
    """One policy; its files are in kHz."""

    def __init__(self, root: Path, name: str) -> None:
        limits = ("scaling_min_freq", "scaling_max_freq")
        governors = ("scaling_governor", "scaling_available_governors")
        self.files = LimitFiles(root, f"{POLICIES}/{name}", *limits, *governors)

    def steps_hz(self) -> ClockSteps:
        """Return what the kernel lists, or all between its limits: intel_pstate and amd-pstate list none."""
        listed = self.files.numbers("scaling_available_frequencies")
        if listed:
            return ClockSteps.of(1e3 * khz for khz in listed)
        ends = [self.files.number(name) for name in ("cpuinfo_min_freq", "cpuinfo_max_freq")]
        return ClockSteps(tuple(1e3 * khz for khz in ends if khz is not None), between=None not in ends)

    def plan(self, hz: float) -> list[ClockSetting]:
        """Return the changes; the clock that userspace has set comes back with the governor, or by itself."""
        khz = str(round(hz / 1e3))
        settings = self.files.plan(khz)
        if "userspace" in (self.files.text(self.files.governors) or "").split():
            own = self.files.text(self.files.governor) == "userspace"
            found = self.files.text("scaling_setspeed") if own else None
            settings.append(self.files.setting("scaling_setspeed", found, khz))
        return settings


def find_cpu_clocks(root: Path, processors: Collection[int]) -> CpuClocks | None:
    """Return the clocks of the policies that hold any of the processors; None where the kernel shows none."""
    found = []
    for folder in (root / POLICIES).glob("policy*"):
        cores = LimitFiles(root, f"{POLICIES}/{folder.name}", "", "", "", "").numbers("related_cpus")
        if set(cores) & set(processors):
            found.append((min(cores), folder.name))
    return CpuClocks(root, [name for _, name in sorted(found)]) if found else None


def _known(khz: Iterable[int | None]) -> tuple[float, ...]:
    return tuple(1e3 * each for each in khz if each is not None)
