"""A headless Chromium without a network, for tests of the report."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NOWHERE = "127.0.0.1:9"
"""A proxy that nobody runs: whatever asks the network is refused."""
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", f"--proxy-server={NOWHERE}",
)  # fmt: skip


def programs() -> tuple[str, str]:
    """Return the browser's path and its driver's, or skip the test where either is missing."""
    browser = next((path for name in NAMES if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if not browser or not driver:
        pytest.skip(
            f"no {'Chromium' if not browser else 'chromedriver'} here (Debian: chromium, chromium-driver)"
        )
    return browser, driver


@contextlib.contextmanager
def opened(profile: Path) -> Iterator[Any]:
    """Yield a driver of a fresh browser; everything it writes to its console is kept."""
    selenium = pytest.importorskip("selenium.webdriver")
    browser, driver = programs()
    options = selenium.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # Naming the driver keeps Selenium from looking for one to download.
    running = selenium.Chrome(options=options, service=selenium.ChromeService(executable_path=driver))
    try:
        running.set_script_timeout(60)
        yield running
    finally:
        running.quit()


def resize(driver: Any, width: int, dark: bool = False, height: int = 900) -> None:
    """Make the page ``width`` pixels wide, for a person who prefers light or dark, and no motion."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    wishes = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in wishes.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
