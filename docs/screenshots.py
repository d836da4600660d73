"""Take the two pictures of a report in ``pictures``.

``python -m docs.screenshots experiments/sparse-break-even/rows`` took those that are here.  Run from
the root of the repository, where the development requirements, Chromium and chromedriver are installed.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

from dlas.face.reporting import report
from tests.fixtures.browser import opened, resize

PICTURES = {"report": (1280, 860, False, "summary"), "report-phone": (400, 860, True, "points")}
"""Width and height in pixels, whether in the dark, and the section at the top, by the picture's name."""
COLOURS = 128
SCROLL = """
const done = arguments[1];
document.getElementById(arguments[0]).scrollIntoView();
if (arguments[0] === "summary") scrollTo(0, 0);
setTimeout(done, 1500);
"""


def main(folder: str) -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "report.html"
        report([folder], page)
        with opened(Path(scratch) / "profile") as driver:
            for name, (width, height, dark, section) in PICTURES.items():
                resize(driver, width, dark, height)
                driver.get(page.as_uri())
                driver.execute_async_script(SCROLL, section)
                picture = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
                # A page has few colours: a palette halves the file.
                picture.quantize(COLOURS).save(Path(__file__).parent / f"pictures/{name}.png", optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
