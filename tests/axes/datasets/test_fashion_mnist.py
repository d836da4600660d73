"""Fashion-MNIST: a few images in the true format, damaged files, and, where it is installed, itself."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from dlas.axes.datasets import fashion_mnist
from dlas.axes.datasets.fashion_mnist import FashionMnist
from dlas.axes.datasets.pixels import idx
from dlas.errors import InputError, MissingData
from tests.fixtures.image_files import idx_bytes, write_fashion_mnist

IMAGES = np.arange(2 * 28 * 28, dtype=np.uint32).reshape(2, 28, 28).astype(np.uint8)
FILE = idx_bytes(IMAGES)


def test_a_tenth_is_held_out_and_images_get_a_border_and_three_channels(fashion_root: Path) -> None:
    data = FashionMnist(str(fashion_root)).load()
    assert (len(data.train), len(data.validation), len(data.test)) == (36, 4, 20)
    images, labels = data.test[[3, 15]]
    assert images.shape == (2, *data.shape) == (2, 3, 32, 32) and images.dtype == np.float32
    assert labels.tolist() == [3, 5]
    levels = images * fashion_mnist.DEVIATION + fashion_mnist.MEAN
    pixels = idx.read_images(fashion_root / fashion_mnist.TEST_FILES[0], 28)[[3, 15]]
    for channel in range(3):
        np.testing.assert_allclose(levels[:, channel, 2:-2, 2:-2] * 255, pixels, atol=1e-3)
    assert (
        np.abs(levels[:, :, [0, 1, -2, -1]]).max() < 1e-6 and np.abs(levels[..., [0, 1, -2, -1]]).max() < 1e-6
    )
    grey = FashionMnist(str(fashion_root), channels=1).load()
    assert grey.shape == (1, 32, 32)
    np.testing.assert_array_equal(grey.test[[3, 15]][0], images[:, :1])


def test_fewer_training_images_are_among_more_and_leave_the_others(fashion_root: Path) -> None:
    whole, *smaller = (
        FashionMnist(str(fashion_root), training_images=count).load() for count in (None, 20, 5)
    )
    known = {image.tobytes() for image in whole.train[range(36)][0]}
    for count, data in zip((20, 5), smaller, strict=True):
        images = {image.tobytes() for image in data.train[range(count)][0]}
        assert len(data.train) == len(images) == count and images < known
        known = images
        for held, expected in ((data.validation, whole.validation), (data.test, whole.test)):
            np.testing.assert_array_equal(held[range(4)][0], expected[range(4)][0])
    with pytest.raises(InputError, match=r"training_images = 37, and there are 36 besides the 4 to validate"):
        FashionMnist(str(fashion_root), training_images=37).verify()


def test_training_images_are_moved_within_their_border_and_mirrored_unless_they_are_digits(
    fashion_root: Path,
) -> None:
    still = FashionMnist(str(fashion_root), mirror=False).load()
    images = torch.from_numpy(FashionMnist(str(fashion_root)).load().train[range(36)][0])
    for augment, mirrors in ((FashionMnist(str(fashion_root)).load().augment, True), (still.augment, False)):
        assert augment is not None
        torch.manual_seed(0)
        moved = augment(images)
        kept, expected = (each.flatten(1).sort().values for each in (moved, images))
        assert torch.allclose(kept, expected, atol=1e-5), "nothing is cut off"
        found = [place(one, other) for one, other in zip(images, moved, strict=True)]
        assert len({offset for offset, _ in found}) > 10
        assert any(flipped for _, flipped in found) == mirrors and not all(flipped for _, flipped in found)


def place(image: torch.Tensor, moved: torch.Tensor) -> tuple[tuple[int, int], bool]:
    """Return by how much an image was moved, and whether it was mirrored."""
    for flipped in (False, True):
        source = moved.flip(2) if flipped else moved
        for offset in ((down, right) for down in range(-2, 3) for right in range(-2, 3)):
            if torch.allclose(torch.roll(image, offset, (1, 2)), source, atol=1e-5):
                return offset, flipped
    raise AssertionError("it is another image")


def test_missing_files_are_named_with_the_package_that_has_them(tmp_path: Path) -> None:
    write_fashion_mnist(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(MissingData) as error:
        FashionMnist(str(tmp_path)).verify()
    assert f"no train-labels-idx1-ubyte, with or without .gz, in {tmp_path}" in str(error.value)
    assert "`apt-get install dataset-fashion-mnist`" in str(error.value)


def test_labels_of_other_images_are_refused(tmp_path: Path) -> None:
    write_fashion_mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx_bytes(np.arange(9)))
    with pytest.raises(
        InputError, match=r"t10k-labels-idx1-ubyte has 9 labels for the 20 images of .*t10k-images"
    ):
        FashionMnist(str(tmp_path)).load()


def header(*sizes: int, magic: bytes = b"\x00\x00\x08\x03") -> bytes:
    return magic + b"".join(size.to_bytes(4, "big") for size in sizes)


@pytest.mark.parametrize("packed", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it begins with nothing, not 00 00 08 03"),
        (b"\x89PNG" + FILE[4:], "it begins with 89 50 4e 47, not 00 00 08 03"),
        (header(2, 28, 28, magic=b"\x00\x00\x0d\x03") + FILE[16:], "it begins with 00 00 0d 03"),
        (idx_bytes(np.arange(10)), "it begins with 00 00 08 01"),
        (FILE[:10], "it ends within its header"),
        (header(2, 32, 32) + bytes(2048), "its images have 32 x 32 pixels, not 28 x 28"),
        (header(0, 28, 28), "its header tells 0 items"),
        (header(2**32 - 1, 28, 28) + FILE[16:], "its header tells 4,294,967,295 items, not 1 to 100,000"),
        (FILE[:-1], "it ends after 1,567 of the 1,568 bytes that its header tells"),
        (FILE + b"\x00", "it goes on after the 1,568 bytes that its header tells"),
    ],
)
def test_a_damaged_file_is_refused_and_named(
    tmp_path: Path, packed: Callable[[bytes], bytes], content: bytes, message: str
) -> None:
    path = tmp_path / "images"
    path.write_bytes(packed(content))
    with pytest.raises(InputError) as error:
        idx.read_images(path, 28)
    assert str(error.value).startswith(f"{path} is no idx file of images: ") and message in str(error.value)


def test_damaged_gzip_is_refused_and_no_more_is_unpacked_than_the_header_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, packed = tmp_path / "images.gz", gzip.compress(FILE)
    path.write_bytes(packed)
    np.testing.assert_array_equal(idx.read_images(path, 28), IMAGES)
    checksum = bytes([packed[-8] ^ 1])
    for content in (
        packed[:-20],
        packed[:-8] + checksum + packed[-7:],
        packed + b"more",
        packed[:20] + b"\xff" * 40,
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"images\.gz is no idx file of images"):
            idx.read_images(path, 28)
    path.write_bytes(gzip.compress(FILE + bytes(50_000_000)))
    with pytest.raises(InputError, match="it goes on after"):
        idx.read_images(path, 28)
    monkeypatch.setattr(idx, "LARGEST_FILE", 2**10)
    path.write_bytes(FILE)
    with pytest.raises(InputError, match="it is larger than"):
        idx.read_images(path, 28)


def test_labels_are_classes(tmp_path: Path) -> None:
    path = tmp_path / "labels"
    path.write_bytes(idx_bytes(np.array([0, 9, 10])))
    with pytest.raises(
        InputError, match=r"labels is no idx file of labels: it has the label 10, and classes are 0 to 9"
    ):
        idx.read_labels(path, 10)


@pytest.mark.ci
def test_the_photographs_that_debian_installs() -> None:
    why = os.environ.get("PACKAGES_MISSING", f"Debian: {fashion_mnist.PACKAGE}")  # set by .ci/run
    if not Path(fashion_mnist.INSTALLED).is_dir():
        pytest.skip(f"no Fashion-MNIST here ({why})")
    data = FashionMnist().load()
    assert (len(data.train), len(data.validation), len(data.test)) == (54_000, 6_000, 10_000)
    images, labels = data.train[range(54_000)]
    inner = images[:, 0, 2:-2, 2:-2]
    assert abs(inner.mean()) < 2e-3 and abs(inner.std() - 1) < 2e-3
    assert (
        np.bincount(labels).min() > 5_300 and np.bincount(data.test[range(10_000)][1]).tolist() == [1000] * 10
    )
    assert len(FashionMnist(training_images=20_000).load().train) == 20_000
