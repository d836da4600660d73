"""The report in a browser, the network off: it draws, filters, answers clicks and complains of nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dlas.face.reporting import report
from dlas.sweep.rows.results import Row
from tests.fixtures.browser import PRINT, draw_all, opened, resize
from tests.fixtures.odd_rows import EVIL, ODD
from tests.fixtures.rows import failing, row, write
from tests.fixtures.sweeps import REASONS, sweep, write_curves

pytestmark = pytest.mark.ci

WAIT = "const done = arguments[0]; setTimeout(done, 400);"
PATIENCE = 50
"""Times that a busy machine is waited for."""
SHOWN = "return [...document.querySelectorAll('.matrix td button')].filter((b) => b.offsetParent).length"
DOTS = """return document.querySelectorAll('#figure-latency svg .mark-symbol path').length"""


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return sweep()


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> Path:
    folder = write(tmp_path_factory.mktemp("sweep"), rows)
    write_curves(folder, rows)
    report([folder], folder / "report.html")
    return folder / "report.html"


@pytest.fixture
def page(driver: Any, file: Path) -> Any:
    """The report, freshly opened, 1280 pixels wide."""
    resize(driver, 1280)
    driver.get_log("browser")
    driver.get(file.as_uri())
    return driver


def complaints(driver: Any) -> list[str]:
    return [entry["message"] for entry in driver.get_log("browser")]


def wait_until(driver: Any, script: str, value: object) -> None:
    """Wait until a script returns a value, however slow the machine is."""
    for _ in range(PATIENCE):
        if (found := driver.execute_script(script)) == value:
            return
        driver.execute_async_script(WAIT)
    pytest.fail(f"{script!r} is {found}, not {value}")


def choose(driver: Any, axis: str, value: str) -> None:
    driver.execute_script(
        "const field = document.getElementById('filters').elements.namedItem(arguments[0]);"
        "field.value = arguments[1]; field.dispatchEvent(new Event('change', { bubbles: true }));",
        axis,
        value,
    )
    driver.execute_async_script(WAIT)


def points(rows: list[Row], **wanted: str) -> list[Row]:
    return [
        each
        for each in rows
        if all(
            (getattr(each, axis) if axis == "status" else getattr(each, axis)["name"]) == value
            for axis, value in wanted.items()
        )
    ]


def dialog(driver: Any) -> str:
    return str(
        driver.execute_script(
            "const d = document.getElementById('point'); return d.open ? d.textContent : ''"
        )
    )


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("dark", [False, True])
def test_it_opens_draws_everything_and_complains_of_nothing(page: Any, width: int, dark: bool) -> None:
    resize(page, width, dark)
    draw_all(page)
    panels = page.execute_script("return document.querySelectorAll('.panel:not([hidden])').length")
    assert (
        panels
        == page.execute_script("return document.querySelectorAll('.panel:not([hidden]) svg').length")
        > 15
    )
    assert page.execute_script("return document.documentElement.scrollWidth") == width, "nothing overflows"
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert complaints(page) == []
    light = (
        page.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    )
    assert light is not dark


def test_paper_has_every_panel_that_is_shown(page: Any) -> None:
    undrawn = "return document.querySelectorAll('.panel:not([hidden]) .plot:empty').length"
    assert page.execute_script(undrawn) > 10
    assert page.execute_async_script(PRINT) == 0 == page.execute_script(undrawn)
    assert complaints(page) == []


def test_filters_leave_the_points_that_pass(page: Any, rows: list[Row]) -> None:
    draw_all(page)
    assert page.execute_script(SHOWN) == len(rows)
    before = page.execute_script(DOTS)
    choose(page, "algorithm", "gemm")
    expected = len(points(rows, algorithm="gemm"))
    assert page.execute_script(SHOWN) == expected
    assert f"{expected} of {len(rows)} points" in page.execute_script(
        "return document.getElementById('count').textContent"
    )
    assert 0 < page.execute_script(DOTS) < before
    choose(page, "status", "failed")
    assert page.execute_script(SHOWN) == len(points(rows, algorithm="gemm", status="failed"))
    page.execute_script("document.querySelector('#filters [type=reset]').click()")
    page.execute_async_script(WAIT)
    assert page.execute_script(SHOWN) == len(rows) and complaints(page) == []


def test_tables_are_filtered_by_what_their_lines_are_about(page: Any) -> None:
    lines = (
        "return [...document.querySelectorAll('#table-fastest-algorithm tbody tr')]"
        ".filter((line) => line.offsetParent).length"
    )
    everything = page.execute_script(lines)
    choose(page, "batch", "8")
    assert page.execute_script(lines) == everything / 2
    choose(page, "compiler", "hand")
    assert page.execute_script(lines) == everything / 6


def test_a_filter_that_nothing_passes_says_so(page: Any) -> None:
    draw_all(page)
    choose(page, "compiler", "onnxruntime")
    choose(page, "algorithm", "gemm")
    assert page.execute_script(SHOWN) == 0
    assert "No point of this figure" in page.execute_script(
        "return document.getElementById('figure-latency').textContent"
    )
    assert complaints(page) == []


def test_legends_and_tiles_filter_too(page: Any, rows: list[Row]) -> None:
    page.execute_script("document.querySelector('.tiles .failed button').click()")
    page.execute_async_script(WAIT)
    assert page.execute_script(SHOWN) == len(points(rows, status="failed"))
    assert page.execute_script("return document.querySelector('.tiles .failed button').ariaPressed") == "true"
    page.execute_script("document.querySelector('.tiles .failed button').click()")
    page.execute_script("document.querySelector('#figure-latency .legend button[data-value=int8]').click()")
    page.execute_async_script(WAIT)
    assert page.execute_script(SHOWN) == len(points(rows, compression="int8"))


@pytest.mark.parametrize("status", REASONS)
def test_a_click_on_a_point_without_a_time_gives_its_reason(page: Any, status: str) -> None:
    button = page.find_element("css selector", f".matrix button.{status}")
    page.execute_script("arguments[0].scrollIntoView({ block: 'center', inline: 'center' })", button)
    button.click()
    told = dialog(page)
    assert REASONS[status] in told and status in told and "dlas show" in told
    page.find_element("css selector", "#point .head button").click()
    assert not dialog(page) and complaints(page) == []


def test_a_click_on_a_mark_gives_its_point(page: Any) -> None:
    draw_all(page)
    mark = page.find_element("css selector", "#figure-latency svg .mark-symbol path")
    page.execute_script("arguments[0].scrollIntoView({ block: 'center' })", mark)
    actions = pytest.importorskip("selenium.webdriver").ActionChains
    actions(page).move_to_element(mark).perform()
    page.execute_async_script(WAIT)
    assert "ms [" in page.execute_script("return document.getElementById('tip').textContent")
    actions(page).click().perform()
    assert "ms [" in dialog(page) and "multiply-adds" in dialog(page)


def test_layers_of_other_points_can_be_chosen(page: Any) -> None:
    draw_all(page)
    page.execute_script("document.getElementById('layers').scrollIntoView()")
    bars = "return document.querySelectorAll('#figure-layers svg .mark-rect path').length"
    wait_until(page, bars, 12)
    page.execute_script(
        "const field = document.getElementById('layers-second'); field.value = '';"
        "field.dispatchEvent(new Event('change', { bubbles: true }));"
    )
    wait_until(page, bars, 6)
    assert complaints(page) == []


def test_light_and_dark_can_be_switched(page: Any) -> None:
    colour = "return getComputedStyle(document.body).backgroundColor"
    seen = [page.execute_script(colour)]
    for _ in range(3):
        page.find_element("id", "theme").click()
        seen.append(page.execute_script(colour))
    assert seen[0] == seen[1] == seen[3] == "rgb(255, 255, 255)" and seen[2] == "rgb(20, 23, 28)"


def test_nothing_in_a_row_runs(driver: Any, tmp_path: Path) -> None:
    evil = {"name": EVIL, "option": EVIL}
    rows = [
        row(5, model=evil, study=EVIL),
        failing(model=evil, algorithm=EVIL, compression=EVIL, reason=EVIL),
    ]
    rows += [row(4, model=evil, compression=EVIL, layers=[{"name": EVIL, "latency_s": 1.0}])]
    report([write(tmp_path, rows)], tmp_path / "report.html")
    driver.get((tmp_path / "report.html").as_uri())
    draw_all(driver)
    for button in driver.find_elements("css selector", ".matrix td button"):
        driver.execute_script("arguments[0].click()", button)
        assert EVIL[:20] in dialog(driver)
        driver.execute_script("document.getElementById('point').close()")
    assert driver.execute_script("return window.hacked") is None and complaints(driver) == []


@pytest.mark.parametrize("name", ODD)
def test_odd_rows_open_without_complaint(driver: Any, tmp_path: Path, name: str) -> None:
    rows, tail = ODD[name]
    report([write(tmp_path, rows, tail)], tmp_path / "report.html")
    driver.get_log("browser")
    driver.get((tmp_path / "report.html").as_uri())
    draw_all(driver)
    assert complaints(driver) == []
    assert driver.execute_script("return document.querySelectorAll('.plot').length") == driver.execute_script(
        "return document.querySelectorAll('.plot svg').length"
    )
