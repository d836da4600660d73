"""Write ``docs/findings.md`` from the kept rows: ``python -m benchmarks.findings``, some seconds."""

from __future__ import annotations

from benchmarks.findings.page import PAGE, page


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
