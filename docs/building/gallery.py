"""The gallery: a page an experiment, and one with a card for each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from docs.building.drawing import Drawn
from docs.building.links import FENCED, download, rewritten, without_comments
from docs.building.places import EXPERIMENTS, GALLERY, README, relative
from docs.building.readmes import Experiment, listed

INDEX = """\
# Gallery

Each page asks one question, answers it, and has the study, the rows that were measured, and the command that
measures them anew. Pictures are drawn from these rows when this site is built.

"""
BARE = "```\n"
"""The line above a block without a language: in the READMEs of experiments it holds commands."""
COLOURS = {"": "only-light", "-dark": "only-dark"}
"""The classes that show a picture on a light or a dark page, by the ending of its file."""


def pages(pictures: Mapping[str, Drawn]) -> Iterator[tuple[Path, str]]:
    """Yield each page and its text.

    Parameters
    ----------
    pictures : mapping of str to Drawn
        The pictures by the names of experiments; one without kept rows has none.
    """
    every = list(listed())
    for experiment in every:
        yield GALLERY / f"{experiment.name}.md", _page(experiment, pictures.get(experiment.name))
    cards = "\n".join(_card(experiment, pictures.get(experiment.name)) for experiment in every)
    contents = "\n".join(experiment.name for experiment in every)
    grid = f"::::{{grid}} 1 2 2 3\n:gutter: 3\n\n{cards}\n::::\n"
    index = GALLERY / "index.md"
    yield index, f"{INDEX}{grid}\n{_rules(index)}\n```{{toctree}}\n:hidden:\n\n{contents}\n```\n"


def _rules(page: Path) -> str:
    """Return what the list of all experiments says below them: how rows are kept."""
    file = EXPERIMENTS / README
    _, rest = without_comments(file.read_text(encoding="utf-8")).split("\n## ", 1)
    return rewritten(_as_commands(f"## {rest}"), file, page)


def _page(experiment: Experiment, picture: Drawn | None) -> str:
    """Return the page of an experiment: its question and answer, its picture, its files, and its text."""
    page = GALLERY / f"{experiment.name}.md"
    head, rest = experiment.paragraphs[: experiment.head], experiment.paragraphs[experiment.head :]
    shown = [f"{_figure(picture, page)}\n\n{picture.caption}"] if picture else []
    first = rewritten("\n\n".join(head), experiment.readme, page)
    text = rewritten(_as_commands("\n\n".join(rest)), experiment.readme, page)
    return "\n\n".join([f"# {experiment.title}", first, *shown, _files(experiment, page), text]) + "\n"


def _as_commands(text: str) -> str:
    """Return Markdown text whose blocks without a language are commands."""

    def named(found: re.Match[str]) -> str:
        block = found[0]
        return f"```shell\n{block.removeprefix(BARE)}" if block.startswith(BARE) else block

    return FENCED.sub(named, text)


def _files(experiment: Experiment, page: Path) -> str:
    """Return a card with an experiment's study files, its rows, and its command."""
    studies = ", ".join(download(path.name, path, page) for path in experiment.studies)
    rows = ", ".join(
        f"{download(path.parent.name, path, page)} ({path.stat().st_size / 1e3:,.0f} kB)"
        for path in experiment.kept
    )
    told = f"**Study**: {studies}\n\n**Rows**: {rows or 'none are kept'}"
    return f":::{{card}}\n{told}\n\n```shell\n{experiment.command}\n```\n:::"


def _card(experiment: Experiment, picture: Drawn | None) -> str:
    """Return the card of an experiment: its title, its picture, its question and its answer."""
    shown = f"{_figure(picture, GALLERY / 'index.md')}\n\n" if picture else ""
    body = f"{shown}{experiment.question}\n\n{experiment.answer}".rstrip()
    head = f":::{{grid-item-card}} {experiment.title}\n:link: {experiment.name}\n:link-type: doc\n"
    return f"{head}\n{body}\n:::\n"


def _figure(picture: Drawn, page: Path) -> str:
    """Return a picture in a page, in colours for a light and for a dark one."""
    return "\n\n".join(
        f"```{{image}} {relative(picture.folder / f'{picture.name}{ending}.svg', page)}\n"
        f":alt: {picture.alternative}\n:class: {shown}\n```"
        for ending, shown in COLOURS.items()
    )
