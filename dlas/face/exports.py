"""What ``dlas`` exports, and where it comes from: the command line reads and calls the same functions."""

from __future__ import annotations

import importlib
from typing import Any

EXPORTS = {
    "Study": "dlas.sweep.study.study",
    **dict.fromkeys(
        ("choose", "compare", "import_rows", "observations", "paths", "report", "table"),
        "dlas.face.api.results",
    ),
    **dict.fromkeys(("evaluate", "fit"), "dlas.face.api.predicting"),
    **dict.fromkeys(("predict", "predictor"), "dlas.face.api.predictions"),
    "blocks": "dlas.face.api.blocks",
    "deploy": "dlas.deployment.deploying",
    "deploy_paths": "dlas.deployment.flexible",
    "explore": "dlas.face.api.exploring",
    "export": "dlas.sweep.rows.export",
    "fit_device": "dlas.face.api.device",
    "load": "dlas.deployment.loading",
    "read": "dlas.sweep.rows.frame",
    "run": "dlas.face.api.running",
    "search": "dlas.face.api.searching",
}
"""The modules of what is exported, imported when somebody asks: pandas takes a second."""


def exported(name: str) -> Any:
    """Return what ``dlas`` exports by a name."""
    return getattr(importlib.import_module(EXPORTS[name]), name)
