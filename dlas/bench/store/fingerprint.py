"""Keys of artifacts: a hash of everything that affects them, and of nothing else.

A key covers the options, the sources of the code that makes the artifact with
its imports inside the project, the versions of the toolchain, and
the content of files that options name.  So editing a schedule never retrains a
network, editing a README changes no key, and stale artifacts are not reused.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from dlas.moved import new_name

PROJECT = __name__.partition(".")[0]
OTHER_NAMES = {"onnxruntime": ("onnxruntime-gpu",), "xgboost": ("xgboost-cpu",)}
"""Distributions that hold the same package."""
_as_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode
"""Made once, because a study has thousands of keys."""


def key(**content: Any) -> str:
    """Return 32 hexadecimal digits for JSON-able content."""
    return hashlib.sha256(_as_json(content).encode()).hexdigest()[:32]


def file_digest(path: Path) -> str:
    """Return the hash of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "blake2b").hexdigest()[:32]


def versions(distributions: Iterable[str]) -> dict[str, str | None]:
    """Return the installed version of each distribution, None where it is not installed."""
    return {name: version(name) for name in distributions}


def file_digests(paths: Iterable[Path]) -> dict[str, str]:
    """Return the hash of each file's content by path, cached by size and modification time."""
    return {str(path): _digest_once(str(path), *_stamp(path)) for path in paths}


class SourceTree:
    """The sources of modules, each read once; nothing is imported to find them.

    Two modules have the same code where they differ only in comments, docstrings, layout,
    their own names, and the places that they import other modules of the project from:
    the imported modules count themselves.  A package that re-exports a name does not count;
    the module that defines the name does.

    Parameters
    ----------
    edits : mapping, optional
        Source by module name, used instead of the module's file, to see what an edit would change.
    """

    def __init__(self, edits: Mapping[str, str] | None = None) -> None:
        self._edits = dict(edits or {})
        self._file = functools.cache(_file)
        self._read = functools.cache(self._parse)
        self._reexports = functools.cache(self._find_reexports)

    def closure(
        self, modules: Iterable[str], *, within: Iterable[str] = (), outside: Iterable[str] = ()
    ) -> frozenset[str]:
        """Return the modules and their transitive imports from their own package and from the project.

        Parameters
        ----------
        within : iterable of str, optional
            Packages: imports from elsewhere are left out.
        outside : iterable of str, optional
            Modules and packages to leave out.
        """
        included, excluded = _prefixes(within), _prefixes(outside)
        reached: set[str] = set()
        pending = set(modules)
        while pending:
            module = pending.pop()
            reached.add(module)
            imported, _ = self._read(module)
            new = {name for name in imported - reached if not f"{name}.".startswith(excluded)}
            pending |= {name for name in new if not included or f"{name}.".startswith(included)}
        return frozenset(reached)

    def digest(self, modules: Iterable[str]) -> str:
        """Return the hash of the modules' code; it does not depend on their names."""
        return key(code=sorted({self._read(module)[1] for module in modules}))

    def text(self, module: str) -> str:
        """Return a module's source; empty for a module without one (built in, or missing)."""
        if module in self._edits:
            return self._edits[module]
        path = self._file(module)
        return path.read_text(encoding="utf-8") if path else ""

    def origin(self, base: str, name: str) -> str | None:
        """Return the module whose code ``from base import name`` gives, None if it has no source."""
        if self._file(f"{base}.{name}"):
            return f"{base}.{name}"
        if name in self._reexports(base):
            return self.origin(*self._reexports(base)[name])
        return base if self._file(base) else None

    def is_package(self, module: str) -> bool:
        """Return whether a module is a folder's ``__init__.py``."""
        path = self._file(module)
        return path is not None and path.name == "__init__.py"

    def _find_reexports(self, package: str) -> dict[str, tuple[str, str]]:
        """Return the names that a package imports at its top level, with the module and name of each."""
        if not self.is_package(package):
            return {}
        body = ast.parse(self.text(package)).body
        return {
            alias.asname or alias.name: (self.base(node, package), alias.name)
            for node in body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def base(self, node: ast.ImportFrom, module: str) -> str:
        """Return the module that a statement in ``module`` imports from, a relative one by its full name."""
        if not node.level:
            return _now(node.module or "")
        package = module if self.is_package(module) else module.rpartition(".")[0] or module
        return importlib.util.resolve_name("." * node.level + (node.module or ""), package)

    def _parse(self, module: str) -> tuple[frozenset[str], str]:
        """Return the modules that a module imports from the project, and the hash of its code."""
        path = None if self._edits or not module.startswith(f"{PROJECT}.") else self._file(module)
        return _parsed_once(module, *_stamp(path)) if path else self.parse(module)

    def parse(self, module: str) -> tuple[frozenset[str], str]:
        """Return the modules that a module imports from the project, and the hash of its code, read anew."""
        code = _Code(self, module)
        tree = code.visit(ast.parse(self.text(module)))
        return frozenset(code.imported), hashlib.sha256(ast.dump(tree).encode()).hexdigest()


class _Code(ast.NodeTransformer):
    """Strips what does not affect behaviour: docstrings, code for type checkers, imports from the project.

    An import from the project that renames something stays, without its source.
    """

    def __init__(self, sources: SourceTree, module: str) -> None:
        self.imported: set[str] = set()
        self._sources, self._module = sources, module
        self._tops = {module.partition(".")[0], PROJECT}

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> Any:
        if ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            return [self.visit(statement) for statement in node.orelse]
        return self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        own = [alias.name for alias in node.names if alias.name.partition(".")[0] in self._tops]
        self.imported.update(name for name in map(_now, own) if self._sources.text(name))
        node.names = [alias for alias in node.names if alias.name not in own]
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        base = self._sources.base(node, self._module)
        if base.partition(".")[0] not in self._tops:
            return node
        renamed = []
        for alias in node.names:
            origin = self._sources.origin(base, alias.name)
            if origin:
                self.imported.add(origin)
            if alias.asname not in (None, alias.name) and origin != f"{base}.{alias.name}":
                renamed.append(alias)
        return ast.ImportFrom(names=renamed, level=0) if renamed else None


def _now(module: str) -> str:
    """Return the name that a module has in this version."""
    return new_name(module) or module


def _prefixes(packages: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{package}." for package in packages)


def _file(module: str) -> Path | None:
    """Return a module's source file; None for a module without one (built in, or missing)."""
    spec = _spec(module)
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def _spec(module: str) -> ModuleSpec | None:
    """Find a module as ``importlib.util.find_spec`` does, but without importing its parent packages."""
    package = module.rpartition(".")[0]
    try:
        if not package:
            return importlib.util.find_spec(module)
        within = _spec(package)
        places = within.submodule_search_locations if within else None
        return PathFinder.find_spec(module, places) if places else None
    except (ImportError, ValueError):
        return None


@functools.cache
def version(name: str) -> str | None:
    """Return the installed version of a distribution, or Python's; None where it is not installed."""
    if name == "python":
        return f"{sys.version_info.major}.{sys.version_info.minor}"
    for each in (name, *OTHER_NAMES.get(name, ())):
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(each)
    return None


def _stamp(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


@functools.cache
def _parsed_once(module: str, size: int, modified: int) -> tuple[frozenset[str], str]:
    """Return what :meth:`SourceTree.parse` does of a module of the project: sweeps of a process share it."""
    return _project().parse(module)


@functools.cache
def _project() -> SourceTree:
    return SourceTree()


@functools.cache
def _digest_once(path: str, size: int, modified: int) -> str:
    return file_digest(Path(path))
