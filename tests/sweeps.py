"""Whole sweeps made up, with everything that a report can show."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dlas.rows.results import CURVES, Row
from tests.rows import failing, row

COMPRESSIONS: dict[str, tuple[Any, dict[str, float]]] = {
    "none": ("none", {}),
    "weight_pruning": ({"name": "weight_pruning", "level": 0.9}, {"ratio": 0.9}),
    "channel_pruning": ({"name": "channel_pruning", "level": 0.5}, {"ratio": 0.5}),
    "int8": ("int8", {"bits": 8}),
}
ALGORITHMS = {"direct": 1.3, "gemm": 1.0, "spatial_pack": 0.95, "csr_gemm": 0.6}
COMPILERS: dict[str, tuple[Any, float]] = {
    "untuned": ("untuned", 1.0),
    "hand": ("hand", 0.4),
    "tuned": ({"name": "metaschedule", "trials": 64}, 0.25),
}
REASONS = {
    "failed": "InternalError: Check failed: (extent > 0) is false",
    "timeout": "tune took longer than 600 s",
    "wrong": "error 0.03 exceeds 0.0001",
    "unsupported": "there is no such kernel",
}


def sweep(models: int = 2, batches: tuple[int, ...] = (1, 8), seed: int = 0, samples: int = 30) -> list[Row]:
    """Return the rows of a sweep over models, compressions, algorithms, compilers and batches.

    One point in twelve came to nothing, one in ten is noisy.  A sparse algorithm
    takes pruned networks only, and two runtimes take dense ones.
    """
    draw = np.random.default_rng(seed)
    rows = []
    for model, batch in itertools.product(range(models), batches):
        base = (3 + model) * batch**0.9
        for compression, algorithm, compiler in itertools.product(COMPRESSIONS, ALGORITHMS, COMPILERS):
            if algorithm.startswith("csr") and "pruning" not in compression:
                continue
            ms = base * ALGORITHMS[algorithm] * COMPILERS[compiler][1] * draw.uniform(0.9, 1.1)
            ms *= 0.5 if compression == "int8" else 0.6 if (algorithm, compiler) == ("direct", "tuned") else 1
            rows.append(_point(draw, ms, model, batch, compression, algorithm, compiler, samples))
        for runtime, speed in (("onnxruntime", 0.3), ("torch_eager", 0.5)):
            rows.append(
                row(base * speed, algorithm="library", compiler=runtime, batch=batch, samples=samples,
                    **_network(model, "none"))
            )  # fmt: skip
    return rows


def write_curves(folder: Path, rows: Sequence[Row]) -> None:
    """Write beside a sweep's rows how the search of each tuned one went."""
    (folder / CURVES).mkdir()
    for each in rows:
        if each.tuning:
            best = [[1, 0.5, 4e-5], [9, 5.0, 2e-5], [60, 30.0, 1e-5]]
            curves = [
                {"layers": [f"layer{n}.conv"], "space": "rules", "trials": 64, "best": best[: 2 + n % 2]}
                for n in range(3)
            ]
            (folder / CURVES / f"{each.id}.json").write_text(json.dumps(curves))


def _point(
    draw: np.random.Generator,
    ms: float,
    model: int,
    batch: int,
    compression: str,
    algorithm: str,
    compiler: str,
    samples: int,
) -> Row:
    given = {
        **_network(model, compression),
        "compression": COMPRESSIONS[compression][0],
        "algorithm": algorithm,
        "compiler": COMPILERS[compiler][0],
        "batch": batch,
    }
    if draw.random() < 1 / 12:
        status = str(draw.choice(list(REASONS)))
        return failing(status, reason=REASONS[status], **given)
    tuning = {"trials": 64, "valid": 60, "seconds": 60.0} if compiler == "tuned" else None
    times = [{"name": f"layer{n}.conv", "algorithm": algorithm, "latency_s": ms / 8e3} for n in range(6)]
    return row(
        ms,
        samples=samples,
        spread=0.03,
        noisy=bool(draw.random() < 0.1),
        noisy_reason="2 of 5 slices disturbed",
        sentinel_s=[0.001, 0.001 * float(draw.uniform(1, 1.3))],
        layers=times,
        tuning=tuning,
        seconds={"network": 12.0, "build": 3.5, "measure": 2.0, **({"tune": 60.0} if tuning else {})},
        **given,
    )


def curve(levels: Sequence[float], first: float, last: float) -> list[dict[str, Any]]:
    """Return a curve that falls evenly from a dense network's accuracy, the same on all images.

    Each level lost a tenth before its fine-tuning of two epochs in 10 s.
    """
    steps: list[dict[str, Any]] = [
        {"level": 0.0, "ratio": 0.0, "accuracy": first, "validation_accuracy": first}
    ]
    for level, accuracy in zip(levels, np.linspace(first, last, len(levels) + 1)[1:].tolist(), strict=True):
        steps.append(
            {"level": level, "ratio": level, "accuracy": accuracy, "validation_accuracy": accuracy,
             "accuracy_before": accuracy - 0.1, "validation_accuracy_before": accuracy - 0.1,
             "epochs": 2, "seconds": 10.0}
        )  # fmt: skip
    return steps


def _network(model: int, compression: str) -> dict[str, Any]:
    reached = COMPRESSIONS[compression][1]
    ratio = reached.get("ratio", 0.0)
    loss = {"none": 0.0, "int8": 0.01}.get(compression, 0.02 / (1 + model))
    dense, parameters = min(0.9 + 0.02 * model, 0.99), 1_000_000 * (1 + model)
    nonzeros = round(parameters * (1 - ratio))
    told = {
        "level": ratio, "units": ratio, "layers": {f"layer{n}.conv": ratio for n in range(6)},
        "curve": curve([ratio / 2, ratio], dense, dense - loss),
    } if ratio else {}  # fmt: skip
    return {
        "model": {"name": f"net{model}", "width": 0.5},
        "accuracy": dense - loss,
        "validation_accuracy": dense - loss,
        "test_images": 450,
        "parameters": parameters,
        "nonzeros": nonzeros,
        "macs": 50_000_000 * (3 - model),
        "effective_macs": round(50_000_000 * (3 - model) * (1 - ratio)),
        "model_bytes": 4 * parameters * round(reached.get("bits", 32)) // 32,
        "csr_bytes": None if "bits" in reached else 8 * nonzeros,
        "reached": {**reached, **told},
    }
