"""Write a deployed folder."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from dlas.bench.measuring.machine import Machine
from dlas.bench.store.cache import Artifact, Cache
from dlas.deployment import run
from dlas.deployment.extensions import extensions
from dlas.deployment.packing import ProgramFolder, pack
from dlas.deployment.pictures import labels, preparation
from dlas.deployment.readme import readme
from dlas.deployment.remaking import CachedBuild
from dlas.sweep.engine.steps.artifacts import restore_network
from dlas.sweep.engine.steps.samples import load_sample
from dlas.sweep.rows.results import Row
from dlas.sweep.study.point import Point

EXAMPLE_IMAGES = 4
"""Images of the example, or a batch if that has more."""


def write(row: Row, point: Point, store: Cache, made: CachedBuild, folder: Path) -> None:
    """Write all files of a deployed row.

    Parameters
    ----------
    point : Point
        The row's.
    made : CachedBuild
        Its network and build.
    folder : Path
        Empty.
    """
    packed = pack(
        point.compiler_part,
        lambda: restore_network(store, made.network.key, point),
        point.batch,
        made.build.folder,
        folder,
    )
    tolerance = made.build.facts.get("tolerance", 0.0)
    packed = replace(packed, tolerance=tolerance, notes=tuple(made.notes))
    write_rest(row, point, store, made.network, folder, packed)


def write_rest(
    row: Row, point: Point, store: Cache, network: Artifact, folder: Path, packed: ProgramFolder
) -> None:
    """Write all files of a deployed folder beside those of its program.

    Parameters
    ----------
    point : Point
        The row's.
    network : Artifact
        The row's network.
    folder : Path
        Holds the program.
    packed : ProgramFolder
        What the program needs.
    """
    shutil.copyfile(Path(run.__file__), folder / "run.py")
    sample, shown = load_sample(store, network.key), max(point.batch, EXAMPLE_IMAGES)
    np.save(folder / run.EXAMPLE, sample["images"][:shown])
    np.save(folder / run.EXAMPLE_OUTPUTS, sample["outputs"][:shown])
    _write_json(folder / "row.json", asdict(row))
    description = _description(row, point, network, packed)
    _write_json(folder / run.DESCRIPTION, description)
    pinned = [f"{name}=={version}\n" for name, version in description["packages"].items()]
    (folder / "requirements.txt").write_text("".join(pinned))
    prepared = preparation(point.dataset_part)
    files = [run.HASHES, *(path.name for path in folder.iterdir())]
    (folder / "README.md").write_text(readme(row, description, prepared, files, packed.notes))
    hashes = [f"{_sha256(path)}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / run.HASHES).write_text("".join(hashes))


def _description(row: Row, point: Point, network: Artifact, packed: ProgramFolder) -> dict[str, Any]:
    """Return what ``run.py`` has to know of a program."""
    facts, target = network.facts, point.device.target()
    names = labels(point.dataset.name, point.dataset_part, facts["classes"])
    return {
        "format": run.FORMAT,
        "row": row.id,
        "runtime": packed.runtime,
        "options": packed.options,
        "packages": {name: metadata.version(name) for name in packed.packages},
        "input": [point.batch, *facts["shape"]],
        "labels": names,
        "tolerance": max(facts["tolerance"], packed.tolerance),
        "threads": target.threads,
        "architecture": platform.machine(),
        "processor": target.description["mcpu"],
        "extensions": extensions(target, Machine().flags()) if packed.native else [],
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
