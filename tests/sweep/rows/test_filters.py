"""Filters of points, in both of their forms."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from dlas.errors import InputError
from dlas.sweep.rows.frame import read, select
from tests.fixtures.rows import failing, row, write


@pytest.fixture(scope="module")
def frame(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Rows a to f of several algorithms, levels, compilers and batches."""
    return read(
        write(
            tmp_path_factory.mktemp("rows"),
            [
                row(algorithm="gemm", compiler={"name": "torch_eager", "channels_last": True}),
                row(algorithm="gemm", compression={"name": "weight_pruning", "level": 0.5}),
                row(algorithm="csr_gemm", compression={"name": "weight_pruning", "level": 0.95}),
                row(algorithm={"name": "winograd", "tile": 2}, batch=8),
                row(compiler={"name": "metaschedule", "trials": 64}, batch=8),
                failing(compression={"chain": [{"name": "channel_pruning", "level": 0.5}, {"name": "int8"}]}),
            ],
        )
    )


@pytest.mark.parametrize(
    ("where", "lines"),
    [
        ("algorithm == 'gemm'", [0, 1]),
        ("algorithm != 'gemm'", [2, 3, 4, 5]),
        ("algorithm == 'winograd' and batch > 1", [3]),
        ("algorithm == 'winograd(tile=2)'", [3]),
        ("algorithm in ('gemm', 'csr_gemm')", [0, 1, 2]),
        ("algorithm not in ['gemm', 'csr_gemm'] and status == 'ok'", [3, 4]),
        ("not (algorithm == 'gemm' or batch == 8)", [2, 5]),
        ("compression.level >= 0.5", [1, 2]),
        ("0.4 < compression.level < 0.9", [1]),
        ("compression.level > -1 and batch == 1", [1, 2]),
        ("compression.channel_pruning.level == 0.5", [5]),
        ("compiler.trials != 64", [0, 1, 2, 3, 5]),
        ("batch > 'a' or batch == 8", [3, 4]),
        ("compression.level=0.50", [1]),
        ("compression.level=0.*", [1, 2]),
        ("algorithm.tile=2", [3]),
        ("seed=0.0", [0, 1, 2, 3, 4, 5]),
        ("compiler.channels_last=true", [0]),
        ("compiler.channels_last == True", [0]),
        ("algorithm=*gemm", [0, 1, 2]),
    ],
)
def test_both_forms_choose_by_parts_and_options(frame: pd.DataFrame, where: str, lines: list[int]) -> None:
    assert select(frame, [where]).index.tolist() == lines


def test_filters_of_both_forms_hold_together(frame: pd.DataFrame) -> None:
    where = ["algorithm=gemm", "algorithm=csr_*", "compression.level > 0"]
    assert select(frame, where).index.tolist() == [1, 2]
    assert select(frame, ["algorithm=winograd", "batch == 1"]).empty
    assert select(frame.iloc[:0], ["algorithm == 'gemm'"]).empty


@pytest.mark.parametrize(
    "where",
    [
        "__import__('os').system('true') == 0",
        "algorithm.__class__.__name__ == algorithm.upper()",
        "[x for x in (1, 2)] == 1",
        "(lambda: 1)() == 1",
        "algorithm[0] == 'g'",
        "f'{batch}' == '1'",
        "batch ** 99999999 == 1",
        "batch + 1 == 2",
        "batch is 1",
        "batch == None",
        "(batch := 1) == 1",
        "'gemm'",
        "batch",
        "batch == 1; batch == 2",
        "(" * 300 + "batch == 1" + ")" * 300,
        "not " * 490 + "batch == 1 and batch",
        "batch == 1 or " * 200 + "batch == 1",
        "batch == 1\0",
        "",
    ],
)
def test_everything_else_is_refused_and_never_run(frame: pd.DataFrame, where: str) -> None:
    with pytest.raises(InputError, match=re.escape("`where=")):
        select(frame, [where])


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("algoritm == 'gemm'", "did you mean 'algorithm'"),
        ("algorithm == gemm", "a text needs quotes: 'gemm'"),
        ("compression.levl == 1", "did you mean 'compression.level'"),
        ("compression.levl=1", "did you mean 'compression.level'"),
        ("batch.size=1", "unknown axis in `where=` 'batch.size'"),
        ("algorithm == 'gem'", "matches nothing (there are algorithm: csr_gemm, direct, gemm, winograd"),
        ("compression.level=0.6", "there are: 0.5, 0.95"),
        ("batch == 1 and", "is not of the form axis=pattern"),
    ],
)
def test_a_mistake_is_quoted_with_what_there_is(frame: pd.DataFrame, where: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        select(frame, [where])
