"""How a run is sampled if nothing else is given: what is counted in its text, the file that keeps
it, and who reads that.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigpt
from minigpt import SampleConfig
from minigpt.cli import main
from minigpt.cli.interactive import Session, Task
from minigpt.config import USUAL
from minigpt.generation.repetition import Boundaries, Passages, boundaries_of
from minigpt.recipe.beginning import model_to_begin_with
from minigpt.recipe.sampling import penalised_shares
from minigpt.runs.folder import GENERATION
from minigpt.tokenizer import train_bpe
from tests.conftest import some_chat, some_text, train_tiny
from tests.training.runs import resume

NONE = Boundaries.none(10_000)


@given(text=st.lists(st.integers(0, 3), min_size=1, max_size=60))
@settings(max_examples=100, deadline=None)
def test_as_many_tokens_are_counted_as_the_sampler_would_penalise(text: list[int]) -> None:
    ids = np.arange(4)
    boundaries = Boundaries(ids == 3, ids == 0, ids == 1)
    for length, share in penalised_shares(np.array(text), boundaries).items():
        passages = Passages((), 1, boundaries)
        count = 0
        free = 0
        for place, token in enumerate(text):
            is_inside_word = place > 0 and text[place - 1] == 1 and token == 0
            free += token != 3 and not is_inside_word
            logits = passages.penalised(
                np.zeros((1, 4), np.float32), multiplier=1.0, base=2.0, allowed_length=length
            )
            count += logits[0, token] < 0
            passages.append(np.array([token]))
        assert share == count / max(free, 1)


def test_what_an_author_repeats_may_be_repeated() -> None:
    """A passage of 150 tokens stands twice in a text without other repetitions."""
    draw = np.random.default_rng(0)
    text = draw.permutation(10_000)[:1_000]
    assert penalised_shares(text, NONE) == {2: 0.0}
    text[500:650] = text[100:250]
    shares = penalised_shares(text, NONE)  # a hundred of the thousand repeat 50 tokens before them
    assert max(shares) == 50 and shares[49] == 0.101 and shares[50] == 0.1
    refrain = np.tile(draw.integers(0, 10_000, 40), 25)
    assert max(penalised_shares(refrain, NONE)) == 100


def test_each_piece_of_a_long_text_is_looked_at_by_itself() -> None:
    once = np.random.default_rng(0).permutation(10_000)[:1_024]
    assert max(penalised_shares(np.tile(once, 100), NONE)) == 2


@pytest.mark.parametrize("length", [1, 2, 10, 1_500, 200_000])
def test_a_text_of_any_length_can_be_looked_at(length: int) -> None:
    text = np.random.default_rng(length).integers(0, 4, length)
    assert 2 <= max(penalised_shares(text, NONE)) <= 100


def test_a_text_in_capitals_is_counted_as_in_small_letters() -> None:
    shares = []
    for text in (some_text(300).lower(), some_text(300).upper()):
        tokenizer = train_bpe([text], 330)
        ids = np.array(tokenizer.encode(text))
        shares.append(penalised_shares(ids, boundaries_of(tokenizer)))
    assert shares[0] == shares[1] and shares[0][2] > 0


# In a run


@pytest.fixture
def run(tiny_run: Path, workplace: Path) -> Path:
    """A run of my.txt, to be changed."""
    return Path(shutil.copytree(tiny_run, "runs/my"))


@pytest.mark.parametrize("tokenizer", ["bpe", "char"])
def test_a_run_keeps_how_it_is_sampled_and_a_resumed_one_the_same(
    workplace: Path, capsys: pytest.CaptureFixture[str], tokenizer: str
) -> None:
    run = train_tiny(tokenizer=tokenizer)
    kept = json.loads((run / GENERATION).read_text())
    shares = kept.pop("author_penalised")
    assert {name: kept[name] for name in USUAL} == USUAL
    assert kept["dry_allowed_length"] == int(list(shares)[-1])
    assert list(shares.values())[-1] <= 0.1
    expected = SampleConfig(**kept)
    assert minigpt.load(run).usual == expected
    in_words = (
        f"it writes at temperature 0.7 and avoids repeating more than "
        f"{expected.dry_allowed_length} tokens in a row (generation.json)"
    )
    assert in_words in " ".join(capsys.readouterr().err.split())

    (run / GENERATION).write_text('{"temperature": 0.5, "dry_multiplier": 0.0}')
    resume(run, steps=9)
    assert minigpt.load(run).usual == SampleConfig(temperature=0.5)
    assert "it writes at temperature 0.5\n" in capsys.readouterr().err


def test_a_text_is_written_as_the_run_says_unless_something_else_is_given(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From Python, by the command, as records, in a talk, and by its samples while training."""
    usual = {"temperature": 0.6, "dry_multiplier": 2.0, "dry_allowed_length": 1, "top_k": 9}
    (run / GENERATION).write_text(json.dumps(usual))
    writer = minigpt.load(run)
    text = {"max_new_tokens": 60, "seed": 4}
    expected = writer.generate("the ", **text, **usual)
    assert writer.generate("the ", **text) == expected
    assert writer.samples("the ", **text)[0].text == expected.removeprefix("the ")
    assert writer.generate("the ", **text, dry_multiplier=0.0) != expected
    hot = writer.generate("the ", **text, temperature=0.9)
    assert hot == writer.generate("the ", **text, **{**usual, "temperature": 0.9}) != expected

    command = ["generate", "the ", f"--run={run}", "--max-new-tokens=60", "--seed=4"]
    capsys.readouterr()
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert out == expected + "\n" and "at temperature 0.6," in err
    assert main([*command, "--json"]) == 0
    assert "the " + json.loads(capsys.readouterr().out)["text"] == expected
    assert main([*command, "--temperature=0.9"]) == 0
    assert capsys.readouterr().out == hot + "\n"


