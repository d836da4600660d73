"""Read a list of layers: ``conv3x3-64/2,bn,relu,add(conv3x3-64,bn),relu,cat(conv1x1-32|max3)``."""

from __future__ import annotations

import re
from collections.abc import Callable

from dlas.axes.models.layers import tokens
from dlas.axes.models.layers.joints import AROUND, INPUT, Cat
from dlas.axes.models.layers.kinds import (
    ACTIVATIONS,
    ActivationSpec,
    AdaptivePoolSpec,
    ConvSpec,
    Layers,
    LayerSpec,
    LinearSpec,
    NormSpec,
    PoolSpec,
    ShuffleSpec,
    text,
)

LONGEST = 20_000
"""Characters of a list."""
DEEPEST = 8
"""How deep layers that hold others may lie in one another."""
CAT = "cat"
LARGEST = {"window": 31, "stride": 16, "channels": 65_536}
"""By what a number is."""
EXAMPLES = (
    *("conv3x3-64/2", "conv3x3-64g4", "conv3x3-64d2", "dw5x5/2", "linear-256"),
    *("max3/2", "avg2/2", "adaptive7", "bn", *ACTIVATIONS, "shuffle2"),
    *("add(conv3x3-64,bn)", "mul(adaptive1,conv1x1-64,sigmoid)", "halves(conv3x3-64,bn)"),
    "cat(input|conv1x1-32)",
    *("patch16-192", "sequence", "positions", "add(ln,attention3)", "last", "attention3w7", "merge", "first"),
)
MARK = re.compile(r"[(),|]")
TOKEN = re.compile(r"[(),|]|[^(),|]+")


def parse(written: str) -> Layers:
    """Return the layers of a list.

    Raises
    ------
    ValueError
        Quotes the layer that is wrong and lists examples of those that there are; or the list is not written
        as :func:`dlas.axes.models.layers.kinds.text` writes it.
    """
    if len(written) > LONGEST:
        raise ValueError(f"it has {len(written):,} characters, and at most {LONGEST:,} are read")
    reader = _Reader(written)
    layers = reader.list(0)
    if reader.left:
        raise ValueError(f"{reader.left[0]!r} where a list of layers has ended")
    if text(layers) != written:
        raise ValueError(f"the same network has one text only: write {_difference(written, text(layers))}")
    return layers


class _Reader:
    """Takes a list apart from its beginning; ``left`` holds the tokens to come."""

    def __init__(self, written: str) -> None:
        self.left = TOKEN.findall(written)

    def list(self, depth: int) -> Layers:
        """Return the layers up to the end of a list."""
        if depth > DEEPEST:
            raise ValueError(f"{', '.join((*AROUND, CAT))} lie in one another more than {DEEPEST} deep")
        layers = [self.layer(depth)]
        while self._next(","):
            layers.append(self.layer(depth))
        return tuple(layers)

    def layer(self, depth: int) -> LayerSpec:
        """Return the next layer."""
        token = self.left.pop(0) if self.left and not MARK.match(self.left[0]) else ""
        if token not in (*AROUND, CAT) or not self._next("("):
            return _leaf(token)
        branches = [self._branch(depth, token)]
        while token == CAT and self._next("|"):
            branches.append(self._branch(depth, token))
        if not self._next(")"):
            raise ValueError(f"'{token}(' is not closed")
        if token == CAT and len(branches) < 2:
            raise ValueError("'cat(' has one branch: separate several by '|'")
        return Cat(tuple(branches)) if token == CAT else AROUND[token](branches[0])

    def _branch(self, depth: int, of: str) -> Layers:
        if of == CAT and self.left and self.left[0] == INPUT:
            self.left.pop(0)
            return ()
        return self.list(depth + 1)

    def _next(self, mark: str) -> bool:
        """Take the next token if it is this mark."""
        found = bool(self.left) and self.left[0] == mark
        if found:
            self.left.pop(0)
        return found


def _leaf(token: str) -> LayerSpec:
    """Return a layer without others inside."""
    if token in ACTIVATIONS:
        return ActivationSpec(token)
    for pattern, make in PATTERNS.items():
        match = re.fullmatch(pattern, token)
        if match:
            groups = {name: int(value) for name, value in match.groupdict().items() if value}
            for name, value in groups.items():
                limit = LARGEST[KINDS[name]]
                if not 1 <= value <= limit:
                    raise ValueError(f"{token!r}: {value} is not from 1 to {limit:,}")
            return make(token, **groups)
    raise ValueError(f"{token!r} is no layer (examples: {', '.join(EXAMPLES)})")


KINDS = {
    **dict.fromkeys(("r", "s", "size", "window"), "window"),
    **dict.fromkeys(("stride", "dilation"), "stride"),
    **dict.fromkeys(("filters", "groups", "features", "heads"), "channels"),
}
"""The limit that holds for each number."""
WINDOW, STRIDE = r"(?P<r>\d+)x(?P<s>\d+)", r"(/(?P<stride>\d+))?"
DILATION = r"(d(?P<dilation>\d+))?"
PATTERNS: dict[str, Callable[..., LayerSpec]] = {
    r"bn": lambda token: NormSpec(),
    rf"conv{WINDOW}-(?P<filters>\d+){STRIDE}(g(?P<groups>\d+))?{DILATION}": (
        lambda token, **numbers: ConvSpec(**numbers)
    ),
    rf"dw{WINDOW}{STRIDE}{DILATION}": lambda token, **numbers: ConvSpec(filters=None, **numbers),
    rf"(max|avg)(?P<size>\d+){STRIDE}": lambda token, **numbers: PoolSpec(token[:3], **numbers),
    r"adaptive(?P<size>\d+)": lambda token, **numbers: AdaptivePoolSpec(**numbers),
    r"shuffle(?P<groups>\d+)": lambda token, **numbers: ShuffleSpec(**numbers),
    r"linear-(?P<features>\d+)": lambda token, **numbers: LinearSpec(**numbers),
    r"patch(?P<size>\d+)-(?P<filters>\d+)": lambda token, **numbers: tokens.PatchSpec(**numbers),
    r"attention(?P<heads>\d+)": lambda token, **numbers: tokens.AttentionSpec(**numbers),
    r"attention(?P<heads>\d+)w(?P<window>\d+)s?": (
        lambda token, **numbers: tokens.AttentionSpec(**numbers, shifted=token.endswith("s"))
    ),
    **{str(spec): lambda token, spec=spec: spec for spec in tokens.ALONE},
}
"""How layers are written."""


def _difference(written: str, canonical: str) -> str:
    """Return the first piece that is written otherwise."""
    pieces = zip(TOKEN.findall(written), TOKEN.findall(canonical), strict=False)
    old, new = next(((old, new) for old, new in pieces if old != new), (written, canonical))
    return f"{new!r} for {old!r}"
