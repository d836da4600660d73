"""Weights that follow from a seed: artifacts leave them out, and they are constructed again.

An untrained network has the weights of its construction, but for the statistics of its batch norms; one
whose channels were removed has some of their rows and columns.  A digest of all weights tells whether
another machine constructs others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from dlas.errors import CorruptArtifact
from dlas.networks.weights import WEIGHTS_FILE, read_weights

ORIGIN_FILE = "origin.json"
KEPT_FILE = "kept.safetensors"
State = dict[str, torch.Tensor]
Kept = Mapping[str, tuple[torch.Tensor, ...]]
"""By layer, which rows of its tensors are left, and for weights which columns."""


@dataclass(frozen=True)
class SeededConstruction:
    """The construction that a network's weights come from."""

    seed: int
    construct: Callable[[], nn.Module]
    """Returns the module with the weights that follow from the seed."""
    kept: Kept = field(default_factory=dict)
    """What is left of the layers that have lost channels."""

    def narrowed(self, kept: Kept) -> SeededConstruction:
        """Return the origin of the network with only the rows and columns ``kept`` of what it has now."""
        before = {name: self.kept.get(name, ()) for name in kept}
        composed = {
            name: tuple(
                before[name][place][left] if place < len(before[name]) else left
                for place, left in enumerate(indices)
            )
            for name, indices in kept.items()
        }
        return replace(self, kept={**self.kept, **composed})


def save_state(module: nn.Module, origin: SeededConstruction | None, folder: Path) -> None:
    """Write a module's tensors, without those that its origin gives bit for bit.

    Beside them ``origin.json`` says what was left out and how it is made again.
    """
    # Copies, because safetensors refuses tensors that share memory.
    state = {name: each.detach().cpu().contiguous().clone() for name, each in module.state_dict().items()}
    if origin is None:
        save_file(state, folder / WEIGHTS_FILE)
        return
    made = _made(origin.construct(), origin.kept)
    left_out = [name for name, tensor in state.items() if name in made and _same(tensor, made[name])]
    save_file({name: state[name] for name in state if name not in left_out}, folder / WEIGHTS_FILE)
    narrow = {
        f"{place}.{name}": index for name, kept in origin.kept.items() for place, index in enumerate(kept)
    }
    if narrow:
        save_file(narrow, folder / KEPT_FILE)
    told = {
        "left_out": left_out,
        "made_again": f"constructed with seed {origin.seed}"
        + (f"; of some layers the rows and columns in {KEPT_FILE}" if narrow else ""),
        "seed": origin.seed,
        "digest": _digest(state),
    }
    (folder / ORIGIN_FILE).write_text(json.dumps(told, indent=1))


def saved_origin(folder: Path, construct: Callable[[int], nn.Module]) -> SeededConstruction | None:
    """Return the origin that :func:`save_state` wrote; None where every tensor was stored.

    Parameters
    ----------
    construct : callable
        Takes a seed, and returns the module with the weights that follow from it.
    """
    if not (folder / ORIGIN_FILE).exists():
        return None
    seed = int(json.loads((folder / ORIGIN_FILE).read_text())["seed"])
    kept: dict[str, tuple[torch.Tensor, ...]] = {}
    if (folder / KEPT_FILE).exists():
        for name, index in sorted(load_file(folder / KEPT_FILE).items()):
            layer = name.partition(".")[2]
            kept[layer] = (*kept.get(layer, ()), index)
    return SeededConstruction(seed, lambda: construct(seed), kept)


def complete_state(folder: Path, origin: SeededConstruction | None, dense: nn.Module) -> State:
    """Return all tensors that :func:`save_state` wrote or left out.

    Parameters
    ----------
    dense : torch.nn.Module
        As the origin constructs it.

    Raises
    ------
    CorruptArtifact
        If they are not those that were saved.
    """
    stored = read_weights(folder / WEIGHTS_FILE)
    if origin is None:
        return stored
    told = json.loads((folder / ORIGIN_FILE).read_text())
    made = _made(dense, origin.kept)
    state = {**stored, **{name: made[name] for name in told["left_out"] if name in made}}
    if _digest(state) != told["digest"]:
        raise CorruptArtifact(f"network {folder.name}: the weights of seed {origin.seed} are others here")
    return state


def _made(dense: nn.Module, kept: Kept) -> State:
    """Return the tensors of a module, of which layers have lost rows and columns."""
    made = {}
    for name, tensor in dense.state_dict().items():
        for place, index in enumerate(kept.get(name.rpartition(".")[0], ())):
            if place < tensor.dim():
                tensor = tensor.index_select(place, index)
        made[name] = tensor.detach().cpu().contiguous()
    return made


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors are equal bit for bit, zeros with their signs."""
    alike = (one.shape, one.dtype) == (other.shape, other.dtype)
    return alike and one.numpy().tobytes() == other.numpy().tobytes()


def _digest(state: Mapping[str, torch.Tensor]) -> str:
    """Return a hash of names, types, shapes and values."""
    content = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        content.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        content.update(tensor.numpy().tobytes())
    return content.hexdigest()