@pytest.mark.long
def test_a_talk_and_the_samples_of_a_training_are_sampled_as_the_run_says(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from minigpt.generation.writer import Writer

    seen: list[SampleConfig] = []
    steps = Writer.steps

    def noted(self: Writer, prompt: str, config: SampleConfig, **more: object) -> object:
        seen.append(config)
        return steps(self, prompt, config, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Writer, "steps", noted)
    Path("chat.txt").write_text(some_chat(300))
    run = train_tiny("chat.txt", num_evals=1)
    usual = minigpt.load(run).usual
    names = (*USUAL, "dry_allowed_length")
    sampled = {tuple(getattr(config, name) for name in names) for config in seen}
    assert len(seen) >= 3 and sampled == {tuple(getattr(usual, name) for name in names)}

    seen.clear()
    assert main(["generate", "hello", f"--run={run}", "--as=Anna", "--max-new-tokens=9"]) == 0
    (config,) = seen
    assert {name: getattr(config, name) for name in USUAL} == USUAL
    assert len(config.stop) >= 1


def test_at_temperature_0_or_1_nothing_is_penalised_unless_it_is_asked_for() -> None:
    usual = SampleConfig(temperature=0.7, dry_multiplier=0.8, dry_allowed_length=5)
    assert usual.with_given() == usual
    assert usual.with_given(top_k=3).dry_multiplier == 0.8
    for temperature in (0, 0.0, 1, 1.0):
        config = usual.with_given(temperature=temperature)
        assert config.dry_multiplier == 0.0 and config.temperature == temperature
        assert usual.with_given(temperature=temperature, dry_base=2.0).dry_multiplier == 0.8
        assert usual.with_given(temperature=temperature, dry_multiplier=0.5).dry_multiplier == 0.5
    for temperature in (0.99, 1.01, 0.5):
        assert usual.with_given(temperature=temperature).dry_multiplier == 0.8


def test_at_temperature_0_or_1_only_the_penalties_that_are_given_act() -> None:
    penalties = {"repetition_penalty": 1.2, "presence_penalty": 0.5, "frequency_penalty": 0.3}
    usual = SampleConfig(temperature=0.7, **penalties)
    assert usual.with_given(temperature=0.5) == SampleConfig(temperature=0.5, **penalties)
    for temperature in (0, 1):
        assert usual.with_given(temperature=temperature) == SampleConfig(temperature=temperature)
        for name in penalties:
            asked = {"temperature": temperature, name: 0.9}
            assert usual.with_given(**asked) == SampleConfig(**asked)


def test_a_temperature_that_is_typed_in_a_session_counts_as_given(tiny_run: Path) -> None:
    session = Session(Task(minigpt.load(tiny_run), {}, [], prompt="", shown=""), width=0)
    usual = USUAL["dry_multiplier"]
    for typed, multiplier in (("0.4", usual), ("1", 0.0), ("0.7", usual), ("0", 0.0)):
        session.take(f"/temperature {typed}")
        config = session._task.config
        assert (config.temperature, config.dry_multiplier) == (float(typed), multiplier)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"temperature": -1}', "temperature must be at least 0"),
        ('{"temperature": NaN}', "temperature must be a number"),
        ('{"dry_allowed_length": "many"}', "dry_allowed_length must be a whole number"),
        ('{"temperature": 0.7, "seed": 3}', "cannot set seed, only temperature, top_k,"),
        ('{"temperature": 0.7, "stop": ["."]}', "cannot set stop, only"),
        ('{"temperature": 0.7, "samples": 2}', "cannot set samples, only"),
        ('{"temperature": 0.7, "max_new_tokens": 9}', "cannot set max_new_tokens, only"),
        ('{"whole_sentences": true}', "cannot set whole_sentences, only"),
    ],
)
def test_a_damaged_file_is_named(
    run: Path, capsys: pytest.CaptureFixture[str], content: str, problem: str
) -> None:
    (run / GENERATION).write_text(content)
    assert main(["generate", "the", f"--run={run}"]) == 2
    said = capsys.readouterr().err
    assert problem in said and GENERATION in said and said.count("\n") <= 2
    assert "delete the file" in said or "cannot set" in said


