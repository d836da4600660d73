"""Models, one file each; the file's name is the part's name.

A network of one's own is ``onnx`` or ``torch``, with the path of its file; :func:`from_torch` writes
the file of a torch module.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


def from_torch(
    module: nn.Module,
    shape: tuple[int, int, int],
    *,
    folder: str | os.PathLike[str] = "models",
) -> dict[str, str]:
    """Export a module to a file, and return the part of a study that is this network.

    Parameters
    ----------
    module : torch.nn.Module
        Maps float32 images [n, c, h, w] to outputs [n, classes], for any n.  It is exported as it is in
        evaluation mode, by ``torch.export``, and not changed itself.
    shape : (c, h, w)
        Of an image.
    folder : path
        The file is named there after the module's class and a hash of its content, so that
        another weight gives another file, and the same network gives the same one.

    Returns
    -------
    dict
        ``{"name": "torch", "path": ...}``, for the axis ``model`` of a study in Python or in TOML.

    Raises
    ------
    InputError
        If the module cannot be exported, with torch's reason; it takes other images or is not in
        float32; or the file cannot be written.
    """
    from torch import nn

    from dlas.errors import InputError
    from dlas.networks.exported.files import export_module, write_program

    if not isinstance(module, nn.Module):
        what = f"the class {module.__name__}" if isinstance(module, type) else f"a {type(module).__name__}"
        raise InputError(f"`module=` is {what}, and a torch.nn.Module itself is expected, such as Net()")
    sizes = list(shape) if isinstance(shape, Sequence) else []
    if len(sizes) != 3 or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise InputError(
            f"`shape={shape!r}`: an image's (channels, height, width) are expected, as (3, 32, 32)"
        )
    program = export_module(module, shape)
    return {"name": "torch", "path": str(write_program(program, Path(folder), type(module).__name__))}
