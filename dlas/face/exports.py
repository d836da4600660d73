"""What ``dlas`` exports, and where it comes from: the command line reads and calls the same functions."""

from __future__ import annotations

import importlib
from typing import Any

EXPORTS = {
    "Study": "dlas.sweep.study.study",
    **dict.fromkeys(("blocks", "explore", "fit_device", "run", "search"), "dlas.face.api.studies"),
    **dict.fromkeys(
        ("choose", "compare", "import_rows", "observations", "paths", "report", "table", "variability"),
        "dlas.face.api.rows",
    ),
    **dict.fromkeys(("evaluate", "fit", "predict", "predictor"), "dlas.face.api.predictors"),
    "atlas": "dlas.face.atlas.writing",
    "deploy": "dlas.deployment.deploying",
    "deploy_page": "dlas.deployment.page.writing",
    "deploy_paths": "dlas.deployment.flexible",
    "export": "dlas.sweep.rows.export",
    "history": "dlas.face.history",
    "load": "dlas.deployment.loading",
    "merge": "dlas.sweep.engine.merging",
    "read": "dlas.sweep.rows.frame",
}
"""The modules of what is exported, imported when somebody asks: pandas takes a second."""


def exported(name: str) -> Any:
    """Return what ``dlas`` exports by a name."""
    return getattr(importlib.import_module(EXPORTS[name]), name)
