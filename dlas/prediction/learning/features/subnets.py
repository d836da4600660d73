"""Features of subnetworks of Once-for-All's MobileNetV3, which follow from a point's options alone.

References
----------
The OFA latency predictor, sections 4.2.1 and 4.3.  The paper counts 128 values, and 131 with a GPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dlas.errors import InputError, listed
from dlas.networks.subnets.shapes import LEAST_SIZE, MOST_SIZE, Shapes, check_size, ofa, small
from dlas.networks.subnets.written import EXPANSIONS, KERNELS, MOST, STAGES, Codes, codes
from dlas.stack.types import Floats

Options = Callable[[str], Sequence[Any]]
"""Returns a column of the table of rows, ``model.subnet``, a value for each point; None where it is unset."""
INTERVALS = 8
"""Of sizes, from the least to the largest."""
USUAL_SIZE = 224
PART = "ofa_mobilenet_v3"
SMALL, SMALL_SIZE, SMALL_WIDTH = "supernet", 32, 0.0
"""The model whose subnetworks a compression takes out, its images, and what stands for its width."""
DEVICE = ("cores", "memory_bytes", "bandwidth_bytes_s")
"""Options of the hardware that tell GPUs apart."""


@dataclass(frozen=True)
class Subnets:
    """The subnetworks of points."""

    codes: Codes
    """[n, stages, 2, layers]."""
    sizes: Floats
    """Heights of images; [n]."""
    widths: Floats
    """[n]."""
    batches: Floats
    """[n]."""

    @classmethod
    def of(cls, options: Options) -> Subnets:
        """Return the subnetworks of points.

        Raises
        ------
        InputError
            If a point has another model, or images of a size that subnetworks are not for.
        """
        names = options("model_name")
        texts, sizes, widths = (
            list(options(name)) for name in ("model.subnet", "dataset.size", "model.width")
        )
        for place, (name, other) in enumerate(zip(names, options("compression.subnet"), strict=True)):
            if name == SMALL and other is not None:
                texts[place], sizes[place], widths[place] = other, SMALL_SIZE, SMALL_WIDTH
            elif name != PART or not isinstance(texts[place], str):
                raise InputError(
                    f"features of subnetworks are those of the model {PART}, and a point has {name!r}"
                )
            elif sizes[place] is None:
                raise InputError(
                    "features of subnetworks need the size of images, and a data set has no option 'size'"
                )
            elif widths[place] is None:
                widths[place] = 1.0
        for size in {size for size, name in zip(sizes, names, strict=True) if name == PART}:
            check_size(size)
        try:
            found = codes(texts)
        except ValueError as error:
            raise InputError(f"option subnet: {error}") from None
        numbers = (np.array(values, dtype=np.float64) for values in (sizes, widths, options("batch")))
        return cls(found, *numbers)

    def check_batch(self, family: str) -> None:
        """Check that the batch, which a family does not tell, is the same for all points.

        Raises
        ------
        InputError
        """
        if len(batches := np.unique(self.batches)) > 1:
            found = listed([f"{batch:g}" for batch in batches])
            raise InputError(
                f"features {family!r} do not tell the batch, and points have {found}: choose one, as in "
                '`where="batch=1"`'
            )

    def by_width(self) -> Iterator[tuple[Shapes, npt.NDArray[np.intp]]]:
        """Yield the shapes of each width, and the places of its subnetworks."""
        for width in np.unique(self.widths):
            yield small() if width == SMALL_WIDTH else ofa(float(width)), np.flatnonzero(self.widths == width)


class SubnetOptions:
    """What the options of points tell; their subnetworks are parsed once for all families.

    Parameters
    ----------
    options : callable
    """

    def __init__(self, options: Options) -> None:
        self.options = options

    @functools.cached_property
    def subnets(self) -> Subnets:
        """The subnetworks of the points."""
        return Subnets.of(self.options)


@dataclass(frozen=True)
class PointFamily:
    """Features that follow from a point's options."""

    names: tuple[str, ...]
    """Of its columns."""
    values: Callable[[SubnetOptions], Floats]
    """Returns, of what the options of n points tell, an array [n, names]."""