def test_what_does_not_sample_does_without_a_damaged_file(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To evaluate, to compare, to explain, to look up a text, to begin with. To resume needs it,
    and refuses it before the text is read."""
    (run / GENERATION).write_text("{")
    assert main(["evaluate", str(run), "my.txt"]) == 0
    assert main(["evaluate", str(run), "my.txt", "--copied"]) == 0
    assert main(["explain", str(run), "the fox"]) == 0
    assert model_to_begin_with(str(run)).folder == run
    second = train_tiny(out="second", steps=1)
    assert main(["compare", str(run), str(second), "my.txt"]) == 0

    Path("my.txt").unlink()
    for command in (
        ["train", "--resume", f"--out={run}", "--steps=31"],
        ["export", str(run)],
        ["page", str(run)],
        ["evaluate", str(run), "--copied"],
    ):
        capsys.readouterr()
        assert main(command) == 2
        assert GENERATION in capsys.readouterr().err
    assert not Path("exports").exists()


def test_a_run_without_the_file_has_the_plain_defaults(run: Path) -> None:
    (run / GENERATION).unlink()
    assert minigpt.load(run).usual == SampleConfig()


def test_a_run_of_a_text_without_repetitions_and_of_one_that_repeats_a_line(
    workplace: Path,
) -> None:
    """What is allowed is counted in the text that is held out, in the run's own tokens."""
    Path("plain.txt").write_text(some_text(300))
    Path("repeated.txt").write_text("one and two and three and four and five and six, " * 300)
    allowed = []
    for name in ("plain", "repeated"):
        run = train_tiny(f"{name}.txt", out=name, tokenizer="char")
        allowed.append(minigpt.load(run).usual.dry_allowed_length)
    assert allowed[0] < allowed[1] == 100
