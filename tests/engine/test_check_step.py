from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from dlas.engine.steps.check import run_in_batches


@pytest.mark.parametrize(
    ("first_s", "others_s", "checked"), [(0.1, 0.1, 20), (200.0, 0.1, 20), (0.1, 25.0, 8), (200.0, 100.0, 4)]
)
def test_a_slow_build_is_checked_on_few_images_and_one_that_compiles_first_on_all(
    first_s: float, others_s: float, checked: int
) -> None:
    now = [0.0]

    def run(images: np.ndarray) -> np.ndarray:
        now[0] += others_s if now[0] else first_s
        return images

    images = np.arange(20, dtype=np.float32)
    program = SimpleNamespace(run=run)
    outputs = run_in_batches(program, images, 2, clock=lambda: now[0])  # type: ignore[arg-type]
    assert np.array_equal(outputs, images[:checked])
