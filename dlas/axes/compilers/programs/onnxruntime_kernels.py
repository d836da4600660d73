"""Which kernels ONNX Runtime computes for the operators of a network: its rules, without a session.

On processors, as its optimiser works with all its levels: batch norms are folded into convolutions,
activations join what they read, convolutions compute in blocks of channels where those can be, and there
add a residual too.  Between blocks and the usual layout tensors are copied.  The rules were read off the
graphs that version 1.23 and newer write; ``python -m benchmarks.kernels`` compares.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from dlas.axes.compilers.programs.onnxruntime_nodes import norm_in_blocks
from dlas.networks.operators import without_reads
from dlas.stack import Layer, NetworkOperator, Operator, Target, TensorView

OF_CONVOLUTIONS = {"Relu", "Clip", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid"}
"""Activations that a convolution computes on its result."""
OF_PRODUCTS = {"Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Elu"}
"""Activations that a linear layer computes on its result."""
IN_BLOCKS = {"Relu", "Sigmoid", "Tanh", "HardSigmoid", "Swish", "Gelu"}
"""Operators of one tensor that keep the layout of what they read."""
POOLS = {"MaxPool", "AveragePool"}
WHOLE_POOLS = {"GlobalAveragePool", "GlobalMaxPool"}
JOINED = {"Add", "Mul"}
VIEWS = {
    "view": "Reshape",
    "_unsafe_view": "Reshape",
    "reshape": "Reshape",
    "flatten": "Flatten",
    "unflatten": "Reshape",
    "transpose": "Transpose",
    "permute": "Transpose",
    "t": "Transpose",
    "chunk": "Split",
    "split": "Split",
    "split_with_sizes": "Split",
    "select": "Gather",
    "slice": "Slice",
    "squeeze": "Squeeze",
    "unsqueeze": "Unsqueeze",
    "expand": "Expand",
}
"""Views in torch that are nodes of their own in ONNX; others compute nothing."""
NOTHING = {"contiguous", "clone", "Dropout"}
"""What copies a view in torch, or does nothing in place, and is left out of ONNX graphs."""
RENAMED = {"adaptive_avg_pool2d": "AveragePool"}
OF_BLOCKS = {"Relu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish"}
"""Activations that a convolution in blocks computes on its result, also after it has added a residual."""
NO_BLOCK = 1 << 40
"""In place of the channels of a block where there are none: more than any tensor has."""
ALIGNED = 4
"""Channels of which whole multiples can be copied into blocks."""


@dataclass(eq=False)
class Node:
    """A node of the graph: an operator, with those that it computes beside its own."""

    layer: Operator
    reads: list[Node | None]
    fused: list[str] = field(default_factory=list)
    blocked: bool = False
    output: Sequence[int] = ()

    def __post_init__(self) -> None:
        self.output = self.layer["output"]

    @property
    def operator(self) -> str:
        """Its operator's name."""
        return str(self.layer["operator"])


def block_of(target: Target) -> int | None:
    """Return the channels of ONNX Runtime's blocks on a processor; None where it has no such kernels."""
    from tvm.target import codegen  # here, because whoever runs a session does without TVM

    from dlas.lowering.target import tvm_target

    triple = str(target.description.get("mtriple") or platform.machine())
    if not triple.startswith(("x86_64", "AMD64")):
        return None
    return 16 if codegen.target_has_features("avx512f", tvm_target(target)) else 8


def kernels_of(operators: Sequence[Operator], block: int | None) -> list[Layer]:
    """Return the kernels that compute a network's operators, without times.

    Parameters
    ----------
    operators : sequence of Operator
        Of one batch: each a :class:`dlas.stack.NetworkOperator`.
    block : int or None
        Channels of a block of this machine's processor; None where it has no kernels for blocks.
    """
    nodes = _join_activations(_fold_norms(_exported(cast(Sequence[NetworkOperator], operators))))
    if nodes:
        nodes = _Layouts(block).of(nodes)
    return [{**node.layer, "fused": node.fused} for node in nodes]


