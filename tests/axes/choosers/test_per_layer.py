from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlas.axes.choosers.per_layer import PerLayer, read, write
from dlas.axes.compilers.programs.tvm import TvmProgram, write_program
from dlas.bench.store.fingerprint import SourceTree
from dlas.errors import InputError, Unsupported
from dlas.lowering.lower import LoweredNetwork, lower, schedule
from dlas.schedules.direct import Direct
from dlas.schedules.gemm import Gemm
from dlas.stack import GENERIC, Algorithm, AlgorithmChooser, Conv, MeasureSettings, Target
from dlas.sweep.engine.planning import Planner
from dlas.sweep.study import parts
from dlas.sweep.study.point import Choice, Point
from dlas.testing.algorithms import HOST
from tests.fixtures.small_network import error, images, network
from tests.fixtures.stubs import StubAlgorithm

CONV = Conv("conv", 1, 4, 8, 8, 4, 3, 3)
MIXED = """
default = "spatial_pack"
[layers]
"stem.0" = "direct"
first    = { name = "gemm" }
"""


def table(folder: Path, text: str) -> PerLayer:
    path = folder / "choices.toml"
    path.write_text(text)
    return made(str(path))


def made(path: str = "") -> PerLayer:
    algorithm: PerLayer = parts.make("algorithm", "per_layer", {"path": path})
    return algorithm


def named(name: str) -> Conv:
    return dataclasses.replace(CONV, name=name)


@dataclass(frozen=True)
class Picky(Gemm):
    """Takes nothing."""

    def supports(self, conv: Conv) -> str | None:
        return "too picky"


# ---------------------------------------------------------------- who computes what


def test_each_layer_is_computed_by_the_algorithm_named_for_it(tmp_path: Path) -> None:
    small, x = network(), images(1)
    lowered = lower(small, table(tmp_path, MIXED), 1)
    assert algorithms(lowered) == {
        "stem.0": "direct",
        "first": "gemm",
        **dict.fromkeys(["second", "depthwise", "pointwise", "squeeze"], "spatial_pack"),
    }
    assert lowered.coverage == {"convolutions": 1.0, "macs": 1.0}
    write_program(lowered, schedule(lowered, HOST), HOST, tmp_path)
    assert error(TvmProgram(tmp_path, HOST).run(x), small.reference(x)) < 1e-5


def algorithms(lowered: LoweredNetwork) -> dict[str, str]:
    return {layer["name"]: layer["algorithm"] for layer in lowered.layers}


def test_what_the_named_algorithm_declines_is_not_covered(tmp_path: Path) -> None:
    lowered = lower(network(), table(tmp_path, f'[layers]\nfirst = "{__name__}:Picky"'), 1)
    first = next(layer for layer in lowered.layers if layer["name"] == "first")
    assert (first["algorithm"], first["declined"]) == ("direct", "too picky")
    assert lowered.coverage is not None and lowered.coverage["convolutions"] == 5 / 6


def test_an_algorithm_gets_its_options(tmp_path: Path) -> None:
    text = '[layers]\nconv = { name = "tests.fixtures.stubs:StubAlgorithm", number = 3 }'
    assert table(tmp_path, text).for_layer(CONV, GENERIC) == StubAlgorithm(3)


def test_layers_that_the_table_leaves_out_take_the_default(tmp_path: Path) -> None:
    assert table(tmp_path, '[layers]\nother = "gemm"').for_layer(CONV, GENERIC) == Direct()
    assert table(tmp_path, 'default = "gemm"\n[layers]\nother = "direct"').for_layer(CONV, GENERIC) == Gemm()


def test_an_entry_covers_every_use_of_its_layer(tmp_path: Path) -> None:
    once = table(tmp_path, '[layers]\nconv = "gemm"')
    once.check_layers(["conv", "conv#2"])
    assert [once.for_layer(named(name), GENERIC) for name in ("conv", "conv#2", "conv#12")] == [Gemm()] * 3
    apart = table(tmp_path, '[layers]\nconv = "direct"\n"conv#2" = "gemm"')
    assert [apart.for_layer(named(name), GENERIC) for name in ("conv", "conv#2", "conv#3")] == [
        Direct(),
        Gemm(),
        Direct(),
    ]


