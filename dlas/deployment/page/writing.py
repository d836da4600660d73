"""Write a row's network as one page of HTML: ``dlas deploy ROWS ROW --to page.html``."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from dlas.analysis.winners import fastest_id
from dlas.axes.compilers.programs.tvm import TvmCompiler
from dlas.axes.hardware.engines import WebAssemblyEngine
from dlas.bench.engines.javascript import HOST
from dlas.bench.store.cache import Artifact, Cache, default_root
from dlas.bench.store.replacing import replacing
from dlas.deployment.deploying import DeploymentFailed, check_row
from dlas.deployment.flexible import path_rows
from dlas.deployment.pictures import Preparation, labels, numbers
from dlas.deployment.remaking import make
from dlas.deployment.run import Refused, check_outputs
from dlas.errors import InputError
from dlas.lowering.webassembly.writing import CODE, PARAMETERS, read_module
from dlas.stack import Array, MeasureSettings, TuningCompiler
from dlas.stack.engine import Engine, WasmModule
from dlas.stack.types import Say
from dlas.sweep.engine.planning import Planner
from dlas.sweep.engine.steps.artifacts import load_verified
from dlas.sweep.engine.steps.samples import load_sample
from dlas.sweep.rows.finding import find, point_label
from dlas.sweep.rows.frame import read_each, select
from dlas.sweep.rows.labels import label
from dlas.sweep.rows.machines import machine_name
from dlas.sweep.rows.results import Row
from dlas.sweep.study.point import Choice, Point

FOLDER = Path(__file__).parent
PORTABLE = {"name": "wasmtime", "relaxed_simd": False}
"""What rows of other devices are built for: vectors that every browser has."""
ENGINES = ("wasmtime", "node", "chromium")
"""What a page's programs are checked in: the first one that is here."""
HALVES_TOLERANCE = 1e-2
"""Largest accepted deviation of a network whose weights were rounded to float16."""
CHECKED_IMAGES = 8
SEARCHED = "its compiler searched schedules for another device; the page's code has those of `hand`"
UNTRAINED = "This network is not trained: its weights are random, and its classes mean nothing."


@dataclass
class Embedded:
    """Files in the page, each one once."""

    files: dict[str, str] = field(default_factory=dict)
    """Their text by id."""
    _numbers: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str, content: bytes) -> int:
        """Add a file of a kind; return its number, that of an equal one if there is one."""
        digest = f"{kind} {hashlib.sha256(content).hexdigest()}"
        if digest not in self._numbers:
            self._numbers[digest] = sum(known.startswith(f"{kind} ") for known in self._numbers)
            self.files[f"{kind}{self._numbers[digest]}"] = packed(content)
        return self._numbers[digest]


def deploy_page(
    folder: str | os.PathLike[str],
    row: str | None = None,
    *,
    to: str | os.PathLike[str],
    where: Sequence[str] = (),
    paths: bool = False,
    float16_weights: bool = False,
    cache: Path | None = None,
    say: Say = print,
) -> Path:
    """Write a row's network as one page of HTML that needs no network and no other file.

    The row of any device serves: where that is no engine of WebAssembly, the same network is built for one
    with the row's algorithm and compiler.

    Parameters
    ----------
    folder : path
        What ``dlas run --out`` wrote.
    row : str, optional
        The row's id, or the beginning of it; by default the fastest row.
    to : path
        The page to write, a file that does not exist.
    where : sequence of str
        Filters, such as ``batch=1``, of the rows to choose from.
    paths : bool, optional
        Whether the page holds all paths of a flexible network, with a slider between them.
    float16_weights : bool, optional
        Whether the weights are stored in half as many bytes; the page widens them when it opens.
    cache : Path, optional
        The artifact cache; by default ``$DLAS_CACHE``.
    say : callable
        Shows a line of progress.

    Returns
    -------
    Path
        ``to``.

    Raises
    ------
    InputError
        If there is no such row, it cannot be a page, or the file exists.
    DeploymentFailed
        If the network is wrong as the page has it.
    """
    target = Path(to)
    if target.exists():
        raise InputError(f"`to={str(target)!r}` exists; give another file")
    if not target.parent.is_dir():
        raise InputError(f"`to={str(target)!r}`: there is no folder {str(target.parent)!r}")
    if paths:
        rows = sorted(path_rows(Path(folder), where), key=lambda each: str(each.compression["path"]))
        rows = [each for each in rows if each.batch == 1]
    else:
        rows = [find(Path(folder), row or fastest_id(select(read_each(folder), where)))]
    if not rows or rows[0].batch != 1:
        raise InputError("a page runs one picture at a time, and there is no such row of batch 1")
    for each in rows:
        check_row(each)
        say(f"{each.id}  {point_label(each)}")
    store = Cache(cache or default_root())
    points = [page_point(each) for each in rows]
    make(points, store, say, until="build")
    planner = Planner(MeasureSettings(), store.root)
    artifacts = [planner.plan(point).artifacts() for point in points]
    networks = [load_verified(store, "network", keys["network"]) for keys in artifacts]
    builds = [load_verified(store, "build", keys["build"]) for keys in artifacts]
    engine = any_engine()
    try:
        page = Page(rows, points, networks, builds, float16_weights)
        for number in range(len(rows)):
            say(page.add(number, store, engine))
    finally:
        engine.close()
    with replacing(target) as partial:
        partial.write_text(page.text(), encoding="utf-8")
    size, weights = target.stat().st_size, page.weights_bytes
    say(f"{size:,} bytes, of weights of {weights:,} bytes")
    return target


