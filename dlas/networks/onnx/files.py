"""Read ONNX files, with weights in external files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_model, uses_external_data

from dlas.errors import InputError, one_line
from dlas.networks.onnx.counting import graph_input
from dlas.networks.onnx.folding import fold_constants
from dlas.networks.onnx.quantisation import check_operator_set, check_quantisation

LARGEST = 2**31 - 1
"""Limit for file and weights together, bytes: a protocol buffer holds no more."""


def read_model(path: Path, fold: bool = False) -> onnx.ModelProto:
    """Read and check an ONNX file and its external weights.

    Parameters
    ----------
    fold : bool
        Replace what the graph computes from constants by the results, as a file from elsewhere needs.

    Raises
    ------
    InputError
        If it cannot be used; the message quotes the path.
    """
    if not path.exists():
        raise InputError(f"there is no ONNX file {str(path)!r}")
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise ValueError(f"it has {size} bytes, more than {LARGEST}")
        model = onnx.load(path, load_external_data=False)
        _check_external(model, path.absolute().parent, LARGEST - size)
        load_external_data_for_model(model, str(path.absolute().parent))
        check_operator_set(model)  # the checker would name an operator that the set lacks
        onnx.checker.check_model(model)
        graph_input(model)
        check_quantisation(model)
        if fold:
            model = fold_constants(model, LARGEST - model.ByteSize())
    except Exception as error:  # protobuf and the checker raise their own types
        # The checker writes several lines.
        raise InputError(f"ONNX file {str(path)!r} cannot be used: {one_line(str(error))}") from error
    return model


def weight_files(path: Path) -> list[Path]:
    """Return the external files with an ONNX file's weights."""
    model = onnx.load(path, load_external_data=False)
    stored = [tensor for tensor in _tensors(model.graph) if uses_external_data(tensor)]
    return sorted({path.parent / ExternalDataInfo(tensor).location for tensor in stored})


def _check_external(model: onnx.ModelProto, folder: Path, allowed: int) -> None:
    """Refuse external weights that are missing, too large, or outside the file's own folder."""
    for tensor in _tensors(model.graph):
        if not uses_external_data(tensor):
            continue
        location = ExternalDataInfo(tensor).location
        file = (folder / location).resolve()
        if not file.is_relative_to(folder.resolve()):
            raise ValueError(f"the weights of {tensor.name!r} are in {location!r}, outside its folder")
        if not file.is_file():
            raise ValueError(f"the weights of {tensor.name!r} should be in {file}, which is not there")
        allowed -= ExternalDataInfo(tensor).length or file.stat().st_size
        if allowed < 0:
            raise ValueError(f"it holds more than {LARGEST} bytes with the weights kept beside it")


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Yield every stored tensor, those of nested graphs included."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from [attribute.t, *attribute.tensors]
            for nested in [attribute.g, *attribute.graphs]:
                yield from _tensors(nested)