def test_a_table_for_another_network_is_unsupported(tmp_path: Path) -> None:
    wrong = table(tmp_path, '[layers]\nfirst = "gemm"\ndepthwide = "gemm"')
    with pytest.raises(Unsupported, match=r"choices\.toml.*'depthwide'; did you mean 'depthwise'.*stem\.0"):
        lower(network(), wrong, 1)
    with pytest.raises(Unsupported, match="conv#3"):
        table(tmp_path, '[layers]\n"conv#3" = "gemm"').check_layers(["conv", "conv#2"])


def test_without_a_table_everything_is_direct_but_a_study_must_name_one() -> None:
    assert made().for_layer(CONV, GENERIC) == Direct()
    made().check_layers(["conv"])
    with pytest.raises(InputError, match="needs a table"):
        made().verify()


def test_a_home_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(tmp_path, '[layers]\nconv = "gemm"')
    monkeypatch.setenv("HOME", str(tmp_path))
    assert made("~/choices.toml").for_layer(CONV, GENERIC) == Gemm()


# ---------------------------------------------------------------- the file


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[layers\nconv = "gemm"', r"broken TOML.*: line 1 is '\[layers'"),
        ("", r"it names no layer: \[layers\] holds"),
        ("[layers]", "it names no layer"),
        ('layers = "gemm"', "it names no layer"),
        ('layer1 = "gemm"', "unknown key 'layer1'; did you mean 'layers'"),
        (
            '[layers]\nconv = "gem"',
            "layer 'conv': unknown algorithm 'gem'; did you mean 'gemm'.*spatial_pack",
        ),
        ('default = "gem"\n[layers]\nconv = "gemm"', "default: unknown algorithm 'gem'"),
        ("[layers]\nconv = 3", "layer 'conv': 3 is neither an algorithm's name nor a table"),
        ('[layers]\nconv = ["gemm"]', r"\['gemm'\] is neither an algorithm's name"),
        ('[layers]\nlayer1.0.conv1 = "gemm"', "layer 'layer1'.*with dots in its name needs quotes"),
        ('[layers]\nconv = { name = "gemm", tile = 3 }', "unknown option of algorithm 'gemm' 'tile'"),
        (
            '[layers]\nconv = { name = "tests.fixtures.stubs:StubAlgorithm", number = "three" }',
            "number = 'three'",
        ),
        (
            '[layers]\nconv = { name = "tests.fixtures.stubs:StubAlgorithm", number = [1, 2] }',
            r"number = \[1, 2\]",
        ),
        ('[layers]\nconv = "nowhere:Class"', "cannot import 'nowhere'"),
        ('[layers]\nconv = "tests.fixtures.stubs:StubModel"', "is not a dlas.stack.Algorithm"),
        ('[layers]\nconv = { name = "per_layer", path = "choices.toml" }', "cannot name another table"),
        ('[layers]\nconv = "gemm"\nconv = "direct"', "broken TOML"),
    ],
)
def test_a_wrong_table_is_one_message_that_quotes_it(tmp_path: Path, text: str, complaint: str) -> None:
    wrong = table(tmp_path, text)
    with pytest.raises(InputError, match=complaint) as caught:
        wrong.verify()
    assert str(caught.value).startswith(wrong.path)


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the table of layers .*absent\.toml"):
        made(str(tmp_path / "absent.toml")).verify()


