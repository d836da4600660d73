"""A predictor's card: ``dlas show predictors/mine``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dlas
from dlas.errors import InputError
from dlas.face.tables import cards as words
from dlas.prediction.learning import stored
from dlas.prediction.learning.cards import SettingCard, card_of
from dlas.prediction.learning.stored import SettingRecord
from tests.fixtures.commands import Command
from tests.fixtures.rows import write
from tests.fixtures.training_rows import training_rows

TARGET = "latency_s"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = write(tmp_path_factory.mktemp("rows"), list(training_rows()))
    to = rows.parent / f"{rows.name}-additive"
    dlas.fit("additive", rows, target=TARGET, to=to, hold_out="compression.level")
    return to


@pytest.fixture(scope="module")
def setting(folder: Path) -> SettingRecord:
    return stored.read(folder).record.settings[0]


def test_it_fits_half_a_screen(folder: Path, dlas_here: Command) -> None:
    shown = dlas_here("show", str(folder)).stdout
    for text in ("fitted to", "how wrong", "baselines", "by size", "by compression.level", "do not trust"):
        assert text in shown
    assert len(shown.splitlines()) < 15


def test_bands_hold_the_same_rows_and_errors_as_all(setting: SettingRecord) -> None:
    card = SettingCard.of(setting, "compression.level")
    assert len(card.bands) == 3
    assert sum(band.rows for band in card.bands) == len(setting.tried)
    mean = np.average([band.mape for band in card.bands], weights=[band.rows for band in card.bands])
    assert mean == pytest.approx(card.scores.mape)
    assert all(one.high <= other.low for one, other in zip(card.bands, card.bands[1:], strict=False))


def test_few_rows_make_one_band(setting: SettingRecord) -> None:
    few = dict(list(setting.tried.items())[:4])
    card = SettingCard.of(setting.model_copy(update={"tried": few}), "compression.level")
    assert [band.rows for band in card.bands] == [4]
    assert "by size" not in words.facts(card, TARGET)


def test_weak_places_are_named(setting: SettingRecord) -> None:
    (own, *others) = setting.evaluation
    name, worst = next(iter(own.by_fold.items()))
    wrong = worst.model_copy(update={"mape": 0.9})
    bad = own.model_copy(
        update={
            "overall": own.overall.model_copy(
                update={"mape": 0.3, "coverage": 0.5, "coverage_error": 0.01, "width": 0.1}
            ),
            "by_fold": {**own.by_fold, name: wrong},
        }
    )
    kernels = [
        stored.KernelRecord(kind="conv", count=90, share=0.9, mape=0.05, within=0.9),
        stored.KernelRecord(kind="pool", count=9, share=0.09, mape=0.5, within=0.1),
        stored.KernelRecord(kind="add", count=1, share=0.001, mape=0.9, within=0.0),
    ]
    better = others[0].model_copy(
        update={"name": "flops", "overall": others[0].overall.model_copy(update={"mape": 0.2})}
    )
    update = {"evaluation": [bad, better], "kernels": kernels, "half_width": 0.1}
    card = SettingCard.of(setting.model_copy(update=update), "compression.level")
    told = "; ".join(words.doubts(card, TARGET))
    for text in ("less wrong is flops", "intervals: 50%", f"{name} (90%)", "kernels of pool (50%)"):
        assert text in told
    assert "add (" not in told


def test_parts_of_groups_are_not_named(setting: SettingRecord) -> None:
    assert SettingCard.of(setting, "network/10").groups == {}


def test_json_has_the_numbers(folder: Path, setting: SettingRecord, dlas_here: Command) -> None:
    (told,) = json.loads(dlas_here("show", str(folder), "--json").stdout)["settings"]
    assert told["rows"] == len(setting.rows)
    assert len(told["by_size"]) == 3 and told["evaluation"][0]["name"] == "additive"


def test_a_setting_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="no setting '7' of this predictor; there are: 0"):
        card_of(stored.read(folder), "7")
    assert [card.setting.folder for card in card_of(stored.read(folder), "0")] == ["0"]


def test_several_settings_have_a_line_each(tmp_path: Path, dlas_here: Command) -> None:
    folders = [
        write(tmp_path / name, list(training_rows(device={"cpu": name, "threads": 2})))
        for name in ("Slow", "Fast")
    ]
    dlas.fit("additive", folders, target=TARGET, to=tmp_path / "p", hold_out="compression.level")
    shown = dlas_here("show", "p").stdout
    assert "Slow" in shown and "Fast" in shown and "by size" not in shown
    assert "by size" in dlas_here("show", "p", "1").stdout
