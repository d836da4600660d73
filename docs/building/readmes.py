"""What an experiment's README says: its title, its question, its answer, and its command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dlas.sweep.rows.files import PACKED_FILE
from docs.blocks import blocks
from docs.building.links import LINK, without_comments
from docs.building.places import EXPERIMENTS, README

LISTED = re.compile(r"^\| \[(?P<name>[\w-]+)\]\((?P=name)\) \| (?P<question>.+?) \|$", re.MULTILINE)
ANSWER, QUESTION = "**Answer.**", "**Question.**"


@dataclass(frozen=True)
class Experiment:
    """An experiment as its README tells it."""

    folder: Path
    question: str
    """As the list of all experiments asks it, on one line."""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def readme(self) -> Path:
        """Its README."""
        return self.folder / README

    @cached_property
    def text(self) -> str:
        """The README without comments."""
        return without_comments(self.readme.read_text(encoding="utf-8"))

    @property
    def title(self) -> str:
        """The README's heading."""
        return self.text.partition("\n")[0].removeprefix("# ")

    @property
    def paragraphs(self) -> list[str]:
        """What follows the heading, in paragraphs, tables and blocks."""
        return self.text.partition("\n")[2].strip().split("\n\n")

    @property
    def head(self) -> int:
        """The number of paragraphs up to the answer, or up to the question where there is no answer."""
        for mark in (ANSWER, QUESTION):
            for number, paragraph in enumerate(self.paragraphs):
                if paragraph.startswith(mark):
                    return number + 1
        return 1

    @property
    def answer(self) -> str:
        """The answer on one line, with the labels of its links alone; empty where there is none."""
        answers = (each for each in self.paragraphs if each.startswith(ANSWER))
        text = " ".join(next(answers, "").removeprefix(ANSWER).split())
        return LINK.sub(lambda found: found["label"] or found[0], text)

    @property
    def studies(self) -> list[Path]:
        """Its study files, the main one first."""
        return sorted(self.folder.glob("*.toml"), key=lambda path: (path.stem != "study", path.stem))

    @property
    def kept(self) -> list[Path]:
        """The files of rows that are kept, the main ones first."""
        found = self.folder.glob(f"*/{PACKED_FILE}")
        return sorted(found, key=lambda path: (path.parent.name != "rows", path.parent.name))

    @property
    def command(self) -> str:
        """The command that runs its study."""
        lines = [line for block in blocks(self.text) for line in block.text.splitlines()]
        own = (line for line in lines if line.startswith(f"dlas run experiments/{self.name}/study.toml"))
        return next(own, next(iter(lines), "")).partition("  #")[0].rstrip()


def listed() -> Iterator[Experiment]:
    """Yield all experiments in the order of the list of all."""
    for found in LISTED.finditer((EXPERIMENTS / README).read_text(encoding="utf-8")):
        yield Experiment(EXPERIMENTS / found["name"], found["question"])
