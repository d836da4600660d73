"""A predictor in a script: what was fitted to rows, asked for others and for networks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

from dlas.prediction.learning.examples import read_examples
from dlas.prediction.learning.networks import NetworkOptions, planned_network
from dlas.prediction.learning.points import Points, points_of
from dlas.prediction.learning.predictions import predict
from dlas.prediction.learning.stored import StoredPredictor
from dlas.sweep.engine.progress import Display, Silent
from dlas.sweep.engine.session import Session, Steps
from dlas.sweep.rows.frame import distinct
from dlas.sweep.study.networks import is_network

if TYPE_CHECKING:
    from dlas.sweep.study.networks import Network

Folders = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""A folder that ``dlas.run`` wrote, or several."""


@dataclass(frozen=True)
class FittedPredictor:
    """A predictor that was fitted to rows."""

    stored: StoredPredictor
    display: Display = field(default_factory=Silent, repr=False)
    """Shows warnings."""

    def predict(
        self,
        what: Folders | pd.DataFrame | Network,
        *,
        batch: int | Sequence[int] = (),
        size: int | None = None,
        threads: int | None = None,
        compiler: str | None = None,
        hardware: str | Mapping[str, Any] | None = None,
        anyway: bool = False,
        cache: str | os.PathLike[str] | None = None,
        steps: Steps = "spawned",
    ) -> pd.DataFrame:
        """Return rows with predictions in place of what was measured, or a network with its predictions.

        Parameters
        ----------
        what : path, paths, DataFrame, torch.nn.Module or mapping
            Folders that ``dlas run`` wrote, or what :func:`dlas.read` returned of them; or a network: a torch
            module, the path of an ONNX file, or a part of the axis ``model``, ``{"name": "resnet50"}``. ONNX
            Runtime runs an ONNX file on one image.
        batch, size, threads, compiler, hardware
            Of a network, as for :func:`dlas.predict`.
        anyway : bool
            Predict rows of a machine, compiler, ... that was never fitted too, without an interval.
        cache, steps
            Of a network, as for :func:`dlas.predict`.

        Returns
        -------
        DataFrame
            The target's column holds the prediction; beside it are ``_low`` and ``_high``, the bounds of its
            interval of level 0.9, ``unknown_kernels``, the share of it for kernels of kinds that were never
            fitted, ``in_range``, and ``doubt``, why not to trust it.

        Raises
        ------
        InputError
            If a row's setting was never fitted, or too much of a network is unknown, and not ``anyway``; or a
            network cannot be read.
        """
        asked = NetworkOptions(batch, size, threads, compiler, hardware)
        if is_network(what):
            with Session.open(steps, cache=cache, display=self.display) as session:
                made, name = planned_network(self.stored, what, asked, session)
            points = Points.of(made.points)
            frame = predict(self.stored, points, anyway).frame(points)
            return frame.assign(model=name)
        asked.refuse_any()
        if isinstance(what, pd.DataFrame):
            points = points_of(what)
        else:
            folders = cast("Folders", what)
            paths = distinct([folders] if isinstance(folders, str | os.PathLike) else folders)
            points = Points.of(read_examples(map(Path, paths))).with_operators()
        return predict(self.stored, points, anyway).frame(points)
