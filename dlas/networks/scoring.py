"""Accuracy of networks on a split."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

from dlas.networks.forward import EVALUATION_BATCH
from dlas.stack import Data, Images, Network, Outputs, Split


def loading_processes(split: Split) -> int:
    """Return the number of worker processes for reading ``split`` (0: read in this process).

    An attribute ``decodes`` marks a split whose reading takes processor time.
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
    """Return the share of images whose largest output is at their label.

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
    correct = 0
    for images, labels in batches(split):
        correct += int((outputs(images.numpy()).argmax(axis=1) == labels.numpy()).sum())
    return correct / len(split)


def score(network: Network, data: Data) -> None:
    """Write the accuracy on all test and validation images into the network's facts.

    A torch module runs on the GPU meanwhile, if torch can use one, as its training does.
    """
    with _on_gpu(network):
        network.facts.accuracy = accuracy(network, data.test)
        network.facts.validation_accuracy = accuracy(network, data.validation)
    network.facts.test_images = len(data.test)


def gpu_usable() -> bool:
    """Return whether torch can use a GPU."""
    return torch.cuda.is_available()


@contextlib.contextmanager
def _on_gpu(network: Network) -> Iterator[None]:
    """Hold a network's module on the GPU that torch can use, if any, with products in full float32."""
    module = getattr(network, "module", None)
    if not (isinstance(module, torch.nn.Module) and gpu_usable()):
        yield
        return
    try:
        with torch.backends.cudnn.flags(allow_tf32=False):
            module.cuda()
            yield
    finally:
        module.cpu()
