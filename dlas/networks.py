"""Networks as torch modules: reference outputs, accuracy, counts, storage."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import save_file
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler
from torch.utils.flop_counter import FlopCounterMode

from dlas.data import Data, Images, Split
from dlas.stack import Facts, Network

WEIGHTS_FILE = "weights.safetensors"
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
    counter = FlopCounterMode(display=False)
    with plain_attention(), counter:
        _run_once(module, shape)
    counted = counter.get_flop_counts().get("Global", {})
    aten = torch.ops.aten
    return int(sum(counted.get(op, 0) for op in (aten.convolution, aten.mm, aten.addmm)) // 2)


@contextlib.contextmanager
def plain_attention() -> Iterator[None]:
    """Compute attention step by step: the fused form hides its linear layers from counting and exporting."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


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
