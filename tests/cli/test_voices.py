"""A run with voices: training it, and writing in one."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigpt
from minigpt.generation.window import Window
from minigpt.runs.folder import BY_VOICE, METRICS, read_config, read_metrics

from ..conftest import some_text, tiny_settings
from .conftest import Type, assert_refused

pytestmark = pytest.mark.long


@pytest.fixture
def texts(workplace: Path) -> Path:
    (workplace / "LOUD.txt").write_text(some_text(400, seed=1).upper())
    (workplace / "quiet.txt").write_text(some_text(400, seed=2))
    return workplace


def options(**changes: Any) -> list[str]:
    given = []
    for name, value in tiny_settings(**changes).items():
        given += [f"--{name.replace('_', '-')}", str(value)]
    return given


def share_of_capitals(text: str) -> float:
    letters = list(filter(str.isalpha, text))
    return sum(map(str.isupper, letters)) / len(letters)


# Training


def test_training_tells_the_loss_of_each_voice_and_the_run_keeps_their_names(
    texts: Path, type_: Type
) -> None:
    status, out, err = type_("train", "LOUD.txt", "quiet.txt", "--voices", *options())
    assert status == 0, err
    assert "voices     LOUD (1 document) and quiet (1 document); --as NAME" in err
    assert [line.split()[0] for line in out.splitlines()[1:]] in (
        ["LOUD", "quiet"],
        ["quiet", "LOUD"],
    )
    assert "    | LOUD:" in err and "    | quiet:" in err
    assert "in_voice('LOUD')" in err

    assert read_config(Path("runs/LOUD")).origin.voices == ("LOUD", "quiet")
    rows = read_metrics(Path("runs/LOUD") / METRICS)
    assert all(set(row[BY_VOICE]) == {"LOUD", "quiet"} for row in rows)
    status, out, _ = type_("runs")
    assert status == 0 and "LOUD.txt quiet.txt in 2 voices" in out
    status, out, _ = type_("runs", "--json")
    assert json.loads(out)[BY_VOICE] == rows[-1][BY_VOICE]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("train LOUD.txt --voices", ["there is only LOUD"]),
        ("train --voices", ["there is only tales"]),
        ("train LOUD.txt - --voices", ["stdin has no name"]),
        ("train LOUD.txt quiet.txt --voices --only Otto", ["--only does nothing beside --voices"]),
        (
            "train LOUD.txt quiet.txt --voices --validation my.txt",
            ["no voice 'my'; there are LOUD"],
        ),
        ("train LOUD.txt empty.txt --voices", ["there is no text in empty"]),
    ],
)
def test_what_can_have_no_voices_is_refused(
    typed: str, words: list[str], texts: Path, type_: Type
) -> None:
    (texts / "empty.txt").write_text(" ")
    assert_refused(type_(typed), *words)
    assert not Path("runs").exists()


def test_a_name_that_leaves_no_room_for_text_is_refused(texts: Path, type_: Type) -> None:
    long = Path("a name of many letters that few tokens can write.txt")
    Path("quiet.txt").rename(long)
    typed = ["train", "LOUD.txt", str(long), "--voices", *options()]
    assert_refused(type_(*typed), "name of a voice", "context of 16", "shorter name")


# Writing


def test_as_writes_in_a_voice_from_a_command_and_from_python(voiced_run: Path, type_: Type) -> None:
    written = {}
    for name in ("LOUD", "quiet"):
        typed = ["generate", "--run", voiced_run, "--as", name[:3], "--seed", "1", "--wrap", "0"]
        status, out, err = type_(*typed, "--max-new-tokens", "60")
        assert status == 0, err
        assert f"as {name}, at temperature" in err
        written[name] = out.strip()

    assert share_of_capitals(written["LOUD"]) > 0.7 > 0.3 > share_of_capitals(written["quiet"])
    writer = minigpt.load(voiced_run).in_voice("LOUD")
    text = writer.generate(max_new_tokens=60, seed=1)
    assert text.strip() == written["LOUD"]


def test_a_voice_is_never_forgotten_however_long_the_text(voiced_run: Path) -> None:
    writer = minigpt.load(voiced_run).in_voice("LOUD")
    size = writer.engine.context_length
    ids = writer.tokenizer.encode(some_text(200).upper())
    window = Window(writer.engine, [*writer.mark, *ids], kept=len(writer.mark))
    for token in ids[:size]:
        window.next_logits()
        assert window._seen[0, : len(writer.mark)].tolist() == list(writer.mark)
        window.append(np.array([token]))


def test_a_voice_changes_what_is_likely_and_its_own_text_most(voiced_run: Path) -> None:
    writer = minigpt.load(voiced_run)
    for name, text in (("LOUD", some_text(100, seed=5).upper()), ("quiet", some_text(100, seed=5))):
        scores = {v: writer.in_voice(v).score(text).log_probability for v in writer.voices}
        assert max(scores, key=lambda v: scores[v]) == name


@pytest.mark.parametrize(
    ("as_", "words"),
    [("nobody", ["no voice 'nobody'; there are LOUD and quiet"]), ("", ["no voice ''"])],
)
def test_a_voice_that_is_not_there_is_refused_with_those_that_are(
    as_: str, words: list[str], voiced_run: Path, type_: Type
) -> None:
    assert_refused(type_("generate", "--run", voiced_run, "--as", as_), *words)


def test_as_is_refused_for_a_run_without_voices(tiny_run: Path, type_: Type) -> None:
    outcome = type_("generate", "--run", tiny_run, "--as", "LOUD")
    assert_refused(outcome, "on conversations or with --voices")


def test_a_session_goes_from_one_voice_to_another(
    voiced_run: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = b"/as qui\nthe\n/as\n/as nobody\n/help\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
    typed = ["generate", "--run", voiced_run, "--as", "LOUD", "--interactive", "--seed", "1"]
    status, out, err = type_(*typed, "--max-new-tokens", "40", "--wrap", "0")
    assert status == 0, err
    assert share_of_capitals(out) < 0.4
    assert "writing as quiet; there are LOUD and quiet" in err
    assert "error: there is no voice 'nobody'" in err
    assert "/as NAME" in err


# Evaluating and explaining


def test_evaluate_says_which_voice_a_text_is_nearest_to(
    voiced_run: Path, texts: Path, type_: Type
) -> None:
    for file, name in (("LOUD.txt", "LOUD"), ("quiet.txt", "quiet")):
        status, out, err = type_("evaluate", voiced_run, "--voices", file)
        assert status == 0, err
        first, *rows = out.splitlines()
        assert first.endswith(f"nearest to {name}")
        assert {row.split()[0] for row in rows} == {"LOUD", "quiet", "(no"}

    status, out, _ = type_("evaluate", voiced_run, "LOUD.txt", "--voices", "--json")
    record = json.loads(out)
    assert record["nearest"] == "LOUD"
    bits = record["voices"]
    assert bits["LOUD"] < record["no_voice"] < bits["quiet"]

    status, out, err = type_("evaluate", voiced_run, "LOUD.txt", "--as", "lou", "--json")
    assert status == 0, err
    assert json.loads(out)["bits_per_byte"] == pytest.approx(bits["LOUD"], abs=0.05)


def test_without_a_text_the_validation_text_of_each_voice_is_read_in_each(
    voiced_run: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(voiced_run.parents[1])
    status, out, err = type_("evaluate", voiced_run)
    assert status == 0, err
    status, out, err = type_("evaluate", voiced_run, "--voices", "--json")
    tables = json.loads(out)["voices"]
    for name, bits in tables.items():
        assert min(bits, key=lambda voice: bits[voice]) == name


@pytest.mark.parametrize("options", ["--copied", "--as LOUD", "--stride 4"])
def test_what_does_nothing_beside_voices_is_refused(options: str, texts: Path, type_: Type) -> None:
    typed = type_(f"evaluate LOUD.txt --voices {options}")
    assert_refused(typed, "does nothing beside --voices")


def test_evaluate_refuses_voices_of_a_run_that_has_none(
    tiny_run: Path, texts: Path, type_: Type
) -> None:
    assert_refused(type_("evaluate", tiny_run, "LOUD.txt", "--voices"), "without --voices")
    assert_refused(type_("evaluate", tiny_run, "LOUD.txt", "--as", "LOUD"), "without --voices")
    assert_refused(type_("evaluate", tiny_run), "name a text to predict")


def test_a_token_is_explained_in_a_voice(voiced_run: Path, type_: Type) -> None:
    text = "THE FOX ASKED"
    found = {}
    for name in ("LOUD", "quiet"):
        status, out, err = type_("explain", voiced_run, text, "--as", name, "--json")
        assert status == 0, err
        found[name] = json.loads(out)["probability"]

        writer = minigpt.load(voiced_run).in_voice(name)
        token = writer.score(text).tokens[-1]
        ids = writer.tokenizer.encode(text)
        logits = writer.glass(np.array([[*writer.mark, *ids[:-1]]]))[0, -1]
        shares = np.exp(logits - logits.max())
        assert found[name] == pytest.approx(float(shares[token.id] / shares.sum()), rel=1e-3)
    assert found["LOUD"] != found["quiet"]
