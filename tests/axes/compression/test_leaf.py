"""leaf: phases found, shallow phases counted, paths trained together, legacy networks kept to the bit."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision
from torch import nn
from torch.nn import functional

from dlas.axes.compression.compact_channel_pruning import CompactChannelPruning
from dlas.axes.compression.flexible.loss import MOST, PathLoss
from dlas.axes.compression.flexible.module import flexible
from dlas.axes.compression.flexible.network import FlexibleNetwork
from dlas.axes.compression.flexible.phases import find_phases
from dlas.axes.compression.flexible.recipes import PAPER, PAPER_DEPTHWISE, recipe_for
from dlas.axes.compression.flexible.scoring import path_accuracies, path_macs, undominated
from dlas.axes.compression.leaf import Leaf
from dlas.bench.store.cache import Cache
from dlas.errors import InputError, Unsupported
from dlas.networks.counting import count_macs
from dlas.networks.scoring import accuracy
from dlas.networks.torch.network import TorchNetwork, conv_weights
from dlas.networks.training import CHECKPOINT
from dlas.stack import Workspace
from dlas.sweep.engine.steps.artifacts import restore_network
from dlas.sweep.engine.steps.samples import load_sample
from dlas.sweep.study import parts
from dlas.testing.networks import TwoStages
from tests.fixtures.flexible import staged
from tests.fixtures.tiny import CLASSES, SHAPE, make_network, network_of, the_point, tiny_data, workspace

IMAGE = (3, 32, 32)


def cifar(name: str) -> nn.Module:
    """Return a narrow network for small images."""
    made = parts.find("model", name).make({"width": 0.25})
    module: nn.Module = made.module(IMAGE, 10)
    return module.eval()


def images(count: int = 4, shape: tuple[int, int, int] = SHAPE) -> torch.Tensor:
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(1))


def trained(folder: Path, part: Leaf | None = None) -> FlexibleNetwork:
    """Return a flexible network after an epoch or two of base training."""
    made = (part or Leaf("all", epochs=2)).compress(network_of(staged()), tiny_data(), workspace(folder))
    assert isinstance(made, FlexibleNetwork)
    return made


# ---------------------------------------------------------------- phases and counts


def test_resnet50_gets_the_papers_parameters_and_multiply_adds() -> None:
    module = flexible(torchvision.models.resnet50(weights=None), 0.25, 0)
    extra = sum(parameter.numel() for parameter in module.shallow.parameters())
    legacy = sum(parameter.numel() for parameter in module.legacy.parameters())
    assert [phase.name for phase in module.phases] == ["layer1", "layer2", "layer3", "layer4"]
    assert extra == 3_527_872
    assert extra / legacy == pytest.approx(0.138, abs=5e-4)
    macs = path_macs(module, (3, 224, 224), ["0000", "1111"])
    assert macs["0000"] == pytest.approx(4.09e9, rel=0.01)
    assert macs["1111"] == pytest.approx(0.70e9, rel=0.01)


def test_mobilenet_v2_has_the_five_groups_of_several_blocks() -> None:
    module = flexible(torchvision.models.mobilenet_v2(weights=None), 0.25, 0)
    assert len(module.paths) == 32
    names = ["features.2-3", "features.4-6", "features.7-10", "features.11-13", "features.14-16"]
    assert [phase.name for phase in module.phases] == names
    extra = sum(parameter.numel() for parameter in module.shallow.parameters())
    assert extra == 237_216  # 6.77 % of 3,504,872
    assert 32 * path_macs(module, (3, 224, 224), ["11111"])["11111"] == pytest.approx(4.57e9, rel=0.005)


@pytest.mark.parametrize(
    ("name", "count"),
    [("cifar_resnet18", 4), ("cifar_mobilenet_v1", 4), ("cifar_mobilenet_v2", 5), ("cifar_vgg16", 5)],
)
def test_cifar_networks_have_their_stages(name: str, count: int) -> None:
    legacy = cifar(name)
    module = flexible(legacy, 0.25, 0)
    assert len(module.phases) == count
    every, given = "1" * count, images(2, IMAGE)
    with torch.no_grad():
        together = module.outputs(given, ["0" * count, every])
        assert torch.equal(together["0" * count], legacy(given))
        assert torch.equal(together[every], module.at(every)(given))
    assert count_macs(module.at(every), IMAGE) == path_macs(module, IMAGE, [every])[every]
    assert path_macs(module, IMAGE, [every])[every] < count_macs(legacy, IMAGE)


@pytest.mark.parametrize("name", ["squeezenet1_1", "densenet121", "efficientnet_b0"])
def test_other_networks_are_unsupported(name: str) -> None:
    module = torchvision.models.get_model(name, weights=None)
    with pytest.raises(Unsupported, match=r"^leaf (finds no phases|cannot narrow)"):
        flexible(module, 0.25, 0)


def test_a_network_without_phases_is_unsupported(tmp_path: Path) -> None:
    network = network_of(nn.Sequential(nn.Flatten(), nn.Linear(192, CLASSES)))
    with pytest.raises(Unsupported, match=r"finds no phases in this network \(Sequential\): it knows"):
        Leaf("all").compress(network, tiny_data(), workspace(tmp_path))


def test_a_grouped_convolution_in_a_phase_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="convolution in 32 groups"):
        flexible(torchvision.models.resnext50_32x4d(weights=None), 0.25, 0)


def test_a_shallow_phase_is_drawn_from_its_phase() -> None:
    module = flexible(staged(), 0.5, 0)
    wide, last = (module.legacy.state_dict()[f"layer1.{block}.0.weight"] for block in (0, 1))
    narrow, *_, back = conv_weights(module.shallow[0]).values()
    assert narrow.shape == (8, 16, 3, 3)
    assert all((filters == wide).flatten(1).all(1).any() for filters in narrow)
    assert set(back.flatten().tolist()) <= set(last.flatten().tolist())
    other = flexible(staged(), 0.5, 1)
    assert not torch.equal(narrow, next(iter(conv_weights(other.shallow[0]).values())))


def test_a_shortcut_of_all_channels_is_projected_to_those_that_are_kept() -> None:
    # The first block of ResNet-18's first stage adds its input to fewer channels.
    module = flexible(cifar("cifar_resnet18"), 0.5, 0)
    weights = conv_weights(module.shallow[0])
    (projection,) = (weight for name, weight in weights.items() if "projection" in name)
    assert torch.equal(projection.flatten(1).sum(1), torch.ones(len(projection)))
    assert set(projection.flatten().tolist()) == {0, 1}


# ---------------------------------------------------------------- paths


def test_paths_together_are_those_alone() -> None:
    module = flexible(staged(), 0.5, 0)
    with torch.no_grad():
        outputs = module.outputs(images(), module.paths)
        assert list(outputs) == module.paths == ["00", "01", "10", "11"]
        for path, found in outputs.items():
            assert torch.equal(found, module.at(path)(images()))
    assert not torch.equal(outputs["00"], outputs["11"])


def test_what_paths_share_is_computed_once() -> None:
    module, calls = flexible(staged(), 0.5, 0), []
    for name in ("stem.0", "layer1", "layer2"):
        layer = module.legacy.get_submodule(name)
        layer.register_forward_hook(lambda *_, name=name: calls.append(name))
    module.outputs(images(), module.paths)
    assert sorted(calls) == ["layer1", "layer2", "layer2", "stem.0"]


def test_the_network_at_a_path_keeps_names_and_shares_tensors() -> None:
    module = flexible(staged(), 0.5, 0)
    own = module.legacy.state_dict()
    assert list(module.at("00").state_dict()) == list(own)
    at = module.at("01").state_dict()
    assert at["layer1.0.0.weight"].data_ptr() == own["layer1.0.0.weight"].data_ptr()
    assert any(name.startswith("layer2.0.") for name in at) and "layer2.0.0.weight" not in at


@pytest.mark.parametrize("path", ["0", "011", "0a", ""])
def test_a_wrong_path_is_said(path: str) -> None:
    with pytest.raises(Unsupported, match=r"has 2 phases \(layer1, layer2\), and a path .*00 to 11"):
        flexible(staged(), 0.5, 0).at(path)


def test_options_are_checked() -> None:
    leaf = parts.find("compression", "leaf")
    with pytest.raises(InputError, match=r"option path = '01x': .*pattern"):
        leaf.validate("leaf", {"path": "01x"})
    with pytest.raises(InputError, match="option keep = '0 2'"):
        leaf.validate("leaf", {"path": "01", "keep": "0 2"})
    with pytest.raises(InputError, match="keep = '01' has no effect with stage = 'base'"):
        Leaf("01", keep="01").verify()
    with pytest.raises(InputError, match="keep = '00 00' leaves nothing to train: the path of zeros"):
        Leaf("01", stage="fine_tuned", keep="00 00").verify()
    with pytest.raises(InputError, match="epochs = 3 has no effect"):
        Leaf("01", recipe="none", epochs=3).verify()


# ---------------------------------------------------------------- the loss


def test_the_loss_is_that_written_out() -> None:
    paths, labels = ["00", "01", "11"], torch.tensor([0, 1, 2, 3])
    module = flexible(staged(), 0.5, 0)
    loss = PathLoss(paths)
    earlier = loss(module, images(), labels)
    assert earlier.item() == pytest.approx(1)  # each loss is its own mean
    before = [functional.cross_entropy(module.at(path)(images()), labels).detach() for path in paths]
    given = images() * 2
    module.zero_grad()
    total = loss(module, given, labels)
    total.backward()
    named = dict(module.shallow.named_parameters())
    found = {name: value.grad.clone() for name, value in named.items() if value.grad is not None}
    module.zero_grad()
    written = torch.zeros(())
    for path, first in zip(paths, before, strict=True):
        now = functional.cross_entropy(module.at(path)(given), labels)
        written = written + now / ((first + now.detach()) / 2) / 3
    written.backward()
    torch.testing.assert_close(total, written)
    assert found
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, named[name].grad)


def test_the_mean_is_of_the_last_hundred_steps() -> None:
    loss = PathLoss(["0"])
    values = torch.arange(1.0, 151.0)
    means = [float(loss._mean(0, value)) for value in values]
    assert means[:3] == [1, 1.5, 2]
    assert means[-1] == pytest.approx(float(values[-100:].mean()))
    assert float(PathLoss(["0"])._mean(0, torch.tensor(0.0))) > 0


def test_of_many_paths_some_are_drawn() -> None:
    loss = PathLoss([f"{number:05b}" for number in range(32)])
    torch.manual_seed(0)
    first, second = loss._drawn(), loss._drawn()
    assert len(set(first)) == MOST and first != second
    assert PathLoss(["0", "1"])._drawn() == [0, 1]


# ---------------------------------------------------------------- training


def test_training_leaves_the_legacy_network_as_it_was_and_makes_paths_better(tmp_path: Path) -> None:
    legacy = copy.deepcopy(staged().state_dict())
    data = tiny_data()
    untrained = Leaf("all", recipe="none").compress(network_of(staged()), data, workspace(tmp_path / "a"))
    made = trained(tmp_path / "b", Leaf("all", epochs=6))
    assert isinstance(untrained, FlexibleNetwork)
    for network in (untrained, made):
        state = network.module.legacy.state_dict()
        assert all(torch.equal(state[name], tensor) for name, tensor in legacy.items())
        own = TorchNetwork(staged(), network.facts)
        assert np.array_equal(network.at("00").reference(images().numpy()), own.reference(images().numpy()))
    assert made.module.active == "00" and not made.module.training
    assert all(parameter.requires_grad for parameter in made.module.parameters())
    before, after = (path_accuracies(net.module, data.validation, ["11"])["11"] for net in (untrained, made))
    assert after > before
    told = made.facts.reached
    assert (told["path"], told["stage"], told["kept"]) == ("all", "base", ["00", "01", "10", "11"])
    assert told["paths"]["11"]["accuracy"] == accuracy(made.at("11"), data.test)
    assert made.at("11").facts.accuracy == told["paths"]["11"]["accuracy"]
    assert made.at("11").facts.macs == told["paths"]["11"]["macs"]
    assert "paths" not in made.at("11").facts.reached


def test_an_interrupted_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    expected = trained(tmp_path / "whole", Leaf("all", epochs=3)).module.state_dict()

    class Interrupted(Exception):
        pass

    def say(line: str) -> None:
        if line.startswith("epoch 2"):
            raise Interrupted

    part, folder = Leaf("all", epochs=3), tmp_path / "broken"
    with pytest.raises(Interrupted):
        part.compress(network_of(staged()), tiny_data(), Workspace(0, folder, say))
    assert (folder / CHECKPOINT).exists()
    resumed = trained(folder, part).module.state_dict()
    assert all(torch.equal(resumed[name], tensor) for name, tensor in expected.items())


def test_fine_tuning_is_on_the_paths_that_are_kept(tmp_path: Path) -> None:
    base = trained(tmp_path / "base")
    told = base.facts.reached["paths"]
    best = undominated(
        {path: facts["validation_accuracy"] for path, facts in told.items()},
        {path: facts["macs"] for path, facts in told.items()},
    )
    for keep, kept in (("auto", best), ("00 11", ["00", "11"])):
        part = Leaf("all", stage="fine_tuned", keep=keep, epochs=1)
        tuned = part.compress(copy.deepcopy(base), tiny_data(), workspace(tmp_path / keep))
        assert (tuned.facts.reached["stage"], tuned.facts.reached["kept"]) == ("fine_tuned", kept)
    wrong = Leaf("all", stage="fine_tuned", keep="000")
    with pytest.raises(Unsupported, match="path '000'"):
        wrong.compress(copy.deepcopy(base), tiny_data(), workspace(tmp_path / "wrong"))
    for path, facts in told.items():
        facts.update(macs=100, validation_accuracy=0.9 - 0.1 * path.count("1"))
    with pytest.raises(Unsupported, match="the Pareto set after base training is 00, which leaves nothing"):
        Leaf("all", stage="fine_tuned").compress(base, tiny_data(), workspace(tmp_path / "nothing"))


def test_fine_tuning_needs_a_trained_network(tmp_path: Path) -> None:
    network = network_of(staged(), trained=False)
    with pytest.raises(Unsupported, match="fine-tuning needs a trained network and labels"):
        Leaf("all", stage="fine_tuned").compress(network, tiny_data(), workspace(tmp_path))
    with pytest.raises(Unsupported, match="training paths needs a trained network"):
        Leaf("all", recipe="digits").compress(network, tiny_data(), workspace(tmp_path))


def test_the_papers_recipes() -> None:
    data = replace(tiny_data(), fine_tuning="cifar10")
    assert recipe_for("auto", data, torchvision.models.resnet18(weights=None)) is PAPER
    assert recipe_for("paper", data, torchvision.models.mobilenet_v2(weights=None)) is PAPER_DEPTHWISE
    base, tuned = PAPER_DEPTHWISE.base, PAPER_DEPTHWISE.fine_tuned
    assert (base.epochs, base.learning_rate, base.step_epochs, base.step_factor) == (80, 4.5e-3, 1, 0.96)
    assert (tuned.epochs, tuned.learning_rate, tuned.step_factor) == (100, 4.5e-4, 0.97)
    assert (PAPER.base.epochs, PAPER.base.learning_rate, PAPER.base.step_epochs) == (60, 0.1, 10)


# ---------------------------------------------------------------- in studies


def test_all_paths_of_a_study_are_trained_once(tmp_path: Path) -> None:
    axes = """
