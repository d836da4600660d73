"""Write torch modules as exported programs, and read these files without running code that is in them."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn
from torch.export import ExportedProgram

from dlas.bench.store.replacing import replacing
from dlas.errors import InputError, one_line
from dlas.networks.exporting import quiet

LARGEST = 2**31 - 1
"""Limit for a file with its weights, bytes; the same as for ONNX files."""
NO_PICKLES = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
"""Variable of the environment that makes torch read tensors and nothing else from all its files."""
MOST_CHARACTERS = 400
CALL = re.compile(
    r'following call raised this error:\s+File "(?P<file>[^"]+)", line (?P<line>\d+).*\n\s*(?P<code>.+)'
)
"""Where an error of torch.export quotes the line of the user's code that it is about."""
ADVICE = re.compile(r"\n\s*(?:consider using|Caused by:|For more |The following call|The error above)")
"""Where such an error turns to what helps developers of torch."""


def export_module(module: nn.Module, shape: tuple[int, int, int]) -> ExportedProgram:
    """Return a module as a program for images [n, c, h, w], any n.

    Raises
    ------
    InputError
        If the module does not map float32 images to float32 outputs [n, classes], or
        torch.export cannot follow it, for example through control flow that depends on data.
    """
    name = type(module).__name__
    own = copy.deepcopy(module).cpu().eval()
    for key, tensor in own.state_dict().items():
        if tensor.is_floating_point() and tensor.dtype != torch.float32:
            kind = str(tensor.dtype).removeprefix("torch.")
            raise InputError(f"the module {name} has {key!r} in {kind}; only float32 is supported")
    images = torch.randn(2, *shape, generator=torch.Generator().manual_seed(0))
    try:
        with torch.no_grad(), quiet():
            expected = own(images)
    except Exception as error:  # whatever the module raises
        raise InputError(f"the module {name} cannot take images {_sizes(images)}: {_first(error)}") from error
    if not isinstance(expected, torch.Tensor) or expected.dtype != torch.float32:
        kind = getattr(expected, "dtype", type(expected).__name__)
        raise InputError(f"the module {name} returns {kind}, and a float32 tensor [n, classes] is expected")
    if expected.ndim != 2 or len(expected) != len(images):
        raise InputError(
            f"the module {name} returns {_sizes(expected)} for images {_sizes(images)}, not [n, classes]"
        )
    try:
        with torch.no_grad(), quiet():
            program = torch.export.export(
                own, (images,), dynamic_shapes=({0: torch.export.Dim("batch", min=1)},)
            )
            found = program.module()(images)
    except Exception as error:  # torch.export raises many kinds
        raise InputError(
            f"torch.export cannot export the module {name}: {export_reason(str(error))}"
        ) from error
    if not torch.allclose(found, expected, rtol=1e-4, atol=1e-5):
        raise InputError(f"the module {name} computes something else each time, or when it is exported")
    return program


def write_program(program: ExportedProgram, folder: Path, name: str) -> Path:
    """Write a program to ``folder/<name>-<hash of its content>.pt2``, unless that is there; return the path.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    path = folder / f"{name}-{_digest(program)}.pt2"
    if path.exists():
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial, partial.open("wb") as file, quiet():
            torch.export.save(program, file)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
    return path


def read_program(path: Path) -> ExportedProgram:
    """Read an exported program; objects other than tensors are refused, and nothing in the file is run.

    Raises
    ------
    InputError
        If it is damaged, too large or no exported program; the message quotes the path.
    """
    if not path.exists():
        raise InputError(f"there is no exported program {str(path)!r}")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
        if sum(entry.file_size for entry in entries) > LARGEST:
            raise ValueError(f"it holds more than {LARGEST:,} bytes")
        if any("custom_obj" in entry.filename for entry in entries):
            raise ValueError("it holds objects other than tensors")
        with _tensors_only(), path.open("rb") as file, quiet():
            return torch.export.load(file)
    except Exception as error:  # torch and zipfile raise many kinds on damaged files
        raise InputError(f"exported program {str(path)!r} cannot be used: {_first(error)}") from error


@contextlib.contextmanager
def _tensors_only() -> Iterator[None]:
    """Make torch refuse pickles of anything but tensors, also where it would not by itself."""
    before = os.environ.get(NO_PICKLES)
    os.environ[NO_PICKLES] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[NO_PICKLES]
        else:
            os.environ[NO_PICKLES] = before


def _digest(program: ExportedProgram) -> str:
    """Return twelve hexadecimal digits that follow from a program's operators and its tensors."""
    digest = hashlib.sha256(str(program.graph).encode())
    for name, tensor in sorted({**program.state_dict, **program.constants}.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]


def _sizes(tensor: torch.Tensor) -> str:
    return "x".join(map(str, tensor.shape))


def export_reason(message: str) -> str:
    """Return what an error of torch.export says and which line of the user's it is about, on one line."""
    place = CALL.search(message)
    where = f" ({Path(place['file']).name}, line {place['line']}: {place['code']})" if place else ""
    said = ADVICE.split(message, maxsplit=1)[0].strip() or message
    return one_line(said, MOST_CHARACTERS - len(where)) + where


def _first(error: Exception) -> str:
    """Return the beginning of an error's message on one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"
