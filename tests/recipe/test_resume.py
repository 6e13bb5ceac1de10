"""What is expected of a run that goes on."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from minigpt import UserError
from minigpt.recipe.resume import continued_config, expected_of_run
from minigpt.runs.folder import CONFIG, PLAN, read_config
from minigpt.training.checkpoint import read_state
from tests.conftest import move_into, train_tiny


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of which a loss was expected."""
    with pytest.MonkeyPatch.context() as patch:
        folder = move_into(tmp_path_factory.mktemp("trained"), patch)
        patch.setattr("minigpt.recipe.plan.is_like_those_tried", lambda *_: True)
        return folder / train_tiny(steps=30, num_evals=3)


@pytest.fixture
def run(trained: Path, known_kind: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That run, to be read only, in the folder of its text."""
    folder = trained.parents[1]
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MINIGPT_CACHE", str(folder / "cache"))
    return trained


def _expected(run: Path, **training: Any) -> float:
    config = read_config(run)
    changed = replace(config, training=replace(config.training, **training))
    found = expected_of_run(run, read_state(run), changed)
    assert found is not None
    return found


def test_a_run_that_goes_on_to_its_planned_end_is_expected_to_end_as_planned(
    run: Path,
) -> None:
    plan = json.loads((run / PLAN).read_text())
    assert _expected(run) == pytest.approx(plan["bits_per_byte"], rel=0.05)


def test_more_minutes_count_as_many_steps_as_the_run_would_take_in_them(run: Path) -> None:
    state = read_state(run)
    minutes = 1000 * state.seconds / 60
    longer = _expected(run, steps=None, minutes=minutes, max_epochs=None)
    assert longer == pytest.approx(_expected(run, steps=1000 * state.step))
    assert longer < _expected(run)
    assert longer < _expected(run, steps=None, minutes=minutes, max_epochs=1.0)


def test_a_lesson_that_goes_on_gets_steps_in_proportion_to_the_time_for_steps(
    tiny_run: Path, tmp_path: Path
) -> None:
    """Of each lesson, the same seconds are for all else."""
    run = shutil.copytree(tiny_run, tmp_path / "lesson")
    config = json.loads((run / CONFIG).read_text())
    config["training"] |= {"lesson": True, "minutes": 0.15}
    (run / CONFIG).write_text(json.dumps(config))
    state = read_state(run)
    longer = continued_config(run, state, {"minutes": 0.16}).training
    assert longer.steps == round(30 * 1.1 / 0.5)
    with pytest.raises(UserError, match="--lesson is for a new run"):
        continued_config(run, state, {"lesson": True})


def test_a_short_run_that_goes_on_for_long_is_evaluated_as_often_as_a_long_one(
    tiny_run: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(tiny_run, tmp_path / "short")
    settings = json.loads((run / CONFIG).read_text())
    settings["training"] |= {"num_evals": 3}
    (run / CONFIG).write_text(json.dumps(settings))
    state = read_state(run)

    def evaluations(**training: Any) -> int:
        return continued_config(run, state, training).training.num_evals

    assert [evaluations(steps=n) for n in (31, 70, 5000)] == [3, 7, 10]
    assert evaluations(steps=5000, num_evals=2) == 2
    assert evaluations(minutes=9.0) == 10


def test_of_one_speaker_who_is_learned_nothing_is_expected(run: Path) -> None:
    """The forecast is of all that is said."""
    config = read_config(run)
    text = replace(config.text, only="Anna")
    of_one = replace(config, origin=replace(config.origin, text=text))
    assert expected_of_run(run, read_state(run), of_one) is None


@pytest.mark.parametrize("plan", ["", "{}", '{"text": {"predictability": {}}}', "[]"])
def test_without_a_plan_nothing_is_expected(plan: str, tiny_run: Path, tmp_path: Path) -> None:
    state = read_state(tiny_run)
    (tmp_path / PLAN).write_text(plan)
    assert expected_of_run(tmp_path, state, read_config(tiny_run)) is None
