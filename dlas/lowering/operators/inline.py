"""Inline elementwise stages into the stages that read them."""

from __future__ import annotations

import contextlib

from tvm import s_tir
from tvm.s_tir import SBlock, Schedule

from dlas.lowering.operators.blocks import branches, is_costly, reduces


def inline_elementwise(schedule: Schedule) -> None:
    """Inline elementwise stages where that repeats no costly work."""
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    for block in blocks[:-1]:
        readers = [schedule.get(reader) for reader in schedule.get_consumers(block)]
        if not any(_better_apart(schedule.get(block), reader) for reader in readers):
            with contextlib.suppress(s_tir.ScheduleError):
                schedule.compute_inline(block)


def _better_apart(block: SBlock, reader: SBlock) -> bool:
    """Whether a stage should not be computed where it is read.

    The condition of a padding stage would be tested for every term of a reduction that
    reads it, which also keeps the reduction from being vectorised.  Functions like tanh
    become formulas that repeat their argument, so that one nested in another grows
    exponentially.
    """
    if reduces(reader):
        return branches(block) or is_costly(block)
    return is_costly(block) and is_costly(reader)
