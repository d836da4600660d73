"""Commands are made of the functions that they call: of what these take, and of what is said of it."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

import dlas
from dlas.errors import InputError
from dlas.face.cli.commands import options_of, with_dashes
from dlas.face.cli.signatures import REQUIRED, parameters
from dlas.face.cli.values import bounds_of, numbers_of
from dlas.face.exports import EXPORTS
from dlas.face.spelling import SPELLING
from dlas.face.tables.marks import first_shown
from tests.fixtures.commands import Command
from tests.fixtures.rows import row, write

CALLED = [
    "atlas",
    "blocks",
    "choose",
    "compare",
    "deploy",
    "evaluate",
    "explore",
    "fit",
    "fit_device",
    "history",
    "import_rows",
    "observations",
    "paths",
    "predict",
    "read",
    "report",
    "run",
    "search",
    "table",
]


@pytest.mark.parametrize("name", CALLED)
def test_signatures_are_read_from_the_source_as_python_has_them(name: str) -> None:
    function = getattr(importlib.import_module(EXPORTS[name]), name)
    slots = inspect.signature(function).parameters
    read = parameters(name)
    assert [*read] == [*slots]
    for slot in slots.values():
        assert (read[slot.name].default is REQUIRED) == (slot.default is inspect.Parameter.empty)
        if read[slot.name].default not in (REQUIRED, None):
            assert read[slot.name].default == slot.default


def test_what_a_docstring_says_as_of_another_function_is_taken_from_there() -> None:
    assert parameters("explore")["jobs"].meaning == parameters("run")["jobs"].meaning != ""
    assert parameters("paths")["where"].meaning == parameters("table")["where"].meaning != ""
    assert parameters("fit")["part"].meaning == "The predictor, as `dlas list predictor` names it."
    assert parameters("search")["within"].meaning == "The most that each cost may be: latency_s=0.03."


def test_messages_name_parameters_and_the_command_line_writes_options() -> None:
    options = {"within": "--within", "row_counts": "--rows", "anyway": "--anyway"}
    for message, written in (
        ("`within=0.3`: too little", "--within 0.3: too little"),
        ("give another `within=`; or `row_counts='1,2'`", "give another --within; or --rows '1,2'"),
        ('`within="a=1"`', "--within a=1"),
        ("`anyway=True` does", "--anyway does"),
        ("`dlas table` and `other=3` and `a within=1`", "`dlas table` and `other=3` and `a within=1`"),
    ):
        assert with_dashes(message, options) == written


def test_options_are_known_by_the_names_of_parameters() -> None:
    from typer.main import get_command

    from dlas.face.cli.app import app

    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert options_of(commands["evaluate"].params)["row_counts"] == "--rows"
    assert options_of(commands["import"].params)["folder"] == "--out"
    assert "path" not in options_of(commands["import"].params)


def test_numbers_and_bounds() -> None:
    assert numbers_of("batch", "1,8") == (1, 8)
    assert bounds_of("within", ["latency_s=0.5", "peak_memory_bytes = 1e6"]) == {
        "latency_s": 0.5,
        "peak_memory_bytes": 1e6,
    }
    for texts in (["latency_s"], ["latency_s=-1"], ["=1"], ["latency_s=1", "latency_s=2"]):
        with pytest.raises(InputError, match=r"^`within='"):
            bounds_of("within", texts)
    with pytest.raises(InputError, match=r"^`batch='1,x'`: "):
        numbers_of("batch", "1,x")


def test_texts_are_spelled_for_who_reads_them(tmp_path: Path, dlas_here: Command) -> None:
    write(tmp_path / "rows", [row(batch=batch) for batch in (1, 2)])
    with pytest.raises(InputError, match="unknown batch in `where=` '3'"):
        dlas.table(tmp_path / "rows", where="batch=3")
    refused = dlas_here("table", "rows", "--where", "batch=3")
    assert refused.returncode == 2 and "unknown batch in --where '3'" in refused.stderr
    assert first_shown(1, 2, "lines")[0].plain.endswith(
        "`where=` chooses some of them, `every=True` shows all"
    )
    before = SPELLING.set(lambda text: with_dashes(text, {"where": "--where", "every": "--all"}))
    try:
        (shown,) = first_shown(1, 2, "lines")
        assert shown.plain.endswith("--where chooses some of them, --all shows all")
    finally:
        SPELLING.reset(before)
