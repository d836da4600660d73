"""The environment of a row: versions of the toolchain and of the code, and the machine's name."""

from __future__ import annotations

import functools
import platform
import subprocess
from pathlib import Path
from typing import Any

from dlas.bench.store.fingerprint import versions

TOOLCHAIN = (
    "torch",
    "torchvision",
    "torch-pruning",
    "apache-tvm",
    "apache-tvm-ffi",
    "onnx",
    "onnxruntime",
    "openvino",
    "ncnn",
    "pnnx",
    "mnn",
    "numpy",
    "scikit-learn",
    "pytorch-lightning",
    "xgboost",
)
"""Packages that can change a number in a row."""
CHECKOUT = Path(__file__).resolve().parents[3]
CODE = ("dlas", "schedules", "sparse", "hardware_profiles", "setup.cfg")
"""Paths whose changes make a checkout dirty: not READMEs or studies."""


def environment() -> dict[str, Any]:
    """Return the environment that a row records.

    Returns
    -------
    dict
        ``python``, ``versions`` (by distribution, None where not installed),
        ``code`` (see :func:`code`) and ``host``.  Nothing is imported to find
        the versions.
    """
    return {
        "python": platform.python_version(),
        "versions": versions(TOOLCHAIN),
        "code": dict(code()),
        "host": {"name": platform.node(), "system": platform.system(), "architecture": platform.machine()},
    }


def version(name: str) -> str | None:
    """Return the installed version of a distribution, or None."""
    return versions([name])[name]


@functools.cache
def code(checkout: Path = CHECKOUT) -> dict[str, Any]:
    """Return the version of this code.

    Parameters
    ----------
    checkout : Path
        The folder above the package.

    Returns
    -------
    dict
        ``version`` of the installed package; in a git checkout also ``commit``
        and whether the code has been changed since (``dirty``), else None.
    """
    commit = dirty = None
    # Only a checkout's own folder counts: an environment may be inside another repository.
    if (checkout / ".git").exists():
        commit = _git(checkout, "rev-parse", "HEAD")
        changes = _git(checkout, "status", "--porcelain", "--", *CODE)
        dirty = None if changes is None else bool(changes)
    return {"version": version("dlas"), "commit": commit, "dirty": dirty}


def _git(folder: Path, *arguments: str) -> str | None:
    """Return the output of git; None if it is missing, fails or hangs."""
    command = ["git", "-C", str(folder), "--no-optional-locks", *arguments]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout.strip() if process.returncode == 0 else None
