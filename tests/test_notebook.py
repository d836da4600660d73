"""The notebook of the documentation runs from top to bottom, and shows its tables."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.package import ROOT

NOTEBOOK = ROOT / "docs/guides/python.ipynb"
KERNEL = """
import ast, json, sys

names = {}
for source in json.load(open(sys.argv[1])):
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        if value is not None:
            print("shown:", getattr(value, "_repr_html_", value.__repr__)())
"""
"""Runs cells like a notebook, and prints what it would show: the value of a cell's last expression."""


def cells() -> list[str]:
    """Return the code of the notebook's cells."""
    book = json.loads(NOTEBOOK.read_text())
    return ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_holds_no_outputs() -> None:
    book = json.loads(NOTEBOOK.read_text())
    assert book["nbformat"] == 4 and len({cell["id"] for cell in book["cells"]}) == len(book["cells"])
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in book["cells"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_notebook_runs(tmp_path: Path) -> None:
    (tmp_path / "cells.json").write_text(json.dumps(cells()))
    ran = subprocess.run(
        [sys.executable, "-c", KERNEL, "cells.json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DLAS_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (written,) = re.findall("rows written: (.*);", ran.stdout)
    # On a busy machine some are unstable.
    assert sum(map(int, re.findall("([0-9]+) (?:ok|unstable)", written))) == 4, written
    shown = ran.stdout.split("shown: ")
    assert sum(text.startswith("<pre") for text in shown) == 3, "a table, a comparison and choices"
    assert sum(text.lstrip().startswith("<div>") for text in shown) == 3, "DataFrames"
    for name in ("layers.parquet", "rows.csv", "results/report.html", "choices.toml"):
        assert (tmp_path / name).stat().st_size > 0
