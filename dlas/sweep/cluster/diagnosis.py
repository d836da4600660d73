"""What ``dlas doctor --ray`` tells of a cluster."""

from __future__ import annotations

from dlas.bench.measuring.doctor import SystemCheck
from dlas.sweep.cluster.connection import HOW, joined
from dlas.sweep.cluster.nodes import faults, nodes


def examine(address: str) -> list[SystemCheck]:
    """Return a check for each machine of the cluster at an address, and one of what they offer.

    Raises
    ------
    InputError
        If there is no cluster.
    """
    with joined(address):
        found = nodes()
        wrong = faults(found)
    checks = [
        SystemCheck(
            node.name,
            "fail" if node in wrong else "ok",
            wrong.get(node) or f"{node.cores} cores; offers {', '.join(node.hardware) or 'no hardware'}",
            "install the same versions there as here" if node in wrong else "",
        )
        for node in found
    ]
    offered = sorted({name for node in found for name in node.hardware})
    measures = ", ".join(offered) or "none: nothing can be measured"
    return [*checks, SystemCheck("hardware", "ok" if offered else "warn", measures, "" if offered else HOW)]
