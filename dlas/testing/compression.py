"""The contract of compression: repeatable, restored bit for bit, reporting the compression reached."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dlas.errors import Unsupported
from dlas.stack import Compression, Data, Model, Network, SavedNetwork
from dlas.testing.faults import checking
from dlas.testing.models import check_facts, check_outputs, check_restored
from dlas.testing.networks import (
    StagedModel,
    TinyDataset,
    TinyModel,
    noise,
    random_images,
    saved_files,
    workspace,
)

MODELS = (TinyModel(epochs=3), StagedModel(epochs=3))
"""A technique is checked on the first one that it supports."""


def check_compression(compression: Compression, model: Model | None = None, data: Data | None = None) -> None:
    """Check the contract of a compression technique.

    - The same seed gives the same network, bit for bit, milestones included.
    - A saved network is restored bit for bit.
    - ``facts.reached`` reports the compression, or the path through a flexible network, and the network's
      counts are updated.

    Parameters
    ----------
    model : Model, optional
        By default a tiny network of convolutions; where the technique does not support that, one of stages.
    data : Data, optional
        By default tiny images with labels, on which the network is trained, then noise without.

    Raises
    ------
    AssertionError
    """
    with checking(compression):
        for sample in [data] if data else [noise(), TinyDataset().load()]:
            with tempfile.TemporaryDirectory() as folder:
                _check_on_first([model] if model else MODELS, compression, sample, Path(folder))


def _check_on_first(models: Sequence[Model], compression: Compression, data: Data, root: Path) -> None:
    """Check a technique on the first model whose network it supports."""
    *others, last = models
    for number, model in enumerate(others):
        with contextlib.suppress(Unsupported):
            return _check_on(compression, model, data, root / str(number))
    return _check_on(compression, last, data, root / "last")


def _check_on(compression: Compression, model: Model, data: Data, root: Path) -> None:
    """Check a technique on one data set."""
    dense, files = _build_networks(compression, model, data, root / "first")
    _, again = _build_networks(compression, model, data, root / "second")
    assert again == files, "one seed gives two networks"
    saved = dense.pop()
    network = saved.restore()
    check_facts(saved.facts, data.labelled and saved.facts.trained)
    check_outputs(network)
    check_restored(network, saved.restore(), files, root / "restored")
    _check_reached(compression, dense[0], saved)


def _build_networks(
    compression: Compression, model: Model, data: Data, root: Path
) -> tuple[list[SavedNetwork], dict[str, bytes]]:
    """Return the dense network, the milestones' networks and the compressed one, with its files."""
    saved: list[SavedNetwork] = []
    files: dict[str, bytes] = {}
    milder = [_with(compression, options) for options in compression.milestones(data.labelled)]
    for number, part in enumerate([None, *milder, compression]):
        work = workspace(root / f"work{number}")
        if part is None:
            network = model.build(data, work)
        else:
            network = part.choose(saved) or part.compress(saved[-1].restore(), data, work)
        files = saved_files(network, root / f"saved{number}")
        saved.append(_saved(part, model, network, root / f"saved{number}"))
    return saved, files


def _with(compression: Compression, options: Any) -> Compression:
    """Return a technique with a milestone's options."""
    milder: Compression = replace(compression, **options)  # type: ignore[type-var]  # parts are dataclasses
    return milder


def _saved(part: Compression | None, model: Model, network: Network, folder: Path) -> SavedNetwork:
    """Return a saved network, restored by its technique, or by the model if it is dense."""
    facts = network.facts
    if part is None:
        return SavedNetwork(facts, lambda: model.restore(folder, replace(facts)))
    return SavedNetwork(facts, lambda: part.restore(model, folder, replace(facts)))


def _check_reached(compression: Compression, dense: SavedNetwork, saved: SavedNetwork) -> None:
    """Check the compression that a technique reports."""
    reached = saved.facts.reached
    ratio, bits = reached.get("ratio", 0), reached.get("bits", 32)
    assert 0 <= ratio < 1, f"it reached the ratio {ratio!r}, no share of the weights"
    assert 0 < bits <= 32, f"it reached {bits!r} bits a value"
    images = random_images(2, dense.facts.shape)
    changed = not np.array_equal(saved.restore().reference(images), dense.restore().reference(images))
    said = ratio > 0 or bits < 32 or "path" in reached
    assert not changed or said, "it changes the network and does not say by how much"
    assert dense.facts.reached == {}, "it writes into the facts of the network that it was given"
    smaller = (saved.facts.nonzeros or 0) < (dense.facts.nonzeros or 0)
    assert smaller or ratio == 0, f"it reached the ratio {ratio}, and counts no fewer weights than before"
    level = getattr(compression, "level", None)
    if isinstance(level, float):
        stated = reached.get("level")
        assert stated == level, f"it was to reach level {level}, and says that it reached {stated}"
