"""CIFAR-10, from the files of its authors' archive, which torchvision also unpacks."""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dlas.axes.datasets.pixels.augmentation import mirrored_at_random, random_windows
from dlas.axes.datasets.pixels.splits import hold_out
from dlas.errors import InputError, MissingData
from dlas.stack import Data, Dataset, Images, Labels

FOLDER = "cifar-10-batches-py"
TRAIN_FILES = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST_FILE = "test_batch"
CLASSES = 10
SHAPE = (3, 32, 32)
BYTES_AN_IMAGE = 3 * 32 * 32
MOST_IMAGES = 10_000
LARGEST_FILE = 64 * 2**20
"""Limit for a batch file, bytes; a real one has 31 MB."""

MEAN = np.array([0.4914, 0.4822, 0.4465], np.float32).reshape(3, 1, 1)
DEVIATION = np.array([0.2470, 0.2435, 0.2616], np.float32).reshape(3, 1, 1)
PADDING = 4


@dataclass(frozen=True)
class Cifar10(Dataset):
    """CIFAR-10: 45,000 images to train, 5,000 to validate, 10,000 to test.

    Validation images are a tenth of the training batches, drawn once with a
    fixed seed.  Pixels are RGB from 0 to 1, less the mean (0.4914, 0.4822, 0.4465) and
    divided by the deviation (0.2470, 0.2435, 0.2616) of each channel.  Training images are
    cropped at random after padding by 4 pixels and mirrored at random.

    References
    ----------
    A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images",
    University of Toronto, 2009, https://www.cs.toronto.edu/~kriz/cifar.html.
    """

    root: str
    """The folder that holds ``cifar-10-batches-py``, or that folder itself."""

    def verify(self) -> None:
        """Read the batch files once before anything starts."""
        self.load()

    def load(self) -> Data:
        """Read the six batch files.

        Raises
        ------
        MissingData
            If a batch file is not there.
        InputError
            If a batch file is damaged or holds anything but a CIFAR-10 batch.
        """
        folder = self._folder()
        batches = [read_batch(folder / name) for name in TRAIN_FILES]
        pixels = np.concatenate([batch[0] for batch in batches])
        labels = np.concatenate([batch[1] for batch in batches])
        drawn, validation = hold_out(len(labels))
        train = np.sort(drawn)
        return Data(
            Pixels(pixels[train], labels[train]),
            Pixels(pixels[validation], labels[validation]),
            Pixels(*read_batch(folder / TEST_FILE)),
            shape=SHAPE,
            classes=CLASSES,
            augment=crop_and_mirror,
            recipe="paper",
            fine_tuning="cifar10",
        )

    def _folder(self) -> Path:
        """Return the folder of the batch files; the error names missing files and how to get them."""
        root = Path(self.root).expanduser().absolute()
        folder = root if root.name == FOLDER else root / FOLDER
        missing = [name for name in (*TRAIN_FILES, TEST_FILE) if not (folder / name).is_file()]
        if missing:
            raise MissingData(
                f"cifar10 with root {self.root!r}: no {', '.join(missing)} in {folder}. "
                "Unpack https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz there, or run in Python: "
                f"torchvision.datasets.CIFAR10({str(folder.parent)!r}, download=True)"
            )
        return folder


@dataclass(frozen=True)
class Pixels:
    """A split stored as bytes and normalised when read."""

    pixels: npt.NDArray[np.uint8]
    """Uint8 [n, 3, 32, 32]."""
    labels: Labels
    """Int64 [n]."""

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, indices: Any) -> tuple[Images, Labels]:
        images = self.pixels[indices].astype(np.float32) / np.float32(255)
        return (images - MEAN) / DEVIATION, self.labels[indices]


def crop_and_mirror(images: torch.Tensor) -> torch.Tensor:
    """Cut a random window of the same size out of each padded image, and mirror half of them at random.

    Parameters
    ----------
    images : Tensor, [n, 3, h, w]
        Normalised; the padding is black, as if added before normalising.

    Returns
    -------
    Tensor, [n, 3, h, w]
        Drawn with torch's default generator.
    """
    black = torch.from_numpy(-MEAN / DEVIATION)
    return mirrored_at_random(random_windows(images, black, PADDING))


class _NumpyStandIn:
    """Takes the place of a numpy object while a batch is read: stores the pickled state and runs nothing."""

    state: Any = None

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state


_NUMPY = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}


class _BatchUnpickler(pickle.Unpickler):
    """Reads plain values and numpy arrays.

    A pickle can call whatever it names, and these files come from elsewhere:
    every name but numpy's is refused, and numpy's are replaced by a stand-in.
    """

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _NUMPY:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no CIFAR-10 batch needs")
        return _NumpyStandIn


def read_batch(path: Path) -> tuple[npt.NDArray[np.uint8], Labels]:
    """Read one batch file.

    Parameters
    ----------
    path : Path
        A pickled mapping with ``data`` (uint8 [n, 3072], n at most 10,000) and
        ``labels`` (n class indices).

    Returns
    -------
    pixels : ndarray of uint8, [n, 3, 32, 32]
    labels : ndarray of int64, [n]

    Raises
    ------
    InputError
        If the file is anything else; the message names it.
    """
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError(f"it is larger than {LARGEST_FILE // 2**20} MiB")
        batch = _BatchUnpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load()
        if not isinstance(batch, dict):
            raise ValueError(f"it holds a {type(batch).__name__}, not a mapping")
        pixels = _pixels(batch.get(b"data", batch.get("data")))
        return pixels, _labels(batch.get(b"labels", batch.get("labels")), len(pixels))
    except (OSError, MemoryError) as error:
        raise InputError(f"{path} cannot be read: {error!r}") from error
    except Exception as error:  # unpickling a damaged file can raise almost anything
        raise InputError(f"{path} is no CIFAR-10 batch: {error}") from error


def _pixels(stored: Any) -> npt.NDArray[np.uint8]:
    """Return the stand-in's array, checked, as [n, 3, 32, 32]."""
    if not isinstance(stored, _NumpyStandIn) or not isinstance(stored.state, tuple) or len(stored.state) != 5:
        raise ValueError("it has no array 'data'")
    _, shape, kind, column_major, raw = stored.state
    if not isinstance(kind, _NumpyStandIn) or kind.arguments[:1] not in ((b"u1",), ("u1",)):
        raise ValueError("'data' does not hold bytes (uint8)")
    n = shape[0]
    if shape != (n, BYTES_AN_IMAGE) or not 1 <= n <= MOST_IMAGES:
        raise ValueError(f"'data' has shape {shape}, not (up to {MOST_IMAGES}, {BYTES_AN_IMAGE})")
    if not isinstance(raw, bytes) or len(raw) != n * BYTES_AN_IMAGE:
        raise ValueError(f"'data' does not have the {n * BYTES_AN_IMAGE} bytes that its shape asks for")
    flat = np.frombuffer(raw, np.uint8).reshape(shape, order="F" if column_major else "C")
    return np.ascontiguousarray(flat).reshape(n, *SHAPE)


def _labels(stored: Any, n: int) -> Labels:
    """Return the class indices, checked."""
    if not isinstance(stored, list) or len(stored) != n:
        raise ValueError(f"it has no list 'labels' of {n} entries")
    if not all(isinstance(label, int) and 0 <= label < CLASSES for label in stored):
        raise ValueError(f"'labels' has entries that are not class indices 0 to {CLASSES - 1}")
    return np.array(stored, np.int64)
