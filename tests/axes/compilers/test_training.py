"""Training steps of torch modules: what they compute, what they keep, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from dlas.axes.compilers.programs.torch import TorchProgram
from dlas.axes.compilers.programs.torch_training import LEARNING_RATE, MOMENTUM
from dlas.errors import Unsupported
from dlas.stack import TrainingStep
from dlas.testing.networks import CLASSES, SHAPE, random_images

LABELS = np.array([0, 1, 1, 0])
CPU = torch.device("cpu")


def network() -> nn.Sequential:
    """Return a network with batch norm and dropout, the same each time."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(SHAPE[0], 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Dropout(0.5)]
    return nn.Sequential(*layers, nn.Linear(8 * (SHAPE[1] - 2) * (SHAPE[2] - 2), CLASSES))


def training_of(
    module: nn.Module, compiled: Callable[[torch.Tensor], Any] | None = None, batch: int = 4, **options: bool
) -> TrainingStep:
    program = TorchProgram(module, compiled or module, CPU, **options)
    return program.training(random_images(batch), LABELS[:batch])


def by_hand(module: nn.Module, steps: int) -> list[float]:
    """Train a module as a program should, with the optimiser's arithmetic spelled out; return the losses."""
    module.train()
    velocity: dict[str, torch.Tensor] = {}
    losses = []
    for _ in range(steps):
        module.zero_grad()
        loss = functional.cross_entropy(module(torch.from_numpy(random_images(4))), torch.from_numpy(LABELS))
        loss.backward()
        with torch.no_grad():
            for name, weight in module.named_parameters():
                assert weight.grad is not None
                velocity[name] = weight.grad + MOMENTUM * velocity.get(name, torch.zeros(()))
                weight.sub_(LEARNING_RATE * velocity[name])
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("channels_last", [False, True])
def test_steps_compute_what_steps_written_out_here_do(channels_last: bool) -> None:
    expected, module = network(), network()
    torch.manual_seed(1)
    losses = by_hand(expected, steps=3)
    training = training_of(module, channels_last=channels_last)
    torch.manual_seed(1)
    assert [training.step() for _ in losses] == pytest.approx(losses, rel=1e-5)
    weights = training.weights()
    assert weights.keys() == dict(expected.named_parameters()).keys()
    for name, values in expected.named_parameters():
        assert np.allclose(weights[name], values.detach().numpy(), rtol=1e-5, atol=1e-7), name
    for name, statistics in expected.named_buffers():
        assert torch.allclose(module.get_buffer(name).float(), statistics.float()), name


def test_a_copy_of_the_weights_does_not_follow_the_next_step() -> None:
    training = training_of(network())
    before = training.weights()
    training.step()
    assert any((before[name] != values).any() for name, values in training.weights().items())


@pytest.mark.parametrize("pruned", [True, False])
def test_weights_that_were_pruned_stay_zero_and_others_are_trained(pruned: bool) -> None:
    module = network()
    conv = module[0]
    assert isinstance(conv, nn.Conv2d)
    with torch.no_grad():
        conv.weight[:4].zero_()
    training = training_of(module, pruned=pruned)
    dense = conv.weight[4:].clone()
    for _ in range(3):
        training.step()
    assert bool((conv.weight[:4] == 0).all()) is pruned
    assert (conv.weight[4:] != dense).any()


class Outputs(NamedTuple):
    """Outputs as torchvision's networks with an auxiliary classifier return them in training."""

    logits: torch.Tensor
    aux: torch.Tensor


class Auxiliary(nn.Module):
    """A network with a second classifier in training."""

    def __init__(self, kind: Callable[[torch.Tensor, torch.Tensor], Any]) -> None:
        super().__init__()
        self.network, self.kind = network(), kind

    def forward(self, images: torch.Tensor) -> Any:
        """Return the outputs, in training with others."""
        outputs = self.network(images)
        return self.kind(outputs, torch.full_like(outputs, torch.nan)) if self.training else outputs


@pytest.mark.parametrize(
    "kind", [Outputs, lambda *both: both, lambda *both: [*both]], ids=["named tuple", "tuple", "list"]
)
def test_of_several_outputs_the_first_is_trained_and_a_note_says_so(kind: Callable[..., Any]) -> None:
    expected, training = network(), training_of(Auxiliary(kind))
    torch.manual_seed(1)
    loss = training.step()
    torch.manual_seed(1)
    assert loss == pytest.approx(by_hand(expected, steps=1)[0])
    assert training.note == "the loss is that of the first of 2 outputs in training"


def test_outputs_by_name_are_unsupported() -> None:
    training = training_of(Auxiliary(lambda first, second: {"first": first, "second": second}))
    with pytest.raises(Unsupported, match="in training the network returns a dict"):
        training.step()


def test_a_single_image_is_refused_where_batch_norm_needs_two_and_trained_where_not() -> None:
    narrow = nn.Sequential(network()[0], nn.AdaptiveAvgPool2d(1), nn.BatchNorm2d(8), nn.Flatten())
    with pytest.raises(Unsupported, match=r"batch 1 on images .*; train with batch 2 or more"):
        training_of(narrow, batch=1)
    assert training_of(narrow, batch=2).step() > 0
    assert training_of(network(), batch=1).step() > 0, "its batch norm gets many values of one image"


def test_a_network_without_weights_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="no weights to train"):
        training_of(nn.Flatten())


def test_what_crashes_with_channels_last_is_unsupported_there() -> None:
    narrow = nn.Sequential(nn.Conv2d(SHAPE[0], 8, 1, stride=2), nn.Flatten(), nn.LazyLinear(CLASSES))
    narrow(torch.from_numpy(random_images(1)))
    with pytest.raises(Unsupported, match="with channels last, oneDNN gets the gradient"):
        training_of(narrow, channels_last=True)
    assert training_of(narrow).step() > 0


def test_layers_tell_forward_and_backward_of_the_steps_own_operators() -> None:
    module = network()
    training = training_of(module, pruned=True)
    layers = {layer["name"]: layer for layer in training.layers(repeats=3) or []}
    assert {"0", "1", "2", "5", "loss", "sgd"} <= layers.keys()
    for name in ("0", "1", "2", "5"):
        forward, backward = layers[name]["latency_s"], layers[name]["backward_s"]
        assert forward and forward > 0 and backward and backward > 0, name


@pytest.mark.slow
def test_compiled_steps_compute_what_eager_ones_do() -> None:
    module = network().eval()
    module[4] = nn.Dropout(0.0)  # compiled code draws other numbers
    expected = network()
    expected[4] = nn.Dropout(0.0)
    training = training_of(module, torch.compile(module, backend="inductor", dynamic=False))
    losses = by_hand(expected, steps=3)
    assert [training.step() for _ in losses] == pytest.approx(losses, rel=1e-4)
    assert training.layers(repeats=1) is None
