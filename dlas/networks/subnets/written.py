"""Subnetworks as text, and the spaces that they are drawn from.

``"3357:6643,35:46,333:444,3355:6644,77:33"`` lists five stages, each with the kernel sizes of its two to
four layers and, behind the colon, their expansion ratios.  A layer that is not there cannot be written, so
that equal networks have equal texts.

References
----------
Once-for-All, section 3.2; CompOFA, section 3, where depth decides the expansion.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

Space = Literal["ofa", "compofa_fixed", "compofa_elastic"]
SPACES: tuple[Space, ...] = get_args(Space)
KERNELS = (3, 5, 7)
EXPANSIONS = (3, 4, 6)
DEPTHS = (2, 3, 4)
STAGES = 5
MOST = max(DEPTHS)
"""Layers of the deepest stage."""
CHOICES = 1 + 2 * MOST
"""Of a stage: its depth, and each layer's kernel size and expansion ratio, three values each."""
OF_DEPTH = dict(zip(DEPTHS, EXPANSIONS, strict=True))
"""CompOFA's expansion ratio of all layers of a stage, by the number of these."""
FIXED = (3, 5, 3, 3, 5)
"""CompOFA's kernel size of each stage where kernels are fixed."""
EXAMPLE = "3357:6643,35:46,333:444,3355:6644,77:33"
WRITTEN = re.compile(r"([0-9]+):([0-9]+)")
Stage = tuple[tuple[int, ...], tuple[int, ...]]
"""Kernel sizes and expansion ratios of a stage's layers."""
Codes = npt.NDArray[np.uint8]
"""Of shape [n, stages, 2, layers]: kernel sizes and expansion ratios, 0 where a layer is not there."""


def parse(text: str) -> tuple[Stage, ...]:
    """Return the stages of a subnetwork.

    Raises
    ------
    ValueError
        Quotes the stage that is wrong, and says what was expected.
    """
    stages = text.split(",")
    if len(stages) != STAGES:
        raise ValueError(
            f"{text!r} has {len(stages)} stages, separated by commas; expected {STAGES}, as in {EXAMPLE!r}"
        )
    return tuple(map(_stage, stages))


@functools.lru_cache(maxsize=10_000)  # 7,371 different ones exist
def _stage(text: str) -> Stage:
    """Return a stage's kernel sizes and expansion ratios."""
    found = WRITTEN.fullmatch(text)
    if not found:
        raise ValueError(
            f"stage {text!r}: expected kernel sizes, a colon and expansion ratios, as in '335:664'"
        )
    kernels, expansions = (tuple(map(int, digits)) for digits in found.groups())
    for what, values, known in (
        ("kernel size", kernels, KERNELS),
        ("expansion ratio", expansions, EXPANSIONS),
    ):
        for value in values:
            if value not in known:
                raise ValueError(f"stage {text!r}: {what} {value}; expected {', '.join(map(str, known))}")
    if len(kernels) != len(expansions) or len(kernels) not in DEPTHS:
        raise ValueError(
            f"stage {text!r} has {len(kernels)} kernel sizes and {len(expansions)} expansion ratios; "
            f"expected as many of these as of those, {', '.join(map(str, DEPTHS))}"
        )
    return kernels, expansions


def text_of(stages: Sequence[Stage]) -> str:
    """Return stages as text; the inverse of :func:`parse`."""
    return ",".join(":".join("".join(map(str, digits)) for digits in stage) for stage in stages)


def codes(texts: Sequence[str]) -> Codes:
    """Return subnetworks as numbers.

    Raises
    ------
    ValueError
        As :func:`parse`.
    """
    joined = bytearray()
    for text in texts:
        stages = text.split(",")
        if len(stages) != STAGES:
            parse(text)
        for stage in stages:
            joined += _code(stage)
    return np.frombuffer(bytes(joined), dtype=np.uint8).reshape(len(texts), STAGES, 2, MOST)


@functools.lru_cache(maxsize=10_000)
def _code(text: str) -> bytes:
    """Return a stage as numbers, 0 where a layer is not there."""
    return b"".join(bytes(values).ljust(MOST, b"\0") for values in _stage(text))


def draw(space: Space, rng: np.random.Generator) -> str:
    """Return a subnetwork of a space at random: each depth, kernel size and expansion ratio is as likely."""
    return text_of([_drawn_stage(space, place, picked) for place, picked in enumerate(_picked(rng))])


def mutated(text: str, space: Space, rate: float, rng: np.random.Generator) -> str:
    """Return a subnetwork with each depth, kernel size and expansion ratio drawn anew with a probability."""
    stages = []
    anew = (rng.random((STAGES, CHOICES)) < rate).tolist()
    for place, (stage, picked, changes) in enumerate(zip(parse(text), _picked(rng), anew, strict=True)):
        depth = DEPTHS[picked[0]] if changes[0] else len(stage[0])
        kernels, expansions = (
            tuple(
                known[picked[start + at]] if at >= len(old) or changes[start + at] else old[at]
                for at in range(depth)
            )
            for old, known, start in zip(stage, (KERNELS, EXPANSIONS), (1, 1 + MOST), strict=True)
        )
        stages.append(_within(space, place, (kernels, expansions)))
    return text_of(stages)


def crossed(one: str, other: str, space: Space, rng: np.random.Generator) -> str:
    """Return a subnetwork each layer of which is that of one of two others."""
    stages = []
    sides = rng.integers(2, size=(STAGES, 1 + MOST)).tolist()
    for place, (first, second, chosen) in enumerate(zip(parse(one), parse(other), sides, strict=True)):
        pair = first, second
        depth = len(pair[chosen[0]][0])
        layers = []
        for at in range(depth):
            having = [stage for stage in pair if at < len(stage[0])]
            kernels, expansions = having[chosen[1 + at] % len(having)]
            layers.append((kernels[at], expansions[at]))
        kernels, expansions = zip(*layers, strict=True)
        stages.append(_within(space, place, (kernels, expansions)))
    return text_of(stages)


def is_in(text: str, space: Space) -> bool:
    """Return whether a subnetwork belongs to a space."""
    return all(_within(space, place, stage) == stage for place, stage in enumerate(parse(text)))


def fixed_members() -> Iterator[str]:
    """Yield the subnetworks of ``compofa_fixed``, which are few."""
    for depths in itertools.product(DEPTHS, repeat=STAGES):
        blank = [((0,) * depth, (0,) * depth) for depth in depths]
        yield text_of([_within("compofa_fixed", place, stage) for place, stage in enumerate(blank)])


def _picked(rng: np.random.Generator) -> list[list[int]]:
    """Return which depth, kernel sizes and expansion ratios are drawn for each stage, by their places."""
    picked: list[list[int]] = rng.integers(len(KERNELS), size=(STAGES, CHOICES)).tolist()
    return picked


def _drawn_stage(space: Space, place: int, picked: list[int]) -> Stage:
    """Return a stage with the depth, kernel sizes and expansion ratios that were drawn."""
    depth = DEPTHS[picked[0]]
    kernels = tuple(KERNELS[each] for each in picked[1 : 1 + depth])
    expansions = tuple(EXPANSIONS[each] for each in picked[1 + MOST : 1 + MOST + depth])
    return _within(space, place, (kernels, expansions))


def _within(space: Space, place: int, stage: Stage) -> Stage:
    """Return a stage with what its space decides."""
    kernels, expansions = stage
    depth = len(kernels)
    if space != "ofa":
        expansions = (OF_DEPTH[depth],) * depth
    if space == "compofa_fixed":
        kernels = (FIXED[place],) * depth
    return kernels, expansions
