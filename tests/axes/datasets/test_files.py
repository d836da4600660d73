"""The dataset parts, on small files in the true formats."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.models import ResNet18_Weights

from dlas.axes.datasets import cifar10, digits, imagenet
from dlas.axes.datasets.cifar10 import Cifar10
from dlas.axes.datasets.digits import Digits
from dlas.axes.datasets.imagenet import Imagenet
from dlas.axes.datasets.random import Random
from dlas.axes.datasets.scenes.subsets import DOGS, SUBSETS, WORDS, places
from dlas.errors import InputError, MissingData
from dlas.networks.scoring import batches
from dlas.stack import Data
from tests.fixtures.image_files import python2_batch

# ---------------------------------------------------------------- digits


@pytest.fixture(scope="module")
def digits_data() -> Data:
    return Digits().load()


def test_digits_are_split_once_and_by_class(digits_data: Data) -> None:
    splits = [digits_data.train, digits_data.validation, digits_data.test]
    assert [len(split) for split in splits] == [1077, 270, 450]
    for split in splits:
        images, labels = split[range(len(split))]
        assert images.shape[1:] == digits_data.shape == (3, 32, 32)
        assert images.dtype == np.float32 and labels.dtype == np.int64
        counts = np.bincount(labels, minlength=10)
        assert counts.max() - counts.min() <= 0.1 * len(split) / 2
    again = Digits().load()
    np.testing.assert_array_equal(again.test[range(450)][0], digits_data.test[range(450)][0])


def test_digits_splits_share_no_image(digits_data: Data) -> None:
    splits = [digits_data.train, digits_data.validation, digits_data.test]
    seen = [{image.tobytes() for image in split[range(len(split))][0]} for split in splits]
    assert not seen[0] & seen[1] and not seen[0] & seen[2] and not seen[1] & seen[2]


def test_digits_are_normalised_by_training_images_and_augmented_gently(digits_data: Data) -> None:
    images = torch.from_numpy(digits_data.train[range(1077)][0])
    assert abs(images.mean()) < 1e-3 and abs(images.std() - 1) < 1e-2
    shaken = digits.random_affine(images)
    assert shaken.shape == images.shape and not torch.equal(shaken, images)
    # Gently: a digit stays nearer to itself than to its mirror image.
    near = (shaken - images).square().mean((1, 2, 3))
    mirrored = (shaken - images.flip(3)).square().mean((1, 2, 3))
    assert (near < mirrored).float().mean() > 0.9


def test_noise_of_digits_is_always_the_same_and_as_strong_as_asked(digits_data: Data) -> None:
    noisy, again = Digits(noise=0.5).load(), Digits(noise=0.5).load()
    for clean, split, repeated in zip(
        *((data.train, data.validation, data.test) for data in (digits_data, noisy, again)), strict=True
    ):
        (images, labels), (expected, same) = (held[range(len(held))] for held in (split, clean))
        np.testing.assert_array_equal(images, repeated[range(len(repeated))][0])
        np.testing.assert_array_equal(labels, same)
        # Enlarging averages neighbours, so that less is left of it.
        assert 0.2 < (images - expected).std() * 0.3238 < 0.5
        assert abs((images - expected).mean()) < 0.01


# ---------------------------------------------------------------- CIFAR-10


def test_the_batches_of_these_tests_are_what_pickle_reads(cifar_root: Path) -> None:
    path = cifar_root / cifar10.FOLDER / "test_batch"
    batch = pickle.loads(path.read_bytes(), encoding="bytes")
    pixels, labels = cifar10.read_batch(path)
    np.testing.assert_array_equal(pixels.reshape(20, 3072), batch[b"data"])
    assert labels.tolist() == batch[b"labels"]


def test_cifar10_holds_out_a_tenth_and_normalises_when_read(cifar_root: Path) -> None:
    data = Cifar10(str(cifar_root)).load()
    assert (len(data.train), len(data.validation), len(data.test)) == (90, 10, 20)
    images, labels = data.test[[3, 5]]
    assert images.shape == (2, 3, 32, 32) and images.dtype == np.float32 and labels.tolist() == [3, 5]
    pixels, _ = cifar10.read_batch(cifar_root / cifar10.FOLDER / "test_batch")
    np.testing.assert_allclose(
        images[0] * cifar10.DEVIATION + cifar10.MEAN, pixels[3] / 255, rtol=1e-5, atol=1e-6
    )
    inner = Cifar10(str(cifar_root / cifar10.FOLDER)).load()
    np.testing.assert_array_equal(inner.validation[[0]][0], data.validation[[0]][0])


def test_cifar10_written_by_python_3_reads_too(tmp_path: Path) -> None:
    pixels = np.arange(2 * 3072, dtype=np.uint32).reshape(2, 3072).astype(np.uint8)
    for order in ("C", "F"):
        path = tmp_path / order
        path.write_bytes(pickle.dumps({b"data": np.asarray(pixels, order=order), b"labels": [1, 2]}, 3))
        np.testing.assert_array_equal(cifar10.read_batch(path)[0].reshape(2, 3072), pixels)


def test_missing_cifar10_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(MissingData) as error:
        Cifar10(str(tmp_path)).load()
    assert str(tmp_path / cifar10.FOLDER) in str(error.value)
    assert "data_batch_1" in str(error.value) and "cifar-10-python.tar.gz" in str(error.value)


class Evil:
    """Pickled as a call of os.mkdir."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (self.folder,)


