"""Networks as torch modules and as ONNX graphs: reference outputs, accuracy, counts, storage."""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import numpy_helper
from safetensors.torch import save_file
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler
from torch.utils.flop_counter import FlopCounterMode

from dlas.data import Data, Images, Split
from dlas.stack import Facts, Network

WEIGHTS_FILE = "weights.safetensors"
ONNX_FILE = "model.onnx"
EVALUATION_BATCH = 128
INDEX_BYTES = 4
"""Of a column or a row's start in compressed sparse rows."""

Outputs = npt.NDArray[np.float32]


# ---------------------------------------------------------------- reading and scoring


def loading_processes(split: Split) -> int:
    """Return how many worker processes reading ``split`` is worth (0: read in this one).

    A split says with an attribute ``decodes`` that reading it costs processor time.
    """
    # A daemonic process, which a sweep's child may be, must not have children of its own.
    if not getattr(split, "decodes", False) or multiprocessing.current_process().daemon:
        return 0
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def batches(split: Split, size: int = EVALUATION_BATCH) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield images [n, c, h, w] and labels [n] of the whole split, in order, ``size`` at a time."""
    in_order = BatchSampler(SequentialSampler(range(len(split))), size, drop_last=False)
    loader: DataLoader[Any] = DataLoader(
        split,  # type: ignore[arg-type]  # a Split is a map-style data set of batches
        sampler=in_order,
        batch_size=None,
        num_workers=loading_processes(split),
    )
    yield from loader


def accuracy(network: Network | Callable[[Images], Outputs], split: Split) -> float:
    """Return the share of images whose largest output is that of their label.

    Parameters
    ----------
    network : Network or callable
        A network, or a function from images [n, c, h, w] to outputs [n, classes].
    split : Split
        Read in full.

    Returns
    -------
    float
        Between 0 and 1.
    """
    outputs = network.reference if isinstance(network, Network) else network
    right = 0
    for images, labels in batches(split):
        right += int((outputs(images.numpy()).argmax(axis=1) == labels.numpy()).sum())
    return right / len(split)


def score(network: Network, data: Data) -> None:
    """Write the accuracy on all test and validation images into the network's facts."""
    network.facts.accuracy = accuracy(network, data.test)
    network.facts.validation_accuracy = accuracy(network, data.validation)
    network.facts.test_images = len(data.test)


# ---------------------------------------------------------------- torch


def run_module(module: nn.Module, images: Images, batch: int = EVALUATION_BATCH) -> Outputs:
    """Return the module's outputs [n, classes] in evaluation mode, whose mode is left as it was."""
    device = next((parameter.device for parameter in module.parameters()), torch.device("cpu"))
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            parts = [module(part.to(device)).float().cpu() for part in torch.from_numpy(images).split(batch)]
    finally:
        module.train(training)
    return torch.cat(parts).numpy()


