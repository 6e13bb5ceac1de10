"""What plans.json tells of each number of minutes, and what is planned for."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from minigpt import UserError
from minigpt.recipe.machine import Speed
from minigpt.studio import settings
from minigpt.studio.settings import checked_settings, options
from minigpt.studio.texts import planning
from minigpt.studio.texts.about import whole_text
from minigpt.studio.texts.folder import SETTINGS_FILE, write_json
from minigpt.system.json_objects import read_object
from tests.conftest import some_text
from tests.recipe.plans import plan_of

from .by_hand import make_run
from .dropped import dropped

TEXT = some_text(3000).replace("a", "ä")


def _plan(folder: Path) -> dict[str, Any]:
    planning.write_plans(folder)
    found = whole_text(folder)["plans"]
    assert isinstance(found, dict)
    return found


@pytest.fixture(autouse=True)
def known_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is not measured for that either; see `known_speed`."""
    monkeypatch.setattr("minigpt.recipe.choose_plan.choose_precision", lambda *_: "float32")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return dropped(tmp_path, {"my.txt": TEXT})


def test_each_stop_tells_what_a_training_of_so_many_minutes_plans(
    folder: Path, known_kind: None
) -> None:
    write_json({"seed": 3, "emb_dim": 64}, folder / SETTINGS_FILE)
    found = _plan(folder)
    assert found["problem"] is None and found["measured"] and found["share"] == 1.0
    stops = {stop["minutes"]: stop for stop in found["stops"]}
    assert tuple(stops) == planning.MINUTES

    plan = plan_of(files=(str(folder / "files"),), emb_dim=64, minutes=2.0, seed=3)
    stop = stops[2]
    assert stop["bits"] == plan.bits_per_byte
    assert stop["seconds_per_step"] == plan.seconds / plan.steps
    assert stop["epochs"] == pytest.approx(plan.epochs, abs=1e-3)
    assert stop["begins_with"] == plan.init

    bytes_per_letter = len(TEXT.encode()) / len(TEXT)
    assert stop["letters"] == pytest.approx(2 ** (stop["bits"] * bytes_per_letter))
    assert len({stop["counting_letters"] for stop in found["stops"]}) == 1
    assert stops[480]["ends_early"] and stops[480]["seconds"] < 480 * 60


