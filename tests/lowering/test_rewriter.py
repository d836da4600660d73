"""Writing a network anew: what passes share, and that they leave alone what is not theirs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from tvm import relax

from dlas.lowering.graph.graph import Graph, is_call, live
from dlas.lowering.graph.half_precision import in_halves
from dlas.lowering.graph.importing import import_network
from dlas.lowering.graph.quantised.rewriting import in_integers
from dlas.lowering.graph.rewriter import Rewriter
from dlas.lowering.graph.simplify import simplify
from tests.fixtures.small_network import LAYERS, network


class Halved(nn.Module):
    """Two halves of a convolution's channels, the second one first."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second = self.conv(x).chunk(2, 1)
        return torch.cat([second, first], 1).mean((2, 3))


@pytest.fixture
def graph() -> Graph:
    return simplify(import_network(network(), 2))


def operators(graph: Graph) -> list[str]:
    """Return what the bindings of a network are, in order."""
    return [
        value.op.name if isinstance(value, relax.Call) else type(value).__name__
        for _, value in graph.bindings
    ]


def test_without_a_rule_a_network_is_copied_and_its_layers_keep_their_names(graph: Graph) -> None:
    copy = Rewriter(graph).write()
    assert operators(copy) == operators(graph)
    held = dict(copy.bindings)
    assert held.keys().isdisjoint(dict(graph.bindings))
    assert list(copy.names.values()) == LAYERS
    assert all(is_call(held[variable], "relax.nn.conv2d") for variable in copy.names)
    assert list(copy.linear.values()) == ["classifier.1", "classifier.3"]
    assert all(is_call(held[variable], "relax.matmul") for variable in copy.linear)


def test_fields_of_tuples_and_tuples_as_arguments_are_written_anew() -> None:
    given = simplify(import_network(network(Halved()), 2))
    copy = live(Rewriter(given).write())
    assert operators(copy) == operators(given)
    assert operators(copy).count("TupleGetItem") == 2


def test_a_rule_changes_what_it_returns_for_a_call(graph: Graph) -> None:
    class WithoutRelu(Rewriter):
        def call(self, variable: relax.Var, call: relax.Call) -> relax.Expr:
            return self.of(call.args[0]) if is_call(call, "relax.nn.relu") else super().call(variable, call)

    written = operators(WithoutRelu(graph).write())
    assert "relax.nn.relu" in operators(graph)
    assert written == [operator for operator in operators(graph) if operator != "relax.nn.relu"]


def test_what_the_output_does_not_need_is_left_out(graph: Graph) -> None:
    middle = next(variable for variable, value in graph.bindings if is_call(value, "relax.nn.max_pool2d"))
    kept = operators(live(replace(graph, output=middle)))
    assert kept == operators(graph)[: len(kept)] and kept[-1] == "relax.nn.max_pool2d"


def test_a_network_in_float32_has_neither_halves_nor_integers(graph: Graph) -> None:
    assert in_halves(graph) is graph and in_integers(graph) is graph
