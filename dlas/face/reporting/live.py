"""The report of folders that a sweep is writing, served to this machine and made again as rows arrive."""

from __future__ import annotations

import hmac
import html
import json
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from dlas.bench.store.journal import in_use
from dlas.errors import InputError
from dlas.face.reporting import context_of, rendered
from dlas.face.reporting.arriving import FEW_BYTES, ArrivingRows
from dlas.face.reporting.context import Context
from dlas.face.reporting.page import live
from dlas.sweep.engine.turns import device_alone
from dlas.sweep.rows.files import results_file
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.missing import missing_points
from dlas.sweep.rows.results import STATUSES

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
"""Names of this machine under which a browser may ask, so that no other page's name can stand for it."""
LOOK_S = 0.5
"""How often files are looked at."""
SHARE = 0.1
"""Share of a core that making pages may take in the mean."""
CREDIT_S = 1.0
"""Seconds that it may have taken beyond that, so that a row after a pause is shown at once."""
MOST_NAMED = 4
"""Machines that the line names."""
LOCAL = "local"
"""The device of this machine's processors."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
WAITING = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>dlas watch</title></head>
<body><p>{}</p>{}</body></html>
"""
"""The page where there is no report yet."""


class LivePage:
    """The report of folders, as of when their files changed last.

    Parameters
    ----------
    folders : sequence of Path
        What ``dlas run --out`` writes, or will write.
    where : sequence of str, optional
        Filters, ``axis=pattern``.
    clock : callable, optional
        Returns seconds since any moment.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        where: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folders, self.where = folders, where
        self.number = 0
        """Of the pages that were made."""
        self.text = _waiting("The page is being made: it is here when no program is measured.", 0)
        self._clock = clock
        self._seen: object = None
        self._debt_s, self._counted = 0.0, clock()
        self._counts: Counter[str] = Counter()
        self._missing = 0
        self._arriving, self._looking = ArrivingRows(folders), threading.Lock()

    def renew(self) -> bool:
        """Make the page again if files have changed, and return whether it was made.

        That waits until no program is measured on this machine, and for so long that pages take a tenth of a
        core in the mean.
        """
        now = self._clock()
        self._debt_s = max(0.0, self._debt_s - SHARE * (now - self._counted))
        self._counted = now
        if self._debt_s > CREDIT_S or self._stamp() == self._seen:
            return False
        with device_alone(LOCAL):
            began = self._clock()
            self._seen = self._stamp()  # what changes meanwhile is for the next one
            number = self.number + 1
            with self._looking:
                self._arriving.look()
            try:
                context = context_of(self.folders, self.where)
                self._note(context)
                text = rendered(context, number)[1]
            except InputError as error:  # there are no rows yet, for one
                text = _waiting(str(error), number)
            # Who is told of a page can have it.
            self.text, self.number = text, number
        if self.number > 1:  # the first one imports what takes long
            self._debt_s += self._clock() - began
        return True

    def state(self) -> dict[str, object]:
        """Return the page's number, and how far the study is by now, in a line."""
        running = any(in_use(results_file(folder)) for folder in self.folders)
        with self._looking:
            rows = self._arriving
            rows.look(FEW_BYTES)
            counts, latest, machines = rows.statuses, rows.latest, rows.machines
        if self.where or not counts:  # what is filtered, or packed
            counts, latest, machines = self._counts, "", Counter()
        new = max(0, counts.total() - self._counts.total())
        told = [f"{counted(counts.total())}"] if counts else []
        told += [f"{counts[name]:,} {name}" for name in STATUSES if name != "ok" and counts[name]]
        told += [f"{self._missing - new:,} to come"] if self._missing > new else []
        told += [f"{new:,} not on this page yet"] if new and self.number else []
        if len(machines) > MOST_NAMED:
            told.append(f"on {len(machines):,} machines")
        elif len(machines) > 1:
            told.append(", ".join(f"{count:,} on {name}" for name, count in machines.most_common()))
        told += ["a sweep is running" if running else "no sweep is running"]
        return {"number": self.number, "line": "; ".join([*told, *([f"last: {latest}"] if latest else [])])}

    def _note(self, context: Context) -> None:
        self._counts = Counter(context.points["status"])
        ids = set(context.points["id"])
        gaps = [] if self.where else [missing_points(folder, ids) for folder in self.folders]
        self._missing = sum(gap["missing"] or 0 for gap in gaps if gap is not None)

    def _stamp(self) -> object:
        """Return what changes when a file in the folders does."""
        told = []
        for folder in self.folders:
            for path in folder.glob("*"):
                with suppress(FileNotFoundError):  # files are replaced while a sweep runs
                    if path.is_file():
                        about = path.stat()
                        told.append((str(path), about.st_size, about.st_mtime_ns))
        return sorted(told)


def _waiting(reason: str, number: int) -> str:
    """Return the page where there is no report."""
    return WAITING.format(html.escape(reason), live(number))


class LiveServer(ThreadingHTTPServer):
    """Serves a page on this machine to who has its link; nothing can be written through it.

    Parameters
    ----------
    page : LivePage
    port : int
        0 takes a free one.

    Raises
    ------
    InputError
        If something listens there already.
    """

    daemon_threads = True

    def __init__(self, page: LivePage, port: int = 0) -> None:
        self.page, self.token = page, secrets.token_urlsafe(16)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise InputError(f"cannot listen at {HOST}:{port}: {error.strerror or error}") from None

    @property
    def link(self) -> str:
        """The page's address."""
        return f"http://{HOST}:{self.server_address[1]}/{self.token}/"

    def run(self) -> None:
        """Serve, and make the page again as files change, until it is interrupted."""
        ended = threading.Event()
        renewing = threading.Thread(target=self._renew, args=(ended,), daemon=True)
        renewing.start()
        try:
            self.serve_forever()
        finally:
            ended.set()
            self.server_close()

    def _renew(self, ended: threading.Event) -> None:
        while not ended.wait(LOOK_S):
            self.page.renew()


class _Handler(BaseHTTPRequestHandler):
    server: LiveServer
    server_version, sys_version = "dlas", ""
    timeout = 10.0

    def do_GET(self) -> None:
        """Answer with the page or its state."""
        name = self.headers.get("Host", "").rpartition(":")[0]
        _, token, *rest = self.path.partition("?")[0].split("/")
        if name not in NAMES or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self.send_error(HTTPStatus.FORBIDDEN, "the link that `dlas watch` printed is needed")
        elif rest == [""]:
            self._send("text/html; charset=utf-8", self.server.page.text)
        elif rest == ["state"]:
            self._send("application/json", json.dumps(self.server.page.state()))
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _send(self, kind: str, text: str) -> None:
        # A row may hold half a character, which JSON can write and UTF-8 cannot.
        body = text.encode("utf-8", "replace")
        self.send_response(HTTPStatus.OK)
        for header, value in {"Content-Type": kind, "Content-Length": str(len(body)), **HEADERS}.items():
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
