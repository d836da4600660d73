"""Modules in outline, as far as the list of parts needs them: read from the source, and nothing is imported.

An outline of a module has its classes with their bases, docstrings and fields, whose types and defaults are
evaluated, and with methods that cannot be called.  What an expression names is looked up where the module has
it from; modules that are quick to import are imported.  The parts of all axes import torch and tvm, which
takes seconds; their outlines take a tenth of one.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import importlib.util
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dlas.errors import InputError
from dlas.sweep.study.docstrings import behind_fields
from dlas.sweep.study.named_objects import part_in
from dlas.sweep.study.parts import Finder

QUICK = frozenset({*sys.stdlib_module_names, "numpy", "pydantic"})
"""What is imported as it is: it has been anyway."""
OWN = __name__.partition(".")[0]


class Unreadable(Exception):
    """The source does not say what is asked for, so that the module has to be imported."""


class OutlineFinder(Finder):
    """Finds parts as :class:`Finder` does, with their fields and docstrings and without their code."""

    def class_in(self, axis: str, module: str) -> type[Any]:
        """Return the outline of a part, or the part where the source does not suffice."""
        try:
            return part_in(axis, outline(module))
        except (InputError, Unreadable):
            return super().class_in(axis, module)

    def names_in(self, module: str) -> list[str]:
        """Return the names of a module's part, of modules whose names are known without importing them."""
        return OTHER_NAMES[module]() if module in OTHER_NAMES else super().names_in(module)


@functools.cache
def tree(name: str) -> ast.Module:
    """Return the source of a module as a tree.

    Raises
    ------
    Unreadable
        If it has none.
    """
    spec = importlib.util.find_spec(name)
    source: str | None = getattr(spec and spec.loader, "get_source", lambda name: None)(name)
    if source is None:
        raise Unreadable(name)
    return ast.parse(source)


def class_meanings(cls: type) -> dict[str, str]:
    """Return the docstrings behind the fields of a class, without those of its bases."""
    try:
        found = [node for node in tree(cls.__module__).body if isinstance(node, ast.ClassDef)]
    except (Unreadable, ImportError, ValueError):  # a class of a script, or of a module that was made
        return {}
    return {name: text for node in found if node.name == cls.__name__ for name, text in behind_fields(node)}


def file_of(cls: type) -> Path:
    """Return the file that defines a class, whose module need not have been imported."""
    spec = None if cls.__module__ in sys.modules else importlib.util.find_spec(cls.__module__)
    return Path(spec.origin) if spec and spec.origin else Path(inspect.getfile(cls))


class _Names(dict[str, object]):
    """The global names of a module, each evaluated when it is asked for."""

    def __init__(self, module: str) -> None:
        super().__init__()
        self.module = module
        self.statements = {name: node for node in tree(module).body for name in _bound(node)}

    def __missing__(self, name: str) -> object:
        if name not in self.statements:
            return getattr(builtins, name)
        try:
            self[name] = self._value(name, self.statements[name])
        except Unreadable:
            raise
        except Exception as error:  # whatever goes wrong in classes that lack their code
            raise Unreadable(f"{self.module}: {name}: {error}") from error
        return self[name]

    def evaluate(self, expression: ast.expr) -> Any:
        """Return the value of an expression.

        Raises
        ------
        Unreadable
            If it needs what is not quick to import, or calls what an outline does not have.
        """
        code = compile(ast.Expression(expression), self.module, "eval")
        try:
            return eval(code, {"__builtins__": {}}, self)
        except Exception as error:
            raise Unreadable(f"{self.module}: {ast.unparse(expression)}: {error}") from error

    def _value(self, name: str, statement: ast.stmt) -> object:
        match statement:
            case ast.ClassDef():
                return _outlined_class(self, statement)
            case ast.FunctionDef():
                return _stand_in(statement)
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                return self.evaluate(value)
            case ast.ImportFrom(module=str(module), names=names):
                return _attribute(module, _imported(name, names).name)
            case ast.Import(names=names):
                alias = _imported(name, names)
                return _module(alias.name if alias.asname else name)
        raise Unreadable(f"{self.module}: {name}")


