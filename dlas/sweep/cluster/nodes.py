"""The machines of a cluster: what they offer, and whether they have the code of this one."""

from __future__ import annotations

import platform
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlas.bench.store import fingerprint
from dlas.bench.store.cache import default_root
from dlas.errors import InputError, listed
from dlas.sweep.cluster.connection import PREFIX, ray

TOOLS = ("apache-tvm", "apache-tvm-ffi", "torch", "onnx", "onnxruntime", "numpy")
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
    """Return the versions that rows depend on, and a digest of this package's code."""
    root = Path(__file__).parents[2]
    digests = fingerprint.file_digests(sorted(root.rglob("*.py")))
    sources = [(str(Path(path).relative_to(root)), digest) for path, digest in digests.items()]
    return {
        "code": fingerprint.key(sources=sources),
        "python": platform.python_version(),
        **fingerprint.versions(TOOLS),
    }


def about() -> dict[str, Any]:
    """Return what a machine tells of itself."""
    return {"code": code(), "cache": str(default_root())}


def told(found: Sequence[ClusterNode]) -> dict[str, dict[str, Any]]:
    """Return what machines tell of themselves, by id; those that do not answer are left out."""
    asked = {
        ray()
        .remote(num_cpus=0, max_retries=0)(about)
        .options(scheduling_strategy=node.placed())
        .remote(): node
        for node in found
    }
    ready, late = ray().wait(list(asked), num_returns=len(asked), timeout=ANSWER_S)
    for work in late:
        ray().cancel(work, force=True)
    answers = {}
    for work in ready:
        try:
            answers[asked[work].id] = ray().get(work)
        except ray().exceptions.RayError:
            continue
    return answers


def faults(found: Sequence[ClusterNode]) -> dict[ClusterNode, str]:
    """Return what is wrong with machines whose code or tools are others than here; nothing of the others."""
    here, answers = code(), told(found)
    wrong = {}
    for node in found:
        there = answers.get(node.id)
        if there is None:
            wrong[node] = "does not answer: is `dlas` installed there?"
        elif differ := [name for name in here if there["code"].get(name) != here[name]]:
            pairs = [f"{name} {there['code'].get(name)} (here {here[name]})" for name in differ]
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
