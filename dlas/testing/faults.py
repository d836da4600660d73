"""Messages about parts that break their contract."""

from __future__ import annotations

import contextlib
import inspect
import traceback
from collections.abc import Iterator

from dlas.stack import Part


def describe_fault(error: Exception, part: Part) -> str:
    """Describe a failed check or another exception in a line, with its place in the part's file."""
    if isinstance(error, AssertionError):
        return str(error)
    file = inspect.getfile(type(part))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    place = f" ({file}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    # TVM's schedule errors print the whole program before the message.
    text = str(error).rpartition("Error message:")[2].strip()
    return f"{type(error).__name__}: {text.partition(chr(10))[0]}{place}"


@contextlib.contextmanager
def checking(part: Part) -> Iterator[None]:
    """Raise any exception as an ``AssertionError`` that names the part."""
    try:
        yield
    except Exception as error:  # any error of the part is a finding
        raise AssertionError(f"{type(part).__name__}: {describe_fault(error, part)}") from error
