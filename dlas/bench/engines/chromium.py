"""WebAssembly in a headless Chromium, in a page of its own and without any network.

The browser is driven through two pipes by the Chrome DevTools Protocol: there is no port that somebody
else could reach.  Its page is of a made-up site that this process answers for, isolated from all others,
because browsers give the fine steps of their clock to isolated pages alone.
"""

from __future__ import annotations

import base64
import functools
import itertools
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

from dlas.bench.engines.javascript import HOST, JavaScriptEngine, value_of
from dlas.bench.engines.process import EngineFailed, PipedProgram

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SITE = "https://dlas.invalid/"
"""A name that no network knows."""
ISOLATED = {
    "Content-Type": "text/html",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
}
FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--no-first-run",
    "--no-default-browser-check",
)
"""Without a window, without what browsers do in the background.

Its sandbox needs rights that containers do not give, and the page runs nothing but our own code.
"""
STARTS_S = 60.0


class Chromium(JavaScriptEngine):
    """Starts a browser with one page.

    Raises
    ------
    EngineFailed
        If it does not start within a minute.
    """

    def __init__(self) -> None:
        folder = Path(tempfile.gettempdir()) / f"dlas-chromium-{uuid4().hex}"
        command = [str(browser()), *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        self._program = PipedProgram(command, b"\0", folder)
        self._numbers = itertools.count(1)
        self._session: str | None = None
        try:
            self._open_page()
        except BaseException:
            self.close()
            raise

    @classmethod
    def missing(cls) -> str | None:
        """Return that there is no browser, or None."""
        return (
            None if browser() else f"none of {', '.join(NAMES)} is on the PATH; Debian's package is chromium"
        )

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """Return the browser's version."""
        return {"engine": version()}

    def ask(self, name: str, **given: Any) -> Any:
        """Return the answer to one of the messages of ``host.js``."""
        message = json.dumps(json.dumps({"name": name, **given}))
        return value_of(json.loads(self._evaluate(f"answer({message})")))

    def close(self) -> None:
        """Close the browser."""
        self._program.close()

    def _open_page(self) -> None:
        """Open a page with ``host.js``, isolated from all others."""
        targets = self._call("Target.getTargets", STARTS_S)["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        self._call("Inspector.enable")
        self._call("Page.enable")
        self._call("Fetch.enable", patterns=[{"urlPattern": "*"}])
        self._send("Page.navigate", url=SITE)
        paused = self._event("Fetch.requestPaused")
        headers = [{"name": name, "value": value} for name, value in ISOLATED.items()]
        body = base64.b64encode(b"<!doctype html><title>DLAS</title>").decode()
        self._call(
            "Fetch.fulfillRequest",
            requestId=paused["requestId"],
            responseCode=200,
            responseHeaders=headers,
            body=body,
        )
        self._event("Page.loadEventFired")
        self._evaluate(f"{HOST.read_text()}\nObject.assign(globalThis, {{ answer }}); 0")

    def _evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript in the page, of a promise once it is kept.

        Raises
        ------
        EngineFailed
            If it raises an error, or the page crashes.
        """
        told = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise EngineFailed(str(told["exceptionDetails"].get("exception", {}).get("description")))
        return told["result"].get("value")

    def _call(self, method: str, seconds: float | None = None, **parameters: Any) -> dict[str, Any]:
        """Return the result of a method of the protocol."""
        number = self._send(method, **parameters)
        while True:
            message = self._receive(seconds)
            if message.get("id") == number:
                if "error" in message:
                    raise EngineFailed(f"{method}: {message['error'].get('message')}")
                result: dict[str, Any] = message["result"]
                return result

    def _event(self, name: str) -> dict[str, Any]:
        """Wait for an event of the protocol, and return its parameters."""
        while True:
            message = self._receive(STARTS_S)
            if message.get("method") == name:
                parameters: dict[str, Any] = message["params"]
                return parameters

    def _send(self, method: str, **parameters: Any) -> int:
        number = next(self._numbers)
        session = {"sessionId": self._session} if self._session else {}
        message = {"id": number, "method": method, "params": parameters, **session}
        self._program.send(json.dumps(message).encode())
        return number

    def _receive(self, seconds: float | None) -> dict[str, Any]:
        """Return the next message.

        Raises
        ------
        EngineFailed
            If it says that the page has crashed, such as for want of memory.
        """
        message: dict[str, Any] = json.loads(self._program.receive(seconds))
        if message.get("method") in ("Inspector.targetCrashed", "Target.targetCrashed"):
            raise EngineFailed("its page has crashed: the browser says no more, and want of memory is usual")
        return message


def browser() -> str | None:
    """Return the path of a browser, None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@functools.cache
def version() -> str:
    """Return the browser's name and version, as its executable tells them.

    Raises
    ------
    OSError, subprocess.SubprocessError
        If it does not tell them.
    """
    command = [str(browser()), "--version"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=STARTS_S, check=True)
    told = re.search(r"(Chromium|Google Chrome) [\d.]+", ran.stdout)
    return (told[0] if told else ran.stdout.strip()).lower()