ONE = np.zeros((1, 3072), np.uint8)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no CIFAR-10 batch"),
        (python2_batch(ONE, [1])[:-500], "no CIFAR-10 batch"),
        (pickle.dumps([1, 2]), "a list, not a mapping"),
        (pickle.dumps({b"labels": [1]}), "no array 'data'"),
        (pickle.dumps({b"data": ONE.astype(object), b"labels": [1]}), "uint8"),
        (python2_batch(np.zeros((1, 3000), np.uint8), [1]), "has shape (1, 3000)"),
        (python2_batch(ONE, [1], shape=(9, 3072)), "does not have the 27648 bytes"),
        (python2_batch(ONE, [1, 2]), "list 'labels' of 1 entries"),
        (python2_batch(ONE, [12]), "not class indices"),
    ],
)
def test_a_damaged_batch_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "data_batch_1"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"data_batch_1") as error:
        cifar10.read_batch(path)
    assert message in str(error.value)


def test_a_batch_cannot_call_anything(tmp_path: Path) -> None:
    path = tmp_path / "data_batch_1"
    path.write_bytes(pickle.dumps({b"data": Evil(tmp_path / "made"), b"labels": [1]}))
    with pytest.raises(InputError, match="mkdir, which no CIFAR-10 batch needs"):
        cifar10.read_batch(path)
    assert not (tmp_path / "made").exists()


def test_cropping_moves_each_image_and_fills_with_black() -> None:
    torch.manual_seed(0)
    images = torch.randn(64, 3, 32, 32)
    cropped = cifar10.crop_and_mirror(images)
    assert cropped.shape == images.shape
    black = torch.from_numpy(-cifar10.MEAN / cifar10.DEVIATION)
    corners = (cropped[:, :, 0, 0] - black[:, 0, 0]).abs().amax(1) < 1e-5
    assert 0.4 < corners.float().mean() < 1  # most windows reach over an edge at this corner
    whole = set(images.flatten().tolist())
    inside = cropped[:, :, 8:24, 8:24].flatten().tolist()
    assert sum(value in whole for value in inside[:500]) > 0  # nothing is interpolated


# ---------------------------------------------------------------- ImageNet


def test_imagenet_reads_lazily_and_holds_out_a_tenth(imagenet_root: Path) -> None:
    data = Imagenet(str(imagenet_root), size=64).load()
    assert (len(data.train), len(data.validation), len(data.test)) == (22, 2, 6)
    assert data.classes == 2 and data.shape == (3, 64, 64)
    images, labels = data.test[[0, 1, 5]]
    assert images.shape == (3, 3, 64, 64) and images.dtype == np.float32 and labels.tolist() == [0, 0, 1]
    np.testing.assert_array_equal(images, data.test[[0, 1, 5]][0])
    assert not set(data.train.paths) & set(data.validation.paths)  # type: ignore[attr-defined]


