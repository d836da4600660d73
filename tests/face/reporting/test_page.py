"""The report: everything there, nothing from elsewhere, sensible whatever the rows."""

from __future__ import annotations

import html.parser
import itertools
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlas.analysis.roles import with_roles
from dlas.errors import InputError
from dlas.face.reporting import report
from dlas.face.reporting.blocks import Absent, Chooser, Figure, Section
from dlas.face.reporting.context import Context
from dlas.face.reporting.palette import SLOTS, colours
from dlas.face.reporting.sections import SECTIONS
from dlas.face.tables.table import Table
from dlas.sweep.rows.details import read_details
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import CURVES, Row
from tests.fixtures.odd_rows import EVIL, ODD
from tests.fixtures.rows import CPU, failing, row, write
from tests.fixtures.sweeps import REASONS, sweep, write_curves

VOID = {"meta", "link", "br", "img", "input", "hr", "wbr"}


class Page(html.parser.HTMLParser):
    """The page's elements: tags with attributes, and the text of each table cell and script."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.scripts: dict[str, str] = {}
        self.words: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, text: str) -> None:
        if self.open[-1:] == ["script"]:
            name = self.elements[-1][1].get("id") or f"script{len(self.scripts)}"
            self.scripts[name] = self.scripts.get(name, "") + text
        elif self.open[-1:] != ["style"]:
            self.words.append(text)

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [
            found
            for name, found in self.elements
            if name == tag and all(found.get(key) == value for key, value in wanted.items())
        ]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.scripts["data"])
        return found


def page_of(folder: Path, rows: list[Row], tail: str = "", **options: Any) -> Page:
    write_curves(write(folder, rows, tail), rows)
    report([folder], folder / "report.html", **options)
    return Page(folder / "report.html")


def sections_of(folder: Path, rows: list[Row]) -> list[Section | Absent]:
    points = with_roles(read(write(folder, rows)))
    context = Context([str(folder)], points, details=read_details(points))
    return [section(context) for section in SECTIONS]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return sweep()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> Page:
    return page_of(tmp_path_factory.mktemp("sweep"), rows)


def test_every_point_is_in_the_matrix_with_its_status(page: Page, rows: list[Row]) -> None:
    buttons = [each for each in page.all("button") if "data-p" in each and "class" in each]
    shown = [each for each in buttons if (each["class"] or "") in ("", "first", *REASONS)]
    assert sorted(int(each["data-p"] or -1) for each in shown) == list(range(len(rows)))
    statuses = page.data["points"]["status"]
    told = [statuses["values"][code] for code in statuses["codes"]]
    assert sorted(told) == sorted(each.status for each in rows)
    for each in shown:
        status = told[int(each["data-p"] or -1)]
        assert (each["class"] if each["class"] in REASONS else "ok") == status


def test_reasons_go_with_their_points(page: Page, rows: list[Row]) -> None:
    points = page.data["points"]
    by_id = {each.id: each for each in rows}
    for place, row_id in enumerate(points["id"]):
        code = points["reason"]["codes"][place]
        assert (points["reason"]["values"][code] if code >= 0 else None) == by_id[row_id].reason


def test_every_section_is_present_or_listed_as_missing(page: Page, tmp_path: Path) -> None:
    titles = [each["id"] for each in page.all("h2") if (each.get("id") or "").startswith("title-")]
    # These rows have one batch size, board and clock, no predictor, predictions, search, operators or paths,
    # nor what a ninth needs.
    assert len(page.all("dt")) == 9 and len(titles) - 1 + 9 == len(SECTIONS)
    bare = page_of(tmp_path, [row()])
    titles = [each["id"] for each in bare.all("h2") if (each.get("id") or "").startswith("title-")]
    missing = len(bare.all("dt"))
    assert "title-absent" in titles and len(titles) - 1 + missing == len(SECTIONS) and missing > 3


@pytest.mark.slow
def test_every_figure_has_a_sentence_and_every_axis_a_title(tmp_path: Path, rows: list[Row]) -> None:
    found = [section for section in sections_of(tmp_path, rows) if isinstance(section, Section)]
    blocks = [block for section in found for block in section.blocks]
    drawn = [
        each.figure if isinstance(each, Chooser) else each
        for each in blocks
        if isinstance(each, Figure | Chooser)
    ]
    assert len(drawn) >= 8 and len({each.name for each in drawn}) == len(drawn)
    for figure in drawn:
        assert figure.title and len(figure.sentence) > 30 and figure.sentence.endswith("."), figure.name
        assert figure.panels and all(panel.variant in figure.specs for panel in figure.panels)
        for spec in figure.specs.values():
            titles = re.findall(r'"x": \{[^{}]*?"title": "([^"]+)"|"title": "([^"]+)"', json.dumps(spec))
            assert titles, figure.name
    for table in (each for each in blocks if isinstance(each, Table)):
        assert table.caption.endswith("."), table.name
        assert {len(line.cells) for line in table.lines} <= {len(table.columns)}, table.name
    assert all(section.lead for section in found)


def test_tables_are_tables_and_pictures_have_words(page: Page) -> None:
    for each in page.all("th"):
        assert each.get("scope") in ("col", "row", "colgroup", "rowgroup")
    named = {each.get("id") for each in page.all("figcaption")}
    for each in page.all("table"):
        assert each.get("aria-labelledby") in named
    plots = page.all("div", **{"class": "plot"})
    assert len(plots) > 10 and all(each.get("role") == "img" and each.get("aria-label") for each in plots)
    assert page.all("html")[0]["lang"] == "en" and page.all("main") and page.all("nav")


@pytest.mark.slow
def test_curves_of_tuning_are_drawn_and_damaged_ones_are_counted(tmp_path: Path) -> None:
    rows = sweep(models=1, batches=(1,))
    page = page_of(tmp_path, rows)
    panels = page.data["figures"]["tuning-curves"]["panels"]
    tuned = {each.id for each in rows if each.tuning}
    drawn = {page.data["points"]["id"][p] for panel in panels for p in panel["rows"]["p"]}
    assert drawn == tuned and max(max(panel["rows"]["y"]) for panel in panels) == 4
    assert f"{len(tuned)} of {3 * len(tuned)} got better" in page.text
    (tmp_path / CURVES / f"{sorted(tuned)[0]}.json").write_text('[{"best": 1}]')
    report([tmp_path], tmp_path / "report.html")
    assert "damaged and left out: 1." in Page(tmp_path / "report.html").text


@pytest.mark.slow
def test_a_report_may_be_of_several_folders_and_of_some_rows(tmp_path: Path) -> None:
    folders = [write(tmp_path / "one", [row()]), write(tmp_path / "two", [row(batch=8), failing(batch=4)])]
    report(folders, tmp_path / "all.html")
    assert "3 points" in Page(tmp_path / "all.html").text
    report(folders, tmp_path / "some.html", where=["batch=8"])
    assert "1 point:" in Page(tmp_path / "some.html").text
    with pytest.raises(InputError, match="did you mean 'batch'"):
        report(folders, tmp_path / "none.html", where=["bacth=8"])
    assert not (tmp_path / "none.html").exists()


@pytest.mark.slow
def test_what_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    folder = write(tmp_path / "sweep", [row()])
    with pytest.raises(InputError, match=r"cannot write .*sweep"):
        report([folder], folder)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write .*file"):
        report([folder], tmp_path / "report.html", files=tmp_path / "file")
    assert [path.name for path in folder.iterdir()] == ["results.jsonl"]


def test_the_page_asks_the_network_for_nothing(page: Page) -> None:
    (policy,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert "default-src 'none'" in (policy["content"] or "")
    assert all("src" not in found for _, found in page.elements)
    assert [each["href"] for each in page.all("link")] == ["data:,"]


@pytest.mark.slow
def test_text_from_rows_is_text(tmp_path: Path) -> None:
    rows = [
        row(
            5,
            study=EVIL,
            model={"name": EVIL, "path": EVIL},
            device={**CPU, "cpu": EVIL},
            noisy=True,
            noisy_reason=EVIL,
            layers=[{"name": EVIL, "algorithm": EVIL, "latency_s": 1e-3}],
            environment={"versions": {EVIL: EVIL}},
        ),
        failing(model=EVIL, reason=EVIL, step=EVIL, algorithm=EVIL, compiler=EVIL, compression=EVIL),
        row(6, algorithm="library", compiler=EVIL),
    ]
    page = page_of(tmp_path, rows)
    assert not page.all("img") and len(page.scripts) == 3
    assert "window.hacked=1" in page.text
    assert "<script" not in page.scripts["data"] and page.data["points"]["reason"]["values"] == [EVIL]
    assert not [name for _, found in page.elements for name in found if name.startswith("on")]


@pytest.mark.slow
def test_neither_torch_nor_tvm_is_imported(tmp_path: Path) -> None:
    write(tmp_path, sweep(models=1, batches=(1,)))
    script = f"""