def count_macs(module: nn.Module, shape: tuple[int, int, int]) -> int:
    """Return the multiply-adds of convolutions and linear layers for one image [c, h, w].

    They are counted where torch dispatches them, so that linear layers which are
    called as functions (attention's projections) count too.  Products of two
    activations, batch norm, pooling and additions do not.
    """
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # the fused attention would hide its linear layers
    counter = FlopCounterMode(display=False)
    try:
        with counter:
            _run_once(module, shape)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    counted = counter.get_flop_counts().get("Global", {})
    aten = torch.ops.aten
    return int(sum(counted.get(op, 0) for op in (aten.convolution, aten.mm, aten.addmm)) // 2)


def count_skippable_macs(module: nn.Module, shape: tuple[int, int, int]) -> int:
    """Return how many multiply-adds for one image [c, h, w] have a weight of zero.

    Layers that are called as functions are not looked at.
    """
    found = 0

    def note(layer: Any, inputs: Any, output: torch.Tensor) -> None:
        nonlocal found
        # Every output value of a filter meets each of the filter's weights once.
        filters = output.shape[1] if isinstance(layer, nn.Conv2d) else output.shape[-1]
        zeros = layer.weight.numel() - int(layer.weight.count_nonzero())
        found += output.numel() // filters * zeros

    layers = [layer for layer in module.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    handles = [layer.register_forward_hook(note) for layer in layers]
    try:
        _run_once(module, shape)
    finally:
        for handle in handles:
            handle.remove()
    return found


def _run_once(module: nn.Module, shape: tuple[int, int, int]) -> None:
    """Run the module on one image of zeros [c, h, w] in evaluation mode; its own mode is left as it was."""
    first = next(module.parameters(), torch.zeros(0))
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            module(torch.zeros(1, *shape, device=first.device, dtype=first.dtype))
    finally:
        module.train(training)


def csr_bytes(filters: int, nonzeros: int, value_bytes: int = 4) -> int:
    """Return the size of a weight in compressed sparse rows, a row a filter: values, columns, row starts."""
    return nonzeros * (value_bytes + INDEX_BYTES) + (filters + 1) * INDEX_BYTES


def conv_weights(module: nn.Module) -> dict[str, torch.Tensor]:
    """Return the weight [k, c / groups, r, s] of every 2-D convolution, by the layer's name."""
    return {name: layer.weight for name, layer in module.named_modules() if isinstance(layer, nn.Conv2d)}


class TorchNetwork(Network):
    """A network held as a torch module.

    Parameters
    ----------
    module : torch.nn.Module
        Maps images [n, c, h, w] to outputs [n, classes].
    facts : Facts
    tolerance : float
        Largest accepted relative deviation of a build from :meth:`reference`.
    """

    def __init__(self, module: nn.Module, facts: Facts, tolerance: float = 1e-4) -> None:
        self.module = module.eval()
        self.facts = facts
        self.tolerance = tolerance

    def reference(self, images: Images) -> Outputs:
        """Return the module's own outputs [n, classes], in evaluation mode."""
        return run_module(self.module, images)

    def count(self) -> None:
        """Write parameters, nonzeros, multiply-adds and bytes into :attr:`facts`.

        Bytes are those of parameters and buffers as they are stored, and with
        the weights of convolutions in compressed sparse rows instead.
        """
        parameters = list(self.module.parameters())
        self.facts.parameters = sum(parameter.numel() for parameter in parameters)
        self.facts.nonzeros = sum(int(parameter.count_nonzero()) for parameter in parameters)
        self.facts.macs = count_macs(self.module, self.facts.shape)
        self.facts.effective_macs = self.facts.macs - count_skippable_macs(self.module, self.facts.shape)
        stored = self.module.state_dict().values()
        self.facts.model_bytes = sum(tensor.numel() * tensor.element_size() for tensor in stored)
        self.facts.csr_bytes = self.facts.model_bytes + sum(
            csr_bytes(len(weight), int(weight.count_nonzero()), weight.element_size())
            - weight.numel() * weight.element_size()
            for weight in conv_weights(self.module).values()
        )

    def save(self, folder: Path) -> None:
        """Write ``weights.safetensors``."""
        # Copies, because safetensors refuses tensors that share memory.
        state = self.module.state_dict()
        save_file(
            {name: tensor.detach().cpu().contiguous().clone() for name, tensor in state.items()},
            folder / WEIGHTS_FILE,
        )


# ---------------------------------------------------------------- ONNX


class OnnxNetwork(Network):
    """A network held as an ONNX graph; ONNX Runtime on the CPU is its reference.

    Parameters
    ----------
    model : onnx.ModelProto
        One input [n, c, h, w], one output [n, classes]; weights included.
    facts : Facts
    tolerance : float
        Largest accepted relative deviation of a build from :meth:`reference`.
    """

    def __init__(self, model: onnx.ModelProto, facts: Facts, tolerance: float = 1e-4) -> None:
        self.model = model
        self.facts = facts
        self.tolerance = tolerance
        self._session: Any = None

    @property
    def batch(self) -> int | None:
        """The batch that the graph is fixed to, or None where it takes any."""
        size = graph_input(self.model).type.tensor_type.shape.dim[0]
        return int(size.dim_value) or None

    def reference(self, images: Images) -> Outputs:
        """Return ONNX Runtime's outputs [n, classes]."""
        session = self._open()
        name, step = session.get_inputs()[0].name, self.batch or EVALUATION_BATCH
        parts = []
        for start in range(0, len(images), step):
            part = images[start : start + step]
            # A graph that is fixed to its batch gets a full one; what was added is cut off again.
            added = (self.batch or len(part)) - len(part)
            full = np.concatenate([part, np.zeros((added, *part.shape[1:]), part.dtype)])
            parts.append(session.run(None, {name: full})[0][: len(part)])
        return np.concatenate(parts).astype(np.float32, copy=False)

    def _open(self) -> Any:
        """Return the session, made at the first call, in the process that uses it."""
        if self._session is None:
            import onnxruntime  # here, because torch networks do without it

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = torch.get_num_threads()
            options.log_severity_level = 3
            self._session = onnxruntime.InferenceSession(
                self.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        return self._session

    def count(self) -> None:
        """Write parameters, nonzeros, multiply-adds and bytes into :attr:`facts`.

        Parameters are the stored tensors that are not 64-bit integers (those are
        shapes and axes) and not the statistics of a batch norm.
        """
        norms = [node for node in self.model.graph.node if node.op_type == "BatchNormalization"]
        statistics = {name for node in norms for name in node.input[3:]}
        stored = self.model.graph.initializer
        weights = [
            tensor
            for tensor in stored
            if tensor.data_type != onnx.TensorProto.INT64 and tensor.name not in statistics
        ]
        self.facts.parameters = sum(math.prod(tensor.dims) for tensor in weights)
        self.facts.nonzeros = sum(int(np.count_nonzero(numpy_helper.to_array(tensor))) for tensor in weights)
        self.facts.macs = count_graph_macs(self.model)
        self.facts.model_bytes = sum(numpy_helper.to_array(tensor).nbytes for tensor in stored)

    def save(self, folder: Path) -> None:
        """Write ``model.onnx``, one file with its weights."""
        onnx.save(self.model, folder / ONNX_FILE)


def graph_input(model: onnx.ModelProto) -> onnx.ValueInfoProto:
    """Return the graph's only input.

    Raises
    ------
    ValueError
        If it has none or several (stored weights that old files list as inputs do not count).
    """
    stored = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in stored]
    if len(inputs) != 1:
        listed = ", ".join(value.name for value in inputs)
        raise ValueError(f"it has {len(inputs)} inputs ({listed}), not one")
    return inputs[0]


def count_graph_macs(model: onnx.ModelProto) -> int:
    """Return the multiply-adds of convolutions and products with stored weights, for one image.

    Raises
    ------
    ValueError
        If ONNX cannot infer a shape that is needed.
    """
    single = onnx.ModelProto()
    single.CopyFrom(model)
    batch = graph_input(single).type.tensor_type.shape.dim[0]
    batch.dim_value = batch.dim_value or 1
    graph = onnx.shape_inference.infer_shapes(single).graph
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for value in [*graph.value_info, *graph.input, *graph.output]:
        shapes.setdefault(value.name, [size.dim_value for size in value.type.tensor_type.shape.dim])
    constant = {tensor.name for tensor in graph.initializer}
    macs = 0
    for node in graph.node:
        if all(name in constant for name in node.input if name):
            constant.update(node.output)  # e.g. weights behind DequantizeLinear
        else:
            macs += _node_macs(node, shapes, constant)
    return macs // int(batch.dim_value)


def _node_macs(node: onnx.NodeProto, shapes: dict[str, list[int]], constant: set[str]) -> int:
    """Return one node's multiply-adds, 0 for what is neither convolution nor linear layer."""
    convolutions = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}
    products = {"Gemm": 1, "MatMul": 1, "MatMulInteger": 1, "QLinearMatMul": 3}
    place = {**convolutions, **products}.get(node.op_type)
    if place is None or node.input[place] not in constant:
        return 0
    written, weight = shapes.get(node.output[0], [0]), shapes.get(node.input[place], [0])
    if not math.prod(written) or not math.prod(weight):
        raise ValueError(f"the shapes at node {node.name or node.output[0]!r} cannot be inferred")
    if node.op_type in convolutions:
        return math.prod(written) * math.prod(weight[1:])
    transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
    return math.prod(written) * (weight[-1] if transposed else weight[-2])