model = ["dlas.testing.networks:StagedModel"]
compression = [{ name = "leaf", path = "%s", epochs = 1 }]"""
    first = make_network(the_point(axes % "01"), tmp_path)
    again = make_network(the_point(axes % "11"), tmp_path)
    assert len(first) == len(again) == 3
    assert [artifact.key for artifact in first[:2]] == [artifact.key for artifact in again[:2]]
    assert first[2].facts["reached"]["path"] == "01"
    assert first[2].facts["macs"] == first[1].facts["reached"]["paths"]["01"]["macs"]


@pytest.mark.parametrize("trained", [True, False])
def test_only_beside_a_trained_network_do_new_phases_take_statistics_of_images(
    tmp_path: Path, trained: bool
) -> None:
    network = network_of(staged(), trained=trained)
    made = Leaf("all", recipe="none").compress(network, tiny_data(), workspace(tmp_path))
    assert isinstance(made, FlexibleNetwork)
    new = dict(flexible(staged(), 0.25, 0).shallow.named_buffers())
    buffers = {name: buffer for name, buffer in made.module.shallow.named_buffers() if buffer.dim()}
    assert buffers and {torch.equal(buffer, new[name]) for name, buffer in buffers.items()} == {not trained}


def test_an_untrained_network_is_stored_without_what_follows_from_its_seed(tmp_path: Path) -> None:
    axes = """
