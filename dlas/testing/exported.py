"""Networks as ONNX files: exported, and compared with what they were exported from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import onnx

from dlas.bench.store.replacing import replacing
from dlas.errors import InputError, PointError
from dlas.networks.exporting import as_onnx
from dlas.networks.onnx.network import OnnxNetwork
from dlas.networks.pooling import WrittenPooling
from dlas.stack import Workspace
from dlas.stack.types import Say
from dlas.sweep.study.networks import NamedNetwork, named_network
from dlas.sweep.study.point import Choice

if TYPE_CHECKING:
    from dlas.sweep.study.networks import Network


@dataclass(frozen=True)
class CheckedExport:
    """A network whose ONNX graph computes what the network does."""

    network: NamedNetwork
    deviation: float
    """Largest difference of the outputs in ONNX Runtime, as a share of the largest output."""


def check_export(
    network: Network, size: int | None, cache: Path, to: Path | None = None, say: Say = lambda line: None
) -> CheckedExport:
    """Export a network to ONNX for any batch, compare the graph in ONNX Runtime with it, and write the file.

    Parameters
    ----------
    network, size, cache
        As for :func:`dlas.sweep.study.networks.named_network`.
    to : Path, optional
        The file to write; without it nothing is written.
    say : callable
        Takes lines of progress.

    Raises
    ------
    InputError
        If the network cannot be read or exported, computes something else there, or the file cannot be
        written.
    """
    with named_network(network, size, cache) as named, TemporaryDirectory() as scratch:
        options = {name: value for name, value in named.part.items() if name != "name"}
        model = Choice.checked("model", named.part["name"], options).make("model")
        noise = {name: value for name, value in named.dataset.items() if name != "name"}
        data = Choice.checked("dataset", "random", noise).make("dataset").load()
        try:
            made = model.build(data, Workspace(0, Path(scratch), say))
            with WrittenPooling():
                graph = as_onnx(made, None)
        except PointError as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"{named.label} cannot be exported: {reason}") from None
        images, _ = data.test[list(range(len(data.test)))]
        expected = made.reference(images)
        outputs = OnnxNetwork(graph, made.facts).reference(images)
        deviation = float(np.abs(outputs - expected).max() / max(np.abs(expected).max(), 1e-30))
        if not deviation <= made.tolerance:
            raise InputError(
                f"{named.label} computes something else in ONNX Runtime: outputs differ by {deviation:.2g} "
                f"of the largest, and {made.tolerance:g} is accepted"
            )
        if to is not None:
            _write(graph, to)
        return CheckedExport(named, deviation)


def _write(graph: onnx.ModelProto, path: Path) -> None:
    """Write a graph with its weights into one file."""
    try:
        with replacing(path) as partial:
            partial.write_bytes(graph.SerializeToString())
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
