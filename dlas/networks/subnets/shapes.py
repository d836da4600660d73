"""The blocks of subnetworks: channels, strides, gates and activations, and what follows from them.

References
----------
Once-for-All's released MobileNetV3; the names of blocks are those of its tables of latencies.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from dlas.errors import InputError
from dlas.networks.subnets.written import EXPANSIONS, KERNELS, STAGES, Stage
from dlas.stack import Operator

WIDTHS = (1.0, 1.2)
LEAST_SIZE, MOST_SIZE = 112, 240
"""Least and largest height of images that subnetworks are for."""
REDUCTION = 4
"""A gate's first convolution has a quarter of its channels."""
CLASSES = 1000


@dataclass(frozen=True)
class SquareConv:
    """A convolution with a square kernel, padded so that a stride of 1 keeps the height."""

    c: int
    k: int
    """Channels that it reads, and filters."""
    kernel: int
    """Height of the kernel."""
    stride: int = 1
    groups: int = 1


@dataclass(frozen=True)
class Block:
    """An inverted residual: expand, convolve each channel, gate, project."""

    read: int
    written: int
    middle: int
    """Channels."""
    kernel: int
    stride: int
    gated: bool
    """Whether squeeze-and-excitation follows the depthwise convolution."""
    swish: bool
    """Whether it has h-swish in place of ReLU."""

    @property
    def expands(self) -> bool:
        """Whether a 1x1 convolution comes first."""
        return self.middle != self.read

    @property
    def skips(self) -> bool:
        """Whether its input is added to its output."""
        return self.stride == 1 and self.read == self.written

    @property
    def depthwise(self) -> SquareConv:
        """Its convolution of each channel."""
        return SquareConv(self.middle, self.middle, self.kernel, self.stride, self.middle)

    @property
    def squeezed(self) -> int:
        """Channels between the two convolutions of its gate."""
        return divisible(self.middle // REDUCTION)

    def key(self, size: int) -> str:
        """Return its name in Once-for-All's tables, for maps of ``size`` by ``size``."""
        out = halved(size, self.stride)
        return (
            f"expanded_conv-input:{size}x{size}x{self.read}-output:{out}x{out}x{self.written}"
            f"-expand:{self.middle}-kernel:{self.kernel}-stride:{self.stride}-idskip:{int(self.skips)}"
            f"-se:{int(self.gated)}-hs:{int(self.swish)}"
        )


@dataclass(frozen=True)
class Shapes:
    """What the subnetworks of one flexible network have in common."""

    stem: int
    """Channels of the first convolution, and of the block behind it."""
    channels: tuple[int, ...]
    """Of each stage."""
    strides: tuple[int, ...]
    """Of the first convolution, and of each stage's first layer."""
    gated: tuple[bool, ...]
    swish: tuple[bool, ...]
    """Of each stage."""
    expanded: int
    features: int
    """Channels of the last two 1x1 convolutions, before and behind the global pooling."""

    @property
    def first(self) -> Block:
        """The block behind the first convolution, which is the same in all."""
        return Block(self.stem, self.stem, self.stem, 3, 1, gated=False, swish=False)

    def block(self, stage: int, place: int, kernel: int, expansion: int) -> Block:
        """Return a layer of a stage."""
        written = self.channels[stage]
        read = written if place else (self.stem, *self.channels)[stage]
        return Block(
            read=read,
            written=written,
            middle=round(read * expansion),
            kernel=kernel,
            stride=1 if place else self.strides[1 + stage],
            gated=self.gated[stage],
            swish=self.swish[stage],
        )

    def blocks(self, stages: Sequence[Stage]) -> Iterator[Block]:
        """Yield the blocks of a subnetwork, but for the first."""
        for stage, layers in enumerate(stages):
            for place, (kernel, expansion) in enumerate(zip(*layers, strict=True)):
                yield self.block(stage, place, kernel, expansion)

    def maps(self, size: int) -> list[int]:
        """Return the height of what each stage reads, and of what the last one writes."""
        return list(itertools.accumulate(self.strides, halved, initial=size))[1:]

    def variants(self) -> Iterator[tuple[int, int, Block]]:
        """Yield every block that a stage may hold, behind the stage and 0 for first layers, 1 for others."""
        for stage, place, kernel, expansion in itertools.product(
            range(STAGES), range(2), KERNELS, EXPANSIONS
        ):
            yield stage, place, self.block(stage, place, kernel, expansion)

    def keys(self, size: int) -> list[str]:
        """Return the names of all variants in a table, for images of ``size`` by ``size``."""
        maps = self.maps(size)
        return [block.key(maps[stage + place]) for stage, place, block in self.variants()]

    def fixed_keys(self, size: int, classes: int = CLASSES) -> list[str]:
        """Return the names of the layers that every subnetwork has."""
        maps = self.maps(size)
        start, end = maps[0], maps[-1]
        last, expanded, features = self.channels[-1], self.expanded, self.features
        return [
            f"Conv-input:{size}x{size}x3-output:{start}x{start}x{self.stem}",
            self.first.key(start),
            f"Conv_1-input:{end}x{end}x{last}-output:{end}x{end}x{expanded}",
            f"AvgPool2D-input:{end}x{end}x{expanded}-output:1x1x{expanded}",
            f"Conv_2-input:1x1x{expanded}-output:1x1x{features}",
            f"Logits-input:1x1x{features}-output:{classes}",
        ]


def halved(size: int, stride: int) -> int:
    """Return the height of what a padded convolution writes."""
    return -(-size // stride)


def divisible(channels: float) -> int:
    """Return a number of channels as a multiple of 8, at most a tenth less than asked for."""
    found = max(8, int(channels + 4) // 8 * 8)
    return found + 8 if found < 0.9 * channels else found


def ofa(width: float) -> Shapes:
    """Return the shapes of Once-for-All's MobileNetV3 of a width, one of :data:`WIDTHS`."""
    stem, *channels, expanded, features = (
        divisible(width * base) for base in (16, 24, 40, 80, 112, 160, 960, 1280)
    )
    return Shapes(
        stem=stem,
        channels=tuple(channels),
        strides=(2, 2, 2, 2, 1, 2),
        gated=(False, True, False, True, True),
        swish=(False, False, True, True, True),
        expanded=expanded,
        features=features,
    )


def small() -> Shapes:
    """Return the shapes of a flexible network for images of 32 by 32: fewer channels, fewer strides."""
    return Shapes(
        stem=8,
        channels=(8, 16, 24, 32, 48),
        strides=(1, 2, 2, 2, 1, 1),
        gated=(False, True, False, True, True),
        swish=(False, False, True, True, True),
        expanded=96,
        features=128,
    )


def check_size(size: float) -> None:
    """Refuse images that subnetworks are not for.

    Raises
    ------
    InputError
    """
    if not LEAST_SIZE <= size <= MOST_SIZE:
        raise InputError(
            f"images of {size:g}x{size:g}: subnetworks of ofa_mobilenet_v3 are for sizes of {LEAST_SIZE} to "
            f"{MOST_SIZE}"
        )


def operators(
    shapes: Shapes, stages: Sequence[Stage], size: int, classes: int, batch: int, channels: int = 3
) -> list[Operator]:
    """Return the operators of a subnetwork's inference on images of some channels, as torch runs them."""
    listed = _Operators(batch)
    start = listed.conv("stem", SquareConv(channels, shapes.stem, 3, shapes.strides[0]), size)
    listed.activation("stem", shapes.stem, start, swish=True)
    size = listed.block("first", shapes.first, start)
    for place, block in enumerate(shapes.blocks(stages)):
        size = listed.block(f"block{place}", block, size)
    listed.conv("expand", SquareConv(shapes.channels[-1], shapes.expanded, 1), size)
    listed.activation("expand", shapes.expanded, size, swish=True)
    listed.add("pool", "GlobalAveragePool", [[shapes.expanded, size, size]], [shapes.expanded, 1, 1])
    listed.conv("features", SquareConv(shapes.expanded, shapes.features, 1), 1, norm=False)
    listed.activation("features", shapes.features, 1, swish=True)
    listed.add(
        "classes", "Gemm", [[shapes.features]], [classes], bias=True, macs=batch * shapes.features * classes
    )
    return listed.found


class _Operators:
    """Lists operators in the order in which they run.

    Parameters
    ----------
    batch : int
    """

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.found: list[Operator] = []

    def add(self, name: str, operator: str, read: list[list[int]], written: list[int], **rest: Any) -> None:
        """List an operator, whose tensors are given without the batch."""
        listed = {
            "name": name,
            "operator": operator,
            "inputs": [[self.batch, *shape] for shape in read],
            "output": [self.batch, *written],
            **rest,
        }
        self.found.append(cast(Operator, listed))

    def conv(self, name: str, conv: SquareConv, size: int, *, norm: bool = True, bias: bool = False) -> int:
        """List a convolution of maps of a height and its batch norm, and return that of what they write."""
        c, k, kernel, out = conv.c, conv.k, conv.kernel, halved(size, conv.stride)
        self.add(
            name,
            "Conv",
            [[c, size, size]],
            [k, out, out],
            n=self.batch,
            c=c,
            h=size,
            w=size,
            k=k,
            r=kernel,
            s=kernel,
            p=out,
            q=out,
            strides=[conv.stride] * 2,
            padding=[kernel // 2] * 4,
            dilation=[1, 1],
            groups=conv.groups,
            bias=bias,
            macs=self.batch * out * out * k * (c // conv.groups) * kernel * kernel,
        )
        if norm:
            shape = [k, out, out]
            self.add(f"{name}_norm", "BatchNormalization", [shape], shape, n=self.batch, c=k, h=out, w=out)
        return out

    def activation(self, name: str, channels: int, size: int, swish: bool) -> None:
        """List h-swish or a ReLU."""
        shape = [channels, size, size]
        self.add(f"{name}.activation", "HardSwish" if swish else "Relu", [shape], shape)

    def block(self, name: str, block: Block, size: int) -> int:
        """List a block, and return the height of what it writes."""
        middle, before = block.middle, size
        if block.expands:
            self.conv(f"{name}.expand", SquareConv(block.read, middle, 1), size)
            self.activation(f"{name}.expand", middle, size, block.swish)
        size = self.conv(f"{name}.depthwise", block.depthwise, size)
        self.activation(f"{name}.depthwise", middle, size, block.swish)
        whole = [middle, size, size]
        if block.gated:
            one, squeezed = [middle, 1, 1], [block.squeezed, 1, 1]
            self.add(f"{name}.gate.pool", "GlobalAveragePool", [whole], one)
            self.conv(f"{name}.gate.squeeze", SquareConv(middle, block.squeezed, 1), 1, norm=False, bias=True)
            self.add(f"{name}.gate.relu", "Relu", [squeezed], squeezed)
            self.conv(f"{name}.gate.excite", SquareConv(block.squeezed, middle, 1), 1, norm=False, bias=True)
            self.add(f"{name}.gate.sigmoid", "HardSigmoid", [one], one)
            self.add(f"{name}.gate.mul", "Mul", [whole, one], whole)
        self.conv(f"{name}.project", SquareConv(middle, block.written, 1), size)
        if block.skips:
            assert before == size
            shape = [block.written, size, size]
            self.add(f"{name}.add", "Add", [shape, shape], shape)
        return size
