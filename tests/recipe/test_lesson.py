"""A lesson has the same plan and the same losses whatever the machine's speed and its processors
are, and is given more minutes by the same rule."""

import json
from pathlib import Path
from typing import Any

import pytest

import minigpt
from minigpt import UserError
from minigpt.cli import main
from minigpt.config import GPTConfig, TrainConfig
from minigpt.recipe.machine import SPEED_OF_A_LESSON, Speed
from tests.conftest import some_text
from tests.forks import Forks
from tests.patience import PATIENCE
from tests.training.runs import resume

pytestmark = pytest.mark.long

SHAPE = ["--emb-dim=16", "--num-layers=1", "--num-heads=1", "--context-length=16"]
SMALL = [*SHAPE, "--vocab-size=320", "--minutes=0.15"]
OF_A_LESSON = ("step", "train_loss", "val_loss", "val_right", "counting_bits_per_byte")


def train_at(forks: Forks, speed: float, threads: int, out: str) -> None:
    """The command on a machine that seems to have a speed, and so many processors."""
    code = (
        f"import torch; torch.set_num_threads({threads}); "
        "from minigpt.cli import main; from minigpt.recipe import choose_plan; "
        f"choose_plan.measure_speed = lambda *_: choose_plan.Speed({speed}, 1e-3); "
        f"raise SystemExit(main(['train', 'my.txt', '--lesson', '--out', {out!r}, *{SMALL}]))"
    )
    assert forks.start(["-c", code]).wait(PATIENCE) == 0


def losses(run: str | Path) -> list[dict[str, Any]]:
    lines = (Path(run) / "metrics.jsonl").read_text().splitlines()
    return [{name: row[name] for name in OF_A_LESSON} for row in map(json.loads, lines)]


def test_a_lesson_has_the_same_plan_and_losses_on_another_machine(
    workplace: Path, forks: Forks
) -> None:
    Path("my.txt").write_text(some_text(3000))
    train_at(forks, 1e9, threads=1, out="slow")
    train_at(forks, 5e11, threads=2, out="fast")
    assert Path("slow/plan.json").read_text() == Path("fast/plan.json").read_text()
    assert losses("slow") == losses("fast")
    assert len(losses("slow")) > 1
    weights = [Path(run, "model.safetensors").read_bytes() for run in ("slow", "fast")]
    assert weights[0] == weights[1]


def plan_of(options: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["train", "my.txt", "--plan", *options.split()]) == 0
    return capsys.readouterr().out


def test_its_plan_follows_from_text_and_minutes_alone(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.txt").write_text(some_text(3000))
    found = {}
    for speed in (Speed(1e9, 1e-2), Speed(5e12, 0.0)):
        monkeypatch.setattr("minigpt.recipe.choose_plan.measure_speed", lambda *_, of=speed: of)
        found[speed] = [plan_of("--lesson", capsys), plan_of("--minutes 3", capsys)]
    (slow, usual_slow), (fast, usual_fast) = found.values()
    assert slow == fast and usual_slow != usual_fast  # which shows that the speeds matter
    assert " --lesson" in slow and "--num-workers" not in slow


def test_it_takes_about_its_minutes_at_the_speed_of_a_lesson(workplace: Path) -> None:
    run = minigpt.train("my.txt", lesson=True, minutes=0.15, emb_dim=16, num_layers=1)
    plan = json.loads((run / "plan.json").read_text())
    config = json.loads((run / "config.json").read_text())["training"]
    assert Speed(**plan["speed"]) == SPEED_OF_A_LESSON
    assert plan["seconds"] <= 60 * 0.15 and plan["init"] is None
    assert config["steps"] == plan["steps"] and config["minutes"] == 0.15
    assert (config["device"], config["precision"], config["num_workers"]) == ("cpu", "float32", 1)


def test_one_that_goes_on_gets_steps_in_proportion(workplace: Path) -> None:
    run = minigpt.train("my.txt", lesson=True, minutes=0.15, emb_dim=16, num_layers=1, max_epochs=1)
    steps = json.loads((run / "plan.json").read_text())["steps"]
    resume(run, minutes=0.16)
    assert losses(run)[-1]["step"] == round(steps * (9.6 - 8.5) / (9 - 8.5))
    with pytest.raises(UserError, match="--lesson is for a new run"):
        resume(run, lesson=True)


@pytest.mark.parametrize(
    "other",
    ["--steps=9", "--device=cpu", "--precision=bfloat16", "--compile=on", "--num-workers=2",
     "--seed=1"],
)  # fmt: skip
def test_what_would_change_its_numbers_is_refused_in_one_line(
    other: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "my.txt", "--lesson", other]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    option = other.partition("=")[0]
    assert line == f"error: {option} does nothing beside --lesson; leave one of them out"


def test_a_trainer_of_a_lesson_needs_steps(workplace: Path) -> None:
    dataset = minigpt.prepare("my.txt", vocab_size=300)
    model = minigpt.GPT(GPTConfig(300, context_length=16, emb_dim=16, num_layers=1, num_heads=1))
    with pytest.raises(UserError, match="give steps="):
        minigpt.Trainer(model, dataset, TrainConfig(lesson=True))
