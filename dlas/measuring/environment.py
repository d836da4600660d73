"""Where a row comes from: versions of the toolchain, of the code, and the machine's name."""

from __future__ import annotations

import functools
import platform
import subprocess
from pathlib import Path
from typing import Any

from dlas.store.fingerprint import versions

TOOLCHAIN = (
    "torch",
    "torchvision",
    "torch-pruning",
    "apache-tvm",
    "apache-tvm-ffi",
    "onnx",
    "onnxruntime",
    "numpy",
    "scikit-learn",
    "pytorch-lightning",
    "xgboost",
)
"""What can change a number in a row."""
CHECKOUT = Path(__file__).resolve().parents[2]
CODE = ("dlas", "schedules", "sparse", "hardware_profiles", "setup.cfg")
"""What makes a checkout differ from its commit: a README or a study does not."""


def environment() -> dict[str, Any]:
    """Return what a row says of its surroundings.

    Returns
    -------
    dict
        ``python``, ``versions`` (by distribution, None where not installed),
        ``code`` (see :func:`code`) and ``host``.  Nothing is imported to learn
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
    # Only a checkout's own folder counts: an environment may lie inside some other repository.
    if (checkout / ".git").exists():
        commit = _git(checkout, "rev-parse", "HEAD")
        changes = _git(checkout, "status", "--porcelain", "--", *CODE)
        dirty = None if changes is None else bool(changes)
    return {"version": version("dlas"), "commit": commit, "dirty": dirty}


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git prints, or None where it is not there, refuses or hangs."""
    command = ["git", "-C", str(folder), "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
