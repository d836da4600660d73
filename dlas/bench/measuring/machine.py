"""The machine as its kernel shows it: processors, caches, clocks, limits and their use.

Everything is read from /proc and /sys under a root that tests replace.  Values that
the kernel does not show are None, never a guess.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlas.bench.measuring.kernel_files import read_number, read_text

VECTOR_EXTENSION = re.compile(r"(sse4|avx|fma|amx|asimd|sve)\w*|f16c|neon|sme2?|i8mm|bf16")
"""Processor flags of vector instructions."""
ARM_VENDORS = {"0x41": "Arm", "0x4e": "NVIDIA", "0x51": "Qualcomm", "0x61": "Apple", "0xc0": "Ampere"}
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def use_threads(threads: int) -> None:
    """Fix the number of threads of every numerical library in this process.

    Call it before TVM's first kernel: TVM reads the variables once.  By default TVM
    would also pin the main thread, and runtimes that start later would inherit one
    core for all their threads.
    """
    os.environ["TVM_BIND_THREADS"] = "0"
    for library in ("TVM", "OMP", "MKL", "OPENBLAS", "NUMEXPR"):
        os.environ[f"{library}_NUM_THREADS"] = str(threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)


def pin_threads() -> None:
    """Pin each thread of this process to a processor of its own, where there are as many of both.

    Two threads that share a core would halve the speed and hide a good candidate.
    """
    threads = sorted(int(name) for name in os.listdir("/proc/self/task"))
    processors = sorted(os.sched_getaffinity(0))
    if 1 < len(threads) == len(processors):
        for thread, processor in zip(threads, processors, strict=True):
            os.sched_setaffinity(thread, {processor})


@dataclass(frozen=True)
class Usage:
    """Processor time since boot, seconds summed over some processors."""

    busy_s: float
    steal_s: float


@dataclass(frozen=True)
class Machine:
    """A view of the machine."""

    root: Path = Path("/")
    """The folder that holds proc and sys."""

    def allowed(self) -> tuple[int, ...]:
        """Return the logical processors that this process may run on (its affinity)."""
        status = _table(self._text("proc/self/status") or "")
        listed = processor_numbers(status.get("Cpus_allowed_list", ""))
        return listed or tuple(range(os.cpu_count() or 1))

    def online(self) -> tuple[int, ...]:
        """Return every logical processor that is switched on."""
        return processor_numbers(self._text("sys/devices/system/cpu/online") or "") or self.allowed()

    def cores(self, processors: tuple[int, ...] | None = None) -> list[tuple[int, ...]]:
        """Return physical cores, each as a tuple of its logical processors among ``processors``.

        Faster cores come first, then lower numbers.

        Parameters
        ----------
        processors : tuple of int, optional
            By default all that this process may run on.
        """
        among = processors or self.allowed()
        cores = {tuple(p for p in self._siblings(cpu) if p in among) or (cpu,) for cpu in among}
        return sorted(cores, key=lambda core: (*(-value for value in self.speed(core[0])), core))

    def quota(self) -> float | None:
        """Return the processors that control groups grant, may be fractional; None where unlimited."""
        quotas = [quota for folder in self._groups() if (quota := self._quota_of(folder)) is not None]
        return min(quotas, default=None)

    def most_threads(self) -> int:
        """Return the number of threads that can run at once: one for each usable core, within the quota."""
        quota = self.quota()
        cores = len(self.cores())
        return cores if quota is None else max(1, min(cores, int(quota)))

    def usage(self, processors: tuple[int, ...]) -> Usage | None:
        """Return the time that the processors were busy, and the time that a hypervisor took from them."""
        tick = os.sysconf("SC_CLK_TCK")
        names = {f"cpu{number}" for number in processors}
        lines = [line.split() for line in (self._text("proc/stat") or "").splitlines()]
        rows = [[int(value) for value in line[1:]] for line in lines if line and line[0] in names]
        if not rows or any(len(row) < 8 for row in rows):
            return None
        # user, nice, system, idle, iowait, irq, softirq, steal: idle and iowait are not busy.
        busy = sum(row[0] + row[1] + row[2] + row[5] + row[6] for row in rows)
        return Usage(busy / tick, sum(row[7] for row in rows) / tick)

    def waited(self) -> dict[str, float]:
        """Return, by thread of this process, the seconds that it was ready to run without a processor."""
        waits = {}
        for folder in self._folders("proc/self/task"):
            fields = (read_text(folder / "schedstat") or "").split()
            if len(fields) == 3:
                waits[folder.name] = int(fields[1]) / 1e9
        return waits

    def children_s(self) -> float:
        """Return the processor time of the processes that this one has started, and that those have.

        Of those that have ended, the time counts that their parent has asked for.
        """
        tick, own = os.sysconf("SC_CLK_TCK"), str(os.getpid())
        parents, spent = {}, {}
        for folder in self._folders("proc"):
            if folder.name.isdecimal() and (stat := read_text(folder / "stat")):
                fields = stat.rpartition(")")[2].split()
                parents[folder.name] = fields[1]
                # utime and stime of the process, and those of its own children that have ended.
                spent[folder.name] = sum(map(int, fields[11:15])) / tick
        found, total = {own}, 0.0
        for process in sorted(parents, key=int):
            if parents[process] in found:
                found.add(process)
                total += spent[process]
        return total

    def load_average(self) -> float | None:
        """Return the mean number of tasks running or waiting over the last minute."""
        text = self._text("proc/loadavg")
        return float(text.split()[0]) if text else None

    def clocks(self) -> dict[str, Any]:
        """Return governor, clock limits in Hz and whether boost is on, of the fastest usable core."""
        number = self.cores()[0][0]
        folder = f"sys/devices/system/cpu/cpu{number}/cpufreq"
        return {
            "governor": self._text(f"{folder}/scaling_governor"),
            "clock_min_hz": _hertz(self._text(f"{folder}/scaling_min_freq")),
            "clock_max_hz": _hertz(self._text(f"{folder}/scaling_max_freq")),
            "clock_limit_hz": _hertz(self._text(f"{folder}/cpuinfo_max_freq")),
            "boost": self._boost(),
        }

    def frequencies(self, processors: tuple[int, ...]) -> list[float]:
        """Return the current clock frequencies of the processors in Hz, without those that are not shown."""
        cpus = self.root / "sys/devices/system/cpu"
        read = (read_number(cpus / f"cpu{cpu}/cpufreq/scaling_cur_freq") for cpu in processors)
        return [kilohertz * 1e3 for kilohertz in read if kilohertz is not None]

    def caches(self) -> dict[str, int | None]:
        """Return the bytes of each cache level, summed over the machine's distinct caches."""
        sizes: dict[str, int] = {}
        seen = set()
        for number in self.online():
            for folder in self._folders(f"sys/devices/system/cpu/cpu{number}/cache"):
                level, kind = read_text(folder / "level"), read_text(folder / "type")
                shared = read_text(folder / "shared_cpu_list") or str(number)
                size = _bytes(read_text(folder / "size"))
                if level is None or size is None or (level, kind, shared) in seen:
                    continue
                seen.add((level, kind, shared))
                letter = {"Data": "d", "Instruction": "i"}.get(kind or "", "")
                name = f"l{level}{letter}_bytes"
                sizes[name] = sizes.get(name, 0) + size
        return {name: sizes.get(name) for name in ("l1d_bytes", "l1i_bytes", "l2_bytes", "l3_bytes")}

    def flags(self) -> tuple[str, ...]:
        """Return the processor's feature flags, empty where the kernel lists none."""
        cpu = self._cpuinfo()
        return tuple((cpu.get("flags") or cpu.get("Features") or "").split())

    def memory_bytes(self) -> int | None:
        """Return the size of the memory, or the limit of the control groups if that is lower."""
        total = _bytes(_table(self._text("proc/meminfo") or "").get("MemTotal"))
        limits = [_bytes(read_text(limit)) for limit, _ in self._memory_files()]
        return min((size for size in (total, *limits) if size is not None), default=None)

    def free_memory(self) -> float:
        """Return the share of the memory that new processes could use, 1 if the kernel does not show it.

        The minimum over the machine and its control groups; file caches count as available.
        """
        table = _table(self._text("proc/meminfo") or "")
        total, free = (_bytes(table.get(name)) for name in ("MemTotal", "MemAvailable"))
        shares = [free / total] if total and free is not None else []
        for limit_file, used_file in self._memory_files():
            limit, used = _bytes(read_text(limit_file)), _bytes(read_text(used_file))
            if limit and used is not None:
                lines = (read_text(used_file.with_name("memory.stat")) or "").splitlines()
                kinds = dict(line.split() for line in lines)
                cached = int(kinds.get("total_inactive_file") or kinds.get("inactive_file") or 0)
                shares.append(1 - (used - cached) / limit)
        return min(shares, default=1.0)

    def describe(self) -> dict[str, Any]:
        """Return the machine in full, as it is written into a row."""
        cpu = self._cpuinfo()
        flags = self.flags()
        implementer = cpu.get("CPU implementer", "")
        return {
            "cpu": cpu.get("model name"),
            "vendor": cpu.get("vendor_id") or ARM_VENDORS.get(implementer, implementer or None),
            "family": cpu.get("cpu family") or cpu.get("CPU architecture"),
            "model": cpu.get("model") or cpu.get("CPU part"),
            "stepping": cpu.get("stepping") or cpu.get("CPU revision"),
            "architecture": platform.machine(),
            "physical_cores": len(self.cores(self.online())),
            "logical_cores": len(self.online()),
            "allowed_cores": len(self.cores()),
            "quota_cores": self.quota(),
            **self.caches(),
            "extensions": sorted(flag for flag in flags if VECTOR_EXTENSION.fullmatch(flag)),
            "memory_bytes": self.memory_bytes(),
            "kernel": self._text("proc/sys/kernel/osrelease"),
            **self.clocks(),
            # Only x86 shows it in its flags.
            "hypervisor": "hypervisor" in flags if "vendor_id" in cpu else None,
        }

    def _text(self, path: str) -> str | None:
        return read_text(self.root / path)

    def _folders(self, path: str) -> list[Path]:
        try:
            return sorted(entry for entry in (self.root / path).iterdir() if entry.is_dir())
        except OSError:
            return []

    def _cpuinfo(self) -> dict[str, str]:
        """Return the entry of the fastest usable core: a board's first core may be a little one."""
        entries = [_table(text) for text in (self._text("proc/cpuinfo") or "").split("\n\n")]
        fastest = str(self.cores()[0][0])
        return next((entry for entry in entries if entry.get("processor") == fastest), entries[0])

    def _siblings(self, number: int) -> tuple[int, ...]:
        topology = f"sys/devices/system/cpu/cpu{number}/topology"
        listed = self._text(f"{topology}/core_cpus_list") or self._text(f"{topology}/thread_siblings_list")
        return processor_numbers(listed or "") or (number,)

    def speed(self, number: int) -> tuple[int, int]:
        """Return numbers that are equal for cores of one kind and larger for faster ones, 0 if unknown."""
        folder = f"sys/devices/system/cpu/cpu{number}/cpufreq"
        return self._capacity(number), int(self._text(f"{folder}/cpuinfo_max_freq") or 0)

    def _capacity(self, number: int) -> int:
        return int(self._text(f"sys/devices/system/cpu/cpu{number}/cpu_capacity") or 0)

    def _boost(self) -> bool | None:
        cpu = "sys/devices/system/cpu"
        if (off := self._text(f"{cpu}/intel_pstate/no_turbo")) is not None:
            return off == "0"
        on = self._text(f"{cpu}/cpufreq/boost")
        return None if on is None else on == "1"

    def _groups(self, controller: str = "cpu") -> Iterator[Path]:
        """Yield the folders of this process's control group and of the groups above it."""
        for line in (self._text("proc/self/cgroup") or "").splitlines():
            _, names, path = line.split(":", 2)
            if names and controller not in names.split(","):
                continue
            mount = self.root / "sys/fs/cgroup" / (names or "")
            group = Path(path.lstrip("/"))
            for above in (group, *group.parents):
                yield mount / above
                if not names:  # if both versions are mounted, version 2 has a folder of its own
                    yield mount / "unified" / above

    def _memory_files(self) -> Iterator[tuple[Path, Path]]:
        """Yield the files with the memory limit and the usage of each control group."""
        for folder in self._groups():
            yield folder / "memory.max", folder / "memory.current"
        for folder in self._groups("memory"):
            yield folder / "memory.limit_in_bytes", folder / "memory.usage_in_bytes"

    def _quota_of(self, folder: Path) -> float | None:
        """Return the processors that one control group grants."""
        granted = (read_text(folder / "cpu.max") or "").split()
        if len(granted) != 2:
            old = (read_text(folder / "cpu.cfs_quota_us"), read_text(folder / "cpu.cfs_period_us"))
            granted = [value for value in old if value is not None]
        if len(granted) != 2 or granted[0] in ("max", "-1"):
            return None
        return int(granted[0]) / int(granted[1])


def _table(text: str) -> dict[str, str]:
    """Return ``name : value`` lines as a mapping; the first line of a name wins."""
    table: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            table.setdefault(name.strip(), value.strip())
    return table


def processor_numbers(text: str) -> tuple[int, ...]:
    """Return a kernel list such as ``0-3,8`` as numbers."""
    numbers: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return tuple(numbers)


def _bytes(text: str | None) -> int | None:
    """Return a size such as ``32K`` or ``1234 kB`` in bytes; None for ``max`` and for None."""
    digits = (text or "").rstrip("kKMGB ")
    if text is None or not digits.isdigit():
        return None
    return int(digits) * _UNITS[text[len(digits) :].strip().upper().removesuffix("B")]


def _hertz(text: str | None) -> float | None:
    """Return kHz as Hz."""
    return int(text) * 1e3 if text and text.isdigit() else None
