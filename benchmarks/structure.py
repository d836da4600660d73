"""How large the package is and how it hangs together: the same figures for any checkout and any layout.

The figures are read from the source code, with the standard library alone; nothing of the checkout is
imported.  ``--trips`` adds those of :mod:`benchmarks.trips`, which runs four commands.

    python -m benchmarks.structure [--root CHECKOUT ...] [--trips] [--json]

Several checkouts stand side by side.  What counts:

- The package is the python of ``dlas``, ``schedules`` and ``sparse``; links are not followed.
- A *room* is a folder with python right below ``dlas``.  An *arrow* leads from a room to another that it
  imports from, at the top of a module, inside a function or for type checkers alone; ``schedules`` and
  ``sparse`` have arrows as rooms have.  Modules beside the rooms, such as ``dlas/errors.py``, have none.
- *Storeys* are the lines of ``STOREYS`` in ``tests/test_architecture.py``.
- Each line is code, docstring, comment or blank.  Texts that stand as statements of their own, below a
  constant or a field, are docstrings too.  A line with code and a comment is code.
- *Functions* are all ``def``, also methods and those inside functions.
- A *public class* has no leading underscore.  Names count that several classes have.
- A field is *described twice* where a class declares it, and its docstring has an entry for it below
  ``Parameters`` or ``Attributes``.
- *Parameters* are those of every ``def``, ``*args`` and ``**options`` too, without ``self`` and ``cls``.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.sources import (
    Module,
    arrows,
    described_twice,
    import_lines,
    lines,
    modules,
    parameters,
    repeated_classes,
    rooms,
    storeys,
    uses_any,
)

INTERFACE = "api"
"""The folder of the Python interface, wherever in the package it lies."""
MOST_PARAMETERS = 6

Figure = int | float | None
Figures = dict[str, Figure]
"""By what they count; None where a checkout has nothing to count."""
Names = dict[str, list[str]]
"""What was counted, by the figure."""


def structure(root: Path) -> tuple[Figures, Names]:
    """Return the figures of a checkout, and the names behind some of them.

    Raises
    ------
    FileNotFoundError
        If it holds no package.
    """
    package = modules(root)
    names = listed(package)
    figures: Figures = {
        "rooms": len(names["rooms"]),
        "storeys": storeys(root),
        "arrows between rooms": len(names["arrows between rooms"]),
        "files": len(package),
        **sizes(package),
        **{figure: len(found) for figure, found in names.items() if "rooms" not in figure},
    }
    return figures, names


def listed(package: Sequence[Module]) -> Names:
    """Return the rooms, arrows, classes, fields, parameters and functions that are counted."""
    functions = [(module, node) for module in package for node in module.functions]
    typed = [
        (f"{module.path}: {node.name}({each.arg})", uses_any(each.annotation))
        for module, node in functions
        for each in parameters(node)
    ]
    return {
        "rooms": sorted(rooms(package)),
        "arrows between rooms": [" -> ".join(pair) for pair in sorted(arrows(package))],
        "public class names used twice or more": [
            f"{name}: {', '.join(files)}" for name, files in repeated_classes(package).items()
        ],
        "fields described twice": [
            f"{module.path}: {node.name}.{field}"
            for module in package
            for node in module.classes
            for field in described_twice(node)
        ],
        "parameters typed `Any`": [place for place, use in typed if use == "is"],
        "parameters whose type contains `Any`": [place for place, use in typed if use == "contains"],
        f"functions with more than {MOST_PARAMETERS} parameters": [
            f"{module.path}: {node.name} ({count})"
            for module, node in functions
            if (count := len(parameters(node))) > MOST_PARAMETERS
        ],
    }


def sizes(package: Sequence[Module]) -> Figures:
    """Return the numbers of lines and of functions."""
    kinds = Counter[str]()
    for module in package:
        kinds.update(lines(module))
    functions = [node for module in package for node in module.functions]
    described = sum(bool(ast.get_docstring(node)) for node in functions)
    interface = [module for module in package if INTERFACE in module.path.parts[:-1]]
    return {
        "lines": kinds.pop("all"),
        **{f"lines: {kind}": count for kind, count in kinds.items()},
        "lines: imports": sum(map(import_lines, package)),
        f"lines in `{INTERFACE}`": sum(len(each.lines) for each in interface) if interface else None,
        "functions": len(functions),
        "functions with a docstring, %": round(100 * described / len(functions), 1) if functions else None,
    }


def trips(root: Path) -> dict[str, tuple[int, list[str]]]:
    """Return what :mod:`benchmarks.trips` counts in a checkout: each figure, with its files if it has.

    Raises
    ------
    subprocess.CalledProcessError
        If a command failed.
    """
    # The script by its path, without its folder on Python's path: the checkout need not have it.
    done = subprocess.run(
        [sys.executable, "-P", str(Path(__file__).with_name("trips.py").resolve())],
        env={**os.environ, "PYTHONPATH": str(root.resolve())},
        cwd=root,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    figures: dict[str, tuple[int, list[str]]] = {}
    for command, trip in json.loads(done.stdout).items():
        figures[f"`{command}`: files entered"] = len(trip["files"]), trip["files"]
        figures[f"`{command}`: stays"] = trip["stays"], []
        figures[f"`{command}`: returns"] = trip["returns"], []
    return figures


def table(columns: Mapping[str, Figures]) -> str:
    """Return figures as a table in Markdown, a column for each checkout."""
    figures = dict.fromkeys(figure for counts in columns.values() for figure in counts)
    rows = [["figure", *columns], ["---"] * (len(columns) + 1)]
    rows += [[figure, *(_shown(counts.get(figure)) for counts in columns.values())] for figure in figures]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _shown(value: Figure) -> str:
    return "" if value is None else f"{value:,}"


def main(words: Sequence[str] | None = None) -> None:
    """Print the figures of one or more checkouts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, action="append", help="a checkout; by default this one")
    parser.add_argument("--trips", action="store_true", help="run four commands too, some minutes")
    parser.add_argument("--json", action="store_true", help="print JSON, with the names behind the figures")
    asked = parser.parse_args(words)
    found = {}
    for root in asked.root or [Path(__file__).parents[1]]:
        try:
            figures, names = structure(root)
        except (FileNotFoundError, SyntaxError) as error:
            parser.error(str(error))
        if asked.trips:
            told = trips(root)
            figures |= {figure: count for figure, (count, _) in told.items()}
            names |= {figure: files for figure, (_, files) in told.items() if files}
        found[root.resolve().name] = figures, names
    if asked.json:
        print(json.dumps({name: {"figures": own, "names": names} for name, (own, names) in found.items()}))
    else:
        print(table({name: figures for name, (figures, _) in found.items()}))


if __name__ == "__main__":
    main()
