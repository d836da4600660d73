from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from dlas.sweep.engine.steps.check import compare_classes, paired_difference, run_in_batches


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


def outputs_of(classes: list[int]) -> np.ndarray:
    """Return outputs whose largest is that of each class."""
    return np.eye(3, dtype=np.float32)[classes]


def test_a_build_is_compared_with_its_network_image_by_image() -> None:
    labels = np.array([0, 1, 2, 0])
    found = compare_classes(outputs_of([0, 1, 0, 1]), outputs_of([0, 1, 1, 0]), labels)
    assert (found["accuracy"], found["agreement"], found["difference"]) == (0.5, 0.5, -0.25)
    assert found["images"] == 4 and found["low"] < 0.5 < found["high"]
    assert found["difference_low"] < -0.25 < 0 < found["difference_high"]


def test_where_all_agree_the_number_of_images_decides_how_sure_that_is() -> None:
    alike = {n: outputs_of([0] * n) for n in (20, 2000)}
    few, many = (compare_classes(same, same, np.zeros(n, int)) for n, same in alike.items())
    for found, slack in ((few, 0.2), (many, 0.002)):
        assert found["agreement"] == found["agreement_high"] == 1 > found["agreement_low"] > 1 - slack
        assert found["difference"] == 0 and found["difference_low"] == -found["difference_high"] > -slack
    assert many["difference_high"] < few["difference_high"] / 50


def test_the_interval_of_a_paired_difference_is_the_published_one() -> None:
    first, second = np.array([True] * 20 + [False] * 30), np.array([True] * 12 + [False] * 38)
    # Eight gained, none lost, of fifty: by the formula, (9 - 1) / 52 and 1.96 standard errors.
    middle, error = 8 / 52, (((9 + 1) / 52 - (8 / 52) ** 2) / 52) ** 0.5
    expected = (8 / 50, middle - 1.96 * error, middle + 1.96 * error)
    assert paired_difference(first, second) == pytest.approx(expected, abs=1e-4)
    assert paired_difference(second, first) == pytest.approx([-8 / 50, -expected[2], -expected[1]], abs=1e-4)