def _encoded(told: SubnetOptions) -> Floats:
    """Return the paper's 128 values: kernel sizes, expansion ratios and size as zeros and ones."""
    subnets = told.subnets
    subnets.check_batch("subnet")
    ends = np.cumsum([STAGES * MOST * len(values) for values in (KERNELS, EXPANSIONS)])
    found = np.empty((len(subnets.sizes), ends[-1] + INTERVALS))  # written once, for it may be large
    for place, (values, own) in enumerate(
        zip((KERNELS, EXPANSIONS), np.split(found, ends, axis=1), strict=False)
    ):
        layers = own.reshape(-1, STAGES, MOST, len(values))
        np.equal(subnets.codes[:, :, place, :, None], np.array(values, dtype=np.uint8), out=layers)
    width = (MOST_SIZE - LEAST_SIZE) / INTERVALS
    # The last interval is closed: the published code leaves its array at 240.
    interval = np.minimum((subnets.sizes - LEAST_SIZE) // width, INTERVALS - 1)
    found[:, -INTERVALS:] = interval[:, None] == np.arange(INTERVALS)  # none for images that are smaller
    return found


def _encoded_names() -> tuple[str, ...]:
    layers = [f"stage{stage + 1}_layer{layer + 1}" for stage in range(STAGES) for layer in range(MOST)]
    names = [f"{layer}_kernel{kernel}" for layer in layers for kernel in KERNELS]
    names += [f"{layer}_expansion{expansion}" for layer in layers for expansion in EXPANSIONS]
    width = (MOST_SIZE - LEAST_SIZE) // INTERVALS
    return (*names, *(f"size_from_{LEAST_SIZE + place * width}" for place in range(INTERVALS)))


def _exact_size(told: SubnetOptions) -> Floats:
    """Return the number of pixels, relative to those of the usual size."""
    return ((told.subnets.sizes / USUAL_SIZE) ** 2)[:, None]


GATED = tuple(stage for stage, gated in enumerate(ofa(1.0).gated) if gated)
COSTS = ("pointwise_macs", "depthwise_macs", "depthwise_values", "gates", "layers")


def _costs(told: SubnetOptions) -> Floats:
    """Return the costs of each stage, of the whole batch, and of what all subnetworks have in common."""
    subnets = told.subnets
    found = np.empty((len(subnets.sizes), len(_cost_names())))
    for shapes, places in subnets.by_width():
        found[places] = _costs_of(
            shapes, subnets.codes[places], subnets.sizes[places], subnets.batches[places]
        )
    return found


def _cost_names() -> tuple[str, ...]:
    names = [
        f"stage{stage + 1}_{cost}"
        for stage in range(STAGES)
        for cost in COSTS
        if cost != "gates" or stage in GATED
    ]
    return (*names, "pixels", "once")


def _costs_of(shapes: Shapes, code: Codes, sizes: Floats, batches: Floats) -> Floats:
    """Return the costs of subnetworks of one width."""
    columns: list[Floats] = []
    side = _halved(sizes, shapes.strides[0])
    for stage in range(STAGES):
        kernels, expansions = code[:, stage].astype(np.float64).transpose(1, 0, 2)
        read = np.full(MOST, float(shapes.channels[stage]))
        read[0] = (shapes.stem, *shapes.channels)[stage]
        after = _halved(side, shapes.strides[1 + stage])
        pixels_in = np.repeat(after[:, None] ** 2, MOST, axis=1)
        pixels_in[:, 0] = side**2
        pixels_out = after[:, None] ** 2
        middle = expansions * read  # 0 where a layer is not there
        pointwise = middle * (pixels_in * read + pixels_out * shapes.channels[stage])
        depthwise = middle * pixels_out * kernels**2
        values = middle * (pixels_in + pixels_out)
        columns += [batches * each.sum(axis=1) for each in (pointwise, depthwise, values)]
        if shapes.gated[stage]:
            columns.append(middle.sum(axis=1))
        columns.append((kernels > 0).sum(axis=1).astype(np.float64))
        side = after
    columns += [batches * sizes**2, np.ones(len(sizes))]
    return np.column_stack(columns)


def _halved(sizes: Floats, stride: int) -> Floats:
    return np.ceil(sizes / stride)


def _blocks(told: SubnetOptions) -> Floats:
    """Return how often each block of a table of latencies occurs, the size and the width."""
    subnets = told.subnets
    subnets.check_batch("subnet_blocks")
    kinds = [
        (subnets.codes[:, :, 0, :] == kernel) & (subnets.codes[:, :, 1, :] == expansion)
        for kernel in KERNELS
        for expansion in EXPANSIONS
    ]
    layers = np.stack(kinds, axis=-1).astype(np.float64)  # [n, stages, layers, kinds]
    counts = np.stack([layers[:, :, 0], layers[:, :, 1:].sum(axis=2)], axis=2)
    flat = counts.reshape(len(layers), -1)
    return np.column_stack([flat, subnets.sizes, subnets.widths])


def _block_names() -> tuple[str, ...]:
    return (
        *(
            f"stage{stage + 1}_{place}_kernel{kernel}_expansion{expansion}"
            for stage in range(STAGES)
            for place in ("first", "later")
            for kernel in KERNELS
            for expansion in EXPANSIONS
        ),
        "size",
        "width",
    )


def _device(told: SubnetOptions) -> Floats:
    """Return the numbers of a GPU, as its rows tell them."""
    columns = []
    for name in DEVICE:
        values = told.options(f"hardware.{name}")
        for value, hardware in zip(values, told.options("hardware_name"), strict=True):
            if not isinstance(value, int | float) or not value > 0:
                raise InputError(
                    f"a row of hardware {hardware!r} does not tell its {name}: give columns "
                    f"{', '.join(f'hardware.{each}' for each in DEVICE)}"
                )
        columns.append(np.array(values, dtype=np.float64))
    return np.column_stack(columns)


FAMILIES = {
    "subnet": PointFamily(_encoded_names(), _encoded),
    "subnet_size": PointFamily(("pixels",), _exact_size),
    "subnet_costs": PointFamily(_cost_names(), _costs),
    "subnet_blocks": PointFamily(_block_names(), _blocks),
    "subnet_device": PointFamily(DEVICE, _device),
    "subnet_device_logs": PointFamily(DEVICE, lambda told: np.log(_device(told))),
}