def page_point(row: Row) -> Point:
    """Return a row's point, on an engine of WebAssembly and with a compiler that needs no other device.

    Raises
    ------
    InputError
        If its compiler makes no WebAssembly.
    """
    point = Point.of(asdict(row))
    compiler = point.compiler_part
    if not isinstance(compiler, TvmCompiler):
        raise InputError(
            f"row {row.id} cannot be a page: the compiler {point.compiler.name} makes no WebAssembly; "
            "those that build with TVM do, such as `hand`"
        )
    if isinstance(point.device, WebAssemblyEngine):
        return point
    changed = replace(point, hardware=Choice.of(PORTABLE))
    return replace(changed, compiler=Choice("hand")) if isinstance(compiler, TuningCompiler) else changed


def any_engine() -> Engine:
    """Return an engine that is here, with nothing loaded.

    Raises
    ------
    InputError
        If there is none.
    """
    devices = [Choice(name).make("hardware") for name in ENGINES]
    for device in devices:
        assert isinstance(device, WebAssemblyEngine)
        if device.unsupported() is None:
            return device.started()
    raise InputError(
        f"a page is checked before it is written, and no engine is here: {devices[0].unsupported()}"
    )


class Page:
    """A page that programs are added to.

    Parameters
    ----------
    rows, points, networks, builds : sequence
        Of each program.
    halves : bool
        Whether weights are stored in float16.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        points: Sequence[Point],
        networks: Sequence[Artifact],
        builds: Sequence[Artifact],
        halves: bool,
    ) -> None:
        self.rows, self.points, self.networks, self.builds = rows, points, networks, builds
        self.halves = halves
        self.embedded = Embedded()
        self.programs: list[dict[str, Any]] = []
        self.weights_bytes = 0
        self.example: Array | None = None

    def add(self, number: int, store: Cache, engine: Engine) -> str:
        """Add a program after checking it in an engine; return by how much it differs from its network.

        Raises
        ------
        DeploymentFailed
            If that is more than is accepted.
        """
        folder, row = self.builds[number].folder, self.rows[number]
        sample = load_sample(store, self.networks[number].key)
        module, code = read_module(folder), (folder / CODE).read_bytes()
        stored, weights, as_page = self._stored(module, (folder / PARAMETERS).read_bytes())
        tolerance = max(self.networks[number].facts["tolerance"], self.builds[number].facts["tolerance"])
        if self.halves:
            tolerance = max(tolerance, HALVES_TOLERANCE)
        told = _checked(engine, module, folder / CODE, as_page, sample, tolerance)
        self.example = np.ascontiguousarray(sample["images"][:1], np.float32)
        program = {
            "title": label(row.compression),
            "contents": module.content(),
            "stored": stored,
            "code": self.embedded.add("code", code),
            "expected": self.embedded.add("expected", np.float32(sample["outputs"][:1]).tobytes()),
            "tolerance": tolerance,
            "facts": self._facts(number, hashlib.sha256(code).hexdigest()),
        }
        known = len(self.embedded.files)
        program["weights"] = self.embedded.add("weights", weights)
        if len(self.embedded.files) > known:
            self.weights_bytes += len(weights)
        self.programs.append(program)
        return told

    def text(self) -> str:
        """Return the page."""
        assert self.example is not None
        row, point, facts = self.rows[0], self.points[0], self.networks[0].facts
        channels, height, width = facts["shape"]
        prepared = numbers(point.dataset_part, channels)
        shown = prepared or Preparation((0.5,) * channels, (0.25,) * channels)
        names = labels(point.dataset.name, point.dataset_part, facts["classes"])
        self.embedded.files["example"] = packed(self.example.tobytes())
        content = {
            "labels": names,
            "picture": {
                "channels": channels,
                "height": height,
                "width": width,
                "mean": shown.mean,
                "deviation": shown.deviation,
                "grey": shown.grey,
                "border": shown.border,
            },
            "programs": self.programs,
        }
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, undefined=jinja2.StrictUndefined
        )
        parameters = f"{row.parameters:,} parameters" if row.parameters else "a network"
        return environment.get_template("page.html.jinja").render(
            title=f"{label(row.model)} on {label(row.dataset)}",
            summary=f"{facts['classes']} classes, {parameters}.",
            note=UNTRAINED if row.accuracy is None else "",
            picture=content["picture"],
            takes_pictures=prepared is not None,
            slider=len(self.programs) - 1,
            files=[(name, _plain(text)) for name, text in self.embedded.files.items()],
            css=_plain((FOLDER / "page.css").read_text()),
            host=_plain(HOST.read_text()),
            script=_plain((FOLDER / "page.js").read_text()),
            page=_plain(json.dumps(content, allow_nan=False).replace("<", "\\u003c")),
        )

    def _stored(self, module: WasmModule, parameters: bytes) -> tuple[list[dict[str, Any]], bytes, bytes]:
        """Return how arrays are stored, all as they are stored, and what the page makes of them."""
        described, pieces, made = [], [], bytearray(len(parameters))
        for tensor in module.parameters:
            array = np.frombuffer(parameters, tensor.dtype, int(np.prod(tensor.shape)), tensor.offset)
            with np.errstate(over="ignore"):
                half = array.astype(np.float16) if self.halves and tensor.dtype == "float32" else None
            if half is not None and not np.isfinite(half).all():
                half = None  # too large for it
            kept = array if half is None else half
            pieces.append(kept.view(np.uint8).reshape(-1, kept.itemsize).T.tobytes())
            described.append(
                {
                    "offset": tensor.offset,
                    "size": kept.nbytes,
                    "width": kept.itemsize,
                    "half": half is not None,
                }
            )
            widened = kept.astype(tensor.dtype).tobytes()
            made[tensor.offset : tensor.offset + len(widened)] = widened
        return described, b"".join(pieces), bytes(made)

    def _facts(self, number: int, digest: str) -> list[tuple[str, str]]:
        """Return what the page tells of a program, by name."""
        row, point = self.rows[number], self.points[number]
        machine = row.device.get("engine") or machine_name(row.device) or label(row.hardware)
        accuracy = "none: it is untrained" if row.accuracy is None else _percent(row.accuracy)
        compiler = point.compiler.name
        if compiler != row.compiler["name"]:
            compiler += f" ({SEARCHED})"
        told = {
            "compression": label(row.compression),
            "accuracy": accuracy,
            "algorithm": label(row.algorithm),
            "compiler": compiler,
            "row": row.id,
            "measured": f"{1e3 * median(row.latency_s):.3g} ms on {machine}",
            "weights": "float16 in this file" if self.halves else "as the network has them",
            "code": f"SHA-256 {digest[:16]}",
        }
        return list(told.items())


def packed(content: bytes) -> str:
    """Return bytes as the page stores them: base64 of zlib's deflate."""
    return base64.b64encode(zlib.compress(content, 9)).decode()


def _checked(
    engine: Engine, module: WasmModule, code: Path, parameters: bytes, sample: Any, tolerance: float
) -> str:
    """Run a program on images in an engine; return by how much it differs from its network.

    Raises
    ------
    DeploymentFailed
        If that is more than ``tolerance``.
    """
    with tempfile.NamedTemporaryFile() as weights:
        weights.write(parameters)
        weights.flush()
        engine.load(module, code, Path(weights.name))
    images, expected = (sample[name][:CHECKED_IMAGES] for name in ("images", "outputs"))
    outputs = []
    for image in images:
        engine.write(module.inputs[0], image[None])
        engine.run(1)
        outputs.append(engine.read(module.output).reshape(1, -1))
    try:
        return check_outputs(np.concatenate(outputs).astype(np.float32), expected, tolerance)
    except Refused as error:
        raise DeploymentFailed(f"as the page has it, the network is {error}") from None


def _percent(accuracy: Any) -> str:
    share = accuracy["accuracy"] if isinstance(accuracy, dict) else accuracy
    return f"{100 * float(share):.1f} %"


def _plain(text: str) -> Markup:
    """Return text that the template takes as it is."""
    return Markup(text)
