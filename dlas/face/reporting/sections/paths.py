"""Paths of flexible networks: what they save, and the Pareto sets of each place."""

from __future__ import annotations

from dlas.analysis.paths import FEWEST, changes, paths_of, places
from dlas.face.reporting.blocks import Absent, Block, Section
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections.path_figures import figures
from dlas.face.tables.paths import pareto_sets, set_changes


def section(context: Context) -> Section | Absent:
    """Return which paths are worth taking, and what that depends on.

    References
    ----------
    J. Clemons et al., "Augmenting Legacy Networks for Flexible Inference", Figures 1 to 4, 6 and 7.
    """
    title = "Paths of flexible networks"
    found = paths_of(context.points)
    if found.empty or places(found)["paths"].max() < FEWEST:
        return Absent(title, f"{FEWEST} timed paths of a flexible network that differ in nothing else")
    lead = (
        "A path takes the network's own phase for a 0 and the shallow one for a 1. It is in the Pareto set "
        "where every path that is at least as accurate is surely slower; where intervals overlap, that is "
        "open."
    )
    sets = places(found)
    blocks: list[Block] = [*figures(context, found), pareto_sets(sets, context.filters)]
    if len(changed := changes(found)):
        blocks.append(set_changes(sets, changed, context.filters))
    return Section("paths", title, lead, blocks)
