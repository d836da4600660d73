"""ONNX files, read with the weights that are kept beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_model, uses_external_data

from dlas.errors import InputError
from dlas.networks.onnx_counting import graph_input

LARGEST = 2**31 - 1
"""Bytes of file and weights together: what one protocol buffer holds."""


def read_model(path: Path) -> onnx.ModelProto:
    """Read and check an ONNX file with the weights kept beside it.

    Raises
    ------
    InputError
        If it cannot be used; the message quotes the path.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise ValueError(f"it has {size} bytes, more than {LARGEST}")
        model = onnx.load(path, load_external_data=False)
        _check_external(model, path.absolute().parent, LARGEST - size)
        load_external_data_for_model(model, str(path.absolute().parent))
        onnx.checker.check_model(model)
        graph_input(model)
    except Exception as error:  # protobuf and the checker raise kinds of their own
        raise InputError(f"ONNX file {str(path)!r} cannot be used: {error}") from error
    return model


def weight_files(path: Path) -> list[Path]:
    """Return the files beside an ONNX file that hold its weights."""
    model = onnx.load(path, load_external_data=False)
    stored = [tensor for tensor in _tensors(model.graph) if uses_external_data(tensor)]
    return sorted({path.parent / ExternalDataInfo(tensor).location for tensor in stored})


def _check_external(model: onnx.ModelProto, folder: Path, allowed: int) -> None:
    """Refuse weights outside the file's own folder, absent, or too large to hold."""
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
