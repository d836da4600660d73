"""Every command and every block of code in README, CONTRIBUTING and the site runs, or says why it does not.

What does not run is parsed: commands by the command line's parser, studies as studies, scripts as Python.
"""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w
from typer.main import get_command

from dlas.face.cli.app import app
from dlas.sweep.study.study import Study
from docs.blocks import PAGES, REASONS, RUN, Block, blocks
from docs.building.places import ROOT
from docs.run import stale
from docs.running import copy, environment, run

NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
SHOWN = {"text", "json", "console", "ini", ""}
"""Languages of blocks that show something: they are neither run nor parsed."""
MOST_NOT_RUN = 40
"""Blocks with a reason not to run; more of them would say that the pages are not tested."""
COMMANDS = get_command(app)


def written(name: str) -> list[Block]:
    return list(blocks((ROOT / name).read_text()))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [name for name in NAMES if any(block.runs for block in written(name))])
def test_a_page_runs(name: str, tmp_path: Path) -> None:
    folder, variables, printed = copy(tmp_path / "tree"), environment(tmp_path), ""
    for block in written(name):
        if block.language == "text" and block.recorded is None:
            missing = words(block.text) - words(printed)
            assert not missing, f"{name}, line {block.line}: {missing} is not in what was printed:\n{printed}"
        elif block.runs:
            printed = run(block, folder, variables)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of all pages, which studies name."""
    folder = tmp_path_factory.mktemp("files")
    for name in NAMES:
        for block in written(name):
            if block.file is not None:
                (folder / block.file).write_text(block.text)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_blocks_are_run_or_say_why_not_and_are_parsed(
    name: str, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    monkeypatch.syspath_prepend(str(files))
    for block in written(name):
        place = f"{name}, line {block.line}"
        assert block.language in {*RUN, *SHOWN}, place
        if block.reason is not None:
            assert block.language in RUN, place
            kind, _, why = block.reason.partition(": ")
            assert kind in REASONS and why, (
                f"{place}: {block.reason!r} is not one of {REASONS} and a sentence"
            )
        if block.language in RUN:
            PARSERS[block.language](block.text, place)


def test_few_blocks_are_not_run() -> None:
    found = [block.reason.partition(":")[0] for name in NAMES for block in written(name) if block.reason]
    assert len(found) <= MOST_NOT_RUN, Counter(found)


@pytest.mark.parametrize("name", NAMES)
def test_recorded_outputs_belong_to_the_blocks_before_them(name: str) -> None:
    assert not stale((ROOT / name).read_text()), f"make docs-run, or python -m docs.run {name}"


def words(text: str) -> set[str]:
    """Return the words of a text, without the numbers that differ from run to run."""
    return set(re.findall(r"[A-Za-z_]{3,}", text))


def parse_shell(text: str, place: str) -> None:
    """Check each call of ``dlas`` against the commands and options that there are."""
    for call in calls(text):
        given, command = call[1:], COMMANDS
        while hasattr(command, "commands") and given and not given[0].startswith("-"):
            assert given[0] in command.commands, f"{place}: there is no `dlas {given[0]}`"
            command = command.commands[given.pop(0)]
        if "..." not in given and command is not COMMANDS:
            command.make_context("dlas", given)  # it parses them, and runs nothing


def calls(text: str) -> Iterator[list[str]]:
    """Yield the words of each call of ``dlas`` in a script, also of those in quotes."""
    line = ""
    for part in text.replace("\\\n", " ").splitlines():
        line += part
        try:
            lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|<>")
            lexer.whitespace_split = True
            words = list(lexer)
        except ValueError:  # a quotation that goes on
            line += "\n"
            continue
        line, call = "", list[str]()
        for word in [*words, ";"]:
            if set(word) <= set(";&|<>"):
                if call[:1] == ["dlas"]:
                    yield call
                call = []
            else:
                call += [word]
                if word.startswith("dlas "):
                    yield from calls(word)


def parse_python(text: str, place: str) -> None:
    ast.parse(text, place)


def parse_toml(text: str, place: str) -> None:
    """Check that a table of axes is a study, whose parts there are; others are only read."""
    table = tomllib.loads(text)
    if "axes" in table:
        assert Study.parse(tomli_w.dumps({"name": "page", **table})).axes, place


PARSERS = {"shell": parse_shell, "python": parse_python, "toml": parse_toml}