import sys
from dlas.face.cli.app import app
app(["report", {str(tmp_path)!r}], standalone_mode=False)
found = [name for name in sys.modules if name.split(".")[0] in ("torch", "torchvision", "tvm", "onnx")]
assert not found, found
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "report.html") and (tmp_path / "report.html").exists()


@pytest.mark.parametrize("name", ODD)
def test_odd_rows_give_a_sensible_page(tmp_path: Path, name: str) -> None:
    rows, tail = ODD[name]
    page = page_of(tmp_path, rows, tail)
    count = len(page.data["points"]["ms"])
    assert f"{count} point" in page.text or not count
    assert "nan" not in page.text.lower().split() and "None" not in page.text.split()
    assert page.all("section", id="summary") and page.all("section", id="observations")


@pytest.mark.slow
def test_reasons_do_not_make_the_page_large(tmp_path: Path) -> None:
    rows = [failing(batch=n, reason=f"{n} " + "x" * 100_000) for n in range(1, 200)]
    page_of(tmp_path, rows)
    assert (tmp_path / "report.html").stat().st_size < 6_000_000


@pytest.mark.slow
def test_ten_thousand_rows_make_a_page_that_opens_anywhere(tmp_path: Path) -> None:
    def seconds(models: int) -> float:
        rows = sweep(models, batches=(1, 2, 4), samples=150)
        folder = write(tmp_path / str(models), rows)
        begun = time.process_time()
        report([folder], folder / "report.html")
        return time.process_time() - begun

    seconds(1)
    few, many = seconds(8), seconds(76)
    assert many < 2 * (76 / 8) * few, "time grows no faster than rows"
    page = Page(tmp_path / "76" / "report.html")
    assert len(page.data["points"]["ms"]) > 10_000
    assert (tmp_path / "76" / "report.html").stat().st_size < 20_000_000


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_a_parts_colour_depends_on_its_name_alone() -> None:
    shipped = colours("algorithm", ["direct", "gemm", "spatial_pack"])
    more = colours("algorithm", ["gemm", "unheard_of", "direct", "zigzag"])
    assert more["gemm"] == shipped["gemm"] and more["direct"] == shipped["direct"]
    assert colours("algorithm", ["unheard_of"])["unheard_of"] == more["unheard_of"]


