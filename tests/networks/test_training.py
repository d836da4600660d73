"""Training: the same weights from the same seed, also after kills, and a usable accuracy."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from dlas.axes.datasets.digits import random_affine
from dlas.axes.models.cifar_resnet18 import CifarResnet18
from dlas.networks.channels_last import channels_last_is_safe
from dlas.networks.recipes import RECIPES, Recipe
from dlas.networks.training import CHECKPOINT, Divergence, fit
from dlas.stack import Arrays, Data, Images, Labels, Workspace
from dlas.sweep.study import parts
from tests.fixtures.commands import WARM

SMALL = Recipe(epochs=4, batch=16)
STEPS = 4
"""Of an epoch: 50 images, 16 at most at a time."""

State = dict[str, torch.Tensor]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small only lose by a second thread, most of all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def small_data() -> Data:
    """Return noise whose class shows in its mean."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 4, 50)
    images = generator.standard_normal((50, 3, 8, 8), np.float32) + labels[:, None, None, None].astype(
        np.float32
    )
    split = Arrays(images, labels)
    return Data(split, split, split, (3, 8, 8), 4, augment=random_affine, recipe="short")


def small_module() -> nn.Module:
    """Return a network with everything that could carry randomness or state from one step to the next."""
    torch.manual_seed(0)
    convolution = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.2)]
    return nn.Sequential(*convolution, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))


def train(folder: Path, seed: int = 0, data: Data | None = None, **changes: Any) -> State:
    """Train the small network and return its final state."""
    module = small_module()
    fit(module, data or small_data(), replace(SMALL, **changes), Workspace(seed, folder, lambda line: None))
    return module.state_dict()


def equal(one: State, other: State) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


# ---------------------------------------------------------------- recipes


def test_the_papers_recipe() -> None:
    assert RECIPES["paper"] == Recipe(
        epochs=200,
        learning_rate=5e-2,
        schedule="one_cycle",
        batch=128,
        momentum=0.9,
        cycle_momentum=False,
        weight_decay=5e-4,
    )


@pytest.mark.parametrize(("cycles", "lowest", "highest"), [(True, 0.85, 0.95), (False, 0.9, 0.9)])
def test_momentum_cycles_against_the_learning_rate_or_stays(
    cycles: bool, lowest: float, highest: float, tmp_path: Path
) -> None:
    seen: list[tuple[float, float]] = []

    def note(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        (group,) = optimizer.param_groups
        seen.append((group["lr"], group["momentum"]))

    handle = register_optimizer_step_post_hook(note)
    try:
        train(tmp_path, cycle_momentum=cycles)
    finally:
        handle.remove()
    rates, momenta = zip(*seen, strict=True)
    assert max(rates) > 10 * rates[0], "the learning rate cycles in either case"
    assert (min(momenta), max(momenta)) == pytest.approx((lowest, highest), abs=0.01)
    if cycles:
        assert momenta[rates.index(max(rates))] == min(momenta)


@pytest.mark.parametrize("schedule", ["one_cycle", "cosine", "constant", "step"])
def test_every_schedule_learns(schedule: str, tmp_path: Path) -> None:
    module, data = small_module(), small_data()
    recipe = Recipe(epochs=12, batch=16, schedule=schedule)  # type: ignore[arg-type]
    curve = fit(module, data, recipe, Workspace(0, tmp_path, lambda line: None))
    assert len(curve) == 12 and curve[-1] > 0.6
    assert not module.training


# ---------------------------------------------------------------- determinism


def test_weights_follow_from_the_seed_alone(tmp_path: Path) -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    state = torch.random.get_rng_state()
    first = train(tmp_path / "1")
    torch.rand(100)
    again = train(tmp_path / "2")
    assert equal(first, again)
    assert not equal(first, train(tmp_path / "3", seed=1))
    torch.random.set_rng_state(state)
    assert torch.equal(torch.rand(3), expected)


@dataclass(frozen=True)
class Decoded:
    """A split that asks for worker processes."""

    inner: Arrays
    decodes = True

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, indices: Sequence[int]) -> tuple[Images, Labels]:
        assert torch.utils.data.get_worker_info() is not None
        return self.inner[indices]


def test_worker_processes_change_nothing(tmp_path: Path) -> None:
    data = small_data()
    assert isinstance(data.train, Arrays)
    decoded = replace(data, train=Decoded(data.train))
    assert equal(train(tmp_path / "1", epochs=2), train(tmp_path / "2", data=decoded, epochs=2))


def test_training_says_its_progress_and_nothing_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    lines: list[str] = []
    fit(small_module(), small_data(), replace(SMALL, epochs=2), Workspace(0, tmp_path, lines.append))
    assert len(lines) == 2
    assert lines[1].startswith("epoch 2 of 2, validation accuracy ") and lines[1].endswith("%")
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


# ---------------------------------------------------------------- masks and divergence


