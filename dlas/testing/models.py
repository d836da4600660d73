"""The contract of models: repeatable by seed, saved and restored bit for bit."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from dlas.stack import Data, Facts, Model, Network
from dlas.testing.faults import checking
from dlas.testing.networks import noise, random_images, saved_files, workspace

SHAPE = (3, 32, 32)
CLASSES = 10
ROUNDING = 1e-6
"""Largest relative difference of an image's outputs at two places of a batch."""


def check_model(model: Model, data: Data | None = None) -> None:
    """Check the contract of a model.

    - The same seed gives the same network, bit for bit.
    - Outputs are finite float32 [n, classes], and depend on the image alone.
    - A saved network is restored bit for bit, and saving it again gives the same files.
    - It counts its parameters, multiply-adds and bytes, and has an accuracy if
      images have labels and weights are not random.

    Parameters
    ----------
    data : Data, optional
        By default noise without labels, 10 classes of images [3, 32, 32], or of those that it is for.

    Raises
    ------
    AssertionError
    """
    channels, size, _ = SHAPE
    size = size if size in model.image_sizes else model.image_sizes[0]
    data = data or noise((channels, size, size), CLASSES)
    with checking(model), tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        network = model.build(data, workspace(root / "work"))
        files = saved_files(network, root / "saved")
        again = model.build(data, workspace(root / "work again"))
        assert saved_files(again, root / "saved again") == files, "one seed gives two networks"
        facts = network.facts
        check_facts(facts, data.labelled and facts.trained)
        described = (facts.shape, facts.classes) == (data.shape, data.classes)
        assert described, f"facts are for {facts.shape} and {facts.classes} classes, not those of the data"
        check_outputs(network)
        check_restored(network, model.restore(root / "saved", facts), files, root / "restored")


def check_facts(facts: Facts, scored: bool) -> None:
    """Check the facts of a network; ``scored`` says whether it must have an accuracy."""
    for name in ("parameters", "nonzeros", "macs", "effective_macs", "model_bytes", "csr_bytes"):
        value = getattr(facts, name)
        assert isinstance(value, int) and value >= 0, f"{name} is {value!r}: networks are counted"
    assert (facts.nonzeros or 0) <= (facts.parameters or 0), "more weights are not zero than there are"
    for name in ("accuracy", "validation_accuracy"):
        value = getattr(facts, name)
        due = "that was trained on labels" if scored else "without labels or training"
        assert (value is not None) == scored, f"{name} of a network {due} is {value!r}"
        assert value is None or 0 <= value <= 1, f"{name} is {value!r}, no fraction"
    json.dumps(asdict(facts), allow_nan=False)


def check_outputs(network: Network) -> None:
    """Check the reference function on random images."""
    images = random_images(3, network.facts.shape)
    outputs = network.reference(images)
    shape = (3, network.facts.classes)
    assert outputs.shape == shape, f"outputs have shape {outputs.shape}, not {shape}"
    assert outputs.dtype == np.float32, f"outputs are {outputs.dtype}, not float32"
    assert np.isfinite(outputs).all(), "outputs hold numbers that are not finite"
    gap = float(np.abs(network.reference(images[1:2]) - outputs[1:2]).max() / (np.abs(outputs).max() or 1))
    assert gap <= network.tolerance, f"an image's outputs change by {gap:.2g} with the images beside it"
    spread = float(np.ptp(outputs, axis=0).max() / (np.abs(outputs).max() or 1))
    assert spread > ROUNDING, "outputs are the same for every image"


def check_restored(network: Network, restored: Network, files: dict[str, bytes], folder: Path) -> None:
    """Check that a restored network equals the one saved as ``files``."""
    images = random_images(2, network.facts.shape)
    same = np.array_equal(restored.reference(images), network.reference(images))
    assert same, "the restored network computes something else than the saved one"
    assert saved_files(restored, folder) == files, "the restored network is saved as other files"
