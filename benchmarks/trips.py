"""How many files of the package a value enters on its way through four commands, counted while they run.

Followed are a study through ``dlas.run``, ``explore`` and ``predict``, and the name of a predictor through
``dlas.fit``.  The study is tiny and trains nothing, and all of it runs in this process.

    python -P benchmarks/trips.py

It prints JSON for the package that ``PYTHONPATH`` leads to, and imports nothing else, so that
:mod:`benchmarks.structure` can start it for any checkout.  The rule:

- A value *enters* a file when a function of that file is called with it, as any argument or as ``self``.  The
  function that ``@dataclass`` writes to construct an object belongs to the file of its class; the others
  that it writes, such as ``__eq__``, do not count.
- The value has *forms*.  A study's are the path of its file, the text in it, the table that the text holds,
  a ``dlas.Study``, its expansion and its points.  Those of a predictor's name are the name, the class in the
  file of that name, the part of that class, and objects of the package that methods of the part return:
  what was fitted.
- An argument *carries* the value, too, if it is a list, a tuple, a set or a mapping with a form in it, or an
  object of the package with a form as an attribute, such as the sweep over a study.  What is deeper
  inside does not count.
- A *stay* begins with a call from another file; what lies between them outside the package is passed over.
  Each pair of a calling and a called function counts once, so that neither the number of points nor that of
  samples matters; functions inside another count as it.  A *return* is a stay in a file that the value was
  in before.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterator
from inspect import CO_VARARGS, CO_VARKEYWORDS
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

STUDY = """
name = "trip"
seed = 0
skip = []
[axes]
dataset = [{{ name = "random", size = 8, images = 16, classes = 4 }}]
model = [{models}]
compiler = ["torch_eager"]
batch = [{batches}]
[measure]
repeats = 5
seconds = 0.1
slices = 1
layer_repeats = 2
"""
MODELS = ("conv3x3-4,relu", "conv3x3-8,relu")
BATCHES = range(1, 4)
FITTED = range(1, 17)
"""Batch sizes whose rows the predictor is fitted to: more than enough, should some be unstable."""
PART = "additive"
Check = Callable[[Any], bool]
Call = tuple[str | None, str, str, str]
"""The file and the name of a calling and of a called function of the package; no file outside of it."""


class Trip:
    """Notes the calls that pass a value on; a profiler as :func:`sys.setprofile` takes it.

    Parameters
    ----------
    package : Path
        The folder of ``dlas``.
    is_form : callable
        Whether an object is the value in one of its forms.
    is_maker : callable, optional
        Whether an object is a form whose methods return further forms.
    """

    def __init__(self, package: Path, is_form: Check, is_maker: Check = lambda value: False) -> None:
        self._package, self._is_known_form, self._is_maker = package, is_form, is_maker
        self._returned: dict[int, object] = {}
        self._places: dict[int, tuple[CodeType, str | None, tuple[str, ...]]] = {}
        self.calls: dict[Call, None] = {}

    def __call__(self, frame: FrameType, event: str, result: object) -> None:
        """Note a call, or what a method returned."""
        if event not in ("call", "return"):
            return
        file, names = self._place(frame)
        if file is None:
            return
        if event == "return":
            self._note_result(frame, names, result)
        elif any(self._carries(frame.f_locals.get(name)) for name in names):
            caller = frame.f_back
            while caller and self._place(caller)[0] is None:
                caller = caller.f_back
            origin = (self._place(caller)[0], _function(caller)) if caller else (None, "")
            self.calls.setdefault((*origin, file, _function(frame)))

    def _place(self, frame: FrameType) -> tuple[str | None, tuple[str, ...]]:
        """Return the file of a frame's function, None outside the package, and its parameters' names."""
        # By identity: generated functions of two files may be equal.
        code = frame.f_code
        if id(code) not in self._places:
            self._places[id(code)] = code, self._file(frame), _parameters(code)
        return self._places[id(code)][1:]

    def _file(self, frame: FrameType) -> str | None:
        code = frame.f_code
        if code.co_filename == "<string>" and code.co_name != "__init__":
            return None
        # Of functions without source, which dataclasses have, the globals tell the file.
        module, file = str(frame.f_globals.get("__name__")), frame.f_globals.get("__file__")
        if file is None or module.partition(".")[0] != self._package.name or code.co_name == "<module>":
            return None
        return str(Path(file).resolve().relative_to(self._package.parent))

    def _carries(self, argument: object) -> bool:
        if self._is_form(argument):
            return True
        if isinstance(argument, dict):
            return any(map(self._is_form, [*argument, *argument.values()]))
        if isinstance(argument, list | tuple | set | frozenset):
            return any(map(self._is_form, list(argument)))
        return self._of_package(argument) and any(map(self._is_form, list(vars(argument).values())))

    def _is_form(self, value: object) -> bool:
        return id(value) in self._returned or self._is_known_form(value)

    def _of_package(self, value: object) -> bool:
        kind = type(value)
        named = kind.__module__.partition(".")[0] == self._package.name
        return named and hasattr(value, "__dict__") and not isinstance(value, type)

    def _note_result(self, frame: FrameType, names: tuple[str, ...], result: object) -> None:
        """Keep what a method of a maker returned, if that is an object of the package."""
        if names[:1] == ("self",) and self._is_maker(frame.f_locals.get("self")) and self._of_package(result):
            self._returned[id(result)] = result

    @property
    def files(self) -> list[str]:
        """The files that the value entered, in that order."""
        return list(dict.fromkeys(file for _, _, file, _ in self.calls))

    @property
    def stays(self) -> int:
        """How often it entered a file from another."""
        return sum(origin != file for origin, _, file, _ in self.calls)


def _function(frame: FrameType) -> str:
    """Return the name of a frame's function; of one inside another, that of the other."""
    return frame.f_code.co_qualname.partition(".<locals>")[0]


