"""What is counted in the source code of a checkout, which is read and never imported."""

from __future__ import annotations

import ast
import io
import os
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGE = "dlas"
FOLDERS = (PACKAGE, "schedules", "sparse")
"""The package's folders in a checkout; the last two lie in ``dlas`` once installed."""
ARCHITECTURE = Path("tests/test_architecture.py")
DESCRIBED = ("Parameters", "Attributes")
"""Sections of a class's docstring that describe its fields."""
HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
SILENT = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
"""Tokens that make no line a line of code."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A file of the package."""

    path: Path
    """Below the checkout."""
    text: str

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of its syntax tree."""
        return list(ast.walk(ast.parse(self.text)))

    @property
    def lines(self) -> list[str]:
        """Its lines, as Python counts them."""
        return io.StringIO(self.text).readlines()

    @property
    def room(self) -> str | None:
        """The room that it lies in; None beside the rooms."""
        inside = self.path.parts[self.path.parts[0] == PACKAGE :]
        return inside[0] if len(inside) > 1 else None

    @property
    def functions(self) -> list[Function]:
        """All that it defines, also methods and those inside functions."""
        return [node for node in self.nodes if isinstance(node, Function)]

    @property
    def classes(self) -> list[ast.ClassDef]:
        """All that it defines, also those inside others."""
        return [node for node in self.nodes if isinstance(node, ast.ClassDef)]


def modules(root: Path) -> list[Module]:
    """Return the files of a checkout's package, sorted.

    Raises
    ------
    FileNotFoundError
        If it has none.
    """
    files = [
        Path(folder, name)
        for top in FOLDERS
        for folder, _, names in os.walk(root / top)
        for name in names
        if name.endswith(".py")
    ]
    if not files:
        raise FileNotFoundError(f"{root} holds no python in {', '.join(FOLDERS)}: expected a checkout")
    return [Module(path.relative_to(root), path.read_text("utf-8")) for path in sorted(files)]


def rooms(package: Iterable[Module]) -> set[str]:
    """Return the folders with python right below ``dlas``."""
    return {module.room for module in package if module.room and module.path.parts[0] == PACKAGE}


def arrows(package: Sequence[Module]) -> set[tuple[str, str]]:
    """Return the pairs of rooms, the second of which the first imports from."""
    known = {module.room for module in package}
    return {
        (module.room, other)
        for module in package
        for other in imported_rooms(module)
        if module.room and module.room != other and other in known
    }


def imported_rooms(module: Module) -> set[str]:
    """Return the names right below ``dlas`` that a module imports, or imports something from."""
    names: set[str] = set()
    for node in module.nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{_origin(module, node)}.{alias.name}" for alias in node.names}
    split = [name.split(".") for name in names]
    return {parts[1] for parts in split if parts[0] == PACKAGE and len(parts) > 1}


def _origin(module: Module, node: ast.ImportFrom) -> str:
    """Return the full name of what ``from`` names."""
    if not node.level:
        return node.module or ""
    folders = module.path.parts[:-1]
    installed = folders if folders[0] == PACKAGE else (PACKAGE, *folders)
    return ".".join([*installed[: len(installed) - node.level + 1], *filter(None, [node.module])])


def storeys(root: Path) -> int | None:
    """Return the number of storeys that the test of the architecture lists; None where it lists none."""
    path = root / ARCHITECTURE
    for node in ast.parse(path.read_text("utf-8")).body if path.is_file() else ():
        listed = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "STOREYS" and node.value
        if isinstance(listed, ast.Constant) and isinstance(listed.value, str):
            return sum(bool(line.strip()) for line in listed.value.splitlines())
    return None


def lines(module: Module) -> dict[str, int]:
    """Return the number of a module's lines of each kind."""
    docstrings = _spanned(node for node in module.nodes if _is_docstring(node))
    code, comments = set[int](), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in SILENT:
            code.update(range(token.start[0], token.end[0] + 1))
    code -= docstrings
    comments -= code | docstrings
    total = len(module.lines)
    return {
        "all": total,
        "code": len(code),
        "docstrings": len(docstrings),
        "comments": len(comments),
        "blank": total - len(code) - len(docstrings) - len(comments),
    }


def import_lines(module: Module) -> int:
    """Return the number of lines that imports take, at the top or inside functions."""
    return len(_spanned(node for node in module.nodes if isinstance(node, ast.Import | ast.ImportFrom)))


def _is_docstring(node: ast.AST) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _spanned(nodes: Iterable[ast.AST]) -> set[int]:
    """Return the numbers of the lines that statements stand on."""
    return {
        line
        for node in nodes
        if isinstance(node, ast.stmt)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def repeated_classes(package: Iterable[Module]) -> dict[str, list[str]]:
    """Return the public class names that occur more than once, each with the files it occurs in."""
    places: dict[str, list[str]] = {}
    for module in package:
        for node in module.classes:
            if not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(module.path))
    return {name: files for name, files in sorted(places.items()) if len(files) > 1}


def described_twice(node: ast.ClassDef) -> list[str]:
    """Return the fields that a class declares and its docstring describes as well."""
    declared = [
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    ]
    described = set(entries(ast.get_docstring(node) or ""))
    return [name for name in declared if name in described]


def entries(docstring: str) -> Iterator[str]:
    """Yield the names that a docstring has an entry for, below one of :data:`DESCRIBED`."""
    # Text before the first heading, then headings and what is below them in turn.
    _, *parts = HEADING.split(docstring)
    for heading, below in zip(parts[::2], parts[1::2], strict=True):
        if heading in DESCRIBED:
            for line in below.splitlines():
                if line and not line[0].isspace():
                    yield from (name.strip(" *") for name in line.partition(" :")[0].split(","))


def parameters(function: Function) -> list[ast.arg]:
    """Return a function's parameters without ``self`` and ``cls``."""
    own = function.args
    plain = [*own.posonlyargs, *own.args]
    if plain and plain[0].arg in ("self", "cls"):
        del plain[0]
    return [*plain, *filter(None, [own.vararg]), *own.kwonlyargs, *filter(None, [own.kwarg])]


def uses_any(annotation: ast.expr | None) -> str | None:
    """Return ``"is"`` for ``Any``, ``"contains"`` for such as ``dict[str, Any]``, and None for others."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    if annotation is None:
        return None
    if _is_any(annotation):
        return "is"
    return "contains" if any(map(_is_any, ast.walk(annotation))) else None


def _is_any(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id == "Any") or (
        isinstance(node, ast.Attribute) and node.attr == "Any"
    )
