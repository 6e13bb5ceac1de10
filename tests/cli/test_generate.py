"""generate: what stands on standard output and what beside it, and what is refused in one line."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import minigpt
from minigpt.cli import main as cli

from ..conftest import train_tiny

Run = tuple[int, str, str]


@pytest.fixture(autouse=True)
def nothing_typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with open("/dev/null") as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        yield


def call(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Run:
    """Exit status, standard output, standard error."""
    try:
        status = cli.generate_main(list(map(str, arguments)))
    except SystemExit as end:
        status = int(end.code or 0)
    return status, *capsys.readouterr()


def assert_refused(run: Run, words: str) -> None:
    status, out, err = run
    assert (status, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("error: ") and words in err


# Records


def test_json_is_a_record_for_each_sample_and_nothing_else(
    tiny_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("the\nfox", "--run", tiny_run, "--seed", "3", "--max-new-tokens", "9")
    status, out, err = call(capsys, *given, "--json", "--samples", "3")
    assert status == 0 and str(tiny_run) in err
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["sample"] for record in records] == [0, 1, 2]
    for record in records:
        assert record["prompt"] == "the\nfox" and record["seed"] == 3
        assert 1 <= record["tokens"] <= 9 and record["stop_reason"] in ("length", "end_of_text")
        assert record["seconds"] > 0 and record["tokens_per_second"] > 0
        assert "logprobs" not in record
    assert call(capsys, *given)[1] == records[0]["prompt"] + records[0]["text"] + "\n"


def test_the_seed_of_a_record_writes_it_again(
    tiny_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("the", "--run", tiny_run, "--json", "--max-new-tokens", "12")
    first = json.loads(call(capsys, *given)[1])
    assert (
        json.loads(call(capsys, *given, "--seed", str(first["seed"]))[1])["text"] == first["text"]
    )


def test_log_probabilities_are_those_of_the_model(
    tiny_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("the fox", "--run", tiny_run, "--max-new-tokens", "5", "--json", "--logprobs")
    record = json.loads(call(capsys, *given, "--temperature", "0.5")[1])
    writer = minigpt.load(tiny_run)
    prompt, drawn = writer.tokenizer.encode("the fox"), [t["id"] for t in record["logprobs"]]
    with torch.no_grad():
        logits = writer.model(torch.tensor([[*prompt, *drawn]]))[0]
    likely = logits.log_softmax(-1)[len(prompt) - 1 : -1].gather(1, torch.tensor(drawn)[:, None])
    found = [token["log_probability"] for token in record["logprobs"]]
    torch.testing.assert_close(torch.tensor(found), likely.squeeze(1), atol=1e-4, rtol=1e-4)
    assert record["tokens"] == len(drawn)
    assert writer.tokenizer.decode(drawn) == record["text"]
    texts = [token["text"] for token in record["logprobs"]]
    assert texts == [writer.tokenizer.decode([i]) for i in drawn]


# Text


def test_a_prompt_from_a_file_is_continued_where_it_ends(
    tiny_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prompt.txt").write_text("the fox\n")
    given = ("--run", tiny_run, "--seed", "1", "--max-new-tokens", "8")
    status, out, _ = call(capsys, "--prompt-file", tmp_path / "prompt.txt", *given)
    assert status == 0 and out == call(capsys, "the fox", *given)[1]


def test_show_prints_the_same_text_below_its_tokens(
    tiny_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("the fox", "--run", tiny_run, "--seed", "1", "--max-new-tokens", "8")
    shown = call(capsys, *given, "--show")[1]
    table, text = shown.split("\n\n", 1)
    assert text.rstrip("\n") == call(capsys, *given)[1].rstrip("\n")
    assert len(table.splitlines()) == 1 + 8 and "\x1b" not in shown
    for line in table.splitlines()[1:]:
        percents = [float(word.strip("<%")) for word in line.split() if word.endswith("%")]
        assert percents[1:] == sorted(percents[1:], reverse=True) and sum(percents) <= 101


# What is refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--temperature -1", "temperature must be at least 0"),
        ("--temperature hot", "--temperature"),
        ("--top-k 0", "top_k must be at least 1"),
        ("--top-p 1.5", "top_p must be"),
        ("--max-new-tokens -3", "max_new_tokens must be at least 0"),
        ("--samples 0", "samples must be"),
        ("--seed -1", "seed must be"),
        ("--json --show", "json and show exclude each other"),
        ("--json --interactive", "json and interactive exclude each other"),
        ("--logprobs", "add --json"),
        ("--interactive -", "--prompt-file"),
        ("Once upon a time", "put quotes around the prompt: 'Once upon a time'"),
        ("Once --prompt-file some.txt", "given twice"),
        ("--prompt-file nowhere.txt", "cannot read nowhere.txt"),
        ("Once", "no run in runs/ yet"),
        ("Once --run nowhere", "no such run: nowhere"),
        ("Once --run folder", "folder is not a run"),
        ("Once --device abacus --run folder", "no device 'abacus'"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    workplace: Path, capsys: pytest.CaptureFixture[str], arguments: str, words: str
) -> None:
    (workplace / "folder").mkdir()
    assert_refused(call(capsys, *arguments.split()), words)


@pytest.mark.parametrize("how", [[], ["--show"], ["--json"], ["--interactive"]])
def test_a_run_that_cannot_be_read_is_refused_however_it_is_to_be_used(
    how: list[str], tiny_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run)
    weights = run / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert_refused(call(capsys, "the fox", "--run", run, *how), "model.safetensors is damaged")
    weights.unlink()
    assert_refused(call(capsys, "the fox", "--run", run, *how), "has no model.safetensors")


def test_a_prompt_that_cannot_be_encoded_is_refused_before_anything_is_written(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train_tiny(tokenizer="char", steps=1, num_evals=1)
    capsys.readouterr()
    for how in ([], ["--show"]):
        assert_refused(call(capsys, "the €", "--run", run, *how), "'€' at position 4")
    status, out, err = call(capsys, "the €", "--run", run, "--json")
    assert (status, out) == (2, "") and "'€' at position 4" in err.splitlines()[-1]
