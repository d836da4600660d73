"""What a check says of a part that does not keep its contract."""

from __future__ import annotations

import contextlib
import inspect
import traceback
from collections.abc import Iterator

from dlas.stack import Part


def describe_fault(error: Exception, part: Part) -> str:
    """Return a failed check or another exception in a line, with the line of the part's file behind it."""
    if isinstance(error, AssertionError):
        return str(error)
    file = inspect.getfile(type(part))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    place = f" ({file}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    # TVM's schedule prints the whole program, then says what is wrong.
    text = str(error).rpartition("Error message:")[2].strip()
    return f"{type(error).__name__}: {text.partition(chr(10))[0]}{place}"


@contextlib.contextmanager
def checking(part: Part) -> Iterator[None]:
    """Raise whatever is raised meanwhile as one ``AssertionError`` that names the part."""
    try:
        yield
    except Exception as error:  # whatever the part raises, it is one finding
        raise AssertionError(f"{type(part).__name__}: {describe_fault(error, part)}") from error
