"""Write a row's network as one page of HTML: ``dlas deploy ROWS ROW --to page.html``."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from dlas.analysis.winners import fastest_id
from dlas.axes.compilers.programs.tvm import TvmCompiler
from dlas.axes.compression.float16 import Float16
from dlas.axes.hardware.engines import WebAssemblyEngine
from dlas.bench.store.cache import Cache, default_root
from dlas.bench.store.replacing import replacing
from dlas.deployment.deploying import DeploymentFailed, check_row
from dlas.deployment.flexible import path_rows
from dlas.deployment.page.contents import Page, PageProgram, restored, store
from dlas.deployment.remaking import differences, made
from dlas.deployment.run import Refused, check_outputs
from dlas.errors import InputError
from dlas.stack import TuningCompiler
from dlas.stack.engine import Engine
from dlas.stack.types import Say
from dlas.sweep.engine.steps.samples import load_sample
from dlas.sweep.rows.finding import find, point_label
from dlas.sweep.rows.frame import read_each, select
from dlas.sweep.rows.results import Row
from dlas.sweep.study.point import Choice, Point

PORTABLE = {"name": "wasmtime", "relaxed_simd": False}
"""What rows of other devices are built for: vectors that every browser with vectors has."""
ENGINES = ("wasmtime", "node", "chromium")
"""What a page's programs are checked in: the first one that is here."""
CHECKED_IMAGES = 8
FOR_PAGE = "built for this page; the row measured other code"
SEARCHED = "its compiler searched schedules for another device, and the page has those of `hand`"


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
    folder, row, where, cache, say
        As for :func:`dlas.deploy`.
    to : path
        The page to write, a file that does not exist.
    paths : bool, optional
        Whether the page holds all paths of a flexible network, with a slider between them.
    float16_weights : bool, optional
        Whether the weights are stored in half as many bytes; the page widens them when it opens.

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
    check_new(target)
    rows = rows_of(Path(folder), row, where, paths)
    for each in rows:
        say(f"{each.id}  {point_label(each)}")
    kept = Cache(cache or default_root())
    programs = build(rows, kept, say)
    page = Page()
    with closing(any_engine()) as engine:
        for program in programs:
            sample = load_sample(kept, program.network.key)
            say(add_checked(page, program, sample, float16_weights, engine))
    with replacing(target) as partial:
        text = page.text(programs[0], load_sample(kept, programs[0].network.key))
        # A byte order mark, which counts more than what a server says of a page's encoding.
        partial.write_text(text, encoding="utf-16", newline="\n")
    say(f"{target.stat().st_size:,} bytes, of weights of {page.weights_bytes:,} bytes")
    return target


def check_new(target: Path) -> None:
    """Refuse a file that exists, or whose folder does not.

    Raises
    ------
    InputError
    """
    if target.exists():
        raise InputError(f"`to={str(target)!r}` exists; give another file")
    if not target.parent.is_dir():
        raise InputError(f"`to={str(target)!r}`: there is no folder {str(target.parent)!r}")


def rows_of(folder: Path, row: str | None, where: Sequence[str], paths: bool) -> list[Row]:
    """Return the rows that a page is made of, one or that of each path.

    Raises
    ------
    InputError
        If there are none of batch 1, or one came to nothing.
    """
    if paths:
        found = sorted(path_rows(folder, where), key=lambda each: str(each.compression["path"]))
    else:
        found = [find(folder, row or fastest_id(select(read_each(folder), where)))]
    rows = [each for each in found if each.batch == 1]
    if not rows:
        raise InputError("a page runs one picture at a time, and there is no such row of batch 1")
    for each in rows:
        check_row(each)
    return rows


def build(rows: Sequence[Row], cache: Cache, say: Say) -> list[PageProgram]:
    """Return rows as modules of WebAssembly.

    Raises
    ------
    InputError
        If a compiler makes none, or a step fails.
    """
    points = [page_point(row) for row in rows]
    programs = []
    for row, point, (network, module) in zip(rows, points, made(points, cache, say), strict=True):
        if point.id == row.id:
            notes = differences(row, module)
        else:
            notes = [FOR_PAGE, *([SEARCHED] if point.compiler.name != row.compiler["name"] else [])]
        programs.append(PageProgram(row, point, network, module, tuple(notes)))
    return programs


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


def add_checked(
    page: Page, program: PageProgram, sample: Mapping[str, Any], halves: bool, engine: Engine
) -> str:
    """Add a program to a page after it ran with the page's weights; return by how much it differs.

    Raises
    ------
    DeploymentFailed
        If that is more than is accepted.
    """
    module, parameters = program.module(), program.parameters()
    stored, weights = store(module.parameters, parameters, halves)
    tolerance = max(program.tolerance, Float16.TOLERANCE) if halves else program.tolerance
    with tempfile.NamedTemporaryFile() as file:
        file.write(restored(stored, weights, len(parameters)))
        file.flush()
        engine.load(module, program.code, Path(file.name))
    images, expected = (sample[name][:CHECKED_IMAGES] for name in ("images", "outputs"))
    outputs = []
    for image in images:
        engine.write(module.inputs[0], image[None])
        engine.run(1)
        outputs.append(engine.read(module.output).reshape(1, -1))
    try:
        told = check_outputs(np.concatenate(outputs), expected, tolerance)
    except Refused as error:
        raise DeploymentFailed(f"as the page has it, the network is {error}") from None
    page.add(program, stored, weights, tolerance, np.float32(expected[:1]).tobytes())
    return told
