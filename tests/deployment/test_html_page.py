"""A network as one page: what is refused, how weights are stored, and what a browser makes of it."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dlas.deployment.page.contents import ESCAPE, FLIPPED, Embedded, packed, restored, store
from dlas.deployment.pictures import numbers
from dlas.stack import Array
from dlas.stack.engine import ModuleTensor, aligned
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.study import parts
from tests.fixtures import commands
from tests.fixtures.browser import opened, resize
from tests.fixtures.rows import row, write
from tests.fixtures.webassembly import needs_wasmtime

STUDY = """
name = "pages"
[axes]
dataset = ["digits"]
model = [{ name = "cifar_resnet18", width = 0.25, epochs = 1 }]
compression = ["none", { name = "leaf", epochs = 1, path = ["0000", "1111"] }]
algorithm = [{ name = "spatial_pack", layout = "blocked" }]
compiler = ["hand"]
hardware = [{ name = "local_cpu", threads = 1 }]
[measure]
repeats = 5
seconds = 0.5
"""


def test_equal_files_are_embedded_once() -> None:
    embedded = Embedded()
    assert [embedded.add("code", text) for text in (b"one", b"two", b"one")] == [0, 1, 0]
    assert embedded.add("weights", b"one") == 0
    assert list(embedded.files) == ["code0", "code1", "weights0"]


def test_packed_bytes_are_text_without_what_html_changes() -> None:
    content = np.random.default_rng(0).bytes(400_000)
    text = packed(content)
    assert not set(text) & {"\0", "\r", "<"}
    assert len(text.encode("utf-16-le")) < 1.04 * len(content)
    units = np.array([ord(unit) for unit in text[1:]], np.uint16)
    escapes = np.flatnonzero(units == ESCAPE)
    units[escapes + 1] ^= FLIPPED
    deflated = np.delete(units, escapes).astype("<u2").tobytes()
    assert zlib.decompress(deflated[: len(deflated) - int(text[0])]) == content


@pytest.mark.parametrize("halves", [False, True])
def test_stored_parameters_are_restored(halves: bool) -> None:
    draw = np.random.default_rng(0)
    arrays: list[Array] = [
        draw.standard_normal((3, 5)).astype(np.float32),
        np.full(4, 1e6, np.float32),
        np.arange(7, dtype=np.int32),
        draw.integers(-9, 9, (2, 3), dtype=np.int8),
    ]
    tensors, parameters = [], b""
    for array in arrays:
        tensors.append(ModuleTensor(len(parameters), array.shape, str(array.dtype)))
        parameters += array.tobytes() + bytes(aligned(array.nbytes) - array.nbytes)
    stored, weights = store(tensors, parameters, halves)
    assert [each.half for each in stored] == [halves, False, False, False], "1e6 is too large for float16"
    again = restored(stored, weights, len(parameters))
    first = arrays[0].astype(np.float16).astype(np.float32) if halves else arrays[0]
    assert again == first.tobytes() + parameters[arrays[0].nbytes :]


@pytest.mark.parametrize(
    ("name", "grey"), [("digits", True), ("fashion_mnist", True), ("cifar10", False), ("imagenet", False)]
)
def test_pictures_are_prepared_as_the_data_set_says(name: str, grey: bool) -> None:
    needed = {"root": "anywhere"} if name in ("cifar10", "imagenet") else {}
    prepared = numbers(parts.find("dataset", name).cls(**needed), 3)
    assert prepared is not None and prepared.grey == grey
    assert len(prepared.mean) == len(prepared.deviation) == 3
    assert all(0 < value < 1 for value in (*prepared.mean, *prepared.deviation))


def test_rows_that_are_no_page_are_refused(tmp_path: Path, dlas_here: commands.Command) -> None:
    runtime, batches = row(1.0, compiler="onnxruntime"), row(2.0, batch=2, algorithm="gemm")
    write(tmp_path / "rows", [runtime, batches])
    (tmp_path / "there.html").touch()
    for words, said in (
        ((runtime.id, "--to", "page.html"), "onnxruntime makes no WebAssembly"),
        ((batches.id, "--to", "page.html"), "no such row of batch 1"),
        ((runtime.id, "--to", "there.html"), "'there.html' exists; give another file"),
        ((runtime.id, "--to", "nowhere/page.html"), "there is no folder 'nowhere'"),
        ((runtime.id, "--to", "home", "--float16-weights"), "'home' does not end with .html"),
        (("--paths", "--to", "page.html"), "no measured row of a path"),
    ):
        refused = dlas_here("deploy", "rows", *words)
        assert refused.returncode == 2, refused.stdout
        assert said in refused.stderr
        assert not (tmp_path / "page.html").exists()


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "study.toml").write_text(STUDY)
    ran = commands.dlas(folder, "run", "study.toml", "--out", "out")
    assert ran.returncode == 0, ran.stderr
    return folder


def plain_row(sweep: Path) -> Row:
    return next(each for each in read_rows(sweep / "out") if each.compression["name"] == "none")


@pytest.fixture(scope="module")
def page(sweep: Path) -> Path:
    """Return the page of a row that was measured on this machine's processors."""
    done = commands.dlas(sweep, "deploy", "out", plain_row(sweep).id, "--to", "page.html")
    assert done.returncode == 0, done.stderr
    assert "right on 8 images" in done.stdout
    return sweep / "page.html"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def open_page(browser: Any, page: Path, width: int = 1280) -> None:
    """Open a page and wait until it is ready."""
    resize(browser, width)
    browser.get(page.as_uri())
    until(lambda: browser.execute_script("return document.documentElement.dataset.state") == "ready")


