"""Networks as users name them, a part, a file or a torch module, and the images that they take."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from dlas.bench.store.locks import while_used
from dlas.bench.store.replacing import make_folder
from dlas.errors import InputError
from dlas.sweep.study.named_objects import NAMED, object_at

if TYPE_CHECKING:
    from torch import nn

    Network = nn.Module | str | os.PathLike[str] | Mapping[str, Any]

FILES = {".onnx": "onnx", ".pt2": "torch"}
"""Endings of files with networks, and the parts that read them."""
COLOURS = 3
USUAL = (224, 1000)
"""Height and width of an image, and classes, of networks for ImageNet."""
SMALL = (32, 10)
"""The same of networks for CIFAR-10."""


@dataclass(frozen=True)
class NamedNetwork:
    """A network, and the images that it takes."""

    label: str
    """What it is called where it is shown."""
    part: Mapping[str, Any]
    """Its entry on the axis ``model`` of a study."""
    size: int
    classes: int
    channels: int = COLOURS
    """Of the images, whose height and width are equal."""
    batch: int | None = None
    """The batch that it is fixed to."""
    lasting: bool = True
    """Whether its part can be made again later: the file of a torch module is deleted."""

    @property
    def dataset(self) -> dict[str, Any]:
        """The entry on the axis ``dataset`` of a study: noise of the images' shape."""
        shape = {"size": self.size, "channels": self.channels, "classes": self.classes}
        return {"name": "random", **shape, "images": 4}


def is_network(what: object) -> TypeGuard[Network]:
    """Return whether something is a network: a file, ``mine.py:Net``, a part, or a torch module itself."""
    if isinstance(what, str | os.PathLike):
        text = os.fspath(what)
        of_module = NAMED.fullmatch(text) is not None and not Path(text).exists()
        return of_module or Path(text).suffix.lower() in FILES
    if isinstance(what, Mapping):
        return "name" in what and "axes" not in what  # a study has axes
    if "torch" not in sys.modules:
        return False
    module = sys.modules["torch"].nn.Module  # its class is no network, and named_network says so
    return isinstance(what, module) or (isinstance(what, type) and issubclass(what, module))


@contextmanager
def named_network(network: Network, size: int | None, cache: Path) -> Iterator[NamedNetwork]:
    """Yield a network that somebody named; a torch module is in a file for as long as anyone uses it.

    Parameters
    ----------
    network : torch.nn.Module, path, str or mapping
        A module; a file (:data:`FILES`); ``mine.py:Net`` or ``package.module:factory``, which is imported; or
        a part of the axis ``model``, by its name or with its options.
    size : int, optional
        Height and width of its images, by default those that it is meant for.
    cache : Path
        The artifact cache, in whose folder the file is.

    Raises
    ------
    InputError
        If there is no such network, it cannot be read, or it takes images of another size.
    """
    if isinstance(network, str | os.PathLike):
        network = os.fspath(network)
        if ending := FILES.get(Path(network).suffix.lower()):
            yield _of_file(ending, Path(network), size)
            return
        if NAMED.fullmatch(network):
            found = object_at(network)
            if not _is_model(found):
                yield from _of_module(network, _called(network, found), size, cache)
                return
    if isinstance(network, str | Mapping):
        yield network_of_part({"name": network} if isinstance(network, str) else network, size)
    else:
        yield from _of_module(type(network).__name__, network, size, cache)


def network_of_part(content: Mapping[str, Any], size: int | None = None) -> NamedNetwork:
    """Return the network of a part of the axis ``model``.

    Parameters
    ----------
    content : mapping
        Its name and its options.
    size : int, optional
        Height and width of its images, by default those that it is meant for.

    Raises
    ------
    InputError
        If there is no such part, or its file cannot be read or takes images of another size.
    """
    from dlas.axes.models.torchvision import Torchvision
    from dlas.networks.torch.model import CifarModel
    from dlas.sweep.rows.labels import label
    from dlas.sweep.study.point import Choice

    name, options = content.get("name"), {key: value for key, value in content.items() if key != "name"}
    if not isinstance(name, str):
        raise InputError(f"{dict(content)!r} is neither a part's name nor a table with a name")
    choice = Choice.checked("model", name, options)
    if name in FILES.values():
        return replace(_of_file(name, Path(options["path"]), size), part=content)
    made = choice.make("model")
    usual, classes = SMALL if isinstance(made, CifarModel) else USUAL
    if isinstance(made, Torchvision):
        usual = _published_size(made.name)
    return NamedNetwork(label(choice.content()), content, size or usual, classes)


def _published_size(name: str) -> int:
    """Return the height and width of the images that torchvision's weights of a network are for.

    The usual ones for a name of another's own, of which there are no weights.
    """
    from torchvision import models

    from dlas.axes.models.torchvision import names

    if name not in names():
        return USUAL[0]
    return int(models.get_model_weights(name).DEFAULT.transforms.keywords.get("crop_size", USUAL[0]))


