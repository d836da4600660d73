"""Read files of weights, and load them into modules."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import safetensors.torch
import torch
from torch import nn

from dlas.errors import InputError

WEIGHTS_FILE = "weights.safetensors"
SHOWN = 3
"""Names of each kind that an error lists."""


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Read a safetensors file or a torch state dict; nothing in it is ever executed.

    Raises
    ------
    InputError
        If it is missing, damaged, or not a state dict.
    """
    if not path.is_file():
        raise InputError(f"weights {str(path)!r}: there is no such file")
    try:
        if path.suffix == ".safetensors":
            return safetensors.torch.load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # both libraries raise many kinds on damaged files
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"weights {str(path)!r}: expected a safetensors file or a torch state dict, but {reason}"
        ) from error
    if isinstance(state, Mapping) and isinstance(state.get("state_dict"), Mapping):
        state = state["state_dict"]
    if not isinstance(state, Mapping) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise InputError(f"weights {str(path)!r}: it holds no state dict (a mapping of names to tensors)")
    return dict(state)


def load_weights(module: nn.Module, state: Mapping[str, torch.Tensor], source: str) -> None:
    """Put the tensors of ``state`` into ``module``.

    Raises
    ------
    InputError
        If names or shapes differ; it quotes ``source`` and lists the first few.
    """
    own = module.state_dict()
    # Files from before torch 0.4.1 lack the counters, which evaluation does not read.
    missing = [name for name in own if name not in state and not name.endswith("num_batches_tracked")]
    surplus = [name for name in state if name not in own]
    shapes = [
        f"{name} is {list(state[name].shape)} and should be {list(own[name].shape)}"
        for name in own
        if name in state and state[name].shape != own[name].shape
    ]
    faults = [
        _listed("missing", [_with_nearest(name, surplus) for name in missing[:SHOWN]], len(missing)),
        _listed("unexpected", surplus[:SHOWN], len(surplus)),
        _listed("of another shape", shapes[:SHOWN], len(shapes)),
    ]
    if any(faults):
        raise InputError(
            f"weights {source!r} are not for this network ({len(own)} tensors expected): "
            + "; ".join(fault for fault in faults if fault)
        )
    own.update(state)  # ``own`` carries layer versions, which files lack
    module.load_state_dict(own)


def _listed(kind: str, shown: Iterable[str], count: int) -> str:
    """Return "3 missing: a, b, c", or nothing for a count of zero."""
    more = f" and {count - SHOWN} more" if count > SHOWN else ""
    return f"{count} {kind}: {', '.join(shown)}{more}" if count else ""


def _with_nearest(name: str, others: Collection[str]) -> str:
    """Return the name, with the most similar of ``others`` beside it."""
    nearest = difflib.get_close_matches(name, others, n=1)
    return f"{name} (nearest in the file: {nearest[0]})" if nearest else name