def test_imagenet_varies_training_images_with_torchs_generator(imagenet_root: Path) -> None:
    train = Imagenet(str(imagenet_root), size=32).load().train
    torch.manual_seed(1)
    first, second = train[[0]][0], train[[0]][0]
    torch.manual_seed(1)
    np.testing.assert_array_equal(train[[0]][0], first)
    assert not np.array_equal(first, second)


def test_imagenet_is_read_in_order_by_worker_processes(imagenet_root: Path) -> None:
    test = Imagenet(str(imagenet_root), size=32).load().test
    read = list(batches(test, size=4))
    assert [len(labels) for _, labels in read] == [4, 2]
    np.testing.assert_array_equal(torch.cat([images for images, _ in read]).numpy(), test[range(6)][0])


def test_missing_imagenet_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=r"train.*image-net\.org"):
        Imagenet(str(tmp_path)).load()
    (tmp_path / "train" / "a").mkdir(parents=True)
    with pytest.raises(MissingData, match="files in the folders of"):
        Imagenet(str(tmp_path)).load()


def test_imagenet_names_an_unknown_class_and_a_damaged_image(tmp_path: Path) -> None:
    for folder in ("train/a", "val/a", "val/b"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "x.JPEG").write_bytes(b"\xff\xd8\xff not a picture")
    with pytest.raises(InputError, match="no class 'b'"):
        Imagenet(str(tmp_path)).load()
    with pytest.raises(InputError, match=r"x\.JPEG cannot be read"):
        imagenet.read_image(str(tmp_path / "val/a/x.JPEG"))


# ---------------------------------------------------------------- random


def test_noise_has_no_labels_and_depends_on_seed_and_place_alone() -> None:
    data = Random(size=5, channels=2, classes=7, images=4).load()
    assert data.shape == (2, 5, 5) and data.classes == 7 and not data.labelled
    assert len(data.train) == len(data.validation) == len(data.test) == 4
    both, labels = data.test[[1, 3]]
    assert both.shape == (2, 2, 5, 5) and both.dtype == np.float32 and labels.dtype == np.int64
    np.testing.assert_array_equal(data.test[[3]][0][0], both[1])
    assert not np.array_equal(data.train[[1]][0][0], both[0])
    assert not np.array_equal(Random(size=5, channels=2, seed=1).load().test[[1]][0][0], both[0])


def test_subsets_of_imagenet_have_the_classes_of_the_paper(tmp_path: Path) -> None:
    counts = {name: len(places(name)) for name in SUBSETS}
    assert counts == {"city": 185, "motorway": 26, "country-side": 204, "off-road": 26}
    names = ResNet18_Weights.DEFAULT.meta["categories"]
    called = {"taxi": "cab", "dogs": "Chihuahua", "cats": "tabby", "pickup truck": "pickup", "tank": "tank"}
    known = {word: names[classes[0]] for own in WORDS.values() for word, classes in own.items()}
    assert {word: known[word] for word in called} == called and known["cardigan"] == "cardigan"
    assert names[DOGS[-1]] == "Mexican hairless" and names[DOGS[-1] + 1] == "timber wolf"
    for place in range(1000):
        for split in ("train", "val"):
            (tmp_path / split / f"n{place:08}").mkdir(parents=True)
    for split in ("train", "val"):
        for place in (0, 9, 39):
            Image.new("RGB", (40, 40)).save(tmp_path / split / f"n{place:08}" / "x.JPEG")
    data = Imagenet(str(tmp_path), size=32, subset="off-road").load()
    assert data.classes == 26 and data.test[[0, 1]][1].tolist() == [0, 1]
    assert (len(data.train) + len(data.validation), len(data.test)) == (2, 2)


def test_a_subset_needs_all_classes(imagenet_root: Path) -> None:
    with pytest.raises(InputError, match=r"subset = 'city' chooses among .* 1,000 classes, and 2 are there"):
        Imagenet(str(imagenet_root), subset="city").verify()
