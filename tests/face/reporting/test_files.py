"""The report's figures and tables as files."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from dlas.face.reporting import report
from dlas.face.reporting.blocks import Figure, Panel
from dlas.face.reporting.files import sheets
from tests.fixtures.rows import row, write
from tests.fixtures.sweeps import sweep


def test_every_figure_and_table_is_there_in_three_formats(tmp_path: Path) -> None:
    folder = write(tmp_path / "sweep", sweep(models=2, batches=(1,)))
    report([folder], folder / "report.html", files=tmp_path / "beside")
    check_figures(tmp_path / "beside" / "figures")
    check_tables(tmp_path / "beside" / "tables")


def check_figures(folder: Path) -> None:
    names = {path.stem for path in folder.iterdir()}
    assert {
        "latency",
        "tuned-against-untuned",
        "expected-and-achieved",
        "accuracy-and-cost",
        "interactions",
    } <= names
    for name in names:
        svg, pdf, png = ((folder / f"{name}.{kind}").read_bytes() for kind in ("svg", "pdf", "png"))
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert pdf.startswith(b"%PDF") and png.startswith(b"\x89PNG") and len(png) > 1000
    drawn = (folder / "latency.svg").read_text()
    assert "currentColor" not in drawn and "latency, ms" in drawn and "spatial_pack" in drawn
    assert drawn.count("<path") > 50, "marks"


def check_tables(folder: Path) -> None:
    names = {path.stem for path in folder.iterdir()}
    assert {
        "fastest",
        "fastest-algorithm",
        "fastest-compression",
        "expected-speedup",
        "observations",
    } <= names
    for name in names:
        with (folder / f"{name}.csv").open(newline="") as lines:
            cells = list(csv.reader(lines))
        assert len({len(line) for line in cells}) == 1
        shown = (folder / f"{name}.md").read_text().splitlines()
        assert len(shown) == len(cells) + 3, "caption, empty line and rule"
        latex = (folder / f"{name}.tex").read_text()
        assert (
            latex.count("\\\\\n") == len(cells)
            and "\\toprule" in latex
            and latex.count("{") == latex.count("}")
        )


def test_a_figure_of_many_panels_has_several_sheets() -> None:
    panels = [Panel(f"panel {n}", [{"x": n}]) for n in range(25)]
    spec = {"height": 100, "mark": "point", "encoding": {"x": {"field": "x", "type": "quantitative"}}}
    found = dict(sheets(Figure("many", "Many", "See.", panels, {"": spec})))
    assert list(found) == ["many-1", "many-2", "many-3"]
    assert [len(sheet.get("concat", [sheet])) for sheet in found.values()] == [12, 12, 1]


def test_half_a_character_is_written_as_a_question(tmp_path: Path) -> None:
    folder = write(tmp_path, [row(2, model="\ud83d"), row(1, model="\ud83d", algorithm="gemm")])
    report([folder], folder / "report.html", files=folder / "beside")
    assert (folder / "beside" / "figures" / "latency.svg").exists()


def test_names_from_rows_cannot_leave_the_folder(tmp_path: Path) -> None:
    evil = "../../outside/x"
    rows = [
        row(2),
        row(1, algorithm="library", compiler=evil),
        row(1, algorithm="library", compiler="/etc/x"),
    ]
    folder = write(tmp_path / "sweep", rows)
    report([folder], folder / "report.html", files=folder / "beside")
    made = {path.relative_to(tmp_path).parts[:2] for path in tmp_path.rglob("*") if path.is_file()}
    assert made == {("sweep", "results.jsonl"), ("sweep", "report.html"), ("sweep", "beside")}
    assert any("outside" in path.name for path in (folder / "beside" / "tables").iterdir())
