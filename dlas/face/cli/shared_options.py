"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Cache = Annotated[Path | None, typer.Option(help="Artifact cache (default: $DLAS_CACHE).")]
CacheGib = Annotated[float, typer.Option(min=0, help="Size that the cache is kept within.")]
KeepBuilds = Annotated[bool, typer.Option(help="Keep built libraries after their rows.")]
Jobs = Annotated[int, typer.Option(min=1, help="Network and build steps at a time.")]
Retry = Annotated[
    list[str] | None, typer.Option(help="Run rows of this status again (failed, timeout, wrong, ...).")
]
InProcess = Annotated[
    bool,
    typer.Option(
        "--in-process", help="Run all steps in this process, without limits: for debuggers and profilers."
    ),
]