class _Module:
    """A module of this package that was not imported, for another one that names what it has."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        return _attribute(self._name, name)


_names = functools.cache(_Names)


def outline(name: str) -> types.ModuleType:
    """Return a module's outline, with those of its classes that have one.

    Raises
    ------
    Unreadable
        If it has no source.
    """
    names, found = _names(name), types.ModuleType(name)
    for node in tree(name).body:
        if isinstance(node, ast.ClassDef):
            # A class beside the part, such as a torch module, may have none.
            try:
                setattr(found, node.name, names[node.name])
            except Unreadable:
                continue
    return found


def _outlined_class(names: _Names, node: ast.ClassDef) -> type:
    """Return a class with the fields of another and without its code."""
    content: dict[str, Any] = {"__module__": names.module, "__doc__": ast.get_docstring(node, clean=False)}
    types_of: dict[str, object] = {}
    for statement in node.body:
        match statement:
            case ast.FunctionDef(name=name):
                content[name] = _stand_in(statement)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                content[name] = _constant(names, value)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=hint, value=value):
                if "ClassVar" in ast.unparse(hint):
                    content[name] = _constant(names, value)
                    continue
                types_of[name] = names.evaluate(hint)
                if value is not None:
                    content[name] = names.evaluate(value)
    content["__annotations__"] = types_of
    bases = tuple(names.evaluate(base) for base in node.bases)
    made: type = types.new_class(node.name, bases, exec_body=lambda namespace: namespace.update(content))
    for decorator in node.decorator_list:
        if "dataclass" in ast.unparse(decorator):
            made = names.evaluate(decorator)(made)
    return made


def _constant(names: _Names, value: ast.expr | None) -> object:
    """Return the value of an attribute that is no field; None where an outline does not have it."""
    try:
        return None if value is None else names.evaluate(value)
    except Unreadable:
        return None


def _stand_in(node: ast.FunctionDef) -> Callable[..., None]:
    """Return a function without the code of that which it stands for, abstract as it is."""

    def absent(*_: object, **__: object) -> None:
        raise Unreadable(node.name)

    abstract = any("abstractmethod" in ast.unparse(decorator) for decorator in node.decorator_list)
    absent.__isabstractmethod__ = abstract  # type: ignore[attr-defined]
    return absent


def _bound(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds."""
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names)


def _imported(name: str, names: list[ast.alias]) -> ast.alias:
    """Return what an import binds to a name."""
    return next(alias for alias in names if (alias.asname or alias.name.partition(".")[0]) == name)


def _module(name: str) -> object:
    """Return a module if it is quick to import, or what has the outlines of its classes."""
    package = name.partition(".")[0]
    if name in sys.modules or package in QUICK:
        return importlib.import_module(name)
    if package != OWN:
        raise Unreadable(name)
    return _Module(name)


def _attribute(module: str, name: str) -> object:
    """Return what a module has by a name: its own, or a module in it."""
    found = _module(module)
    if not isinstance(found, _Module):
        return getattr(found, name) if hasattr(found, name) else _module(f"{module}.{name}")
    names = _names(module)
    return names[name] if name in names.statements else _module(f"{module}.{name}")


REGISTERED = re.compile(r"^@register_model\((?:(?:name=)?\"(\w+)\")?\)\n(?:@.*\n)*def (\w+)\(", re.MULTILINE)
"""A network that torchvision registers, by a name of its own or by the function's."""


def torchvision_names() -> list[str]:
    """Return torchvision's names of its classification networks, as ``list_models`` does."""
    spec = importlib.util.find_spec("torchvision")
    folders = [Path(folder, "models") for folder in (spec.submodule_search_locations or ())] if spec else []
    sources = [path.read_text() for folder in folders for path in folder.glob("*.py")]
    found = sorted(name or function for text in sources for name, function in REGISTERED.findall(text))
    return found or list(importlib.import_module("dlas.axes.models.torchvision").names())


OTHER_NAMES = {"dlas.axes.models.torchvision": torchvision_names}
"""The functions ``names`` of modules, as they can be called without importing these."""
FINDER = OutlineFinder()
"""Finds the parts of this process, to tell of them."""
