"""Test images stored with a network and its reference outputs, to check builds with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from dlas.bench.store.cache import Cache
from dlas.stack import Data, Images, Labels, Network
from dlas.sweep.engine.steps.artifacts import load_verified
from dlas.sweep.study.point import Point

SAMPLE_IMAGES = 256
SAMPLE_BYTES = 64 * 2**20
"""Limits of the number and the size of the test images stored with a network."""
INSENSITIVE = 1e-3
"""Outputs that vary over the images by less than this share of the largest say nothing about a build."""
INSENSITIVE_NOTE = "its outputs hardly depend on the image, so a check of its builds says little"


def save_sample(network: Network, data: Data, folder: Path) -> None:
    """Store some test images with their labels and reference outputs beside the network.

    If the outputs are the same for every image, any build would pass; this is added
    to the network's note.
    """
    count = max(1, min(SAMPLE_IMAGES, len(data.test), SAMPLE_BYTES // (4 * int(np.prod(data.shape)))))
    chosen = np.random.default_rng(0).permutation(len(data.test))[:count]
    images, labels = data.test[[int(index) for index in chosen]]
    outputs = network.reference(images)
    notes = [note for note in (network.facts.note or "").split("; ") if note not in ("", INSENSITIVE_NOTE)]
    if np.ptp(outputs, axis=0).max() <= INSENSITIVE * np.abs(outputs).max():
        notes.append(INSENSITIVE_NOTE)
    network.facts.note = "; ".join(notes) or None
    save_file({"images": images, "labels": labels, "outputs": outputs}, folder / "sample.safetensors")


def load_sample(cache: Cache, network_key: str) -> dict[str, Any]:
    """Return ``images`` [n, c, h, w] stored with a network, their ``labels`` and its ``outputs``."""
    return load_file(load_verified(cache, "network", network_key).folder / "sample.safetensors")


def fill_batch(images: Images, batch: int) -> Images:
    """Return exactly ``batch`` images, repeated if there are fewer."""
    return np.ascontiguousarray(np.resize(images, (batch, *images.shape[1:])))


def load_batch(cache: Cache, network_key: str, point: Point) -> tuple[Images, Labels]:
    """Return the images [n, c, h, w] that a point is timed on, and their labels [n].

    Labels are drawn from the point's seed where those of the data set say nothing.
    """
    sample = load_sample(cache, network_key)
    if point.dataset.make("dataset").labelled:
        labels = np.resize(sample["labels"], point.batch)
    else:
        classes = sample["outputs"].shape[1]
        labels = np.random.default_rng(point.seed).integers(classes, size=point.batch)
    return fill_batch(sample["images"], point.batch), labels
