"""The clocks of this device that can be set."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from dlas.bench.clocks.bpmp import find_emc
from dlas.bench.clocks.cpufreq import find_cpu_clocks
from dlas.bench.clocks.devfreq import find_devfreq
from dlas.bench.clocks.domain import ClockDomain
from dlas.bench.clocks.nvml import find_nvml


def find_clocks(processors: Collection[int], on_gpu: bool, root: Path = Path("/")) -> dict[str, ClockDomain]:
    """Return the clocks by domain, ``cpu``, ``gpu`` and ``memory``, without those that cannot be set.

    Parameters
    ----------
    processors : collection of int
        The logical processors in use.
    on_gpu : bool
        Whether a GPU computes: a card's own memory then stands for the processors' one.
    root : Path, optional
        The folder that holds sys.
    """
    card = on_gpu and root == Path("/")
    found = {
        "cpu": find_cpu_clocks(root, processors),
        "gpu": find_devfreq(root, "gpu") or (find_nvml("gpu") if card else None),
        "memory": find_emc(root) or find_devfreq(root, "memory") or (find_nvml("memory") if card else None),
    }
    return {name: domain for name, domain in found.items() if domain is not None}
