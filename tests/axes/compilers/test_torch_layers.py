"""Times of the operators of torch modules."""

from __future__ import annotations

import itertools
import time

import torch
from torch import nn

from dlas.axes.compilers.programs.torch_layers import time_layers
from tests.fixtures.small_network import network

CPU = torch.device("cpu")


def test_all_operators_of_an_inference_are_timed_but_views() -> None:
    module, images = network().module, torch.randn(1, 3, 20, 20)

    def run() -> None:
        with torch.inference_mode():
            module(images)

    layers = time_layers(module, run, 3, CPU)
    assert layers is not None and {"first", "add", "cat", "classifier.3"} <= {
        layer["name"] for layer in layers
    }
    assert all((layer["latency_s"] or 0) > 0 and "backward_s" not in layer for layer in layers)


def test_a_training_step_is_timed_forward_and_backward() -> None:
    module, images = network().module.train(), torch.randn(2, 3, 20, 20)
    optimizer = torch.optim.SGD(module.parameters(), 0.01, momentum=0.9)
    labels = torch.zeros(2, dtype=torch.long)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(images), labels).backward()
        optimizer.step()

    layers = time_layers(module, step, 2, CPU)
    assert layers is not None
    times = {layer["name"]: (layer["latency_s"] or 0, layer["backward_s"] or 0) for layer in layers}
    for name in ("stem.0", "first_norm", "relu", "classifier.3", "loss"):
        assert min(times[name]) > 0, name
    assert times["sgd"][0] > 0 and times["sgd"][1] == 0
    assert times["add"][1] == 0, "the gradient of a sum is passed on as it is"


def test_what_python_does_counts_to_the_operator_that_follows() -> None:
    class Waits(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(x)
            time.sleep(0.02)
            return torch.sigmoid(x.flatten(1))

    module, images = Waits(), torch.randn(1, 3, 4, 4)

    def run() -> None:
        with torch.inference_mode():
            module(images)

    layers = time_layers(module, run, 3, CPU)
    assert layers is not None and [layer["operator"] for layer in layers] == ["Relu", "Sigmoid"]
    relu_s, sigmoid_s = (layer["latency_s"] or 0.0 for layer in layers)
    assert sigmoid_s > 0.01 and sigmoid_s > relu_s


def test_runs_that_differ_are_not_timed() -> None:
    module, calls = nn.ReLU(), itertools.count()

    def run() -> None:
        with torch.inference_mode():
            x = module(torch.ones(2))
            if next(calls) > 2:
                x.sum()

    assert time_layers(module, run, 2, CPU) is None
    assert time_layers(module, run, 2, CPU) is not None, "from here on they are the same"
