"""The machines of a cluster: what they offer, and whether they have the code of this one."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlas.bench.store import fingerprint
from dlas.errors import InputError, listed
from dlas.sweep.cluster.connection import PREFIX, ray

TOOLS = ("apache-tvm", "apache-tvm-ffi", "torch", "onnx", "onnxruntime", "numpy")
PROFILES = "hardware_profiles"
ANSWER_S = 60.0
"""How long a machine may take to tell of itself: it imports what that takes."""


@dataclass(frozen=True)
class ClusterNode:
    """A machine of a cluster."""

    id: str
    """Ray's, of this start of it."""
    address: str
    cores: int
    hardware: tuple[str, ...]
    """Names of the hardware that it offers."""

    @property
    def name(self) -> str:
        """Its address with the beginning of its id, for machines with several."""
        return f"{self.address} ({self.id[:6]})"

    def placed(self) -> Any:
        """Return what has Ray run something on it and nowhere else."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(self.id, soft=False)


def nodes() -> list[ClusterNode]:
    """Return the machines that are there now."""
    found = []
    for each in ray().nodes():
        if each["Alive"]:
            resources = each["Resources"]
            hardware = sorted(name.removeprefix(PREFIX) for name in resources if name.startswith(PREFIX))
            address = str(each["NodeManagerAddress"])
            found.append(ClusterNode(each["NodeID"], address, int(resources.get("CPU", 0)), tuple(hardware)))
    return sorted(found, key=lambda node: (node.address, node.id))


def code() -> dict[str, str | None]:
    """Return the versions that rows depend on, and a digest of this package's code and hardware profiles."""
    root = Path(__file__).parents[2]
    # Editable installs link to some folders, which `rglob` would leave out.
    files = [Path(folder, name) for folder, _, names in os.walk(root, followlinks=True) for name in names]
    own = [file for file in files if file.suffix == ".py" or file.parent.name == PROFILES]
    digests = fingerprint.file_digests(own)
    return {
        "code": fingerprint.key(
            sources=sorted((str(file.relative_to(root)), digests[str(file)]) for file in own)
        ),
        "python": platform.python_version(),
        **fingerprint.versions(TOOLS),
    }


def _codes(found: Sequence[ClusterNode]) -> dict[str, dict[str, str | None]]:
    """Return what :func:`code` is on machines, by id; those that do not answer are left out."""
    ask = ray().remote(num_cpus=0, max_retries=0)(code)
    asked = {ask.options(scheduling_strategy=node.placed()).remote(): node for node in found}
    ready, late = ray().wait(list(asked), num_returns=len(asked), timeout=ANSWER_S)
    for work in late:
        ray().cancel(work, force=True)
    answers = {}
    for work in ready:
        with suppress(ray().exceptions.RayError):
            answers[asked[work].id] = ray().get(work)
    return answers


def faults(found: Sequence[ClusterNode]) -> dict[ClusterNode, str]:
    """Return what is wrong with machines whose code or tools are others than here; nothing of the others."""
    here, answers = code(), _codes(found)
    wrong = {}
    for node in found:
        there = answers.get(node.id)
        if there is None:
            wrong[node] = "does not answer: is `dlas` installed there?"
        elif differ := [name for name in here if there.get(name) != here[name]]:
            pairs = [f"{name} {there.get(name)} (here {here[name]})" for name in differ]
            wrong[node] = f"has another version: {', '.join(pairs)}"
    return wrong


def check_alike(found: Sequence[ClusterNode]) -> None:
    """Refuse machines whose code or tools are others than here.

    Raises
    ------
    InputError
        Names them, and what differs.
    """
    if wrong := faults(found):
        raise InputError("\n".join(f"{node.name} {fault}" for node, fault in wrong.items()))


def check_offered(hardware: Collection[str], found: Sequence[ClusterNode]) -> None:
    """Refuse hardware that no machine offers.

    Raises
    ------
    InputError
    """
    offered = {name for node in found for name in node.hardware}
    missing = sorted(set(hardware) - offered)
    if missing:
        raise InputError(
            f"no machine of the cluster offers {', '.join(map(repr, missing))} (offered: "
            f"{listed(sorted(offered)) or 'nothing'}); a machine that has it joins with: ray start "
            f"--address=HOST:PORT --resources='{{\"{PREFIX}{missing[0]}\": 1}}'"
        )
