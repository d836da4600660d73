"""The live page: made again as rows arrive, between measurements, and served to who has its link alone."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dlas.face.reporting import live, rendered
from dlas.face.reporting.live import LivePage, LiveServer
from dlas.sweep.engine.turns import lock_device
from tests.fixtures.browser import opened, resize
from tests.fixtures.commands import Command
from tests.fixtures.rows import failing, row, write
from tests.fixtures.sweeps import sweep

PATIENCE_S = 30
"""How long a busy machine may take."""


@pytest.fixture(autouse=True)
def own_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A device that no other test measures on."""
    name = f"of {tmp_path.name}"
    monkeypatch.setattr(live, "LOCAL", name)
    return name


def add(folder: Path, *rows: Any) -> None:
    with (folder / "results.jsonl").open("a") as file:
        file.writelines(each.line() for each in rows)


def told(page: LivePage) -> str:
    return str(page.state()["line"])


@pytest.mark.slow
def test_a_page_is_made_when_rows_arrive_and_takes_a_tenth_of_a_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, make = 0.0, rendered

    def takes_five_seconds(*given: Any) -> Any:
        nonlocal now
        now += 5
        return make(*given)

    monkeypatch.setattr(live, "rendered", takes_five_seconds)
    folder = write(tmp_path / "rows", [row(), failing("failed", batch=2)])
    page = LivePage([folder], clock=lambda: now)
    assert page.number == 0 and "made" in page.text
    assert page.renew() and page.number == 1
    assert "2 points" in page.text and 'data-number="1"' in page.text
    assert page.state()["number"] == 1
    assert told(page).startswith("2 points; 1 failed; no sweep is running; last: ")
    assert not page.renew(), "nothing has changed"
    add(folder, row(batch=4))
    assert told(page).startswith("3 points; 1 failed; 1 not on this page yet; no sweep")
    assert page.renew() and "3 points" in page.text, "after a pause, at once"
    add(folder, row(batch=8))
    now += 30
    assert not page.renew(), "the last one took five seconds, and a second may be owed"
    now += 10
    assert page.renew() and "4 points" in page.text


def test_the_line_tells_machines_where_there_are_several(tmp_path: Path) -> None:
    here, there = ({"host": {"name": name}} for name in ("here", "there"))
    folder = write(tmp_path / "rows", [row(environment=here)])
    page = LivePage([folder], clock=lambda: 0.0)
    assert " on here" not in told(page)
    add(folder, row(batch=2, environment=there), row(batch=4, environment=there))
    assert "; 2 on there, 1 on here; " in told(page)


def test_a_folder_without_rows_waits_for_them(tmp_path: Path) -> None:
    folder = tmp_path / "<rows>"
    folder.mkdir()
    page = LivePage([folder], clock=lambda: 0.0)
    assert page.renew() and "&lt;rows&gt;" in page.text and 'data-number="1"' in page.text
    add(folder, row())
    assert page.renew() and "1 point" in page.text


def test_files_that_are_replaced_meanwhile_are_no_trouble(tmp_path: Path) -> None:
    folder = write(tmp_path / "rows", [row()])
    page = LivePage([folder], clock=lambda: 0.0)
    ended = threading.Event()

    def replace_all_the_time() -> None:
        while not ended.is_set():
            (folder / "partial").write_text("")
            (folder / "partial").unlink()

    replacing = threading.Thread(target=replace_all_the_time)
    replacing.start()
    try:
        for _ in range(300):
            page._stamp()
    finally:
        ended.set()
        replacing.join(PATIENCE_S)


def test_no_page_is_made_while_a_program_is_measured_here(tmp_path: Path, own_device: str) -> None:
    page = LivePage([write(tmp_path / "rows", [row()])])
    lock = lock_device(own_device)
    assert lock is not None
    renewing = threading.Thread(target=page.renew)
    renewing.start()
    renewing.join(0.3)
    assert page.number == 0
    lock.release()
    renewing.join(PATIENCE_S)
    assert page.number == 1
    again = lock_device(own_device)
    assert again is not None, "the device is free again"
    again.release()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "rows", sweep(models=1))


@pytest.fixture
def server(folder: Path) -> Iterator[LiveServer]:
    """A server in a thread, whose page is made."""
    made = LiveServer(LivePage([folder]))
    made.page.renew()
    serving = threading.Thread(target=made.run, daemon=True)
    serving.start()
    yield made
    made.shutdown()
    serving.join(PATIENCE_S)


def ask(server: LiveServer, path: str, method: str = "GET", host: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=PATIENCE_S)
    name = f"{host or '127.0.0.1'}:{server.server_address[1]}"
    connection.request(method, path, headers={"Host": name})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_who_has_the_link_reads_the_page_and_nobody_writes(server: LiveServer, folder: Path) -> None:
    home = f"/{server.token}/"
    assert server.link.endswith(f":{server.server_address[1]}{home}")
    status, text = ask(server, home)
    assert status == 200 and text == server.page.text
    assert json.loads(ask(server, home + "state")[1])["number"] == 1
    assert ask(server, home, host="localhost")[0] == 200
    assert server.server_address[0] == "127.0.0.1"
    for path in ("/", "/state", "/wrong/", "/wrong/state", f"/{server.token[:-1]}/"):
        assert ask(server, path)[0] == 403
    assert ask(server, home, host="dlas.example")[0] == 403, "another page's name may lead here"
    names = ("results.jsonl", "../rows/results.jsonl", "%2e%2e/results.jsonl", "state/", "/etc/passwd", "")
    for name in names[:-1]:
        assert ask(server, home + name)[0] == 404
    before = (folder / "results.jsonl").read_bytes()
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert ask(server, home, method)[0] == 501
    assert (folder / "results.jsonl").read_bytes() == before


def test_bad_input_is_one_message(dlas_here: Command, server: LiveServer) -> None:
    absent = dlas_here("watch", "nowhere")
    assert absent.returncode == 2 and "'nowhere' is no folder" in absent.stderr
    taken = dlas_here("watch", str(server.page.folders[0]), "--port", str(server.server_address[1]))
    assert taken.returncode == 2 and "cannot listen" in taken.stderr


@pytest.mark.ci
def test_a_browser_shows_a_row_within_seconds_and_stays_where_it_was(
    server: LiveServer, folder: Path, tmp_path: Path
) -> None:
    asking = "return [...document.querySelectorAll('.matrix td button')].length"
    with opened(tmp_path / "profile") as page:
        resize(page, 1280)
        page.get(server.link)
        before = page.execute_script(asking)
        page.execute_script(
            "const field = document.getElementById('filters').elements.namedItem('algorithm');"
            "field.value = 'gemm'; field.dispatchEvent(new Event('change', { bubbles: true }));"
            "scrollTo(0, 1500);"
        )
        add(folder, row(batch=64, algorithm="gemm"))
        number = "return document.getElementById('live').dataset.number"
        for _ in range(PATIENCE_S * 5):
            page.execute_async_script("setTimeout(arguments[0], 200)")
            if page.execute_script(number) == "2":
                break
        else:
            pytest.fail("the row never came")
        assert page.execute_script(asking) > before
        page.execute_async_script("setTimeout(arguments[0], 500)")
        assert (
            page.execute_script("return document.getElementById('filters').elements.algorithm.value")
            == "gemm"
        )
        assert abs(page.execute_script("return scrollY") - 1500) < 20
        assert "points" in page.execute_script("return live.textContent")
        assert [entry for entry in page.get_log("browser") if "favicon" not in entry["message"]] == []
