"""Scoring on a GPU, where torch can use one."""

from __future__ import annotations

import pytest
import torch

from dlas.networks import scoring
from tests.fixtures import small_network


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let torch find a GPU, to which no tensor really moves; return the moves of modules."""
    small_network.trained()  # which is scored, too
    moves: list[str] = []

    def move(module: torch.nn.Module, place: str) -> torch.nn.Module:
        moves.append(place)
        return module

    monkeypatch.setattr(scoring, "gpu_usable", lambda: True)
    for place in ("cuda", "cpu"):
        monkeypatch.setattr(torch.nn.Module, place, lambda module, place=place: move(module, place))
    return moves


def test_score_runs_on_the_gpu_and_returns(moves: list[str]) -> None:
    network, data = small_network.trained()
    scoring.score(network, data)
    assert moves == ["cuda", "cpu"]
    assert network.facts.accuracy == scoring.accuracy(network, data.test)


def test_module_returns_from_the_gpu_after_a_failure(moves: list[str]) -> None:
    network, data = small_network.network(torch.nn.Conv2d(1, 10, 3)), small_network.trained()[1]
    with pytest.raises(RuntimeError, match="channels"):  # the digits have three
        scoring.score(network, data)
    assert moves == ["cuda", "cpu"]
