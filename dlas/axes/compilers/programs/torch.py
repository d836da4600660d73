"""Programs that run a torch module, and the times of its layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from dlas.axes.compilers.programs.torch_layers import time_layers
from dlas.axes.compilers.programs.torch_training import TorchTrainingStep
from dlas.errors import Unsupported
from dlas.networks.channels_last import channels_last_is_safe
from dlas.networks.convolutions import library_layers
from dlas.networks.torch.network import TorchNetwork
from dlas.stack import Build, Images, Labels, Layer, Network, Program, Runtime, Target, TrainingStep

DEVICES = {"llvm": "cpu", "cuda": "cuda"}
"""Torch's device for a kind of TVM target."""


def torch_device(target: Target) -> torch.device:
    """Return torch's device for a target.

    Raises
    ------
    Unsupported
        If torch does not support it here.
    """
    kind = target.kind
    if kind not in DEVICES:
        raise Unsupported(f"PyTorch does not run on {kind} targets; it does on {', '.join(DEVICES)}")
    if DEVICES[kind] == "cuda" and not torch.cuda.is_available():
        raise Unsupported("PyTorch finds no CUDA device here")
    return torch.device(DEVICES[kind])


def module_of(network: Network) -> nn.Module:
    """Return a network's torch module.

    Raises
    ------
    Unsupported
        If it has none.
    """
    if not isinstance(network, TorchNetwork):
        raise Unsupported("PyTorch runs torch modules; this network is an ONNX graph")
    return network.module


def is_pruned(network: Network) -> bool:
    """Return whether a technique has set weights of the network to zero, or removed them."""
    return "ratio" in network.facts.reached


@dataclass(frozen=True)
class TorchRuntime(Runtime):
    """A runtime that calls the torch module, as it is or compiled."""

    channels_last: bool = False
    """Store the channels of a pixel contiguously, which is often faster in torch's libraries."""
    trains: ClassVar[bool] = True

    def prepare(self, network: Network, target: Target, batch: int, folder: Path) -> Build:
        """Check that torch can run the network on the target; nothing is written."""
        module_of(network)
        torch_device(target)
        return Build(library_layers(network, batch))


def compute_in_float32() -> None:
    """Keep NVIDIA's libraries from rounding inputs to 10 bits, as no other compiler does.

    cuDNN times its kernels in the first run, and takes the fastest.
    """
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True


class TorchProgram(Program):
    """A torch module as a program.

    Parameters
    ----------
    module : nn.Module
        The module whose layers are timed.
    run : callable
        The module, or its compiled form.
    device : torch.device
    channels_last : bool
        Whether module and images are stored channels last.
    pruned : bool
        Whether zeros in its convolutions are pruned weights, which training keeps at zero.
    """

    def __init__(
        self,
        module: nn.Module,
        run: Callable[[torch.Tensor], torch.Tensor],
        device: torch.device,
        channels_last: bool = False,
        pruned: bool = False,
    ) -> None:
        self._pruned = pruned
        self._format = torch.channels_last if channels_last else torch.contiguous_format
        self._module = module.eval().to(device)
        self._module.to(memory_format=self._format)  # type: ignore[call-overload]
        self._run = run
        self._device = device
        if device.type == "cuda":
            compute_in_float32()

    def bind(self, images: Images) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images`` and waits for its end."""
        bound, run = self._on_device(images), self._run
        inference = torch.inference_mode

        def once() -> torch.Tensor:
            with inference():
                return run(bound)

        if self._device.type == "cpu":
            return once

        def once_and_wait() -> torch.Tensor:
            result = once()
            torch.cuda.synchronize(self._device)
            return result

        return once_and_wait

    def timer(self, images: Images) -> Callable[[int], float] | None:
        """Return the seconds of a number of inferences between two CUDA events; None on processors."""
        if self._device.type == "cpu":
            return None
        bound, run = self._on_device(images), self._run
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

        def seconds(runs: int) -> float:
            with torch.inference_mode():
                begin.record()
                for _ in range(runs):
                    run(bound)
                end.record()
            end.synchronize()
            return float(begin.elapsed_time(end)) / 1e3

        return seconds

    def run(self, images: Images) -> npt.NDArray[np.float32]:
        """Return the outputs [n, classes] for ``images`` [n, c, h, w]."""
        with torch.inference_mode():
            outputs = self._run(self._on_device(images))
        result: npt.NDArray[np.float32] = outputs.float().cpu().numpy()
        return result

    def layers(self, images: Images, repeats: int) -> list[Layer] | None:
        """Return the operators with their median seconds over ``repeats``; None for a compiled module."""
        if self._run is not self._module:
            return None
        return time_layers(self._module, self.bind(images), repeats, self._device)

    def training(self, images: Images, labels: Labels) -> TrainingStep:
        """Return training steps of the module itself, which they change.

        Raises
        ------
        Unsupported
            If it cannot be trained on these images, or a fault of oneDNN forbids it with channels last.
        """
        on_cpu, last = self._device.type == "cpu", self._format is torch.channels_last
        if on_cpu and last and not channels_last_is_safe(self._module):
            raise Unsupported(
                "with channels last, oneDNN gets the gradient of a strided 1x1 convolution of fewer than 16 "
                "channels wrong, and the network has one: train it without"
            )
        target = torch.from_numpy(np.ascontiguousarray(labels)).to(self._device)
        return TorchTrainingStep(self._module, self._run, self._on_device(images), target, self._pruned)

    def _on_device(self, images: Images) -> torch.Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(images))
        return tensor.to(self._device, memory_format=self._format)