def _exported(operators: Sequence[NetworkOperator]) -> list[Node]:
    """Return the operators, and the views that they read, as nodes of a graph."""
    nodes: list[Node] = []
    written: list[Node | None] = []
    viewed: dict[tuple[Any, ...], Node | None] = {}

    def read(origin: int | None, views: Sequence[TensorView]) -> Node | None:
        """Return the node that writes a tensor, after some views of it."""
        if not views:
            return None if origin is None else written[origin]
        key = (origin, *((view["operator"], *view["output"]) for view in views))
        if key not in viewed:
            viewed[key] = before = read(origin, views[:-1])
            name = _view_name(str(views[-1]["operator"]))
            if name is not None:
                shape = before.output if before else views[-1]["output"]
                viewed[key] = Node({**views[-1], "name": name, "operator": name, "inputs": [shape]}, [before])
                nodes.append(cast(Node, viewed[key]))
        return viewed[key]

    for operator in operators:
        reads = [read(*each) for each in zip(operator["reads"], operator["views"], strict=True)]
        if operator["operator"] in NOTHING:
            written.append(reads[0] if reads else None)
            continue
        name = str(operator["operator"])
        nodes.append(Node({**without_reads(operator), "operator": RENAMED.get(name, name)}, reads))
        written.append(nodes[-1])
    return nodes


def _view_name(view: str) -> str | None:
    """Return the node of a view in torch or in ONNX; None where it computes nothing."""
    return view if view in VIEWS.values() else VIEWS.get(view)


def _uses(nodes: Sequence[Node]) -> Counter[Node | None]:
    """Return how often each node's result is read; the last one's is the network's output too."""
    return Counter([*(read for node in nodes for read in node.reads), nodes[-1] if nodes else None])


def _replace(nodes: Sequence[Node], gone: dict[Node, Node]) -> list[Node]:
    """Return the nodes without those that are gone, read from where others have taken their places."""

    def place(node: Node | None) -> Node | None:
        while node is not None and node in gone:
            node = gone[node]
        return node

    kept = [node for node in nodes if node not in gone]
    for node in kept:
        node.reads = [place(read) for read in node.reads]
    return kept


def _fold_norms(nodes: list[Node]) -> list[Node]:
    """Fold batch norms into the convolutions that they alone read."""
    uses, gone = _uses(nodes), {}
    for node in nodes:
        before = node.reads[0] if node.operator == "BatchNormalization" else None
        if before is not None and before.operator == "Conv" and uses[before] == 1:
            before.layer = {**before.layer, "bias": True}
            gone[node] = before
    return _replace(nodes, gone)


def _join_activations(nodes: list[Node]) -> list[Node]:
    """Join activations to convolutions and linear layers that they alone read."""
    uses, gone = _uses(nodes), {}
    for node in nodes:
        before = node.reads[0] if node.reads else None
        joins = {"Conv": OF_CONVOLUTIONS, "Gemm": OF_PRODUCTS}.get(before.operator if before else "", set())
        if before is not None and node.operator in joins and uses[before] == 1 and not before.fused:
            before.fused.append(node.operator)
            gone[node] = before
    return _replace(nodes, gone)