def test_beside_a_training_the_newest_speed_that_is_stored_serves(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = folder.parents[1]
    _plan(folder)
    _age(folder)
    (stored,) = read_object(folder / "plans.json")["speeds"]
    monkeypatch.setattr("minigpt.recipe.choose_plan.measure_speed", lambda *_: 1 // 0)
    run = make_run(root / "runs", "diary", is_alive=True)
    other = dropped(root, {"other.txt": TEXT})
    assert _plan(other)["measured"] is False
    assert read_object(other / "plans.json")["speeds"] == [stored]

    slow = asdict(Speed(1e9, 1e-3))
    (run / "plan.json").write_text(json.dumps(stored | {"speed": slow}))
    third = dropped(root, {"third.txt": TEXT})
    assert _plan(third)["problem"] is None
    assert read_object(third / "plans.json")["speeds"][0]["speed"] == slow


def test_with_other_settings_the_computer_is_measured_again_only_after_some_minutes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _plan(folder)
    measured = read_object(folder / "plans.json")["speeds"]
    write_json({"seed": 1}, folder / SETTINGS_FILE)
    monkeypatch.setattr("minigpt.recipe.choose_plan.measure_speed", lambda *_: Speed(1e9, 1e-3))
    assert _plan(folder)["measured"]
    assert read_object(folder / "plans.json")["speeds"] == measured

    _age(folder)
    write_json({"seed": 2}, folder / SETTINGS_FILE)
    assert _plan(folder)["measured"]
    assert read_object(folder / "plans.json")["speeds"][0]["speed"]["flops"] == 1e9


def test_the_speed_of_a_lesson_is_not_taken_for_that_of_this_computer(folder: Path) -> None:
    write_json({"lesson": True}, folder / SETTINGS_FILE)
    assert _plan(folder)["problem"] is None
    assert read_object(folder / "plans.json")["speeds"] == []


def _age(folder: Path) -> None:
    """Let what was measured for a text be an hour old."""
    plans = read_object(folder / "plans.json")
    for stored in plans["speeds"]:
        stored["time"] -= 3600
    write_json(plans, folder / "plans.json")


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"emb_dim": 65, "num_heads": 2}, "emb_dim must be a multiple of num_heads (2), got 65"),
        ({"context_length": 99_999}, "use a longer text or context_length "),
        ({"only": "Anna"}, "only is for chats, interviews and plays; none was recognised"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_one_clear_problem(
    chosen: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = dropped(tmp_path, {"my.txt": some_text(300)})
    write_json(checked_settings(chosen), folder / SETTINGS_FILE)
    found = _plan(folder)
    assert found["problem"]["kind"] == "setting" and words in found["problem"]["message"]
    assert found["stops"] == []


def test_minutes_that_are_too_few_for_a_step_are_told_beside_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.recipe.choose_plan.measure_speed", lambda *_: Speed(1e8, 1.0))
    write_json({"emb_dim": 512, "num_layers": 8, "batch_size": 8}, folder / SETTINGS_FILE)
    stops = _plan(folder)["stops"]
    assert [stop["problem"] is None for stop in stops] == sorted(
        stop["problem"] is None for stop in stops
    )
    assert stops[0]["problem"]["kind"] == "too_few_minutes" and stops[0]["bits"] is None
    assert stops[-1]["epochs"] > 0


# The settings


def test_every_setting_that_is_shown_is_an_option_of_train() -> None:
    from minigpt.cli import parse
    from minigpt.cli.options import typed_text

    shown = settings.describe_settings({})
    assert len({field["name"] for field in shown}) == len(shown)
    values = {
        "whole number": 300,
        "number": 0.5,
        "switch": True,
        "text": "cpu",
        "texts": ["a=b"],
    }
    for field in shown:
        value = field["choices"][0] if field["choices"] else values[field["kind"]]
        words = options({field["name"]: value})
        _, typed = parse(["train", *words, "--", "my.txt"], None)
        assert vars(typed)[field["name"]] == value, field["name"]
    _, typed = parse(["train", *options({"tie_embeddings": False, "bias": False})], None)
    assert (typed.tie_embeddings, typed.bias) == (False, False)
    assert options({"plain": False, "anonymous": False}) == []
    stops = ("a\n\nb", "\\n", "\\\t\n")
    words = options({"stop": stops})
    assert tuple(typed_text(word.removeprefix("--stop=")) for word in words) == stops


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"minutes": 5}, "minutes is no setting"),
        ({"files": ["/etc/passwd"]}, "files is no setting"),
        ({"init": "hf:gpt2"}, "init must be base or none"),
        ({"tokenizer": "gpt2"}, "tokenizer must be bpe or char"),
        ({"emb_dim": "wide"}, "emb_dim must be a whole number"),
        ({"learning_rate": -1}, "learning_rate must be above 0"),
        ({"vocab_size": 400, "tokenizer": "char"}, "does nothing beside"),
        ({"rename": ["Anna"]}, "rename must be NAME=NAME"),
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_chosen_is_refused(sent: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=re.escape(words)):
        checked_settings(sent)


def test_settings_that_are_null_are_not_chosen_and_those_chosen_come_back() -> None:
    chosen = checked_settings({"seed": 7, "emb_dim": None, "rename": ["+49=Anna"]})
    shown = {
        field["name"]: field for field in settings.describe_settings(json.loads(json.dumps(chosen)))
    }
    assert shown["seed"]["value"] == 7 and shown["rename"]["value"] == ["+49=Anna"]
    assert shown["emb_dim"]["value"] is None and shown["emb_dim"]["planned"]
    assert shown["tokenizer"]["choices"] == ("bpe", "char")
