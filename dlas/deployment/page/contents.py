"""What a page holds: programs with their weights, an example, and the script that runs them."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from dlas.bench.engines.javascript import HOST
from dlas.bench.store.cache import Artifact
from dlas.deployment.pictures import Preparation, labels, numbers
from dlas.lowering.webassembly.writing import CODE, PARAMETERS, read_module
from dlas.stack.engine import ModuleTensor, WasmModule
from dlas.sweep.rows.labels import label
from dlas.sweep.rows.machines import machine_name
from dlas.sweep.rows.results import Row
from dlas.sweep.study.point import Point

FOLDER = Path(__file__).parent
UNTRAINED = "This network is not trained: its weights are random, and its classes mean nothing."
UNKNOWN = 0.5, 0.25
"""Mean and deviation by which the example is drawn, where its data set's are not known."""

SURROGATES = 0xD800
"""The first of 2,048 units of UTF-16 that are no characters."""
ESCAPE, FLIPPED = 0xE000, 0x8000
"""What stands before a unit that is stored with its highest bit flipped."""
NOT_TEXT = (0, ord("\r"), ord("<"), ESCAPE)
"""Units that HTML reads as others, or as the end of a file."""


@dataclass(frozen=True)
class StoredArray:
    """A parameter as a page stores it: the first bytes of all numbers, then their second ones, and so on."""

    offset: int
    """In the module's parameters."""
    size: int
    width: int
    """Bytes of a number."""
    half: bool
    """Whether float16 stands for float32."""


@dataclass(frozen=True)
class PageProgram:
    """A network of a page, built as a WebAssembly module.

    Parameters
    ----------
    row, point : Row, Point
        The row that is deployed, and the point that was built for the page.
    network, build : Artifact
    notes : tuple of str
        In what the build differs from what the row measured.
    """

    row: Row
    point: Point
    network: Artifact
    build: Artifact
    notes: tuple[str, ...]

    @property
    def tolerance(self) -> float:
        """Largest accepted deviation from the network, relative to its largest output."""
        return float(max(self.network.facts["tolerance"], self.build.facts["tolerance"]))

    @property
    def code(self) -> Path:
        """The file of the module's code."""
        return self.build.folder / CODE

    def module(self) -> WasmModule:
        """Return what a host has to know of the module."""
        return read_module(self.build.folder)

    def parameters(self) -> bytes:
        """Return the module's parameters."""
        return (self.build.folder / PARAMETERS).read_bytes()

    def facts(self) -> dict[str, str]:
        """Return what the page tells of the program, by name."""
        row = self.row
        machine = row.device.get("engine") or machine_name(row.device) or label(row.hardware)
        told = {
            "compression": label(row.compression),
            "accuracy": "none: it is untrained" if row.accuracy is None else f"{row.accuracy:.1%}",
            "algorithm": label(row.algorithm),
            "compiler": self.point.compiler.name,
            "row": row.id,
            "measured": f"{1e3 * median(row.latency_s):.3g} ms on {machine}",
            "code": f"SHA-256 {hashlib.sha256(self.code.read_bytes()).hexdigest()[:16]}",
        }
        return {**told, **({"note": "; ".join(self.notes)} if self.notes else {})}


@dataclass
class Embedded:
    """Files in a page, each one once."""

    files: dict[str, str] = field(default_factory=dict)
    """Their text by id."""
    bytes_of: dict[str, int] = field(default_factory=dict)
    """Their size before they were packed, by id."""
    _numbers: dict[tuple[str, bytes], int] = field(default_factory=dict)

    def add(self, kind: str, content: bytes) -> int:
        """Add a file of a kind; return its number, that of an equal one if there is one."""
        key = kind, hashlib.sha256(content).digest()
        if key not in self._numbers:
            number = self._numbers[key] = sum(known == kind for known, _ in self._numbers)
            self.files[f"{kind}{number}"] = packed(content)
            self.bytes_of[f"{kind}{number}"] = len(content)
        return self._numbers[key]


