"""Blocks, parameters and buffers of kernels written with TVM's IR builder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tvm import te, tirx
from tvm.ir import TensorRegion
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T


@contextmanager
def block(
    name: str, points: Mapping[str, int], terms: Mapping[str, int] | None = None
) -> Iterator[list[tirx.Var]]:
    """Open a block in a loop nest of its own; yield the spatial axes, then the reduction axes.

    Parameters
    ----------
    points, terms : mapping of str to int
        Extents of spatial and reduction axes by name, the outermost first; at least two in all.
    """
    over = {**points, **(terms or {})}
    with T.grid(*over.values()) as loops, T.sblock(name):
        axes = []
        for axis, loop in zip(over, loops, strict=True):
            kind = T.axis.spatial if axis in points else T.axis.reduce
            axes.append(IRBuilder.name(f"v_{axis}", kind(over[axis], IRBuilder.name(axis, loop))))
        yield axes


def argument(tensor: te.Tensor) -> tirx.Buffer:
    """Return a new parameter of the kernel with a TE tensor's name, shape and type."""
    return T.arg(tensor.name, T.Buffer([int(extent) for extent in tensor.shape], str(tensor.dtype)))


def scratch(name: str, shape: tuple[int, ...], dtype: str) -> tirx.Buffer:
    """Return a new intermediate buffer."""
    return IRBuilder.name(name, T.sblock_alloc_buffer(shape, dtype))


def whole(buffer: tirx.Buffer) -> TensorRegion:
    """Return all of a buffer as a region."""
    return buffer[tuple(slice(0, extent) for extent in buffer.shape)]
