"""Layout conversions as fast as copies: squares of channels by pixels are transposed in registers.

The default code gathers vectors element by element, and loads a cache line again for
each of its channels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import tvm
from tvm import s_tir, tirx
from tvm.ir import Expr
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from dlas.lowering.operators.schedule import schedule_each
from dlas.lowering.operators.share import SMALLEST_PARALLEL
from dlas.schedules.loops.vectors import vector_unit
from dlas.stack import CHANGE_LAYOUT, Target

PIECE_BYTES = 16
"""The lane width within which every processor shuffles in one instruction."""
LINE_BYTES = 64
"""A cache line: a run of pixels of a channel to read or write at once."""
AGAIN = 1 / 16
"""Largest share of pixels that may be moved twice so that all runs are whole cache lines."""


def schedule_changes(module: tvm.IRModule, target: Target) -> tvm.IRModule:
    """Return ``module`` with its unscheduled layout conversions vectorised for a CPU.

    Parameters
    ----------
    module : tvm.IRModule
        Its PrimFuncs of one stage ``change_layout``, [n, c, h, w] to [n, c / b, h, w, b]
        or back, are replaced where b and the plane are large enough for vectors.
    """

    def scheduled(function: tirx.PrimFunc) -> tirx.PrimFunc:
        change = _Change.of(function, target) if _is_change(function) else None
        return function if change is None else change.write(function)

    return schedule_each(module, scheduled) if target.on_processors else module


def _is_change(function: tirx.PrimFunc) -> bool:
    """Whether a function is a conversion between NCHW and a blocked layout."""
    if sorted(len(buffer.shape) for buffer in function.params) != [4, 5]:
        return False
    schedule = s_tir.Schedule(function)
    stages = schedule.get_child_blocks(schedule.get_sblock("root"))
    return [schedule.get(stage).name_hint for stage in stages] == [CHANGE_LAYOUT]


@dataclass(frozen=True)
class _Change:
    """A conversion between [n, channels, pixels] and [n, blocks, pixels, block], padded with zeros."""

    n: int
    channels: int
    pixels: int
    block: int
    to_blocks: bool
    """The direction."""
    dtype: str
    piece: int
    """Elements of a piece: squares have so many pixels and channels."""
    lanes: int
    """Elements of a vector, which holds a piece of each of several squares."""
    run: int
    """Pixels that one iteration moves; the last run overlaps the one before it."""

    @classmethod
    def of(cls, function: tirx.PrimFunc, target: Target) -> _Change | None:
        """Return the conversion that a function computes; None where it has no whole squares."""
        source, written = function.params
        shapes = [[int(extent) for extent in buffer.shape] for buffer in (source, written)]
        (n, channels, h, w), (*_, block) = sorted(shapes, key=len)
        pixels, size = h * w, tvm.DataType(str(source.dtype)).bits // 8
        piece = math.gcd(PIECE_BYTES // size, block)
        if piece == 1 or pixels < piece:
            return None
        lanes = min(4 * vector_unit(target).lanes // size, 2 ** (pixels.bit_length() - 1))
        line = LINE_BYTES // size
        run = line if -(-pixels // line) * line <= (1 + AGAIN) * pixels else lanes
        to_blocks = len(shapes[1]) > len(shapes[0])
        if to_blocks:
            lanes = math.gcd(lanes, block)
        return cls(n, channels, pixels, block, to_blocks, str(source.dtype), piece, lanes, run)

    @property
    def blocks(self) -> int:
        """Blocks of channels of an image."""
        return -(-self.channels // self.block)

    def write(self, function: tirx.PrimFunc) -> tirx.PrimFunc:
        """Return the vectorised kernel that replaces ``function``."""
        runs = -(-self.pixels // self.run)
        work = self.n * self.channels * self.pixels
        spread = T.parallel if work >= SMALLEST_PARALLEL else T.serial
        with IRBuilder() as builder, T.prim_func(s_tir=True):
            T.func_name(CHANGE_LAYOUT)
            given = [T.arg(buffer.name, T.Buffer(buffer.shape, buffer.dtype)) for buffer in function.params]
            source, written = map(_flat, given)
            with T.sblock("root"), spread(0, self.n * self.blocks * runs) as task:
                number, start = task // runs, tirx.min(task % runs * self.run, self.pixels - self.run)
                at = [T.bind(index) for index in (number // self.blocks, number % self.blocks, start)]
                self._move_block(source, written, at)
        return builder.get().with_attrs({**function.attrs, "tirx.is_scheduled": True})

    def _move_block(self, source: tirx.Buffer, written: tirx.Buffer, at: Sequence[Expr]) -> None:
        """Move a run of pixels of one block, whose last one may have fewer channels."""
        move = self._move_to_blocks if self.to_blocks else self._move_from_blocks
        left = self.channels % self.block
        if not left:
            move(source, written, at, self.block)
            return
        with T.If(at[1] < self.blocks - 1):
            with T.Then():
                move(source, written, at, self.block)
            with T.Else():
                move(source, written, at, left)

    def _move_to_blocks(
        self, source: tirx.Buffer, written: tirx.Buffer, at: Sequence[Expr], channels: int
    ) -> None:
        for channel in range(0, self.block, self.lanes):
            for pixel in range(0, self.run, self.piece):
                places = [
                    self._plain(at, row, pixel) if row < channels else None
                    for row in range(channel, channel + self.lanes)
                ]
                for column, vector in enumerate(self._transposed(source, places)):
                    _store(written, self._blocked(at, channel, pixel + column), vector, self.lanes)

    def _move_from_blocks(
        self, source: tirx.Buffer, written: tirx.Buffer, at: Sequence[Expr], channels: int
    ) -> None:
        for channel in range(0, channels, self.piece):
            for pixel in range(0, self.run, self.lanes):
                places = [self._blocked(at, channel, row) for row in range(pixel, pixel + self.lanes)]
                vectors = self._transposed(source, places)[: channels - channel]
                for column, vector in enumerate(vectors):
                    _store(written, self._plain(at, channel + column, pixel), vector, self.lanes)

    def _plain(self, at: Sequence[Expr], channel: int, pixel: int) -> Expr:
        """Return the index in [n, channels, pixels] of a channel of a block and a pixel of a run."""
        image, block, start = at
        row = image * self.channels + block * self.block + channel
        return row * self.pixels + start + pixel

    def _blocked(self, at: Sequence[Expr], channel: int, pixel: int) -> Expr:
        """Return the index in [n, blocks, pixels, block] of a channel of a block and a pixel of a run."""
        image, block, start = at
        row = (image * self.blocks + block) * self.pixels + start + pixel
        return row * self.block + channel

    def _transposed(self, source: tirx.Buffer, places: Sequence[Expr | None]) -> list[Expr]:
        """Return the transposed squares whose rows are at ``places``; None is a row of zeros.

        Vector i holds column i of all squares.  Interleaving the first half of the vectors
        with the second rotates the concatenated bits of vector and lane numbers by one, so
        that log2 steps transpose.
        """
        pieces = [_load(source, place, self.piece) for place in places]
        vectors = [T.bind(self._joined(pieces[row :: self.piece])) for row in range(self.piece)]
        half = self.piece // 2
        for _ in range(half.bit_length()):
            pairs = zip(vectors[:half], vectors[half:], strict=True)
            vectors = [T.bind(self._interleaved(pair, part)) for pair in pairs for part in (0, half)]
        return vectors

    def _joined(self, pieces: Sequence[Expr]) -> Expr:
        return _shuffled(pieces, range(self.lanes)) if len(pieces) > 1 else pieces[0]

    def _interleaved(self, pair: Sequence[Expr], first: int) -> Expr:
        """Return two vectors merged element by element, half of each of their pieces from ``first`` on."""
        halves = [
            range(square + first, square + first + self.piece // 2)
            for square in range(0, self.lanes, self.piece)
        ]
        return _shuffled(
            pair, [side + element for half in halves for element in half for side in (0, self.lanes)]
        )


def _flat(buffer: tirx.Buffer) -> tirx.Buffer:
    """Return a buffer as one-dimensional."""
    return T.decl_buffer((math.prod(map(int, buffer.shape)),), buffer.dtype, data=buffer.data)


def _load(buffer: tirx.Buffer, place: Expr | None, lanes: int) -> Expr:
    if place is None:
        return tirx.Broadcast(tirx.const(0, buffer.dtype), lanes)
    return buffer[tirx.Ramp(place, 1, lanes)]


def _store(buffer: tirx.Buffer, place: Expr, vector: Expr, lanes: int) -> None:
    T.buffer_store(buffer, vector, [tirx.Ramp(place, 1, lanes)])


def _shuffled(vectors: Sequence[Expr], elements: Sequence[int]) -> Expr:
    return tirx.Shuffle(list(vectors), [tirx.const(element, "int32") for element in elements])
