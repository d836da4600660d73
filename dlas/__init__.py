"""The Deep Learning Acceleration Stack: measure and predict what six layers do to each other.

``dlas.run(study, out=folder)`` runs a study, a file or a ``dlas.Study(axes={...})``.
``dlas.read(folder)`` gives its rows as a DataFrame, and ``dlas.read(folder, layers=True)`` their layers.
``dlas.table``, ``compare``, ``observations``, ``paths`` and ``choose`` return tables that a notebook shows,
each a DataFrame as ``.frame``, and so does ``dlas.history(folders)`` of times over versions;
``dlas.report`` writes the HTML page, ``dlas.atlas`` one with every row of many studies, ``dlas.export``
Parquet or CSV, and ``dlas.import_rows(table, folder)`` makes rows of such a table from elsewhere.
``dlas.explore(study, out=folder, share=0.1)`` measures a share of its points and predicts the others.
``dlas.fit(part, folder, target="latency_s", to=...)`` fits a predictor to rows, and
``dlas.predict(folder, study)`` and ``dlas.predictor(folder).predict(rows)`` predict with it; in place of
either stands a network: a torch module, the path of an ONNX file, or ``{"name": "resnet50"}``.
``dlas.fit_device(folder, minutes=30)`` makes a predictor for this machine from nothing.
``dlas.search(study, folder, estimator=..., maximise=..., within=...)`` searches what a study draws, and
``dlas.blocks(folder)`` measures a table of blocks for it.
``dlas.models.from_torch(module, shape)`` makes a network of one's own a part of a study.
``dlas.deploy(folder, row, to=...)`` writes the program of a row with all that it needs to run elsewhere, and
``dlas.load(folder)(images)`` runs it.  ``dlas.deploy_paths(folder, to=...)`` writes all paths of a flexible
network as one program, which ``dlas.load(folder).run(images, policy="load", ...)`` chooses among.
``dlas.deploy_page(folder, row, to="page.html")`` writes a network as a page that runs it in any browser.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dlas import moved
from dlas.face.exports import EXPORTS, exported

if TYPE_CHECKING:
    from dlas import errors as errors
    from dlas.axes import models as models
    from dlas.deployment.deploying import deploy as deploy
    from dlas.deployment.flexible import deploy_paths as deploy_paths
    from dlas.deployment.loading import load as load
    from dlas.deployment.page.writing import deploy_page as deploy_page
    from dlas.face.api.predictors import evaluate as evaluate
    from dlas.face.api.predictors import fit as fit
    from dlas.face.api.predictors import predict as predict
    from dlas.face.api.predictors import predictor as predictor
    from dlas.face.api.rows import choose as choose
    from dlas.face.api.rows import compare as compare
    from dlas.face.api.rows import import_rows as import_rows
    from dlas.face.api.rows import observations as observations
    from dlas.face.api.rows import paths as paths
    from dlas.face.api.rows import report as report
    from dlas.face.api.rows import table as table
    from dlas.face.api.studies import blocks as blocks
    from dlas.face.api.studies import explore as explore
    from dlas.face.api.studies import fit_device as fit_device
    from dlas.face.api.studies import run as run
    from dlas.face.api.studies import search as search
    from dlas.face.atlas.writing import atlas as atlas
    from dlas.face.history import history as history
    from dlas.sweep.engine.merging import merge as merge
    from dlas.sweep.rows.export import export as export
    from dlas.sweep.rows.frame import read as read
    from dlas.sweep.study.study import Study as Study

    __version__: str

MODULES = ("errors", "models")
"""Modules that it exports as they are."""
moved.install()


def __getattr__(name: str) -> Any:
    """Return what is exported, or the version."""
    if name in EXPORTS:
        return exported(name)
    if name in MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "__version__":
        from dlas.bench.store.fingerprint import version

        # A source tree that was never installed has none.
        return version("dlas") or "unknown"
    raise AttributeError(f"module 'dlas' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *EXPORTS, *MODULES, "__version__"])
