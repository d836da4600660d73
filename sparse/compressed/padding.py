"""Write the padded input into the planes that the kernel reads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from tvm import tirx
from tvm.ir import Expr, TensorRegion
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV
from tvm.script.ir_builder import tirx as T

from dlas.schedules.loops.numbers import converted
from dlas.schedules.loops.transformations import stage
from dlas.sparse.compressed.blocks import block, scratch, whole
from dlas.sparse.compressed.planes import Planes


def write_planes(planes: Planes, x: tirx.Buffer) -> tirx.Buffer:
    """Write the block ``pad`` of a kernel; return the buffer [n, slabs, ...], or ``x`` where it serves."""
    conv, band = planes.conv, planes.band
    if planes.as_given:
        return x
    beyond = max(band.places - band.step + planes.halo(1), 0)  # read for places that hold no output
    shape = (conv.n, planes.slabs, conv.c * planes.channel + beyond)
    written = scratch("planes", shape, conv.padded_type)
    with block("pad", {"n": conv.n, "slab": planes.slabs, "c": conv.c}) as (n, slab, c):
        first = c * planes.channel
        T.reads(x[n, c, 0 : conv.h, 0 : conv.w])
        T.writes(written[n, slab, first : first + planes.channel])
        for number, phase in enumerate(np.ndindex(planes.phases)):
            _write_phase(planes, x, written, (n, slab, c), first + number * planes.plane, phase)
    return written


def _write_phase(
    planes: Planes,
    x: tirx.Buffer,
    written: tirx.Buffer,
    at: tuple[Expr, ...],
    first: Expr,
    phase: tuple[int, ...],
) -> None:
    """Write one phase, whose plane begins at ``first``: part of the image, and the border around it.

    Where the image ends is known when the kernel is written, so there is no test for each
    element: all loops are plain copies.
    """
    conv, band, (n, slab, c) = planes.conv, planes.band, at
    own = planes.along(slab) if planes.slabs > 1 else (0, 0)
    row, column = (
        own[axis] * (band.rows, band.columns)[axis] * conv.strides[axis]
        + (planes.begin(axis, phase[axis]) - conv.padding[axis])
        for axis in (0, 1)
    )

    def border(begin: Expr, count: int) -> None:
        if count:
            with T.serial(count) as place:
                value = tirx.const(conv.padding_value, conv.padded_type)
                T.buffer_store(written, value, (n, slab, begin + place))

    for (high, (top, bottom)), (wide, (left, right)) in itertools.product(
        _image_ranges(planes, 0, phase[0]), _image_ranges(planes, 1, phase[1])
    ):
        with _only_for(own[0], high), _only_for(own[1], wide):
            border(first, top * band.pitch)
            with T.serial(bottom - top) as i:
                line = first + (top + i) * band.pitch
                border(line, left)
                with T.serial(right - left) as j:
                    read = (row + (top + i) * conv.strides[0], column + (left + j) * conv.strides[1])
                    element = converted(x[(n, c, *read)], conv.padded_type)
                    T.buffer_store(written, element, (n, slab, line + left + j))
                border(line + right, band.pitch - right)
            border(first + bottom * band.pitch, planes.plane - bottom * band.pitch)


def _image_ranges(planes: Planes, axis: int, phase: int) -> list[tuple[range | None, tuple[int, int]]]:
    """Return from and to which row (axis 0) or column (axis 1) a phase holds the image.

    Slabs at the edges of the image differ from the others: each range comes with the slabs
    that it is for, None for all.
    """
    conv, band = planes.conv, planes.band
    stride, before = conv.strides[axis], conv.padding[axis] - planes.begin(axis, phase)
    image, length = ((conv.h, planes.rows), (conv.w, planes.columns))[axis]
    extent = (band.rows, band.columns)[axis]

    def inside(slab: int) -> tuple[int, int]:
        first, last = (-(-edge // stride) - slab * extent for edge in (before, before + image))
        return min(max(first, 0), length), min(max(last, 0), length)

    count = planes.across[axis] if planes.slabs > 1 else 1
    runs = [(list(slabs), ends) for ends, slabs in itertools.groupby(range(count), inside)]
    return [(range(slabs[0], slabs[-1] + 1) if len(runs) > 1 else None, ends) for slabs, ends in runs]


@contextmanager
def _only_for(number: Expr | int, numbers: range | None) -> Iterator[None]:
    """Guard what is written inside by ``number`` being one of ``numbers``; None guards nothing."""
    if numbers is None:
        yield
        return
    with T.If(tirx.all(number >= numbers.start, number < numbers.stop)), T.Then():
        yield


def written_region(planes: Planes, written: tirx.Buffer, n: Expr | int, band: Expr | int) -> TensorRegion:
    """Return the region that a band of an image reads, without the undefined elements at its end."""
    if planes.as_given:
        return whole(written)
    return written[n, band if planes.slabs > 1 else 0, 0 : planes.conv.c * planes.channel]


def pixel(planes: Planes, written: tirx.Buffer, n: Expr, offset: Expr, band: Expr, place: Expr) -> Expr:
    """Return the input that lies a weight's ``offset`` from a ``place`` of a band."""
    if planes.slabs > 1:
        return written[n, band, offset + place]
    # The input as it was given keeps its axes; its elements follow each other all the same.
    return written[(n, *[0] * (len(written.shape) - 2), offset + band * planes.band.step + place)]


def parallelise_padding(schedule: Schedule) -> None:
    """Share the channels of the padded input, slab by slab, among threads."""
    padding = stage(schedule, "pad")
    if padding is not None:
        schedule.parallel(schedule.fuse(*schedule.get_loops(padding)))


def pad_band_at(schedule: Schedule, loop: LoopRV) -> bool:
    """Write each slab where its band is computed, if each band has its own; return whether that is so."""
    padding = stage(schedule, "pad")
    if padding is None or schedule.get(schedule.get_loops(padding)[1]).extent == 1:
        return False
    schedule.compute_at(padding, loop, preserve_unit_loops=True)
    return True
