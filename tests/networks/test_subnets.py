"""Subnetworks as text, what is drawn of them, and what they consist of."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from dlas.errors import InputError
from dlas.networks.counting import count_macs
from dlas.networks.subnets import written
from dlas.networks.subnets.blocks import read_key
from dlas.networks.subnets.flexible import LARGEST, SMALLEST
from dlas.networks.subnets.modules import FlatOutput, part, subnet
from dlas.networks.subnets.shapes import ofa, operators, small
from dlas.networks.subnets.tables import block_times, read_tables, write_tables
from dlas.networks.subnets.written import EXAMPLE, SPACES, Space, parse, text_of


def test_a_text_has_one_reading_and_one_spelling() -> None:
    stages = parse(EXAMPLE)
    assert stages[0] == ((3, 3, 5, 7), (6, 6, 4, 3)) and stages[4] == ((7, 7), (3, 3))
    assert text_of(stages) == EXAMPLE
    code = written.codes([EXAMPLE, SMALLEST])
    assert code.shape == (2, 5, 2, 4)
    assert code[0, 1].tolist() == [[3, 5, 0, 0], [4, 6, 0, 0]] and code[1, 4].tolist() == [[3, 3, 0, 0]] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("33:33", "has 1 stages, separated by commas; expected 5"),
        (EXAMPLE.replace("35:46", "34:46"), "stage '34:46': kernel size 4; expected 3, 5, 7"),
        (EXAMPLE.replace("35:46", "35:45"), "expansion ratio 5; expected 3, 4, 6"),
        (EXAMPLE.replace("35:46", "3:4"), "1 kernel sizes and 1 expansion ratios; expected"),
        (EXAMPLE.replace("35:46", "33333:44444"), "5 kernel sizes"),
        (EXAMPLE.replace("35:46", "353:46"), "3 kernel sizes and 2 expansion ratios"),
        (EXAMPLE.replace("35:46", "35-46"), "stage '35-46': expected kernel sizes, a colon"),
    ],
)
def test_what_is_no_subnetwork_is_told(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        written.codes([text])


def test_the_fixed_space_has_243_members() -> None:
    members = list(written.fixed_members())
    assert len(set(members)) == 243 and all(written.is_in(each, "compofa_fixed") for each in members)
    assert "33:33,555:444,3333:6666,33:33,55:33" in members
    assert not written.is_in(EXAMPLE, "compofa_elastic") and written.is_in(members[0], "compofa_elastic")


@pytest.mark.parametrize("space", SPACES)
def test_what_is_drawn_changed_or_crossed_stays_in_its_space(space: Space) -> None:
    rng = np.random.default_rng(0)
    drawn = [written.draw(space, rng) for _ in range(200)]
    changed = [written.mutated(each, space, 0.1, rng) for each in drawn]
    children = [written.crossed(*pair, space, rng) for pair in itertools.pairwise(drawn)]
    assert all(written.is_in(each, space) for each in (*drawn, *changed, *children))
    assert {len(stage[0]) for each in drawn for stage in parse(each)} == {2, 3, 4}
    assert len(set(drawn)) > (100 if space == "compofa_fixed" else 190)
    assert 0 < sum(a != b for a, b in zip(drawn, changed, strict=True)) < 200
    assert written.mutated(drawn[0], space, 0.0, rng) == drawn[0]


def test_children_have_layers_of_their_parents_alone() -> None:
    rng = np.random.default_rng(0)
    one, other = SMALLEST, LARGEST
    for _ in range(50):
        for kernels, expansions in parse(written.crossed(one, other, "ofa", rng)):
            assert set(zip(kernels, expansions, strict=True)) <= {(3, 3), (7, 6)}
            assert all(kernel == 7 for kernel in kernels[2:])


def by_hand(
    stages: list[tuple[int, int, int, bool]], count: int, kernel: int, expansion: int, classes: int
) -> int:
    """Return multiply-adds at width 1 and 128 pixels: each stage's channels, maps in and out, and gate."""
    total = 64 * 64 * (3 * 16 * 9 + 16 * 9 + 16 * 16)
    read = 16
    for channels, before, after, gated in stages:
        for layer in range(count):
            middle = read * expansion
            into = before if layer == 0 else after
            total += middle * (into**2 * read + after**2 * kernel**2 + after**2 * channels)
            if gated:
                squeezed = (middle // 4 + 4) // 8 * 8
                squeezed += 8 if squeezed < 0.9 * (middle // 4) else 0
                total += 2 * middle * squeezed
            read = channels
    return total + 4 * 4 * 160 * 960 + 960 * 1280 + 1280 * classes


STAGES = [(24, 64, 32, False), (40, 32, 16, True), (80, 16, 8, False), (112, 8, 8, True), (160, 8, 4, True)]


@pytest.mark.parametrize(("text", "count", "kernel", "ratio"), [(SMALLEST, 2, 3, 3), (LARGEST, 4, 7, 6)])
def test_multiply_adds_are_those_of_a_count_by_hand(text: str, count: int, kernel: int, ratio: int) -> None:
    expected = by_hand(STAGES, count, kernel, ratio, 1000)
    with torch.device("meta"):
        assert count_macs(subnet(ofa(1.0), parse(text), 3, 1000), (3, 128, 128)) == expected
    listed = operators(ofa(1.0), parse(text), 128, 1000, batch=2)
    assert sum(layer.get("macs", 0) for layer in listed) == 2 * expected


def test_width_gives_the_published_channels() -> None:
    wide = ofa(1.2)
    assert (wide.stem, wide.channels, wide.expanded, wide.features) == (
        24,
        (32, 48, 96, 136, 192),
        1152,
        1536,
    )
    assert ofa(1.0).channels == (24, 40, 80, 112, 160) and ofa(1.0).features == 1280


@pytest.mark.parametrize("size", [112, 127, 160, 164, 240])
def test_blocks_are_named_as_in_the_published_tables_and_read_back(size: int) -> None:
    shapes = ofa(1.2)
    names = [*shapes.keys(size), *shapes.fixed_keys(size)]
    assert len(set(names)) == 96
    for name in names[:: 1 if size == 112 else 17]:
        known = read_key(name)
        made = FlatOutput(part(known)).eval()
        assert made(torch.zeros(1, *known.read)).shape == (1, known.values), name
    if size == 160:
        gated = "expanded_conv-input:10x10x136-output:5x5x192-expand:408-kernel:5-stride:2-idskip:0-se:1-hs:1"
        first = "expanded_conv-input:80x80x24-output:80x80x24-expand:24-kernel:3-stride:1-idskip:1-se:0-hs:0"
        assert {gated, first, "AvgPool2D-input:5x5x1152-output:1x1x1152"} <= set(names)


@pytest.mark.parametrize(
    "name",
    [
        "conv",
        "Conv-input:0x0x3-output:0x0x24",
        "expanded_conv-input:10x10x136-output:5x5x192",
        "expanded_conv-input:10x10x136-output:9x9x192-expand:408-kernel:5-stride:2-idskip:0-se:1-hs:1",
        "expanded_conv-input:10x10x136-output:5x5x192-expand:408-kernel:4-stride:2-idskip:0-se:1-hs:1",
        "expanded_conv-input:10x10x136-output:5x5x192-expand:408-kernel:5-stride:2-idskip:1-se:1-hs:1",
        "Conv_1-input:5x5x99999-output:5x5x99999",
    ],
)
def test_what_names_no_block_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name[:12]):
        read_key(name)


def test_the_small_network_has_the_same_structure() -> None:
    shapes = small()
    for text in (SMALLEST, LARGEST):
        assert subnet(shapes, parse(text), 3, 10).eval()(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    listed = operators(shapes, parse(EXAMPLE), 32, 10, 1)
    with torch.device("meta"):
        made = subnet(shapes, parse(EXAMPLE), 3, 10)
        assert count_macs(made, (3, 32, 32)) == sum(layer.get("macs", 0) for layer in listed)


def tables(width: float = 1.2) -> dict[int, dict[str, float]]:
    shapes = ofa(width)
    return {
        size: dict.fromkeys([*shapes.keys(size), *shapes.fixed_keys(size)], size * 1e-6)
        for size in (160, 224)
    }


def test_tables_are_written_as_they_are_read(tmp_path: Path) -> None:
    write_tables(tmp_path / "tables", tables(), {})
    text = (tmp_path / "tables/160_lookup_table.yaml").read_text()
    assert "Conv-input:160x160x3-output:80x80x24:" in text and "count: 1" in text
    found = read_tables(str(tmp_path / "tables"))
    assert {size: found[size] == pytest.approx(own) for size, own in tables().items()} == {
        160: True,
        224: True,
    }
    times = block_times(found, 1.2, "tables")
    assert times.sizes.tolist() == [160, 224] and times.variants.shape == (2, 90)
    assert times.fixed == pytest.approx([6 * 160e-6, 6 * 224e-6])
    with pytest.raises(InputError, match=r"of width 1.0: it is for width 1.2"):
        block_times(found, 1.0, "tables")
    del found[224]["Conv-input:224x224x3-output:112x112x24"]
    with pytest.raises(InputError, match="1 blocks are missing"):
        block_times(found, 1.2, "tables")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "expected blocks"),
        ("{", "no table of latencies"),
        ("a: !!python/object/apply:os.system ['touch executed']", "no table of latencies"),
        ("Conv-input:160x160x3-output:80x80x24: {mean: -1}", "expected milliseconds"),
        ("Conv-input:160x160x3-output:80x80x24: {mean: .nan}", "expected milliseconds"),
        ("Conv-input:164x164x3-output:82x82x24: {mean: 1}", "the table of 160 has no block"),
        ("1: {mean: 1}", "1 names no block"),
        ("[" * 5000, "no table of latencies"),
        ("a: &a [1, 2]\nb: &b [*a, *a]", r"it has an alias, \*a"),
        (f"Conv-input:160x160x3-output:80x80x24: 1{'0' * 400}", "expected milliseconds"),
        (f"Conv-input:160x160x3-output:80x80x24: 0x{'f' * 5000}", "a number of thousands of digits"),
    ],
)
def test_what_is_no_table_is_refused(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "160_lookup_table.yaml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_tables(str(tmp_path))
    assert not (tmp_path / "executed").exists()
    with pytest.raises(InputError, match="expected a folder with"):
        read_tables(str(tmp_path / "nothing"))