def _of_file(part: str, path: Path, size: int | None) -> NamedNetwork:
    """Return the network in a file, which tells the images that it takes."""
    read = {"onnx": _read_onnx, "torch": _read_program}[part]
    (batch, channels, height, width), classes = read(path.expanduser(), size or USUAL[0])
    if height != width or (size or height) != height:
        asked = f", not {size}x{size}" if size else "; images of equal height and width are expected"
        raise InputError(f"{str(path)!r} takes images of {height}x{width}{asked}")
    content = {"name": part, "path": str(path)}
    return NamedNetwork(str(path), content, height, classes, channels, batch or None)


def _read_onnx(path: Path, size: int) -> tuple[list[int], int]:
    """Return the input's sizes of an ONNX file, free ones filled in, and its classes; batch 0 for any.

    ONNX Runtime runs it on one image, which tells the classes.
    """
    import numpy as np

    from dlas.networks.onnx.counting import graph_input
    from dlas.networks.onnx.files import read_model
    from dlas.networks.onnx.network import OnnxNetwork
    from dlas.stack import Facts

    model = read_model(path, fold=True)
    own = [each.dim_value for each in graph_input(model).type.tensor_type.shape.dim]
    if len(own) != 4:
        shown = "x".join(str(each or "?") for each in own) or "a number"
        raise InputError(f"ONNX file {str(path)!r}: its input is {shown}, not images [n, c, h, w]")
    shape = [own[0], *(each or usual for each, usual in zip(own[1:], (COLOURS, size, size), strict=True))]
    channels, height, width = shape[1:]
    try:
        images = np.zeros((1, channels, height, width), np.float32)
        outputs = OnnxNetwork(model, Facts((channels, height, width), 1)).reference(images)
    except Exception as error:  # ONNX Runtime raises its own types
        first = str(error).strip().partition("\n")[0]
        raise InputError(f"ONNX file {str(path)!r} cannot be run on one image: {first}") from None
    return shape, int(outputs.shape[-1])


def _read_program(path: Path, _size: int) -> tuple[list[int], int]:
    """Return the sizes of the input of an exported program, batch 0 for any, and its classes."""
    from dlas.networks.exported.files import read_program
    from dlas.networks.exported.modules import image_shape

    program = read_program(path)
    shape = image_shape(program)
    outputs = program.graph_signature.user_outputs
    values = [node.meta["val"] for node in program.graph.nodes if node.name in outputs]
    if len(shape) != 3 or len(values) != 1 or values[0].ndim != 2:
        raise InputError(f"exported program {str(path)!r} does not map images [n, c, h, w] to [n, classes]")
    return [0, *shape], int(values[0].shape[1])


def _of_module(label: str, module: nn.Module, size: int | None, cache: Path) -> Iterator[NamedNetwork]:
    """Yield the network of a torch module, in a file named after its content, so that it is cached."""
    from torch import nn

    from dlas.networks.exported.files import export_module, write_program

    if not isinstance(module, nn.Module):
        given = f"the class {module.__name__}" if isinstance(module, type) else f"a {label}"
        raise InputError(f"the network is {given}, and a torch.nn.Module itself is expected, such as Net()")
    first = next((layer for layer in module.modules() if isinstance(layer, nn.Conv2d)), None)
    channels, side = first.in_channels if first is not None else COLOURS, size or USUAL[0]
    try:
        with redirect_stderr(io.StringIO()):  # torch prints the graph that it could not follow
            program = export_module(module, (channels, side, side))
    except InputError as error:
        hint = "; size gives another height and width" if not size and "cannot take" in str(error) else ""
        raise InputError(f"{label}: {error}{hint}") from None
    name = type(module).__name__
    make_folder(cache / "locks", "cache's folder")
    written = while_used(
        lambda: write_program(program, cache / "work" / "modules", name), cache / "locks" / "modules"
    )
    with written as path:
        yield replace(_of_file("torch", path, side), label=label, lasting=False)


def _is_model(found: object) -> bool:
    """Return whether something is a class of parts of the axis ``model``."""
    from dlas.stack import Model

    return isinstance(found, type) and issubclass(found, Model)


def _called(text: str, found: object) -> nn.Module:
    """Return the module that an object is, or that it returns when it is called without arguments.

    Its weights follow from a seed, so that an equal module has an equal file.

    Raises
    ------
    InputError
    """
    import torch
    from torch import nn

    if isinstance(found, nn.Module):
        return found
    if not callable(found):
        kind = type(found).__name__
        raise InputError(
            f"{text!r} is of type {kind}; a torch.nn.Module is expected, its class or a function"
        )
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            module = found()
    except Exception as error:  # whatever a user's module raises
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"{text!r}: called without arguments, it raises {reason}") from None
    if not isinstance(module, nn.Module):
        raise InputError(f"{text!r} returns a {type(module).__name__}, and a torch.nn.Module is expected")
    return module
