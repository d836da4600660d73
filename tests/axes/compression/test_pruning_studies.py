"""Studies of pruning: what they train, how they resume, chain and end, and what they refuse."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from dlas.axes.compression.block_pruning import BlockPruning
from dlas.axes.compression.channel_pruning import ChannelPruning
from dlas.axes.compression.pruning.masked import MaskedPruning
from dlas.axes.compression.weight_pruning import WeightPruning
from dlas.bench.store.cache import Cache
from dlas.errors import InputError, Unsupported
from dlas.networks import training
from dlas.networks.exporting import as_onnx
from dlas.stack import Data, Facts
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.study.chain import Chain
from dlas.sweep.study.point import NONE
from tests.fixtures import commands
from tests.fixtures.stubs import StubNetwork
from tests.fixtures.tiny import (
    CLASSES,
    LEVELS,
    NOISE,
    SHAPE,
    NoConvolutions,
    make_network,
    network_of,
    network_steps,
    study_of,
    text_of,
    the_point,
    tiny,
    tiny_data,
    weights_of,
    workspace,
)

TECHNIQUES = (WeightPruning, ChannelPruning, BlockPruning)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small only lose by a second thread, most of all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# ---------------------------------------------------------------- what is trained for a study


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The epochs of every training from here on."""
    counted: list[int] = []

    def counting(module: nn.Module, data: Data, recipe: Any, *more: Any, **options: Any) -> list[float]:
        counted.append(recipe.epochs)
        return fit(module, data, recipe, *more, **options)

    fit = training.fit
    monkeypatch.setattr(training, "fit", counting)
    return counted


def test_five_levels_train_each_step_once_and_studies_share(trainings: list[int], tmp_path: Path) -> None:
    levels = study_of(LEVELS % '[0.9, 0.5, 0.85, "elbow", 0.7]')
    # How the elbow is chosen trains nothing anew, and neither does a level that says how it would be.
    knees = LEVELS.replace("level", 'elbow = "knee", tolerance = 0.02, level') % '[0.6, 0.85, "elbow"]'
    for study in (levels, study_of(knees)):
        for point in study.points():
            make_network(point, tmp_path)
    grid_and_one_more = len(WeightPruning.GRID) + 1
    assert trainings == [15] + [1] * grid_and_one_more  # the network itself first
    reached = [make_network(point, tmp_path)[-1].facts["reached"] for point in study_of(knees).points()]
    assert [each["level"] for each in reached][:2] == [0.6, 0.85]
    assert [point["level"] for point in reached[2]["curve"]] == [0.0, *WeightPruning.GRID]


@pytest.mark.parametrize(
    ("level", "milestones"),
    [
        (0.85, [0.5, 0.6, 0.7, 0.8]),
        (0.8, [0.5, 0.6, 0.7]),
        (0.3, []),
        (0.999, list(WeightPruning.GRID)),
        ("elbow", list(WeightPruning.GRID)),
    ],
)
def test_a_level_branches_from_the_step_of_the_grid_below(level: Any, milestones: list[float]) -> None:
    assert [each["level"] for each in WeightPruning(level=level).milestones(labelled=True)] == milestones


def test_epochs_are_shared_evenly_among_the_grids_levels() -> None:
    for technique, total in ((WeightPruning, 210), (ChannelPruning, 210), (ChannelPruning, 7)):
        part = technique(level=0.5, recipe="cifar10", epochs=total)
        shares = [part.fine_tuning(level, tiny_data(), True).epochs for level in technique.GRID]  # type: ignore[union-attr]
        assert max(shares) - min(shares) <= 1
        assert sum(shares) == max(total, len(shares))


