"""Objects that users name, ``package.module:name`` or ``file.py:name``, and parts' classes among them."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import typing
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from dlas import stack
from dlas.errors import InputError, unknown

NAMED = re.compile(r"(?P<place>[^:]+):(?P<name>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)")
"""``package.module:factory`` or ``mine.py:Net``."""
MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
INTERFACES: dict[str, type] = {
    "dataset": stack.Dataset,
    "model": stack.Model,
    "compression": stack.Compression,
    "algorithm": stack.Algorithm,
    "compiler": stack.Backend,
    "hardware": stack.Hardware,
    "predictor": stack.Predictor,
}
"""What the parts of an axis implement."""
_Stamp = tuple[int, int]
_OF_FILES: dict[Path, tuple[_Stamp, ModuleType]] = {}
"""By file, the module that was made of it, with the size and the time that the file had."""


def object_at(text: str, what: str = "") -> object:
    """Return what a text names, after importing its module, which runs the module's code.

    Parameters
    ----------
    text : str
        ``package.module:name`` or ``file.py:name``, where a name may have dots.
    what : str
        What it is named for, the beginning of messages: ``model``.

    Raises
    ------
    InputError
        If it is of another form, cannot be imported, or there is no such name.
    """
    quoted = f"{what} {text!r}".lstrip()
    named = NAMED.fullmatch(text)
    place, name = (named["place"], named["name"]) if named else ("", "")
    of_file = place.endswith(".py")
    if not (of_file or MODULE.fullmatch(place)):
        raise InputError(f"{quoted} is not of the form 'package.module:Class' or 'file.py:Class'")
    if of_file and not Path(place).is_file():
        raise InputError(f"{quoted}: there is no file {place!r}")
    try:
        found: object = module_in(Path(place)) if of_file else importlib.import_module(place)
    except (Exception, SystemExit) as error:  # whatever a user's module raises
        raise InputError(f"{quoted}: cannot import {place!r}: {type(error).__name__}: {error}") from None
    for each in name.split("."):
        if not hasattr(found, each):
            raise unknown(f"name in {place}", each, _own_names(found))
        found = getattr(found, each)
    return found


def _own_names(place: object) -> list[str]:
    """Return the public names of what can be called in a module or class, without what a module imports."""
    public = {key: getattr(place, key, None) for key in dir(place) if key[0] != "_"}
    called = [key for key, value in public.items() if callable(value)]
    home = place.__name__ if isinstance(place, ModuleType) else None
    own = [key for key in called if getattr(public[key], "__module__", home) == home]
    return (home and own) or called


def part_in(axis: str, module: ModuleType) -> type[Any]:
    """Return the only class of a module that is a part of the axis, ignoring private names.

    Raises
    ------
    InputError
        If it defines none or several.
    """
    classes = [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and not name.startswith("_")
        and value.__module__ == module.__name__
        and issubclass(value, INTERFACES[axis])
    ]
    classes = [cls for cls in classes if not inspect.isabstract(cls)]
    if len(classes) != 1:
        raise InputError(
            f"{module.__name__} must define exactly one {INTERFACES[axis].__name__}; "
            f"it defines {[cls.__name__ for cls in classes] or 'none'}"
        )
    return classes[0]


def class_at(axis: str, name: str) -> type[Any]:
    """Return the class named as ``package.module:Class`` or ``file.py:Class``.

    Raises
    ------
    InputError
        If it does not exist or is not a part of the axis.
    """
    return checked_class(axis, object_at(name, axis), name)


def checked_class(axis: str, cls: object, name: str) -> type[Any]:
    """Return ``cls`` if it is a part of the axis.

    Raises
    ------
    InputError
        If it is not, or is abstract.
    """
    interface = INTERFACES[axis]
    if not (inspect.isclass(cls) and issubclass(cls, interface)):
        raise InputError(f"{axis} {name!r} is not a dlas.stack.{interface.__name__}")
    if inspect.isabstract(cls):
        raise InputError(
            f"{axis} {name!r} does not define {', '.join(sorted(vars(cls)['__abstractmethods__']))}"
        )
    return typing.cast(type[Any], cls)


def module_in(path: Path) -> ModuleType:
    """Return the module in a file, which may import others beside it, now and when it is called.

    It is made once, and anew where the file has changed.
    """
    place = path.resolve()
    status = os.stat(place)
    stamp = status.st_size, status.st_mtime_ns
    known_stamp, known = _OF_FILES.get(place, (None, None))
    if known is None and _file_of(sys.modules.get(place.stem)) == place:
        return sys.modules[place.stem]
    if known is None or known_stamp != stamp:
        known = _executed(place, _free_name(place) if known is None else known.__name__)
        _OF_FILES[place] = stamp, known
    return known


def _executed(place: Path, name: str) -> ModuleType:
    """Return a new module of a file, under this name among all modules, as dataclasses and pickles expect."""
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder, before = str(place.parent), sys.modules.get(name)
    if folder not in sys.path:
        sys.path.append(folder)  # stays, for what it imports when it is called
    sys.path.insert(0, folder)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if before is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = before
        raise
    finally:
        with suppress(ValueError):  # it may have changed the path itself
            sys.path.remove(folder)
    return module


def _free_name(place: Path) -> str:
    """Return the name of a file's module: the file's own, unless that is another module's."""
    stem = place.stem
    try:
        spec = importlib.util.find_spec(stem) if stem.isidentifier() else None
        free = stem.isidentifier() and stem not in sys.modules
    except (ImportError, ValueError):
        return _unlike(place)
    if free and (spec is None or (spec.origin and Path(spec.origin).resolve() == place)):
        return stem
    return _unlike(place)


def _unlike(place: Path) -> str:
    """Return a name that no other module has."""
    readable = re.sub(r"\W", "_", place.stem)
    return f"{readable}_{hashlib.sha256(os.fsencode(place)).hexdigest()[:12]}"


def _file_of(module: ModuleType | None) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file else None
