"""The sum of the latencies of a subnetwork's blocks, each measured by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from dlas.networks.subnets.tables import BlockTimes, block_times, read_tables
from dlas.prediction.predictors.fitted.arrays import read_arrays, write_arrays
from dlas.prediction.predictors.fitted.least_squares import relative_rates
from dlas.stack import Fitted, InputError, Predictor, Samples, Workspace
from dlas.stack.types import Floats


@dataclass(frozen=True)
class BlockSum(Fitted):
    """A table of blocks, whose latencies are added up."""

    times: BlockTimes
    width: float
    """Of the subnetworks."""
    factor: float = 1.0
    """By which sums are multiplied."""

    @classmethod
    def read(cls, folder: Path) -> BlockSum:
        """Return what :meth:`save` wrote, which may come from elsewhere.

        Raises
        ------
        InputError
        """
        arrays = read_arrays(folder, {"sizes": 1, "variants": 2, "fixed": 1, "factors": 1})
        sizes, variants, fixed = (arrays[name] for name in ("sizes", "variants", "fixed"))
        count = len(sizes)
        if not count or len(variants) != count or fixed.shape != (count,) or arrays["factors"].shape != (2,):
            raise InputError(f"{folder}: arrays of other shapes than a table has")
        if (np.diff(sizes) <= 0).any() or not (variants > 0).all() or not (fixed > 0).all():
            raise InputError(f"{folder}: sizes of a table must rise, and its times be positive")
        width, factor = map(float, arrays["factors"])
        return cls(BlockTimes(sizes, variants, fixed), width, factor)

    def predict(self, samples: Samples) -> Floats:
        """Return the sums; those of sizes between two of the table's lie between theirs.

        Raises
        ------
        InputError
            If the table is for another width, or for other sizes.
        """
        *_, sizes, widths = samples.features.T
        counts = samples.features[:, :-2]
        if (widths != self.width).any():
            other = float(widths[widths != self.width][0])
            raise InputError(f"the table is for width {self.width:g}, and a point has width {other:g}")
        least, most = self.times.sizes[0], self.times.sizes[-1]
        if (outside := sizes[(sizes < least) | (sizes > most)]).size:
            raise InputError(
                f"the table is for images of {least:g} to {most:g}, and a point has {float(outside[0]):g}"
            )
        found = np.empty(len(samples))
        for size in np.unique(sizes):
            places = np.flatnonzero(sizes == size)
            variants, fixed = self._at(float(size))
            # Each row by itself: matrix products of different sizes round differently.
            found[places] = (counts[places] * variants).sum(axis=1) + fixed
        return found * self.factor

    def save(self, folder: Path) -> None:
        """Write the table."""
        times, factors = self.times, np.array([self.width, self.factor])
        arrays = {"sizes": times.sizes, "variants": times.variants, "fixed": times.fixed, "factors": factors}
        write_arrays(folder, arrays)

    def _at(self, size: float) -> tuple[Floats, float]:
        """Return the seconds of all blocks, and of what is fixed, for images of a size."""
        sizes = self.times.sizes
        above = int(np.clip(np.searchsorted(sizes, size), 1, max(1, len(sizes) - 1)))
        if len(sizes) == 1:
            return self.times.variants[0], float(self.times.fixed[0])
        share = (size - sizes[above - 1]) / (sizes[above] - sizes[above - 1])
        variants, fixed = (
            (1 - share) * values[above - 1] + share * values[above]
            for values in (self.times.variants, self.times.fixed)
        )
        return variants, float(fixed)


@dataclass(frozen=True)
class LookupTable(Predictor):
    """Add up what a table says of each block of a subnetwork of ``ofa_mobilenet_v3``.

    References
    ----------
    Once-for-All, section 3.3.
    """

    fewest: ClassVar[int] = 1

    table: str
    """A folder that ``dlas blocks`` wrote, or tables of Once-for-All: ``160_lookup_table.yaml``, ..."""
    scaled: bool = False
    """Whether sums are multiplied by the factor with the least relative error on the rows: blocks that are
    measured by themselves take longer than in a network.
    """

    def verify(self) -> None:
        """Read the table.

        Raises
        ------
        InputError
        """
        read_tables(self.table)

    def families(self, target: str) -> tuple[str, ...]:
        """Return how often each block occurs.

        Raises
        ------
        InputError
            If the target is no latency.
        """
        if not target.startswith("latency"):
            raise InputError(f"a table of latencies predicts no {target}")
        return ("subnet_blocks",)

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the table for the width of the rows.

        Raises
        ------
        InputError
            If rows have several widths, or the table is for another.
        """
        widths = sorted(set(samples.features[:, -1].tolist()))
        if len(widths) > 1:
            told = ", ".join(f"{width:g}" for width in widths)
            raise InputError(f"rows of widths {told}: a table is for one of them")
        found = BlockSum(block_times(read_tables(self.table), widths[0], self.table), widths[0])
        if not self.scaled:
            return found
        (factor,) = relative_rates(found.predict(samples)[:, None], samples.target)
        return replace(found, factor=float(factor))

    def load(self, folder: Path) -> Fitted:
        """Return the table from its file."""
        return BlockSum.read(folder)