CONTENTS = st.one_of(
    st.sampled_from([{"name": "gemm"}, {"name": "direct"}]),
    st.integers(1, 9).map(lambda number: {"name": "tests.fixtures.stubs:StubAlgorithm", "number": number}),
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), CONTENTS, min_size=1))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, layers: dict[str, dict]) -> None:
    path = tmp_path_factory.mktemp("tables") / "choices.toml"
    write(path, layers, comment="fastest of\n\ntwo")
    read_back = read(path, functools.partial(parts.FINDER.checked, "algorithm")).layers
    assert read_back == {name: Choice.of(content).make("algorithm") for name, content in layers.items()}
    assert path.read_text().startswith("# fastest of\n#\n# two\n")


def test_a_table_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write the table of layers .*absent"):
        write(tmp_path / "absent" / "choices.toml", {"conv": {"name": "gemm"}})


# ---------------------------------------------------------------- keys


def build_key(algorithm: PerLayer, edits: dict[str, str] | None = None) -> str:
    """Return the key of a build with a table, with the sources as they are or as edits would make them."""
    stub: dict[str, Any] = {
        axis: Choice(f"tests.fixtures.stubs:Stub{axis.capitalize()}")
        for axis in ("dataset", "model", "compiler")
    }
    choice = Choice("per_layer", (("path", algorithm.path),))
    point = Point(
        **stub, compression=Choice("none"), algorithm=choice, hardware=Choice("local_cpu"), batch=1, seed=0
    )
    planner = Planner(MeasureSettings(), Path(algorithm.path).parent, SourceTree(edits))
    return planner.plan(point).artifacts()["build"]


def test_a_build_follows_the_tables_content(tmp_path: Path) -> None:
    key = build_key(table(tmp_path, '[layers]\nconv = "gemm"'))
    assert build_key(table(tmp_path, '[layers]\nconv = "gemm"')) == key
    assert build_key(table(tmp_path, '[layers]\nconv = "direct"')) != key


@pytest.mark.parametrize(
    ("module", "counts"), [("gemm", True), ("direct", True), ("spatial_pack", False)], ids=str
)
def test_a_build_follows_the_algorithms_it_uses(tmp_path: Path, module: str, counts: bool) -> None:
    chosen = table(tmp_path, '[layers]\nconv = "gemm"')
    name = f"dlas.schedules.{module}"
    edited = {name: SourceTree().text(name) + "\nEDITED = 1\n"}
    assert (build_key(chosen, edited) != build_key(chosen)) == counts


@dataclass(frozen=True)
class ReadsFile(Gemm):
    """Has a file of its own."""

    weights: str = ""

    def verify(self) -> None:
        if not Path(self.weights).is_file():
            raise ValueError(f"no {self.weights}")


def test_files_of_the_algorithms_in_a_table_count_and_are_verified(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    text = f'[layers]\nconv = {{ name = "{__name__}:ReadsFile", weights = "{weights}" }}'
    with pytest.raises(ValueError, match=r"no .*weights"):
        table(tmp_path, text).verify()
    weights.write_text("1")
    table(tmp_path, text).verify()
    key = build_key(table(tmp_path, text))
    weights.write_text("22")
    assert build_key(table(tmp_path, text)) != key


def test_it_is_found_like_any_algorithm() -> None:
    found = parts.find("algorithm", "per_layer")
    assert found.cls is PerLayer
    assert list(found.options()) == ["path"]


@dataclass(frozen=True)
class Alternating(AlgorithmChooser):
    """Takes others by their names, as a chooser in a user's file does."""

    first: str = "gemm"

    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        return self.make(self.first if conv.h % 2 else "direct", {}).for_layer(conv, target)


def test_any_chooser_gets_algorithms_by_their_names() -> None:
    chooser = Choice.checked("algorithm", f"{__name__}:Alternating", {"first": "gemm"}).make("algorithm")
    assert chooser.for_layer(CONV, GENERIC) == Direct()
    assert chooser.for_layer(dataclasses.replace(CONV, h=7), GENERIC) == Gemm()
    with pytest.raises(InputError, match=r"unknown option of algorithm .*Alternating' 'make'"):
        Choice.checked("algorithm", f"{__name__}:Alternating", {"make": "gemm"})
