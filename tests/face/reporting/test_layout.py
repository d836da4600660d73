"""The report's layout in a browser: no text leaves its cell or its figure, and none covers another."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dlas.face.reporting import report
from dlas.sweep.rows.results import Row
from tests.fixtures.browser import draw_all, opened, resize
from tests.fixtures.package import ROOT
from tests.fixtures.rows import write
from tests.fixtures.sweeps import curve, sweep, write_curves

pytestmark = pytest.mark.ci

EXPERIMENTS = ROOT / "experiments"
STUDIES = ("tuned-vs-untuned", "sparse-break-even", "compression")
OVERFLOWING = """
return [...document.querySelectorAll("td, th, h1, h4, .about, .lead, figcaption, li, dd")]
  .filter((each) => each.offsetParent && each.scrollWidth > each.clientWidth + 1)
  .map((each) => `${each.closest("figure, section, header")?.id}: ${each.textContent.trim().slice(0, 80)}`);
"""
COVERED = """
const found = [];
for (const svg of document.querySelectorAll(".panel:not([hidden]) svg, svg:root")) {
  const place = svg.closest("[data-figure]")?.id ?? location.pathname;
  const edge = (svg.closest(".chart") ?? svg).getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")]
    .filter((text) => text.textContent.trim() && text.getAttribute("opacity") !== "0");
  const boxes = texts.map((text) => text.getBoundingClientRect());
  boxes.forEach((box, at) => {
    const own = texts[at].textContent;
    if (box.left < edge.left || box.right > edge.right) found.push(`${place}: ${own} is cut`);
    for (let other = at + 1; other < boxes.length; other += 1) {
      const across = Math.min(box.right, boxes[other].right) - Math.max(box.left, boxes[other].left);
      const down = Math.min(box.bottom, boxes[other].bottom) - Math.max(box.top, boxes[other].top);
      // Boxes have the height of a line, which letters do not fill.
      if (across > 1 && down > 3) found.push(`${place}: ${own} covers ${texts[other].textContent}`);
    }
  });
}
return found;
"""


def compression_sweep() -> list[Row]:
    """Return a sweep of compressions whose parts have many and long options, most the same in all rows."""
    long = {
        "criterion": "taylor_expansion_of_the_loss",
        "finetuning": "epochs=3, schedule=cosine, momentum=0.9",
        "recipe": "cifar-of-the-paper",
        "scope": "network",
    }
    levels = [0.5, 0.9375, 0.984375]
    rows = []
    for each in sweep(models=2, batches=(1, 8)):
        weights = "weights/of/a/very/long/path/model-0676ba61.pth"
        common: dict[str, Any] = {
            "model": {**each.model, "weights": weights},
            "dataset": {"name": "imagenet", "root": "/data/imagenet/2012/validation", "size": 224},
            "hardware": {"name": "local_cpu", "threads": 2, "governor": "performance"},
        }
        if "pruning" not in each.compression["name"]:
            rows.append(dataclasses.replace(each, **common))
            continue
        for at, level in enumerate(levels, start=1):
            technique = {**each.compression, **long, "level": level}
            chain = {"chain": [technique, {"name": "int8", "calibration": "validation"}]}
            reached = {"level": level, "ratio": level, "curve": curve(levels[:at], 0.98, 0.95)}
            own = {**common, "compression": chain if at == len(levels) else technique, "reached": reached}
            rows.append(dataclasses.replace(each, id=f"{each.id}{at}", **own))
    return rows


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module", params=STUDIES)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = EXPERIMENTS / request.param / "rows"
    out = tmp_path_factory.mktemp("page")
    if request.param == "compression":
        rows = compression_sweep()
        folder = write(out / "rows", rows)
        write_curves(folder, rows)
    report([folder], out / "report.html", files=out)
    return out / "report.html"


@pytest.mark.parametrize("width", [1280, 400])
def test_no_text_leaves_its_place_or_covers_another(driver: Any, page: Path, width: int) -> None:
    resize(driver, width)
    driver.get(page.as_uri())
    draw_all(driver)
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    assert driver.execute_script(OVERFLOWING) == []
    assert driver.execute_script(COVERED) == []


def test_no_label_of_a_figure_for_papers_is_cut_or_covers_another(driver: Any, page: Path) -> None:
    resize(driver, 1280)
    figures = sorted((page.parent / "figures").glob("*.svg"))
    assert len(figures) > 5
    for figure in figures:
        driver.get(figure.as_uri())
        assert driver.execute_script("return document.querySelectorAll('text').length") > 3
        assert driver.execute_script(COVERED) == []