def until(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def text(browser: Any, name: str) -> str:
    return str(browser.find_element("id", name).text)


@pytest.mark.ci
@needs_wasmtime
@pytest.mark.parametrize("width", [1280, 400])
def test_a_page_runs_its_network_without_any_other_file(
    browser: Any, page: Path, sweep: Path, width: int
) -> None:
    assert not re.findall(r'(?:src|href)="[^"]+"', page.read_text("utf-16")), "it refers to no other file"
    open_page(browser, page, width)
    assert re.search(r"differs from the network by \d\.\de-[6-9]", text(browser, "state"))
    assert float(text(browser, "latency").split()[0]) > 0
    assert len(text(browser, "classes").splitlines()) == 5
    assert plain_row(sweep).id in text(browser, "facts")
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    browser.find_element("id", "again").click()
    until(lambda: "2 timings" in text(browser, "timings"))
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.mark.ci
@needs_wasmtime
def test_pictures_are_taken_and_what_is_none_is_told(browser: Any, page: Path, tmp_path: Path) -> None:
    open_page(browser, page)
    given = browser.find_element("id", "file")
    (tmp_path / "text.png").write_text("no picture")
    given.send_keys(str(tmp_path / "text.png"))
    until(lambda: "text.png is no picture" in text(browser, "told"))
    before = text(browser, "classes")
    dark = np.zeros((80, 60, 4), np.uint8)
    dark[20:60, 25:35] = 255  # a one, on transparent ground
    Image.fromarray(dark).save(tmp_path / "one.png")
    given.send_keys(str(tmp_path / "one.png"))
    until(lambda: "The middle of the picture" in text(browser, "told"))
    assert "inverted" in text(browser, "told"), (
        "what is transparent counts as white, and the network knows black"
    )
    until(lambda: text(browser, "classes") != before)
    Image.new("L", (20_000, 6_000)).save(tmp_path / "large.png")
    given.send_keys(str(tmp_path / "large.png"))
    until(lambda: "take a smaller picture" in text(browser, "told"))


@pytest.mark.ci
@needs_wasmtime
def test_weights_in_half_as_many_bytes_are_nearly_right(browser: Any, page: Path, sweep: Path) -> None:
    words = ("deploy", "out", plain_row(sweep).id, "--to", "halves.html", "--float16-weights")
    done = commands.dlas(sweep, *words)
    assert done.returncode == 0, done.stderr
    (weights,) = map(
        lambda found: int(found.replace(",", "")), re.findall(r"weights of ([\d,]+)", done.stdout)
    )
    halves = sweep / "halves.html"
    assert halves.stat().st_size < min(weights + 400_000, 0.6 * page.stat().st_size)
    open_page(browser, halves)
    assert re.search(r"differs from the network by \d\.\de-[34]", text(browser, "state"))


@pytest.mark.ci
@needs_wasmtime
def test_a_flexible_network_has_a_slider_for_its_path(browser: Any, sweep: Path) -> None:
    done = commands.dlas(sweep, "deploy", "out", "--paths", "--to", "paths.html")
    assert done.returncode == 0, done.stderr
    open_page(browser, sweep / "paths.html")
    assert "path=0000" in text(browser, "pathName")
    before = text(browser, "classes")
    slider = browser.find_element("id", "path")
    slider.send_keys("\ue014")  # the arrow to the right
    until(lambda: "path=1111" in text(browser, "pathName") and text(browser, "classes") != before)


@pytest.mark.ci
@needs_wasmtime
def test_a_damaged_page_says_so(browser: Any, page: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.html"
    start = page.read_text("utf-16").index('id="expected0">') + len('id="expected0">')
    wrong = packed(np.full(10, 7, np.float32).tobytes())
    whole = page.read_text("utf-16")
    damaged.write_text(whole[:start] + wrong + whole[whole.index("<", start) :], "utf-16")
    resize(browser, 1280)
    browser.get(damaged.as_uri())
    until(lambda: browser.execute_script("return document.documentElement.dataset.state") == "failed")
    assert "differs on its example" in text(browser, "state")
