"""Gain from balancing nonzeros over threads, where filters have very different numbers of them.

A quarter of the filters is dense and stands first; all others have few weights.  Their rows in the
order that balances threads, and in the order of the filters, beside a layer of as many nonzeros
that are spread evenly.

    python -m benchmarks.skewed [--threads 1,2] [--density 0.04] [--seconds 2] [--out FOLDER] [--smoke]
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import numpy as np
import torch
import typer
from pydantic import Field
from rich.console import Console
from rich.table import Table
from torch import nn

from benchmarks.layers import Layer
from benchmarks.studies import median_s, run_study
from dlas.sparse.csr_direct import CsrDirect
from dlas.stack import Conv

SHAPES = {"64 at 56": (64, 56), "256 at 14": (256, 14), "512 at 7": (512, 7)}
DENSE_FILTERS = 0.25
STUDY = """
name = "skewed"
[axes]
dataset   = [{{ name = "random", channels = {channels}, size = {size}, classes = 1000, images = 2 }}]
model     = [{{ name = "benchmarks.skewed:SkewedLayer", {filters}, even = [false, true] }}]
algorithm = ["csr_direct", "benchmarks.skewed:CsrInOrder"]
compiler  = ["hand"]
hardware  = [{{ name = "local_cpu", threads = {threads} }}]
[measure]
seconds = {seconds}
[[skip]]
model     = {{ name = "benchmarks.skewed:SkewedLayer", even = true }}
algorithm = "benchmarks.skewed:CsrInOrder"
reason    = "any order is as good for rows that are alike"
"""


@dataclass(frozen=True)
class SkewedLayer(Layer):
    """A sparse convolution whose filters are very different."""

    density: Annotated[float, Field(ge=0, le=1)] = 0.04
    """Of the filters that are not dense."""
    even: bool = False
    """Spread as many nonzeros over all filters instead."""

    def module(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        """Return the convolution with ReLU."""
        module = super().module(shape, classes)
        weight = next(module.parameters())
        dense = torch.arange(len(weight)) < DENSE_FILTERS * len(weight)
        densities = torch.where(dense, 1.0, self.density)
        if self.even:
            densities = densities.mean().expand_as(densities)
        with torch.no_grad():
            weight[torch.rand_like(weight) >= densities[:, None, None, None]] = 0
        return module


@dataclass(frozen=True)
class CsrInOrder(CsrDirect):
    """``csr_direct`` with its rows in the order of the filters."""

    def pack(self, weight: np.ndarray, conv: Conv) -> tuple[np.ndarray, ...]:
        """Return the rows in the order of the filters."""
        with mock.patch(f"{CsrDirect.pack.__module__}.balanced_order", _in_order):
            return super().pack(weight, conv)


def _in_order(lengths: Sequence[Any]) -> np.ndarray:
    return np.arange(len(lengths), dtype=np.int32)


def main(
    threads: str = "1,2",
    density: float = 0.04,
    seconds: float = 2.0,
    out: Annotated[Path | None, typer.Option(help="Keep rows here, and resume from them.")] = None,
    smoke: Annotated[bool, typer.Option(help="One layer, briefly: whether it works.")] = False,
) -> None:
    """Print the time of uneven filters, in either order, over that of even ones."""
    shapes = {"512 at 7": SHAPES["512 at 7"]} if smoke else SHAPES
    table = Table("3x3", "threads", "in order", "balanced", title="time over that of even filters", box=None)
    with tempfile.TemporaryDirectory() as scratch:
        for name, (channels, size) in shapes.items():
            for count in map(int, threads.split(",")):
                filters = f"filters = {channels}, density = {density}"
                options = {"channels": channels, "size": size, "filters": filters, "threads": count}
                folder = (out or Path(scratch)) / name.replace(" ", "_")
                rows = run_study(folder, STUDY.format(**options, seconds=0.2 if smoke else seconds))
                medians = {
                    (row.algorithm["name"], row.model.get("even", False)): median_s(row) for row in rows
                }
                even = medians["csr_direct", True]
                in_order = medians["benchmarks.skewed:CsrInOrder", False]
                balanced = medians["csr_direct", False]
                table.add_row(name, str(count), f"{in_order / even:.2f}", f"{balanced / even:.2f}")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
