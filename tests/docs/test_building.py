"""Pages that the site makes from the source: links, the gallery, the reference of commands and options."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dlas.face.cli.app import COMMANDS
from dlas.face.exports import EXPORTS
from dlas.sweep.study.outlines import FINDER
from dlas.sweep.study.parts import HOMES
from docs.building import commands, drawing, gallery, included, options, python
from docs.building.drawing import Drawn
from docs.building.links import rewritten, without_comments
from docs.building.pictures import PICTURES
from docs.building.places import DOCS, EXPERIMENTS, GALLERY, PAGES, README, ROOT
from docs.building.readmes import listed

ROWS = "experiments/dense/rows/results.jsonl.xz"
LINKS = {
    ("README.md", "[a](experiments/dense)"): "[a](gallery/dense.md)",
    ("README.md", "[a](docs/reference/parts.md#x)"): "[a](reference/parts.md#x)",
    ("README.md", "[![p](docs/pictures/report.png)](docs/findings.md)"): (
        "[![p](pictures/report.png)](findings.md)"
    ),
    ("README.md", "[a](https://example.org) and [b](#own)"): "[a](https://example.org) and [b](#own)",
    ("README.md", "`[a](experiments)`"): "`[a](experiments)`",
    ("README.md", "```\n[a](experiments)\n```"): "```\n[a](experiments)\n```",
    ("README.md", "[the folder](schedules)"): "the folder",
    ("README.md", "[a](LICENSE)"): "{download}`a <../LICENSE>`",
    ("experiments/README.md", "[a](../benchmarks/README.md#b)"): "[a](../benchmarks.md#b)",
    ("experiments/dense/README.md", "[`rows/`](rows)"): f"{{download}}`rows/ <../../{ROWS}>`",
    ("experiments/dense/README.md", "[a](../gpu/README.md#b)"): "[a](gpu.md#b)",
    ("experiments/dense/README.md", "[a](../../CONTRIBUTING.md)"): "[a](../contributing.md)",
}
"""Links of a file, and what its page has in their place."""


@pytest.mark.parametrize(("file", "text"), LINKS)
def test_links_work_from_the_page(file: str, text: str) -> None:
    source = ROOT / file
    page = PAGES.get(source, GALLERY / f"{source.parent.name}.md")
    assert rewritten(text, source, page) == LINKS[file, text]


def test_comments_go_but_for_those_in_code() -> None:
    text = "1.2<!-- = gain(a) --> times\n\n<!-- = speeds -->\n\n| a |\n\n`2<!-- = b -->`\n"
    assert without_comments(text) == "1.2 times\n\n| a |\n\n`2<!-- = b -->`\n"


def test_every_experiment_has_a_page_with_question_answer_files_and_command() -> None:
    pages = dict(gallery.pages({"dense": Drawn("dense", "Speed", "What it shows.")}))
    names = sorted(readme.parent.name for readme in EXPERIMENTS.glob(f"*/{README}"))
    assert {page.stem for page in pages} == {*names, "index"}
    for experiment in listed():
        text = pages[GALLERY / f"{experiment.name}.md"]
        assert experiment.answer and experiment.question in pages[GALLERY / "index.md"]
        assert experiment.answer in pages[GALLERY / "index.md"]
        assert text.index("**Answer.**") < text.index("**Study**: {download}`study.toml <")
        assert experiment.command.startswith(("dlas run", "make")) and experiment.command in text
        assert all(
            f"<../../experiments/{experiment.name}/{path.parent.name}/" in text for path in experiment.kept
        )
        assert "<!--" not in text
    dense = pages[GALLERY / "dense.md"]
    assert ":alt: Speed. What it shows." in dense and "dense-dark.svg" in dense


def test_links_of_all_made_pages_lead_to_files() -> None:
    every = [*gallery.pages({}), *included.pages(), *commands.pages(), *options.pages(), *python.pages()]
    made = {page for page, _ in every}
    for page, text in every:
        for target in re.findall(r"\]\(([^()\s#:]+)(?:#[^()\s]*)?\)|<(\.\./[^<>\s]+)>", text):
            found = Path(page.parent, *target).resolve()
            assert found in made or found.exists(), f"{page}: {target}"


def test_the_reference_has_all_commands_parts_and_exports() -> None:
    assert {page.stem for page, _ in commands.pages()} == {*COMMANDS, "records", "index"}
    ((_, text),) = options.pages()
    assert all(f"`{name}`" in text for axis in HOMES for name in FINDER.names(axis))
    grouped = python._grouped(EXPORTS)
    assert sorted(name for names in grouped.values() for name in names) == sorted(EXPORTS)


def test_a_command_tells_its_options_with_defaults_and_meanings() -> None:
    pages = dict(commands.pages())
    lines = pages[DOCS / "reference/commands/run.md"].splitlines()
    assert "# `dlas run`" in lines
    assert any(line.startswith("| `--jobs NUMBER` | `1` | Network and build steps") for line in lines)


def test_a_picture_is_drawn_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "ProcessPoolExecutor", lambda workers, mp_context: ThreadPoolExecutor(1))
    (first,) = drawing.draw_all(["digits-accuracy"], tmp_path).values()
    assert {"digits-accuracy.svg", "digits-accuracy-dark.svg"} < {path.name for path in tmp_path.iterdir()}
    assert drawing.DARK in (tmp_path / "digits-accuracy-dark.svg").read_text()
    monkeypatch.setattr(drawing, "ProcessPoolExecutor", None)
    assert drawing.draw_all(["digits-accuracy"], tmp_path) == {"digits-accuracy": first}


def test_every_picture_is_of_an_experiment_with_rows() -> None:
    kept = {experiment.name: {path.parent.name for path in experiment.kept} for experiment in listed()}
    assert PICTURES.keys() == {name for name, folders in kept.items() if folders}
    assert all(name == "two-runs" or kept[name] >= {*picture.rows} for name, picture in PICTURES.items())