def test_colours_are_distinct_and_visible_on_both_backgrounds() -> None:
    labels = [f"part{n}" for n in range(len(SLOTS))]
    found = colours("model", labels)
    assert len(set(found.values())) == len(labels)
    for colour in [*found.values(), colours("compression", ["none"])["none"]]:
        assert contrast(colour, "#ffffff") >= 3 and contrast(colour, "#14171c") >= 3, colour
    assert len(colours("model", [f"m{n}" for n in range(40)])) == 40


def oklab(colour: str) -> np.ndarray:
    """Return a colour in OKLab, where distances are about as the eye sees them."""
    channels = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    cones = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]) @ linear
    mixed = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
    found: np.ndarray = np.array(mixed) @ np.cbrt(cones)
    return found


@pytest.mark.parametrize("part", range(len(SLOTS)))
def test_levels_of_a_technique_are_a_ramp_that_can_be_told_apart(part: int) -> None:
    levels = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
    techniques = [f"part{n}" for n in range(len(SLOTS)) if n != part]
    found = colours("model", [*techniques, *(f"part{part}(level={level})" for level in levels)])
    ramp = [found[f"part{part}(level={level})"] for level in levels]
    assert all(contrast(colour, "#ffffff") >= 3 and contrast(colour, "#14171c") >= 3 for colour in ramp)
    brightness = [luminance(colour) for colour in ramp]
    assert brightness == sorted(brightness, reverse=True), "the more is removed, the darker"
    apart = [np.linalg.norm(oklab(one) - oklab(next_)) for one, next_ in itertools.pairwise(ramp)]
    assert min(apart) > 0.025, "a difference of 0.02 can just be seen"
