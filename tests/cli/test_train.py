"""`train`: what is refused before anything slow begins."""

from pathlib import Path

import pytest

from .conftest import Type, assert_refused


@pytest.mark.parametrize("plan", ["", "--plan"])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("tiny.txt", "the text is too short"),
        ("my.txt --validation tiny.txt", "1 to validate on"),
        ("my.txt --max-characters 1", "use a larger --max-characters"),
        ("my.txt --context-length 9000", "too few for context_length 9,000"),
        ("my.txt --tokenizer char --context-length 9000", "too few for context_length 9,000"),
    ],
)
def test_a_text_that_is_too_short_is_refused_before_torch_is_loaded(
    workplace: Path, type_: Type, arguments: str, words: str, plan: str
) -> None:
    Path("tiny.txt").write_text("a")
    outcome = type_(f"train {arguments} {plan}")
    assert_refused(outcome, words)
    assert outcome[2].count("\n") == 2  # not even what was read is told
    assert not Path("runs").exists()


def test_a_text_too_short_for_a_model_to_start_from_is_refused_before_the_machine_is_measured(
    workplace: Path, type_: Type, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.recipe.choose_plan.measure_speed", lambda *_: 1 // 0)
    Path("tiny.txt").write_text("the fox asked a crow\n")
    for plan in ("", "--plan"):
        outcome = type_(f"train tiny.txt --init {tiny_run} --context-length 16 {plan}")
        assert_refused(outcome, "too few for context_length 16")
