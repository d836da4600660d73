"""Who reads what a convolution wrote, as a row tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dlas.lowering.lower import lower
from dlas.schedules.direct import Direct
from dlas.schedules.spatial_pack import SpatialPack
from dlas.stack import Edge
from tests.fixtures.lowering import Net
from tests.fixtures.small_network import network

PLANES = 2 * 32 * 20 * 20 * 4
"""Bytes of what the first two convolutions write."""


def edges(module: nn.Module | None = None) -> list[Edge]:
    """Return the edges of a network for two images; layouts change nothing in them."""
    found = lower(network(module), Direct(), 2).edges
    assert lower(network(module), SpatialPack(layout="blocked"), 2).edges == found
    return found


def reads(found: list[Edge]) -> set[tuple[Any, ...]]:
    return {(edge["writer"], edge["reader"], edge["port"], edge["bytes"]) for edge in found}


def test_a_residual_is_read_twice_and_has_one_number() -> None:
    found = edges()
    both = [edge for edge in found if edge["writer"] == "stem.0"]
    assert [(edge["reader"], edge["port"]) for edge in both] == [("first", "input"), ("second", "output")]
    assert len({edge["value"] for edge in both}) == 1
    assert both[0]["bytes"] == 2 * 16 * 5 * 5 * 4, "what is read is behind the pooling"
    assert found[0] == {"writer": None, "value": 0, "bytes": 9600, "reader": "stem.0", "port": "input"}


def test_what_is_one_point_a_channel_needs_no_change() -> None:
    assert not [edge for edge in edges() if "squeeze" in (edge["writer"], edge["reader"])]


def third_reads(*writers: str | None, size: int = PLANES) -> set[tuple[Any, ...]]:
    """Return the reads of the convolution ``third``, each of ``size`` bytes."""
    return {(writer, "third", "input", size) for writer in writers}


BETWEEN: dict[str, tuple[Callable[..., torch.Tensor], int, set[tuple[Any, ...]]]] = {
    "softmax": (
        lambda y, x, norm: F.softmax(y, 1),
        32,
        {("second", None, "input", PLANES)} | third_reads(None),
    ),
    "residual": (
        lambda y, x, norm: F.relu(y + x),
        32,
        {("first", "second", "output", PLANES)} | third_reads("second"),
    ),
    "concatenation": (lambda y, x, norm: torch.cat([y, x], 1), 64, third_reads("first", "second")),
    "pooling": (lambda y, x, norm: F.max_pool2d(y, 2), 32, third_reads("second", size=PLANES // 4)),
    "both, added": (
        lambda y, x, norm: F.max_pool2d(y, 2) + F.max_pool2d(x, 2),
        32,
        third_reads("first", "second", size=PLANES // 4),
    ),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_edges_lead_through_what_lies_between(name: str) -> None:
    between, channels, expected = BETWEEN[name]
    found = reads(edges(Net(between, channels)))
    images = (None, "first", "input", 2 * 3 * 20 * 20 * 4)
    assert found == expected | {images, ("first", "second", "input", PLANES)}
