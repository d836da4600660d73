"""Keys of artifacts: a hash of everything that reaches them, and of nothing else.

A key covers the options, the sources of the code that makes the artifact with
what that code imports inside the project, the versions of the toolchain, and
the content of files that options name.  So editing a schedule never retrains a
network, editing a README touches nothing, and nothing stale is reused.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any


def key(**content: Any) -> str:
    """Return 32 hexadecimal digits for JSON-able content."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def file_digest(path: Path) -> str:
    """Return the hash of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "blake2b").hexdigest()[:32]


def sources(modules: Iterable[str], within: Iterable[str] = ()) -> str:
    """Return the hash of the modules' code and of all they import inside their own packages.

    Comments, docstrings and layout do not count.

    Parameters
    ----------
    modules : iterable of str
    within : iterable of str, optional
        Packages: what they import from elsewhere does not count either.
    """
    closure: set[str] = set()
    packages = tuple(f"{package}." for package in within)
    waiting = sorted(set(modules))
    while waiting:
        module = waiting.pop()
        if module not in closure:
            closure.add(module)
            found = _imports(module)
            waiting.extend(name for name in found if not packages or f"{name}.".startswith(packages))
    return key(code={module: _code(module) for module in closure})


def versions(distributions: Iterable[str]) -> dict[str, str | None]:
    """Return the installed version of each distribution, None where it is not installed."""
    return {name: _version(name) for name in distributions}


def file_digests(paths: Iterable[Path]) -> dict[str, str]:
    """Return each file's content's hash by path; computed again only when size or time changed."""
    return {str(path): _digest_once(str(path), *_stamp(path)) for path in paths}


@functools.cache
def _version(name: str) -> str | None:
    if name == "python":
        return f"{sys.version_info.major}.{sys.version_info.minor}"
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _stamp(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


@functools.cache
def _digest_once(path: str, size: int, modified: int) -> str:
    return file_digest(Path(path))


@functools.cache
def _file(module: str) -> Path | None:
    """Return a module's source file; None for what has none (built in, or missing)."""
    spec = _spec(module)
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def _spec(module: str) -> ModuleSpec | None:
    """Find a module as ``importlib.util.find_spec`` does, but without importing what it lies in."""
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
def _tree(module: str) -> ast.Module | None:
    path = _file(module)
    return ast.parse(path.read_text(encoding="utf-8")) if path else None


@functools.cache
def _code(module: str) -> str:
    """Return the hash of a module's code without its docstrings."""
    tree = _tree(module)
    if tree is None:
        return ""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
            and isinstance(body[0].value.value, str)
        ):
            node.body = body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


@functools.cache
def _imports(module: str) -> tuple[str, ...]:
    """Return the modules of the same top-level package that ``module`` imports."""
    tree = _tree(module)
    top = module.partition(".")[0]
    found = set(_named(tree, module)) if tree else set()
    return tuple(sorted(name for name in found if name.partition(".")[0] == top and _file(name)))


def _named(tree: ast.Module, module: str) -> Iterator[str]:
    """Yield every module name that import statements of ``module`` may mean."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = importlib.util.resolve_name("." * node.level, module.rpartition(".")[0] or module)
                base = f"{package}.{base}".strip(".")
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