class _Layouts:
    """Joins residuals to convolutions, chooses the layout of each result, and copies between layouts.

    Parameters
    ----------
    block : int or None
        Channels of a block.
    """

    def __init__(self, block: int | None) -> None:
        self.block = block or NO_BLOCK
        self.nodes: list[Node] = []
        self._copies: dict[tuple[Node | None, bool], Node] = {}

    def of(self, nodes: Sequence[Node]) -> list[Node]:
        """Return the nodes with copies, and without those that join convolutions."""
        uses = _uses(nodes)
        becomes: dict[Node | None, Node | None] = {None: None}
        for node in nodes:
            alone = [uses[read] == 1 for read in node.reads]
            node.reads = [becomes[read] for read in node.reads]
            becomes[node] = self._added(node, alone) or self._activated(node, alone) or self._parted(node)
        self._laid(becomes[nodes[-1]], blocked=False)
        return self.nodes

    def _added(self, node: Node, alone: Sequence[bool]) -> Node | None:
        """Join an addition to a convolution that it alone reads, first to one not in blocks; return that."""
        shapes = node.layer["inputs"]
        if node.operator != "Add" or len(shapes) != 2 or shapes[0] != shapes[1]:
            return None
        places = [(blocked, place) for blocked in (False, True) for place in (0, 1)]
        for blocked, place in places:
            read = node.reads[place]
            free = read is not None and read.operator == "Conv" and not read.fused and alone[place]
            if read is not None and free and read.blocked == blocked and (not blocked or self._joins(node)):
                self.nodes.remove(read)  # it runs where both of what it adds are there
                read.fused.append("Add")
                read.reads.append(self._laid(node.reads[1 - place], blocked))
                self.nodes.append(read)
                return read
        return None

    def _activated(self, node: Node, alone: Sequence[bool]) -> Node | None:
        """Join an activation to a convolution in blocks, or that has added a residual; return that."""
        read = node.reads[0] if node.reads else None
        if read is None or read.operator != "Conv" or read.fused not in ([], ["Add"]) or not alone[0]:
            return None
        if node.operator not in (OF_BLOCKS if read.blocked else OF_CONVOLUTIONS):
            return None
        read.fused.append(node.operator)
        return read

    def _parted(self, node: Node) -> Node:
        """Place a node; in two parts what has no kernel of its own where no convolution computes it."""
        if node.operator == "HardSwish":
            gate = self._placed(Node({**node.layer, "operator": "HardSigmoid"}, [*node.reads]))
            node.layer = {**node.layer, "operator": "Mul", "inputs": [node.output, node.output]}
            node.reads = [*node.reads, gate]
        return self._placed(node)

    def _placed(self, node: Node) -> Node:
        """Place a node behind what it reads, in the layout that it reads."""
        node.blocked = self._in_blocks(node)
        reads_blocks = node.blocked and not (node.operator == "Conv" and self._is_first(node))
        if node.blocked and node.operator == "BatchNormalization":
            node.layer = {**node.layer, **norm_in_blocks(node.output)}
        if node.blocked and node.operator in IN_BLOCKS | JOINED:
            node.layer = self._filled(node.layer)
        node.reads = [self._laid(read, reads_blocks) for read in node.reads]
        self.nodes.append(node)
        return node

    def _filled(self, layer: Operator) -> Operator:
        """Return an operator of whole blocks, the last of which may have fewer channels."""

        def filled(shape: Sequence[int]) -> list[int]:
            return [shape[0], -(-shape[1] // self.block) * self.block, *shape[2:]]

        return {
            **layer,
            "inputs": [filled(each) for each in layer["inputs"]],
            "output": filled(layer["output"]),
        }

    def _laid(self, read: Node | None, blocked: bool) -> Node | None:
        """Return the node that writes a tensor in a layout: where it is in the other, one copy for all."""
        if read is None or read.blocked == blocked:
            return read
        if (read, blocked) not in self._copies:
            name = "ReorderInput" if blocked else "ReorderOutput"
            copy: Operator = {"name": name, "operator": name, "inputs": [read.output], "output": read.output}
            self._copies[read, blocked] = Node(copy, [read], blocked=blocked)
            self.nodes.append(self._copies[read, blocked])
        return self._copies[read, blocked]

    def _in_blocks(self, node: Node) -> bool:
        """Return whether a node computes in blocks of channels."""
        if node.operator == "Conv":
            return self._convolves(node.layer)
        if len(node.output) != 4:
            return False
        if node.operator in POOLS:
            return node.output[1] % self.block == 0
        if node.operator in JOINED:
            return self._joins(node)
        if node.operator == "Concat":
            read_blocks = all(read is not None and read.blocked for read in node.reads)
            return read_blocks and all(shape[1] % self.block == 0 for shape in node.layer["inputs"])
        if not node.reads or node.reads[0] is None or not node.reads[0].blocked:
            return False
        whole = node.operator in WHOLE_POOLS and node.output[1] % self.block == 0
        return whole or node.operator in IN_BLOCKS or node.operator == "BatchNormalization"

    def _convolves(self, layer: Operator) -> bool:
        if "r" not in layer:
            return False
        c, k, groups = layer["c"], layer["k"], layer["groups"]
        if self.block == NO_BLOCK:
            return False
        if groups == 1:
            return c < self.block or c % ALIGNED == 0
        if c == k == groups:
            return k % ALIGNED == 0
        return (c // groups) % self.block == 0 and (k // groups) % self.block == 0

    def _is_first(self, node: Node) -> bool:
        """Return whether a convolution has so few channels that it reads the usual layout."""
        return node.layer["groups"] == 1 and node.layer["c"] < self.block

    def _joins(self, node: Node) -> bool:
        """Return whether a node joins two tensors of one shape, both in blocks."""
        shapes = node.layer["inputs"]
        return (
            len(node.reads) == 2
            and all(read is not None and read.blocked for read in node.reads)
            and shapes[0] == shapes[1]
        )
