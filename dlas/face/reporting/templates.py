"""Pages of one HTML file: their sources beside the code, and the engine that fills them in."""

from __future__ import annotations

import functools
from importlib import resources

import jinja2


def source(package: str, name: str) -> str:
    """Return a file of a package as text."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def templates(package: str, *, trim_blocks: bool) -> jinja2.Environment:
    """Return an engine for a package's templates, which escapes, and refuses names that nobody gave.

    Parameters
    ----------
    trim_blocks : bool
        Whether the end of a line that is a tag alone is left out.
    """
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(functools.partial(source, package)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=trim_blocks,
        lstrip_blocks=True,
    )
