"""Pictures of the gallery as files, in colours for a light and a dark page, kept until they change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from dlas.sweep.rows.files import PACKED_FILE
from docs.building.places import EXPERIMENTS, GALLERY, ROOT

FOLDER = GALLERY / "pictures"
PICTURES = ("drawing", "kinds", "pictures", "two_runs")
ROOMS = ("face/reporting", "face/tables", "analysis", "prediction")
CODE = (*(f"docs/building/{name}.py" for name in PICTURES), *(f"dlas/{room}/**/*.py" for room in ROOMS))
"""The files with code that decides what pictures look like."""
DARK = "#d5d9df"
"""The colour of axes and text on a dark page; the colours of marks can be read on both."""
WORKERS = 2
MOST_LABELS = 20
"""Most labels of a legend; one of more is left out."""


@dataclass(frozen=True)
class Drawn:
    """A picture of an experiment: ``NAME.svg`` and ``NAME-dark.svg`` in a folder."""

    name: str
    title: str
    caption: str
    """What it shows, in a sentence or two."""
    folder: Path = FOLDER

    @property
    def alternative(self) -> str:
        """The text for readers who do not see it."""
        return f"{self.title}. {self.caption}"


def draw_all(names: Sequence[str], folder: Path = FOLDER) -> dict[str, Drawn]:
    """Draw the pictures of experiments that changed since they were drawn last; return all by name.

    Parameters
    ----------
    names : sequence of str
        Experiments with kept rows.
    folder : Path
        Gets the pictures, and what they were drawn from.
    """
    folder.mkdir(parents=True, exist_ok=True)
    code = digest(file for pattern in CODE for file in ROOT.glob(pattern))
    wanted = {name: f"{code}-{digest((EXPERIMENTS / name).glob(f'*/{PACKED_FILE}'))}" for name in names}
    known = {name: _known(name, folder, state) for name, state in wanted.items()}
    stale = [name for name, drawn in known.items() if drawn is None]
    if stale:
        # Processes begin anew: this one may run threads.
        with ProcessPoolExecutor(min(WORKERS, len(stale)), mp_context=get_context("spawn")) as pool:
            known |= zip(stale, pool.map(draw, stale, [folder] * len(stale)), strict=True)
    for name in stale:
        _record(name, folder).write_text(json.dumps({"state": wanted[name], **_told(known[name])}))
    return {name: drawn for name, drawn in known.items() if drawn is not None}


def draw(name: str, folder: Path) -> Drawn:
    """Draw the picture of an experiment."""
    # What draws imports pandas and altair, which a build without changes does not need.
    import vl_convert

    from dlas.face.reporting.files import INK, sheets
    from docs.building.pictures import figure_of

    figure = figure_of(name)
    _, spec = next(sheets(figure))
    spec["config"] |= {"background": None}
    if len(figure.labels) > MOST_LABELS:
        spec["config"]["legend"] |= {"disable": True}
    svg = vl_convert.vegalite_to_svg(spec)
    (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
    (folder / f"{name}-dark.svg").write_text(svg.replace(INK, DARK), encoding="utf-8")
    return Drawn(name, figure.title, figure.sentence, folder)


def digest(files: Iterable[Path]) -> str:
    """Return a digest of the contents of files, in the order of their paths."""
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()[:16]


def _known(name: str, folder: Path, state: str) -> Drawn | None:
    """Return a picture that was drawn before from the same rows by the same code."""
    record = _record(name, folder)
    told: dict[str, Any] = json.loads(record.read_text()) if record.exists() else {}
    return Drawn(**told, folder=folder) if told.pop("state", None) == state else None


def _told(drawn: Drawn | None) -> dict[str, str]:
    return {} if drawn is None else {key: getattr(drawn, key) for key in ("name", "title", "caption")}


def _record(name: str, folder: Path) -> Path:
    return folder / f"{name}.json"
