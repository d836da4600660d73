"""The model parts: their size, their weights, and what they refuse."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from safetensors.torch import save_file
from torch import nn

from dlas.axes.models.cifar_mobilenet_v1 import CifarMobilenetV1
from dlas.axes.models.cifar_vgg16 import CifarVgg16
from dlas.axes.models.torchvision import Torchvision, names
from dlas.errors import InputError, MissingData, Unsupported
from dlas.networks.counting import count_macs
from dlas.networks.recipes import RECIPES
from dlas.networks.scoring import accuracy
from dlas.networks.torch.model import TorchModel, scaled
from dlas.networks.torch.network import TorchNetwork
from dlas.networks.weights import load_weights, read_weights
from dlas.stack import Arrays, Facts, Workspace
from tests.fixtures.data import labelled, noise

CIFAR = {
    # name: (class, parameters and multiply-adds of Table 2, in millions)
    "cifar_resnet18": ("CifarResnet18", 11.2, 557),
    "cifar_mobilenet_v1": ("CifarMobilenetV1", 3.2, 48),
    "cifar_mobilenet_v2": ("CifarMobilenetV2", 2.3, 98),
    "cifar_vgg16": ("CifarVgg16", 14.7, 314),
}
IMAGENET = {
    # name: parameters and multiply-adds of Table 5, in millions
    "mobilenet_v2": (3.5, 327),
    "resnet50": (25.6, 4100),
    # Table 5 prints 27.7; torchvision's network, which it says it uses, has 28.7.
    "densenet161": (28.7, 7800),
    "efficientnet_b0": (5.3, 415),
}


def cifar_model(name: str, **options: Any) -> TorchModel:
    model: TorchModel = getattr(importlib.import_module(f"dlas.axes.models.{name}"), CIFAR[name][0])(
        **options
    )
    return model


def norm_elements(module: nn.Module, shape: tuple[int, int, int]) -> int:
    """Count the elements that batch norms put out for one image."""
    counted = []
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.register_forward_hook(lambda layer, read, written: counted.append(written.numel()))
    module.eval()(torch.empty(1, *shape, device=next(module.parameters()).device))
    return sum(counted)


# ---------------------------------------------------------------- size


@pytest.mark.parametrize("name", CIFAR)
def test_cifar_networks_have_the_size_of_table_2(name: str) -> None:
    _, parameters, macs = CIFAR[name]
    with torch.device("meta"):
        module = cifar_model(name).module((3, 32, 32), 10)
        own = count_macs(module, (3, 32, 32))
        norms = norm_elements(module, (3, 32, 32))
    assert round(sum(parameter.numel() for parameter in module.parameters()) / 1e6, 1) == parameters
    assert own < macs * 1e6
    # The paper's figure includes four operations an element of batch norm, and is cut, not rounded.
    assert (own + 4 * norms) // 10**6 == macs


@pytest.mark.parametrize("name", IMAGENET)
def test_torchvision_networks_have_the_size_of_table_5(name: str) -> None:
    parameters, macs = IMAGENET[name]
    with torch.device("meta"):
        module = Torchvision(name).module((3, 224, 224), 1000)
        own = count_macs(module, (3, 224, 224))
        norms = norm_elements(module, (3, 224, 224))
    assert round(sum(parameter.numel() for parameter in module.parameters()) / 1e6, 1) == parameters
    assert own / 1e6 < macs
    assert (own + 4 * norms) / 1e6 == pytest.approx(macs, rel=0.01)


@pytest.mark.parametrize("name", CIFAR)
def test_width_scales_and_every_layer_keeps_whole_vectors(name: str) -> None:
    narrow = cifar_model(name, width=0.25).module((1, 48, 48), 7)
    assert narrow(torch.zeros(2, 1, 48, 48)).shape == (2, 7)
    for layer in narrow.modules():
        if isinstance(layer, nn.Conv2d):
            assert layer.out_channels % 8 == 0


def test_scaled_is_exact_at_width_one() -> None:
    assert [scaled(channels, 1) for channels in (16, 24, 96, 160)] == [16, 24, 96, 160]
    assert [scaled(64, 0.25), scaled(24, 0.25), scaled(320, 0.25)] == [16, 8, 80]


def test_linear_layers_inside_attention_count_and_attention_itself_does_not() -> None:
    # Patches 16x16 of 32x32: 4 tokens and one of the class; 12 layers of 4 d^2 + 2 d * 4 d multiply-adds.
    module = Torchvision("vit_b_16").module((3, 32, 32), 10)
    tokens, d = 5, 768
    embedding = 4 * d * 3 * 16 * 16
    assert count_macs(module, (3, 32, 32)) == embedding + 12 * tokens * 12 * d * d + d * 10


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_every_torchvision_network_is_built_and_counted(name: str) -> None:
    # RegNets read numbers off tensors while they are built, which tensors without storage do not have.
    real = name.startswith("regnet")
    if name in ("regnet_y_128gf", "regnet_y_32gf"):
        pytest.skip("its weights take gigabytes")
    with torch.device("cpu" if real else "meta"):
        module = Torchvision(name).module((3, 224, 224), 10)
        assert count_macs(module, (3, 224, 224)) > 0


# ---------------------------------------------------------------- build, save, restore


@pytest.mark.parametrize(
    "model",
    [cifar_model(name, width=0.125) for name in CIFAR]
    + [Torchvision("googlenet"), Torchvision("mobilenet_v2"), Torchvision("mnasnet0_5")],
    ids=lambda model: getattr(model, "name", type(model).__name__),
)
def test_a_network_is_untrained_on_noise_and_restores_bit_for_bit(
    model: TorchModel, workspace: Workspace, tmp_path: Path
) -> None:
    data = noise(64)
    network = model.build(data, workspace)
    facts = network.facts
    assert (facts.trained, facts.note, facts.accuracy) == (False, "untrained", None)
    assert facts.parameters and facts.nonzeros and facts.macs and facts.model_bytes
    assert facts.parameters * 4 <= facts.model_bytes
    network.save(tmp_path)
    images, _ = data.test[[0, 1]]
    outputs = network.reference(images)
    assert outputs.shape == (2, 10) and outputs.dtype == np.float32
    np.testing.assert_array_equal(model.restore(tmp_path, facts).reference(images), outputs)


@pytest.mark.parametrize("name", CIFAR)
def test_an_untrained_networks_outputs_depend_on_the_image(name: str, workspace: Workspace) -> None:
    data = noise()
    network = cifar_model(name, width=0.25).build(data, workspace)
    outputs = network.reference(data.test[[0, 1, 2, 3]][0])
    assert np.ptp(outputs, axis=0).max() > 0.05 * np.abs(outputs).max()
    assert all(norm.momentum == 0.1 for norm in modules_of(network, nn.BatchNorm2d))


def modules_of(network: Any, kind: type[Any]) -> list[Any]:
    return [module for module in network.module.modules() if isinstance(module, kind)]


def test_random_weights_follow_from_the_seed_and_disturb_no_generator(tmp_path: Path) -> None:
    model, data = CifarMobilenetV1(width=0.125), noise()
    images, _ = data.test[[0]]
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first, again, other = (
        model.build(data, Workspace(seed, tmp_path)).reference(images) for seed in (0, 0, 1)
    )
    assert torch.equal(torch.rand(3), expected)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_auto_takes_what_suits_the_data_and_leaves_given_weights_alone() -> None:
    plain, digits_like = noise(), labelled(noise())
    assert CifarVgg16().recipe_for(plain) is None
    assert CifarVgg16().recipe_for(digits_like) == RECIPES["short"]
    assert CifarVgg16(weights="file.pt").recipe_for(digits_like) is None
    assert CifarVgg16(weights="file.pt", recipe="paper").recipe_for(digits_like) == RECIPES["paper"]
    assert CifarVgg16(epochs=3).recipe_for(digits_like) == replace(RECIPES["short"], epochs=3)
    assert Torchvision("resnet18").recipe_for(digits_like) is None


def test_epochs_of_no_training_are_refused_before_a_sweep() -> None:
    Torchvision("resnet18", epochs=3, recipe="auto").verify()
    for part in (Torchvision("resnet18", epochs=3), CifarVgg16(epochs=3, recipe="none")):
        with pytest.raises(InputError, match="epochs = 3 has no effect with recipe = 'none'"):
            part.verify()


def test_unlabelled_images_are_not_trained_on(workspace: Workspace) -> None:
    with pytest.raises(Unsupported, match="no labels to train on"):
        CifarMobilenetV1(recipe="short").build(noise(), workspace)


def test_images_too_small_for_a_network_are_unsupported(workspace: Workspace) -> None:
    with pytest.raises(Unsupported, match="cannot take images 3x8x8"):
        CifarVgg16(width=0.125).build(noise(8), workspace)
    with pytest.raises(Unsupported, match=r"alexnet.* cannot take images 3x32x32"):
        Torchvision("alexnet").build(noise(), workspace)


def test_accuracy_is_the_share_of_right_answers() -> None:
    images = np.zeros((5, 1, 1, 3), np.float32)
    images[range(5), 0, 0, [0, 1, 2, 0, 1]] = 1
    split = Arrays(images, np.array([0, 1, 2, 2, 2]))
    assert accuracy(lambda batch: batch.reshape(-1, 3), split) == 0.6
    network = TorchNetwork(nn.Flatten(), Facts((1, 1, 3), 3))
    assert accuracy(network, split) == 0.6


# ---------------------------------------------------------------- weights from files


@pytest.fixture
def state() -> dict[str, torch.Tensor]:
    return CifarMobilenetV1(width=0.125).module((3, 32, 32), 10).state_dict()


@pytest.mark.parametrize("suffix", ["safetensors", "pt"])
def test_weights_come_from_a_file(
    state: dict[str, torch.Tensor], suffix: str, tmp_path: Path, workspace: Workspace
) -> None:
    path = tmp_path / f"weights.{suffix}"
    if suffix == "pt":
        torch.save({"state_dict": state, "epoch": 3}, path)
    else:
        save_file(state, path)
    data = labelled(noise())
    network = CifarMobilenetV1(width=0.125, weights=str(path)).build(data, workspace)
    assert isinstance(network, TorchNetwork)
    assert all(torch.equal(tensor, state[name]) for name, tensor in network.module.state_dict().items())
    assert network.facts.trained and network.facts.note == f"weights from {path}"
    assert network.facts.accuracy is not None and network.facts.test_images == 4


class Called:
    """Pickled as a call of print."""

    def __reduce__(self) -> tuple[object, ...]:
        return print, ("executed",)


def test_damaged_weights_are_refused_in_one_line(
    state: dict[str, torch.Tensor], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = tmp_path / "whole.safetensors"
    save_file(state, whole)
    contents = {
        "torn.safetensors": whole.read_bytes()[:1000],
        "empty.pt": b"",
        "text.pt": b"hello",
        "torn.pt": None,
        "called.pt": Called(),
        "list.pt": [1, 2],
    }
    for name, content in contents.items():
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            torch.save(state if content is None else content, path)
            if content is None:
                path.write_bytes(path.read_bytes()[:-2000])
        with pytest.raises(InputError, match=name) as error:
            read_weights(path)
        assert "\n" not in str(error.value)
    assert "executed" not in capsys.readouterr().out
    with pytest.raises(InputError, match="no such file"):
        read_weights(tmp_path / "absent.pt")


def test_weights_of_another_network_are_compared(state: dict[str, torch.Tensor]) -> None:
    module = CifarMobilenetV1(width=0.125).module((3, 32, 32), 10)
    renamed = {name.replace("0.weight", "0.weights"): tensor for name, tensor in state.items()}
    with pytest.raises(InputError, match=r"missing: 0\.weight \(nearest in the file: 0\.weights\)") as error:
        load_weights(module, renamed, "file.pt")
    assert "'file.pt'" in str(error.value) and "unexpected: 0.weights" in str(error.value)
    wide = CifarMobilenetV1(width=0.25).module((3, 32, 32), 10)
    with pytest.raises(InputError, match=r"of another shape: .* should be .* and \d+ more"):
        load_weights(wide, state, "file.pt")


# ---------------------------------------------------------------- torchvision


def test_default_weights_are_never_downloaded(
    tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    with pytest.raises(MissingData) as error:
        Torchvision("mobilenet_v2", weights="default").build(noise(classes=1000), workspace)
    assert str(tmp_path / "hub" / "checkpoints" / "mobilenet_v2-") in str(error.value)
    assert "https://download.pytorch.org/models/mobilenet_v2-" in str(error.value)


def test_default_weights_come_from_torchs_cache_and_fix_the_classes(
    tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    model = Torchvision("googlenet", weights="default")
    with pytest.raises(MissingData):
        model.weights_file()
    # As torchvision gives it out: with auxiliary classifiers.
    full = torchvision.models.googlenet(init_weights=False)
    url = torchvision.models.get_model_weights("googlenet").DEFAULT.url
    path = tmp_path / "hub" / "checkpoints" / url.rpartition("/")[2]
    path.parent.mkdir(parents=True)
    torch.save(full.state_dict(), path)
    network = model.build(noise(64, classes=1000), workspace)
    assert isinstance(network, TorchNetwork) and network.facts.trained and network.facts.accuracy is None
    assert torch.equal(network.module.state_dict()["fc.weight"], full.state_dict()["fc.weight"])
    with pytest.raises(InputError, match=r"fc\.weight is \[1000, 1024\] and should be \[10, 1024\]"):
        model.build(noise(64, classes=10), workspace)


def test_densenet_files_with_dotted_names_are_read() -> None:
    model = Torchvision("densenet121")
    with torch.device("meta"):
        own = model.module((3, 32, 32), 10).state_dict()
    dotted = {
        name.replace("norm1.", "norm.1.").replace("norm2.", "norm.2.").replace("conv1.", "conv.1."): tensor
        for name, tensor in own.items()
    }
    assert dotted.keys() != own.keys()
    assert model.adapt(dotted).keys() == own.keys()


def test_an_unknown_torchvision_name_shows_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'resnet50'"):
        Torchvision("resnet5O").module((3, 224, 224), 10)
