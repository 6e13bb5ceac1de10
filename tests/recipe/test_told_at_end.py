"""What a person is told at the end of a training: the loss, why it ended, and what to do next."""

import math
import shlex
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from minigpt import UserError
from minigpt.cli.options import typed_text
from minigpt.config import SampleConfig, TextConfig, TrainConfig
from minigpt.data.source import find_source
from minigpt.data.token_cache import prepare_tokens
from minigpt.recipe.told_at_end import say_result
from minigpt.training.checkpoint import TrainingState
from minigpt.training.folder import RunFolder


def result(
    capsys: pytest.CaptureFixture[str],
    training: TrainConfig,
    took: float = 9.0,
    best_step: int = 9,
    best: float = 1.5,
    **figures: Any,
) -> tuple[str, list[str]]:
    """What a training of nine steps says at its end, on standard output and standard error."""
    text = TextConfig(files=("my.txt",), tokenizer="char")
    dataset = prepare_tokens(find_source(text), text)
    trainer = SimpleNamespace(
        state=TrainingState(9, 5.0, best_loss=3.0, best_bits_per_byte=best, best_step=best_step),
        config=replace(training, batch_size=10),
        context_length=100,
        tokens_per_step=10 * 100,
        dataset=dataset,
        folder=RunFolder("runs/my"),
        figures={"counted_tokens": len(dataset.train)} | figures,
        started=time.monotonic() - took,
    )
    say_result(trainer, SampleConfig(temperature=0.7))  # type: ignore[arg-type]
    out, err = capsys.readouterr()
    return out, err.splitlines()


@pytest.mark.parametrize(
    ("training", "took", "words"),
    [
        (TrainConfig(minutes=0.5), 29.0, "9 steps: the 30 seconds are over"),
        (TrainConfig(minutes=0.5), 45.0, "are over, of which starting and ending took 00:40"),
        (TrainConfig(steps=9), 45.0, "9 steps: as many as asked for"),
        (TrainConfig(max_epochs=3), 9.0, "the text was read 4 times, more would only teach it by"),
    ],
)
def test_the_end_says_why_it_came(
    workplace: Path, capsys: pytest.CaptureFixture[str], training: Any, took: float, words: str
) -> None:
    out, lines = result(capsys, training, took)
    assert out == "runs/my: validation 1.5000 bits/byte (3.0000 nats/token) at step 9\n"
    assert words in lines[0] and ("starting" in words) == ("starting" in lines[0])


def test_a_text_that_is_known_by_heart_to_the_last_letter_has_been_learned(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In float32 the loss is exactly 0 then."""
    out, _ = result(capsys, TrainConfig(steps=9), best=0.0, counting_bits_per_byte=1.0)
    assert out.startswith("runs/my: validation 0.0000 bits/byte")
    with pytest.raises(UserError, match="nothing could be saved in runs/my"):
        result(capsys, TrainConfig(steps=9), best=math.inf)


GIVES = "counting which token follows which four gives"


@pytest.mark.parametrize(
    ("counting", "words"),
    [
        (1.75, f"{GIVES} 1.750 bits/byte on the same text: the model needs 14% fewer bits"),
        (1.505, f"{GIVES} 1.505 bits/byte on the same text: the model is about as good"),
        (1.25, f"{GIVES} 1.250 bits/byte on the same text: the model is not as good yet"),
        (0.0, f"{GIVES} 0.000 bits/byte on the same text: the model is not as good yet"),
    ],
)
@pytest.mark.parametrize("extent", [{"minutes": 2}, {"steps": 9}])
def test_the_end_says_what_counting_gives(
    workplace: Path,
    capsys: pytest.CaptureFixture[str],
    extent: dict[str, Any],
    counting: float,
    words: str,
) -> None:
    assert words in result(capsys, TrainConfig(**extent), counting_bits_per_byte=counting)[1]


def test_the_end_says_so_if_only_a_part_of_the_text_was_counted(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, lines = result(capsys, TrainConfig(), counting_bits_per_byte=1.75, counted_tokens=1234)
    assert any("which four, in 1,234 tokens of the text, gives 1.750" in line for line in lines)


@pytest.mark.parametrize(
    ("training", "counting", "best_step", "advice"),
    [
        ({"minutes": 2}, 1.75, 9, "--minutes 20"),
        ({"minutes": 2}, 1.25, 9, "--minutes 20"),
        ({"minutes": 2}, 1.25, 5, "more text; more minutes would not help"),  # it has risen since
        ({"max_epochs": 1}, 1.75, 9, "more text; more minutes would not help"),
        ({"steps": 9}, 1.75, 9, None),  # as many as asked for
        ({"steps": 9}, 1.25, 9, "--steps 27"),
    ],
)
def test_the_end_says_what_would_help(
    workplace: Path,
    capsys: pytest.CaptureFixture[str],
    training: dict[str, Any],
    counting: float,
    best_step: int,
    advice: str | None,
) -> None:
    _, lines = result(
        capsys, TrainConfig(**training), counting_bits_per_byte=counting, best_step=best_step
    )
    found = [line for line in lines if line.startswith("to do better")]
    assert found == ([] if advice is None else [f"to do better: {advice}"])


def test_the_end_says_what_is_next(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, lines = result(capsys, TrainConfig(minutes=2), counting_bits_per_byte=2.0)
    assert lines[-2] == "to generate:"
    assert lines[-1].startswith("  minigpt.load('runs/my').generate('")
    monkeypatch.setattr("sys.argv", ["/usr/bin/minigpt"])
    _, lines = result(capsys, TrainConfig())
    assert lines[-1].startswith("  minigpt generate ")
    prompt = r"\nabla \\ it's"
    _, lines = result(capsys, TrainConfig(sample_prompt=prompt))
    assert typed_text(shlex.split(lines[-1])[-1]) == prompt
