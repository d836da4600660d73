"""A predictor's folder, damaged in a thousand ways, is refused with a message or still predicts."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import dlas
from dlas.errors import InputError
from tests.fixtures.rows import write
from tests.fixtures.training_rows import training_rows

MUTATIONS = 1000
WORDS = (b"null", b"-1", b"1e999", b"[]", b"{}", b'"x"', b"../..", b"NaN", b"true", b"0")


@pytest.mark.slow
@pytest.mark.parametrize("part", ["additive", "corrected"])
def test_a_damaged_folder_raises_one_kind_of_error(part: str, tmp_path: Path) -> None:
    rows, fitted = write(tmp_path / "rows", list(training_rows())), tmp_path / "p"
    options = {"trees": 3} if part == "corrected" else {}
    dlas.fit(part, rows, target="latency_s", to=fitted, hold_out="compression.level", options=options)
    frame, refused = dlas.read(rows), 0
    for seed in range(MUTATIONS // 2):
        damaged = tmp_path / "damaged"
        shutil.rmtree(damaged, ignore_errors=True)
        shutil.copytree(fitted, damaged)
        rng = np.random.default_rng(seed)
        files = sorted(path for path in damaged.rglob("*") if path.is_file())
        path = files[rng.integers(len(files))]
        path.write_bytes(mutated(path.read_bytes(), rng))
        try:
            found = dlas.predictor(damaged).predict(frame)
        except InputError as error:
            assert str(error).count("\n") == 0, str(error)
            refused += 1
        else:
            assert len(found) == len(frame)
    assert refused > MUTATIONS / 5


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Return content that was cut, or in which some bytes or a word stand in place of others."""
    place = int(rng.integers(len(content)))
    kind = rng.integers(4)
    if kind == 0:
        return content[:place]
    if kind == 1:
        return content[:place] + bytes([int(rng.integers(256))]) + content[place + 1 :]
    if kind == 2:
        return content[:place] + rng.bytes(int(rng.integers(1, 64))) + content[place:]
    # The value after a colon, so that JSON stays readable.
    colon, end = content.find(b":", place), content.find(b",", place)
    if not 0 <= colon < end:
        return content[:place]
    return content[: colon + 1] + WORDS[rng.integers(len(WORDS))] + content[end:]
