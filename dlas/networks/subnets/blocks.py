"""The names of blocks in Once-for-All's tables of latencies, read back to what they name."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from dlas.networks.subnets.shapes import Block, halved

NAMED = re.compile(
    r"(?P<kind>expanded_conv|Conv|Conv_1|Conv_2|AvgPool2D|Logits)"
    r"-input:(?P<h>\d{1,4})x(?P<w>\d{1,4})x(?P<c>\d{1,5})-output:(?P<out>\d{1,6}(x\d{1,4}x\d{1,5})?)"
    r"(-expand:(?P<middle>\d{1,5})-kernel:(?P<kernel>\d{1,2})-stride:(?P<stride>[12])-idskip:(?P<skip>[01])"
    r"-se:(?P<gate>[01])-hs:(?P<swish>[01]))?"
)
MOST_WEIGHTS = 100_000_000
EXAMPLE = "Conv-input:160x160x3-output:80x80x24"


@dataclass(frozen=True)
class TablePart:
    """What a name in a table stands for."""

    kind: str
    """``expanded_conv``, ``Conv``, ``Conv_1``, ``Conv_2``, ``AvgPool2D`` or ``Logits``."""
    read: tuple[int, int, int]
    written: tuple[int, int, int]
    """Channels, height and width."""
    block: Block | None = None
    """Of an ``expanded_conv``."""

    @property
    def values(self) -> int:
        """The number of values that it writes."""
        return math.prod(self.written)


def read_key(key: str) -> TablePart:
    """Return what a name in a table stands for.

    Raises
    ------
    ValueError
        If it is no such name.
    """
    found = NAMED.fullmatch(key)
    if not found or (found["kind"] == "expanded_conv") != (found["middle"] is not None):
        raise ValueError(f"{key!r} names no block; expected a name such as {EXAMPLE!r}")
    height, width, channels = int(found["h"]), int(found["w"]), int(found["c"])
    sizes = [int(each) for each in found["out"].split("x")]
    out_height, out_width, out_channels = sizes if len(sizes) == 3 else (1, 1, sizes[0])
    read, written = (channels, height, width), (out_channels, out_height, out_width)
    block = None
    if found["middle"]:
        middle, kernel, stride = (int(found[name]) for name in ("middle", "kernel", "stride"))
        block = Block(
            channels, out_channels, middle, kernel, stride, found["gate"] == "1", found["swish"] == "1"
        )
        if (found["skip"] == "1") != block.skips or kernel % 2 == 0:
            raise ValueError(f"{key!r}: idskip or kernel contradict the rest")
        if (out_height, out_width) != (halved(height, stride), halved(width, stride)):
            raise ValueError(
                f"{key!r}: stride {stride} makes no {out_height}x{out_width} of {height}x{width}"
            )
    if 0 in (*read, *written):
        raise ValueError(f"{key!r}: sizes must be positive")
    if max(channels, block.middle if block else 0) * out_channels > MOST_WEIGHTS:
        raise ValueError(f"{key!r}: more than {MOST_WEIGHTS:,} weights")
    return TablePart(found["kind"], read, written, block)