def test_the_papers_fine_tuning() -> None:
    for name, epochs, rate, schedule in (
        ("cifar10", 30, 5e-2, "one_cycle"),
        ("imagenet", 20, 1e-3, "cosine"),
    ):
        recipe = WeightPruning(level=0.5, recipe=name).fine_tuning(0.5, tiny_data(), True)  # type: ignore[arg-type]
        assert recipe is not None
        assert (recipe.epochs, recipe.learning_rate, recipe.schedule) == (epochs, rate, schedule)
        assert (recipe.momentum, recipe.weight_decay) == (0.9, 5e-4)
        assert not (recipe.schedule == "one_cycle" and recipe.cycle_momentum)
    assert WeightPruning.GRID == (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
    np.testing.assert_allclose(ChannelPruning.GRID, [*np.arange(0.05, 0.96, 0.05), 0.99])


# ---------------------------------------------------------------- killed and resumed


def killed_in(axes: str, root: Path, countdown: int) -> None:
    """Make a point's networks, and kill the own process at a step of fine-tuning."""
    torch.set_num_threads(1)

    def happen(*_: Any) -> None:
        nonlocal countdown
        countdown -= 1
        if countdown == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    point = the_point(axes)
    make_network(replace(point, compression=NONE), root)
    register_optimizer_step_post_hook(happen)
    make_network(point, root)


@pytest.mark.slow
def test_killed_at_any_step_it_resumes_to_the_same_weights(tmp_path: Path, trainings: list[int]) -> None:
    axes = LEVELS.replace("epochs = 7", "epochs = 14") % 0.7  # two epochs of three batches a level
    expected = [each.files for each in make_network(the_point(axes), tmp_path / "undisturbed")]
    made = []
    # In the second epoch of the first level; in the first of the next, and again; in the last step of all.
    for countdown in (5, 5, 2, 3 + 6):
        process = commands.WARM.Process(target=killed_in, args=(axes, tmp_path / "killed", countdown))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        made.append(len(list((tmp_path / "killed" / "network").iterdir())))
    assert made == [1, 2, 2, 3]
    del trainings[:]
    assert [each.files for each in make_network(the_point(axes), tmp_path / "killed")] == expected
    assert trainings == [2]  # the last level alone


# ---------------------------------------------------------------- chains


def test_a_chain_applies_its_techniques_in_order(tmp_path: Path) -> None:
    links = [
        '{ name = "weight_pruning", epochs = 7, level = 0.5 }',
        '{ name = "block_pruning", level = 0.6, epochs = 7 }',
    ]
    there = the_point(f"compression = [{{ chain = [{links[0]}, {links[1]}] }}]")
    back = the_point(f"compression = [{{ chain = [{links[1]}, {links[0]}] }}]")
    alone = the_point(f"compression = [{links[0]}]")
    one, other, single = (make_network(point, tmp_path) for point in (there, back, alone))
    assert [each.key for each in one[:2]] == [each.key for each in single]  # the first link is shared
    assert [each.facts["reached"].get("level") for each in one] == [None, 0.5, 0.5, 0.6]
    assert [each.facts["reached"].get("level") for each in other] == [None, 0.5, 0.6, 0.5]
    first, last = weights_of(one[1]), weights_of(one[-1])
    assert all((last[name][first[name] == 0] == 0).all() for name in first)
    assert one[-1].files != other[-1].files
    assert isinstance(there.compression.make("compression"), Chain)


def test_a_chain_goes_on_from_the_elbow(tmp_path: Path) -> None:
    links = '{ name = "weight_pruning", level = "elbow" }, { name = "block_pruning", level = 0.6 }'
    steps_of = network_steps(the_point(f"compression = [{{ chain = [{links}] }}]"), tmp_path)
    assert len(steps_of) == 1 + 7 + 1 + 2
    assert [step["key"] for step in steps_of[-1].arguments["predecessors"]] == [
        each.key for each in steps_of[-3:-1]
    ]


# ---------------------------------------------------------------- without labels, without training


@pytest.mark.parametrize("technique", ["weight_pruning", "channel_pruning", "block_pruning"])
def test_noise_is_pruned_at_once_and_has_no_accuracy(
    technique: str, trainings: list[int], tmp_path: Path
) -> None:
    point = the_point(f'{NOISE}\ncompression = [{{ name = "{technique}", level = 0.9 }}]')
    dense, made = make_network(point, tmp_path)
    assert trainings == []
    assert made.facts["accuracy"] is made.facts["validation_accuracy"] is None
    assert made.facts["reached"]["units"] == pytest.approx(0.9, abs=0.01)
    before, after = weights_of(dense), weights_of(made)
    assert all(torch.equal(after[name][after[name] != 0], before[name][after[name] != 0]) for name in before)


@pytest.mark.parametrize("technique", [WeightPruning, BlockPruning])
def test_pruning_at_once_equals_pruning_level_by_level_without_training(
    technique: type[MaskedPruning],
) -> None:
    at_once, by_levels = tiny(), tiny()
    part = technique(level=0.9, recipe="none")
    assert part.milestones(labelled=True) == []
    part.prune(at_once, 0.9, tiny_data(), workspace(Path()))
    for level in technique.GRID[:5]:
        part.prune(by_levels, level, tiny_data(), workspace(Path()))
    assert all(
        torch.equal(a, b)
        for a, b in zip(at_once.module.parameters(), by_levels.module.parameters(), strict=True)
    )


def test_an_untrained_network_on_labelled_images_is_not_fine_tuned(
    trainings: list[int], tmp_path: Path
) -> None:
    untrained = 'model = [{ name = "tests.fixtures.tiny:TinyModel", recipe = "none" }]\n'
    *_, made = make_network(the_point(untrained + LEVELS.replace("epochs = 7, ", "") % 0.6), tmp_path)
    assert trainings == [] and made.facts["accuracy"] is None
    asked = 'compression = [{ name = "weight_pruning", level = 0.6, recipe = "short" }]'
    with pytest.raises(Unsupported, match="needs a trained network and labels; use recipe = 'none'"):
        make_network(the_point(untrained + asked), tmp_path)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("level = 1.2", "level = 1.2: Input should be less than 1"),
        ("level = 1", "level = 1: Input should be less than 1"),
        ("level = 0", "level = 0: Input should be greater than 0"),
        ("level = -0.5", "level = -0.5: Input should be greater than 0"),
        ('level = "elbo"', "level = 'elbo': .*'elbow'"),
        ("level = [0.5, [0.6, 0.7]]", r"level = \[0.6, 0.7\]: Input should be a valid number"),
        ("level = []", "an option with an empty list"),
        ("epochs = 3", "needs the option 'level'"),
        ("level = 0.5, tolerance = 1.0", "tolerance = 1.0: Input should be less than 1"),
        ('level = 0.5, scope = "everywhere"', "scope = 'everywhere': .*'global' or 'layer'"),
        ("level = 0.5, epoch = 3", "unknown option .* 'epoch'; did you mean 'epochs'"),
        ("level = 0.5, learning_rate = 0", "learning_rate = 0: Input should be greater than 0"),
    ],
)
def test_bad_options_are_one_clear_message(options: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        study_of(f'compression = [{{ name = "weight_pruning", {options} }}]')


def test_options_without_a_fine_tuning_are_refused_before_anything_is_written() -> None:
    part = WeightPruning(level=0.5, recipe="none", epochs=3)
    with pytest.raises(InputError, match="epochs = 3 has no effect with recipe = 'none'"):
        part.verify()
    with pytest.raises(InputError, match="epochs = 3"):
        Chain((WeightPruning(level=0.5), part)).verify()


@pytest.mark.parametrize("other", [{"criterion": "taylor"}, {"criterion": "random"}, {"scope": "layer"}])
def test_an_importance_that_nothing_would_ask_for_is_refused(other: dict[str, Any]) -> None:
    ChannelPruning(level=0.5, **other).verify()
    ChannelPruning(level=0.5, importance="plain").verify()
    with pytest.raises(
        InputError, match=r"importance = 'plain' has no effect with criterion = .*'l1'.*'global'"
    ):
        ChannelPruning(level=0.5, importance="plain", **other).verify()


def test_networks_that_cannot_be_pruned_say_why(tmp_path: Path) -> None:
    linear = network_of(NoConvolutions().module(SHAPE, CLASSES))
    for technique in TECHNIQUES:
        with pytest.raises(Unsupported, match="no convolution that this technique prunes"):
            technique(level=0.5).compress(linear, tiny_data(), workspace(tmp_path))
    depthwise = network_of(nn.Sequential(nn.Conv2d(3, 3, 3, groups=3)))
    with pytest.raises(Unsupported, match="no convolution that this technique prunes"):
        BlockPruning(level=0.5).compress(depthwise, tiny_data(), workspace(tmp_path))
    graph = StubNetwork(Facts(SHAPE, CLASSES), 1.0)
    with pytest.raises(Unsupported, match="this network is an ONNX graph"):
        WeightPruning(level=0.5).compress(graph, tiny_data(), workspace(tmp_path))


def test_a_fine_tuning_that_diverges_leaves_no_network(tmp_path: Path) -> None:
    point = the_point(LEVELS.replace("epochs = 7", "epochs = 7, learning_rate = 1e6") % 0.6)
    with pytest.raises(training.Divergence, match=r"training diverged: .* with learning rate 1e\+06"):
        make_network(point, tmp_path)
    dense, *_ = network_steps(point, tmp_path)
    assert [path.name for path in (tmp_path / "network").iterdir()] == [dense.key]
    assert list((tmp_path / "aside").iterdir()) == []


# ---------------------------------------------------------------- as rows


def start(folder: Path, axes: str) -> ForkServerProcess:
    """Run a study in a process of its own."""
    (folder / "study.toml").write_text(text_of(axes))
    return commands.start(folder, "run", "study.toml", "--out", "out", output=folder / "said")


def finish(folder: Path, axes: str) -> list[Row]:
    """Run a study to its end."""
    process = start(folder, axes)
    process.join()
    assert process.exitcode == 0, (folder / "said").read_text()
    return list(read_rows(folder / "out"))


@pytest.mark.slow
def test_what_cannot_be_pruned_is_a_row_with_its_reason(tmp_path: Path) -> None:
    onnx.save(as_onnx(tiny(), None), tmp_path / "tiny.onnx")
    save_file(nn.Conv2d(3, 8, 3).state_dict(), tmp_path / "another.safetensors")
    rows = finish(
        tmp_path,
        f"""
model = ["tests.fixtures.tiny:TinyModel", "tests.fixtures.tiny:NoConvolutions",
         {{ name = "onnx", path = "{tmp_path}/tiny.onnx" }},
         {{ name = "tests.fixtures.tiny:TinyModel", weights = "{tmp_path}/another.safetensors" }}]
compression = [{{ name = "weight_pruning", level = 0.5, epochs = 7, learning_rate = [0.01, 1e6] }}]
""",
    )
    ends = {}
    for row in rows:
        ends[row.model["name"], "weights" in row.model, row.compression["learning_rate"]] = (
            row.status,
            row.reason,
        )
    module = "tests.fixtures.tiny:"
    assert ends[module + "TinyModel", False, 0.01] == ("ok", None)
    status, reason = ends[module + "TinyModel", False, 1e6]
    assert status == "failed" and (reason or "").startswith("network: Divergence: training diverged: ")
    for rate in (0.01, 1e6):
        no_convolution = "the network has no convolution that this technique prunes"
        assert ends[module + "NoConvolutions", False, rate] == ("unsupported", no_convolution)
        status, reason = ends["onnx", False, rate]
        assert status == "unsupported" and "ONNX graph" in (reason or "")
        status, reason = ends[module + "TinyModel", True, rate]
        assert status == "failed" and "another.safetensors' are not for this network" in (reason or "")
    cache = Cache(tmp_path / "cache")
    for row in rows:
        made = cache.get("network", row.artifacts["network"])
        assert (made is not None) == (row.status == "ok")
    # The dense networks of three models, and the one that was pruned.
    assert len(list((tmp_path / "cache" / "network").iterdir())) == 4


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_sweeps_end_with_the_rows_of_an_undisturbed_one(tmp_path: Path) -> None:
    axes = LEVELS.replace("epochs = 7", "epochs = 14") % '[0.7, 0.9, "elbow"]'

    def lasting(rows: list[Row]) -> list[tuple[str, ...]]:
        kept = ("id", "key", "status", "accuracy", "validation_accuracy", "nonzeros", "artifacts", "error")
        return sorted(tuple(repr(getattr(row, name)) for name in kept) for row in rows)

    def weights(folder: Path) -> dict[str, bytes]:
        made = (folder / "cache" / "network").glob("*/weights.safetensors")
        return {path.parent.name: path.read_bytes() for path in made}

    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    undisturbed.mkdir()
    began = time.monotonic()
    expected = lasting(finish(undisturbed, axes))
    seconds = time.monotonic() - began
    chance = random.Random(0)
    for number in range(6):
        folder = killed / f"{number}"
        folder.mkdir(parents=True)
        for _ in range(3):
            process = start(folder, axes)
            time.sleep(chance.uniform(0.3, 1) * seconds)
            process.kill()
            process.join()
        assert lasting(finish(folder, axes)) == expected
        assert weights(folder) == weights(undisturbed)
        shutil.rmtree(folder)