class Page:
    """A page that programs are added to, those of one network at several paths."""

    def __init__(self) -> None:
        self._embedded = Embedded()
        self._programs: list[dict[str, Any]] = []

    @property
    def weights_bytes(self) -> int:
        """Bytes of all weights as the page has them, equal ones once."""
        sizes = self._embedded.bytes_of.items()
        return sum(size for name, size in sizes if name.startswith("weights"))

    def add(
        self,
        program: PageProgram,
        stored: Sequence[StoredArray],
        weights: bytes,
        tolerance: float,
        right: bytes,
    ) -> None:
        """Add a program.

        Parameters
        ----------
        stored, weights
            What :func:`store` returned.
        tolerance : float
            Largest deviation that the page accepts on its example.
        right : bytes
            The network's outputs for the example.
        """
        add = self._embedded.add
        held = "float16 in this file" if any(each.half for each in stored) else "as the network has them"
        self._programs.append(
            {
                "title": label(program.row.compression),
                "contents": program.module().content(),
                "stored": [asdict(each) for each in stored],
                "code": add("code", program.code.read_bytes()),
                "weights": add("weights", weights),
                "expected": add("expected", right),
                "tolerance": tolerance,
                "facts": list({**program.facts(), "weights": held}.items()),
            }
        )

    def text(self, program: PageProgram, sample: Mapping[str, Any]) -> str:
        """Return the page, as of the network of one of its programs and with the first image of a sample."""
        row, point, facts = program.row, program.point, program.network.facts
        channels, height, width = facts["shape"]
        prepared = numbers(point.dataset_part, channels)
        shown = prepared or Preparation(*((value,) * channels for value in UNKNOWN))
        picture = {"channels": channels, "height": height, "width": width, **asdict(shown)}
        names = labels(point.dataset.name, point.dataset_part, facts["classes"])
        content = {"labels": names, "picture": picture, "programs": self._programs}
        example = packed(np.ascontiguousarray(sample["images"][:1], np.float32).tobytes())
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, undefined=jinja2.StrictUndefined
        )
        parameters = f", {row.parameters:,} parameters" if row.parameters else ""
        return environment.get_template("page.html.jinja").render(
            title=f"{label(row.model)} on {label(row.dataset)}",
            summary=f"{facts['classes']} classes{parameters}.",
            note=UNTRAINED if row.accuracy is None else "",
            picture=picture,
            takes_pictures=prepared is not None,
            slider=len(self._programs) - 1,
            files=[
                (name, Markup(text)) for name, text in (self._embedded.files | {"example": example}).items()
            ],
            css=Markup((FOLDER / "page.css").read_text()),
            host=Markup(HOST.read_text()),
            script=Markup((FOLDER / "page.js").read_text()),
            page=Markup(json.dumps(content, allow_nan=False).replace("<", "\\u003c")),
        )


def store(
    tensors: Sequence[ModuleTensor], parameters: bytes, halves: bool
) -> tuple[list[StoredArray], bytes]:
    """Return how a page stores parameters, and all of them as it stores them.

    Parameters
    ----------
    halves : bool
        Whether float32 numbers are stored in float16, in arrays without any that is too large for it.
    """
    stored, pieces = [], []
    for tensor in tensors:
        array = tensor.of(parameters[tensor.offset : tensor.offset + tensor.nbytes])
        kept = array
        if halves and tensor.dtype == "float32":
            with np.errstate(over="ignore"):
                half = array.astype(np.float16)
            kept = half if np.isfinite(half).all() else array
        pieces.append(kept.reshape(-1, 1).view(np.uint8).T.tobytes())
        stored.append(StoredArray(tensor.offset, kept.nbytes, kept.itemsize, kept.dtype != array.dtype))
    return stored, b"".join(pieces)


def restored(stored: Sequence[StoredArray], weights: bytes, size: int) -> bytes:
    """Return the parameters, so many bytes, that a page makes of what it stores."""
    parameters, at = bytearray(size), 0
    for array in stored:
        shuffled = np.frombuffer(weights, np.uint8, array.size, at).reshape(array.width, -1)
        numbers_bytes = shuffled.T.tobytes()
        if array.half:
            numbers_bytes = np.frombuffer(numbers_bytes, np.float16).astype(np.float32).tobytes()
        parameters[array.offset : array.offset + len(numbers_bytes)] = numbers_bytes
        at += array.size
    return bytes(parameters)


def packed(content: bytes) -> str:
    """Return bytes as the page stores them: zlib's deflate, two bytes a character.

    The page is UTF-16, in which this is 3 % longer than the bytes; base64 is 33 %. The first character tells
    the bytes that were added to make it even.
    """
    deflated = zlib.compress(content, 9)
    added = len(deflated) % 2
    units = np.frombuffer(deflated + bytes(added), "<u2")
    refused = np.isin(units, NOT_TEXT) | (units >> 11 == SURROGATES >> 11)
    places = np.flatnonzero(refused)
    kept = np.insert(np.where(refused, units ^ FLIPPED, units), places, ESCAPE)
    return str(added) + kept.astype("<u2").tobytes().decode("utf-16-le")
