"""Shares by layer: an untrained network loses in each layer what a trained one lost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import layer_shares
from dlas.axes.compression.channel_pruning import ChannelPruning
from dlas.axes.compression.pruning import shares
from dlas.axes.compression.pruning.iterative import ratios
from dlas.axes.compression.pruning.masked import MaskedPruning
from dlas.axes.compression.pruning.units import prunable
from dlas.axes.compression.weight_pruning import WeightPruning
from dlas.errors import InputError, Unsupported
from dlas.networks.torch.network import conv_weights
from dlas.sweep.rows.results import read_rows
from tests.fixtures.package import ROOT
from tests.fixtures.tiny import tiny, tiny_data, workspace

KEPT = ROOT / "experiments" / "leaf-digits" / "pruned"


def written(path: Path, layers: dict[str, float]) -> str:
    shares.write(path, layers, "made up")
    return str(path)


@pytest.mark.parametrize("technique", [WeightPruning, ChannelPruning])
def test_each_layer_loses_its_own_share(technique: type[MaskedPruning], tmp_path: Path) -> None:
    network, part = tiny(), technique(level=0.5)
    names = list(prunable(network.module, part))
    asked = {name: (0.25, 0.75)[place % 2] for place, name in enumerate(names)}
    part = technique(level=0.5, recipe="none", layers=written(tmp_path / "shares.toml", asked))
    part.verify()
    part.compress(network, tiny_data(), workspace(tmp_path))
    found = ratios(network)["layers"]
    sizes = {name: weight.shape for name, weight in conv_weights(network.module).items()}
    for name, share in asked.items():
        units = sizes[name][0] if technique is ChannelPruning else sizes[name].numel()
        assert abs(found[name] - share) <= 0.5 / units, name
    assert network.facts.reached["level"] == 0.5


def test_a_point_is_another_when_its_shares_are(tmp_path: Path) -> None:
    part = WeightPruning(level=0.5, recipe="none", layers=written(tmp_path / "shares.toml", {"conv": 0.5}))
    assert part.files() == [tmp_path / "shares.toml"] and WeightPruning(level=0.5).files() == []


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ({"conv9": 0.5}, r"shares\.toml: unknown layer 'conv9'"),
        ({"first": 0.5}, r"shares\.toml: no share of layer '"),
    ],
)
def test_shares_of_another_network_are_refused(layers: dict[str, float], said: str, tmp_path: Path) -> None:
    network, part = tiny(), WeightPruning(level=0.5)
    first = next(iter(prunable(network.module, part)))
    layers = {first if name == "first" else name: share for name, share in layers.items()}
    part = WeightPruning(level=0.5, recipe="none", layers=written(tmp_path / "shares.toml", layers))
    with pytest.raises(Unsupported, match=said):
        part.compress(network, tiny_data(), workspace(tmp_path))


@pytest.mark.parametrize(
    "other", [{}, {"recipe": "none", "level": "elbow"}, {"recipe": "none", "scope": "layer"}]
)
def test_shares_beside_what_contradicts_them_are_refused(other: dict[str, Any], tmp_path: Path) -> None:
    path = written(tmp_path / "shares.toml", {"conv": 0.5})
    with pytest.raises(InputError, match=r"layers = .* needs recipe = 'none', a number as level"):
        WeightPruning(**{"level": 0.5, "layers": path, **other}).verify()
    with pytest.raises(InputError, match=r"importance = 'plain' has no effect .* layers = "):
        ChannelPruning(level=0.5, recipe="none", layers=path, importance="plain").verify()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it names no layer"),
        ("layer = 3", "unknown key 'layer'"),
        ("[layers]\nconv = 1.5", "layer 'conv': 1.5 is no share from 0 to 1"),
        ("[layers]\nconv = true", "layer 'conv': True is no share"),
        ("[layers]\nconv = nan", "layer 'conv': nan is no share"),
        (
            "[layers]\nlayer1.conv = 0.5",
            "is no share from 0 to 1; a layer with dots in its name needs quotes",
        ),
    ],
)
def test_a_broken_file_is_refused_and_quoted(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "shares.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        WeightPruning(level=0.5, recipe="none", layers=str(path)).verify()
    assert str(error.value).startswith(str(path)) and said in str(error.value)
    with pytest.raises(InputError, match=r"no such file|cannot read"):
        WeightPruning(level=0.5, recipe="none", layers=str(tmp_path / "none.toml")).verify()


def test_files_of_kept_rows_name_them_and_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["layer_shares", str(KEPT), str(tmp_path)])
    layer_shares.main()
    rows = {
        row.reached["level"]: row for row in read_rows(KEPT) if row.compression["name"] == "weight_pruning"
    }
    assert len(rows) == len(list(tmp_path.iterdir())) == 4
    printed = capsys.readouterr().out
    for level, row in rows.items():
        path = tmp_path / f"cifar_resnet18-weight_pruning-{level:g}.toml"
        assert shares.read(path) == pytest.approx(row.reached["layers"], abs=1e-6)
        left = f"{row.effective_macs / row.macs:.1%}"  # type: ignore[operator]
        assert row.id in path.read_text() and f"{left} of multiply-adds left" in path.read_text()
        assert f"| {level:.0%} | {row.reached['ratio']:.1%} | {left} |" in printed