def test_after_step_runs_after_every_step(tmp_path: Path) -> None:
    seen = []

    def mask(module: nn.Module) -> None:
        weight = module[0].weight  # type: ignore[index]
        seen.append(int(weight[0].count_nonzero()))
        with torch.no_grad():
            weight[0] = 0

    module = small_module()
    fit(module, small_data(), SMALL, Workspace(0, tmp_path, lambda line: None), after_step=mask)
    assert len(seen) == SMALL.epochs * STEPS
    assert not module[0].weight[0].any()  # type: ignore[index]


def test_divergence_is_said_and_leaves_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(Divergence, match="loss is nan in epoch 1 of 4 with learning rate 1e\\+30"):
        train(tmp_path, learning_rate=1e30, schedule="constant")
    assert not list(tmp_path.iterdir())


def test_channels_last_is_kept_from_the_convolutions_that_it_breaks() -> None:
    # Seen to end training with a corrupted heap, on two threads.
    narrow, wide = (CifarResnet18(width=width).module((3, 32, 32), 10) for width in (0.125, 0.25))
    assert not channels_last_is_safe(narrow)
    assert channels_last_is_safe(wide)


# ---------------------------------------------------------------- resuming


@pytest.mark.parametrize("damage", ["torn", "garbage", "other recipe", "other network"])
def test_a_useless_checkpoint_is_said_and_not_used(damage: str, tmp_path: Path) -> None:
    expected = train(tmp_path / "undisturbed", epochs=2)
    folder = tmp_path / "folder"
    lines: list[str] = []
    checkpoint = folder / CHECKPOINT
    train(folder, epochs=3 if damage == "other recipe" else 2)
    if damage == "torn":
        checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    if damage == "garbage":
        checkpoint.write_bytes(b"garbage")
    if damage == "other network":
        saved = torch.load(checkpoint, weights_only=True)
        saved["state_dict"]["module.0.bias"] = torch.zeros(9)
        torch.save(saved, checkpoint)
    module = small_module()
    fit(module, small_data(), replace(SMALL, epochs=2), Workspace(0, folder, lines.append))
    assert "starting anew" in lines[0] and len(lines) == 3
    assert equal(module.state_dict(), expected)


def test_a_finished_training_is_not_repeated(tmp_path: Path) -> None:
    expected = train(tmp_path)
    lines: list[str] = []
    module = small_module()
    curve = fit(module, small_data(), SMALL, Workspace(0, tmp_path, lines.append))
    assert not lines and len(curve) == SMALL.epochs
    assert equal(module.state_dict(), expected)


def killed_in(folder: Path, moment: tuple[str, int]) -> None:
    """Train, and kill the own process at a step, a line said, or a checkpoint not yet in place."""
    torch.set_num_threads(1)
    kind, countdown = moment

    def occasion(name: str) -> Callable[..., None]:
        def happen(*arguments: object) -> None:
            nonlocal countdown
            countdown -= name == kind
            if countdown == 0 and name == kind:
                os.kill(os.getpid(), signal.SIGKILL)

        return happen

    replace_file = os.replace

    def put_in_place(source: Any, target: Any) -> None:
        occasion("replace")()
        replace_file(source, target)

    os.replace = put_in_place  # type: ignore[assignment]
    module = small_module()
    workspace = Workspace(0, folder, occasion("say"))
    fit(module, small_data(), SMALL, workspace, after_step=occasion("step"))
    torch.save(module.state_dict(), folder / "final.pt")


def test_killed_at_any_moment_and_resumed_it_ends_with_the_same_weights(tmp_path: Path) -> None:

    def run(folder: Path, moment: tuple[str, int]) -> int | None:
        process = WARM.Process(target=killed_in, args=(folder, moment))
        process.start()
        process.join()
        return process.exitcode

    never = ("step", 10_000)
    assert run(tmp_path / "undisturbed", never) == 0
    expected = torch.load(tmp_path / "undisturbed" / "final.pt")
    # Each from the last whole epoch on: within an epoch, before its checkpoint, and with one half done.
    moments = [
        ("step", 2),
        ("step", STEPS),
        ("say", 1),
        ("step", STEPS + 1),
        ("replace", 1),
        ("step", STEPS + 2),
    ]
    for moment in moments:
        assert run(tmp_path / "killed", moment) == -signal.SIGKILL, moment
    assert run(tmp_path / "killed", never) == 0
    assert equal(torch.load(tmp_path / "killed" / "final.pt"), expected)


# ---------------------------------------------------------------- the short recipe


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "name", ["cifar_resnet18", "cifar_mobilenet_v1", "cifar_mobilenet_v2", "cifar_vgg16"]
)
def test_the_short_recipe_reaches_97_percent_on_digits(name: str, tmp_path: Path) -> None:
    data = parts.make("dataset", "digits", {}).load()
    network = parts.make("model", name, {"width": 0.25}).build(data, Workspace(0, tmp_path))
    assert network.facts.accuracy >= 0.97, network.facts
    assert network.facts.trained and network.facts.test_images == 450
