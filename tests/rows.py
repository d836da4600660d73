"""Rows made up for tests of what reads them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dlas.rows.results import FILE, Row
from dlas.stack import PART_AXES

CPU = {
    "name": "local_cpu",
    "threads": 2,
    "cpu": "Imaginary 9000",
    "physical_cores": 2,
    "memory_bytes": 8 * 10**9,
}
PLAIN = {
    "dataset": "digits",
    "model": "cifar_resnet18",
    "compression": "none",
    "algorithm": "direct",
    "compiler": "untuned",
    "hardware": "local_cpu",
}


def part(content: str | dict[str, Any]) -> dict[str, Any]:
    """Return a part as it stands in a row; a name is enough."""
    return {"name": content} if isinstance(content, str) else content


def row(ms: float = 10.0, *, samples: int = 20, spread: float = 0.01, sampled: int = 0, **given: Any) -> Row:
    """Return a row whose median latency is about ``ms``.

    Parameters
    ----------
    samples, spread, sampled : int, float, int
        Number of samples, their relative standard deviation, the seed they are drawn from.
    given : Any
        Axes as names or contents, and any key of a row.
    """
    axes: dict[str, Any] = {axis: part(given.pop(axis, PLAIN[axis])) for axis in PART_AXES}
    point = axes | {"batch": given.pop("batch", 1), "seed": given.pop("seed", 0)}
    digest = hashlib.sha256(json.dumps(point, sort_keys=True).encode()).hexdigest()[:16]
    status = given.get("status", "ok")
    values: dict[str, Any] = {"id": digest, "key": "k", "study": "made-up", "status": status}
    if status == "ok":
        noise = np.random.default_rng([sampled, int(digest, 16)]).normal(1, spread, samples)
        values |= _measured((ms * 1e-3 * noise).tolist())
    else:
        values |= {"reason": f"it was {status}", "step": "build"}
    return Row(**point, **(values | given))


def _measured(latency_s: list[float]) -> dict[str, Any]:
    return {
        "latency_s": latency_s,
        "first_run_s": 2 * latency_s[0],
        "noisy": False,
        "load": 0.01,
        "error": 1.5e-6,
        "accuracy": 0.9712,
        "compiled_accuracy": {"accuracy": 0.96, "low": 0.93, "high": 0.98, "images": 256},
        "peak_memory_bytes": 12_345_678,
        "parameters": 11_173_962,
        "macs": 555_422_720,
        "model_bytes": 44_695_848,
        "coverage": {"convolutions": 1.0, "macs": 0.98},
        "seconds": {"network": 12.0, "build": 3.5, "check": 0.5, "measure": 2.0},
        "device": CPU,
        "environment": {"host": {"name": "somewhere"}, "versions": {"torch": "2.11.0"}},
        "started": "2026-01-02T03:04:05+00:00",
    }


def write(folder: Path, rows: Sequence[Row], tail: str = "") -> Path:
    """Write a results file, and what may stand after its last row."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text("".join(each.line() for each in rows) + tail, encoding="utf-8")
    return folder


def failing(status: str = "failed", **given: Any) -> Row:
    """Return a row of a point that came to nothing."""
    return row(status=status, **given)


def again(earlier: Row, **changes: Any) -> Row:
    """Return a later row of the same point."""
    return dataclasses.replace(earlier, **changes)
