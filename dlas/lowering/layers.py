"""The layers of a build as a row writes them: one mapping a convolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from dlas.convolution import Conv


def describe_layer(
    conv: Conv,
    algorithm: str,
    nonzeros: int,
    tail: Sequence[str] = (),
    declined: str | None = None,
) -> dict[str, Any]:
    """Return one convolution as a mapping for a row.

    Parameters
    ----------
    conv : Conv
    algorithm : str
        The part that computes it, or ``library`` for a runtime's own kernel.
    nonzeros : int
        Weights that are not zero.
    tail : sequence of str
        Operators computed in the same kernel.
    declined : str, optional
        Why the algorithm asked for does not compute it.
    """
    convolution = asdict(conv)
    types = {kind: convolution.pop(f"{kind}_type") for kind in ("input", "weight", "accumulator", "output")}
    return {
        **convolution,
        "p": conv.p,
        "q": conv.q,
        "types": types,
        "algorithm": algorithm,
        "declined": declined,
        "macs": conv.macs,
        "nonzeros": nonzeros,
        "tail": list(tail),
    }