def _parameters(code: CodeType) -> tuple[str, ...]:
    """Return the names of a function's parameters."""
    several = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + several]


@contextlib.contextmanager
def followed(trip: Trip) -> Iterator[None]:
    """Follow a value through what runs meanwhile, in this thread and in those that it starts."""
    threading.setprofile(trip)
    sys.setprofile(trip)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


class Commands:
    """The four commands on tiny input, in a folder.

    Parameters
    ----------
    folder : Path
        An empty one.
    """

    def __init__(self, folder: Path) -> None:
        self._dlas = importlib.import_module("dlas")
        self._package = Path(str(self._dlas.__file__)).resolve().parent
        self._folder = folder
        self._path = self._written("study.toml", BATCHES)
        self._text = self._path.read_text()
        self._table = tomllib.loads(self._text)
        study = self._dlas.Study(**self._table)
        self._kinds = type(study), type(study.expansion()), type(next(study.points()))

    def trips(self) -> dict[str, Trip]:
        """Return the trip through each command, by its name."""
        rows, predictor = self._folder / "rows", self._folder / "predictor"
        self._run(self._written("fitted.toml", FITTED), rows)
        self._fit(rows, predictor)
        return {
            "run": self._trip(lambda out: self._run(self._path, out), self._is_study),
            "explore": self._trip(self._explore, self._is_study),
            "fit": self._trip(lambda out: self._fit(rows, out), self._is_predictor, self._is_part),
            "predict": self._trip(lambda out: self._predict(predictor), self._is_study),
        }

    def _trip(self, command: Callable[[Path], object], *checks: Check) -> Trip:
        """Return the trip through a command's second run, for which everything is imported already."""
        trip = Trip(self._package, *checks)
        command(Path(tempfile.mkdtemp(dir=self._folder), "out"))
        with followed(trip):
            command(Path(tempfile.mkdtemp(dir=self._folder), "out"))
        return trip

    def _written(self, name: str, batches: range) -> Path:
        path = self._folder / name
        drawn = ", ".join(f'{{ name = "random_layers", layers = "{model}" }}' for model in MODELS)
        path.write_text(STUDY.format(models=drawn, batches=", ".join(map(str, batches))))
        return path

    def _run(self, study: Path, out: Path) -> None:
        self._dlas.run(study, out, cache=out.parent / "cache", in_process=True, progress="silent")

    def _explore(self, out: Path) -> None:
        cache = out.parent / "cache"
        self._dlas.explore(self._path, out, share=0.7, cache=cache, in_process=True, progress="silent")

    def _fit(self, rows: Path, out: Path) -> None:
        self._dlas.fit(PART, rows, target="latency_s", to=out, hold_out="batch=30%")

    def _predict(self, predictor: Path) -> None:
        cache = Path(tempfile.mkdtemp(dir=self._folder))
        self._dlas.predict(predictor, self._path, cache=cache, steps="inline", progress="silent")

    def _is_study(self, value: object) -> bool:
        if isinstance(value, str | Path):
            return value in (self._path, str(self._path), self._text)
        return isinstance(value, self._kinds) or (isinstance(value, dict) and value == self._table)

    def _is_predictor(self, value: object) -> bool:
        return value == PART if isinstance(value, str) else self._is_part(value)

    def _is_part(self, value: object) -> bool:
        """Return whether an object is the part, or its class."""
        kind = value if isinstance(value, type) else type(value)
        package, _, module = kind.__module__.rpartition(".")
        return module == PART and package.partition(".")[0] == self._package.name


def main() -> None:
    """Print the trips of the four commands as JSON."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        trips = Commands(Path(folder).resolve()).trips()
    counts = {
        name: {"files": trip.files, "stays": trip.stays, "returns": trip.stays - len(trip.files)}
        for name, trip in trips.items()
    }
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