model = [{ name = "cifar_resnet18", width = 0.5 }]
dataset = [{ name = "random", size = 32, images = 16, classes = 10 }]
compression = [{ name = "leaf", path = "%s" }]"""
    sizes = {}
    for path in ("0000", "0001"):
        artifact = make_network(the_point(axes % path), tmp_path)[-1]
        sizes[path] = (artifact.folder / "weights.safetensors").stat().st_size
    assert 4 * sizes["0000"] < artifact.facts["model_bytes"]
    assert sizes["0000"] < sizes["0001"] < artifact.facts["model_bytes"]


@pytest.mark.parametrize(
    ("network", "path"),
    [
        ('model = ["dlas.testing.networks:StagedModel"]', "01"),
        (
            'model = [{ name = "cifar_resnet18", width = 0.25 }]\n'
            'dataset = [{ name = "random", size = 32, images = 16, classes = 10 }]',
            "0101",
        ),
    ],
)
def test_a_pruned_network_gets_shallow_phases_too(tmp_path: Path, network: str, path: str) -> None:
    point = the_point(f"""
{network}
compression = [{{ chain = [
    {{ name = "compact_channel_pruning", level = 0.3 }},
    {{ name = "leaf", path = "{path}", epochs = 1 }}] }}]""")
    *_, pruned, every, at = make_network(point, tmp_path)
    assert every.facts["reached"]["paths"]["0" * len(path)]["macs"] == pruned.facts["macs"]
    assert at.facts["macs"] == every.facts["reached"]["paths"][path]["macs"] < pruned.facts["macs"]
    restored = restore_network(Cache(tmp_path), at.key, point)
    sample = load_sample(Cache(tmp_path), at.key)
    assert np.array_equal(restored.reference(sample["images"]), sample["outputs"])


def test_removing_channels_of_a_path_is_unsupported(tmp_path: Path) -> None:
    at = trained(tmp_path / "flexible").at("01")
    with pytest.raises(Unsupported, match="path '01' of leaf has others: prune before leaf in the chain"):
        CompactChannelPruning(level=0.5).compress(at, tiny_data(), workspace(tmp_path / "pruned"))


def test_the_pareto_set_has_no_dominated_path() -> None:
    accuracies = {"00": 0.9, "01": 0.9, "10": 0.7, "11": 0.7}
    assert undominated(accuracies, {"00": 4, "01": 3, "10": 2, "11": 2}) == ["10", "11", "01"]


def test_phases_are_found_without_a_trace() -> None:
    assert [phase.modules for phase in find_phases(TwoStages(3, 4))] == [("layer1",), ("layer2",)]
