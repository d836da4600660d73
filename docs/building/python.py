"""The reference of Python: pages of directives by which autodoc writes what docstrings say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import dlas.testing
from dlas.face.exports import EXPORTS
from docs.building.places import DOCS

FOLDER = DOCS / "reference/python"
GROUPS: Mapping[str, str] = {
    "Studies and their rows": "Study run explore read merge export import_rows history",
    "Tables and the report": "table compare observations paths variability choose report atlas",
    "Predictors": "fit fit_device evaluate predict predictor search blocks",
    "Programs": "deploy deploy_paths deploy_page load",
}
"""What ``dlas`` exports, by heading."""
CONTRACTS: Mapping[str, str] = {
    "Parts": "Part Dataset Model Compression Algorithm AlgorithmChooser Compiler Runtime TuningCompiler"
    " Hardware Predictor",
    "Values": "Conv Tail Target Layer Operator Network Data Split Workspace Build Program Facts Samples"
    " Fitted TrainingStep",
    "Errors": "InputError MissingData Unsupported",
}
"""What parts implement, the values that pass between them, and what they raise."""
INDEX = """\
# Python

- [`dlas`](dlas.md): studies, tables, predictors and programs, as functions.
- [`dlas.stack`](stack.md): what a part implements.
- [`dlas.testing`](testing.md): checks that a part keeps its contract.

```{toctree}
:hidden:

dlas
stack
testing
```
"""
TOP = {
    "dlas": "The same as the commands, with results as DataFrames."
    " [Studies in Python](../../guides/python.ipynb) shows them in use.",
    "dlas.stack": "A part is one choice on one axis: a frozen dataclass whose fields are its options."
    " It derives from one of these classes.",
    "dlas.testing": "`dlas check AXIS PART` runs these checks."
    " Each raises `AssertionError` with the part's behaviour and what was expected.",
}


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each page and its text."""
    yield FOLDER / "index.md", INDEX
    yield FOLDER / "dlas.md", _page("dlas", _grouped(EXPORTS))
    yield FOLDER / "stack.md", _page("dlas.stack", {head: names.split() for head, names in CONTRACTS.items()})
    yield FOLDER / "testing.md", _page("dlas.testing", {"": dlas.testing.__all__})


def _grouped(exports: Mapping[str, str]) -> dict[str, list[str]]:
    """Return what ``dlas`` exports by heading; what has no group is under the last heading."""
    groups = {head: [name for name in names.split() if name in exports] for head, names in GROUPS.items()}
    others = [name for name in exports if all(name not in names for names in groups.values())]
    return {**groups, "Others": others} if others else groups


def _page(module: str, groups: Mapping[str, list[str]]) -> str:
    """Return a page of a module's names by heading."""
    pieces = [f"# `{module}`", TOP[module]]
    for head, names in groups.items():
        pieces += [f"## {head}"] if head else []
        pieces.append("```{eval-rst}\n" + "\n".join(_directive(f"{module}.{name}") for name in names) + "```")
    return "\n\n".join(pieces) + "\n"


def _directive(name: str) -> str:
    """Return the directive that documents a function or a class with its members."""
    if name.rpartition(".")[2][0].isupper():
        return f".. autoclass:: {name}\n   :members:\n   :inherited-members: object\n"
    return f".. autofunction:: {name}\n"
