"""`minigpt evaluate RUN FILE` and `minigpt.evaluate`: how well a trained model predicts a text."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import minigpt
from minigpt import UserError
from minigpt.cli import main
from minigpt.runs import load_run
from minigpt.training import evaluation
from minigpt.training.evaluation import evaluate_windows, sliding_windows

from ..conftest import some_text
from ..data.texts import write


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that the run was not trained on."""
    return write(tmp_path_factory.mktemp("other") / "other.txt", some_text(400, seed=9))


def evaluated(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    status = main(["evaluate", *map(str, arguments)])
    return status, *capsys.readouterr()


@pytest.mark.parametrize("stride", [None, 16, 5, 1])
def test_it_is_the_loss_of_the_text_encoded_whole(
    stride: int | None, tiny_run: Path, text: Path
) -> None:
    run = load_run(tiny_run)
    ids = torch.tensor(run.tokenizer.encode(text.read_text())).numpy()
    lengths = torch.tensor(run.tokenizer.byte_lengths())
    expected = evaluate_windows(run.model, sliding_windows([ids], 16, stride or 16), lengths)
    result = minigpt.evaluate(tiny_run, text, stride=stride)
    assert (result.loss, result.bits_per_byte) == (expected.loss, expected.bits_per_byte)
    assert result.tokens == len(ids) - 1
    assert (result.context_length, result.stride) == (16, stride or 16)
    assert result.bytes == len(text.read_bytes()) - lengths[ids[0]]


def test_a_text_encoded_in_many_pieces_has_the_same_loss(
    tiny_run: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = minigpt.evaluate(tiny_run, text)
    encode = evaluation.encode_in_pieces
    monkeypatch.setattr(evaluation, "encode_in_pieces", lambda *arguments: encode(*arguments, 50))
    assert minigpt.evaluate(tiny_run, text) == whole


def test_documents_follow_each_other_with_an_end_of_text_between(
    tiny_run: Path, tmp_path: Path
) -> None:
    texts = ["the fox asked", "a crow for bread"]
    files = [write(tmp_path / f"{i}.txt", each) for i, each in enumerate(texts)]
    rows = "".join(json.dumps({"body": each}) + "\n" for each in texts)
    lines = write(tmp_path / "a.jsonl", rows)
    encode = load_run(tiny_run).tokenizer.encode
    result = minigpt.evaluate(tiny_run, *files)
    assert result.tokens == len(encode(texts[0])) + 1 + len(encode(texts[1])) - 1
    assert minigpt.evaluate(tiny_run, lines, text_field="body") == result


def test_the_command_prints_one_line(
    tiny_run: Path, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = minigpt.evaluate(tiny_run, text, stride=8)
    status, out, err = evaluated(capsys, tiny_run, text, "--stride", "8")
    assert (status, err) == (0, "")
    assert out == (
        f"{tiny_run}: {result.loss:.4f} nats/token, {result.bits_per_byte:.4f} bits/byte, "
        f"perplexity {math.exp(result.loss):.2f} ({result.tokens:,} tokens, context 16, stride 8)\n"
    )


def test_the_command_prints_one_record(
    tiny_run: Path, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = minigpt.evaluate(tiny_run, text)
    status, out, err = evaluated(capsys, tiny_run, text, "--json")
    assert (status, err, out.count("\n")) == (0, "", 1)
    assert json.loads(out) == {
        "run": str(tiny_run),
        "files": [str(text)],
        "loss": result.loss,
        "bits_per_byte": result.bits_per_byte,
        "perplexity": math.exp(result.loss),
        "tokens": result.tokens,
        "bytes": result.bytes,
        "context_length": 16,
        "stride": 16,
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--stride", "17"], "stride must be at most 16, the context length of .*, got 17"),
        (["--stride", "0"], "stride must be at least 1, got 0"),
        (["--batch-size", "0"], "batch_size must be at least 1"),
        (["--device", "abacus"], "no device 'abacus'"),
        (["nowhere.txt"], "no such file: nowhere.txt"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    arguments: list[str], words: str, tiny_run: Path, text: Path, capsys: Any
) -> None:
    status, out, err = evaluated(capsys, tiny_run, text, *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert re.match(f"error: .*{words}", err)


@pytest.mark.parametrize("content", ["", "a"])
def test_a_text_without_a_token_to_predict_is_refused(
    content: str, tiny_run: Path, tmp_path: Path, capsys: Any
) -> None:
    file = write(tmp_path / "short.txt", content)
    status, out, err = evaluated(capsys, tiny_run, file)
    assert (status, out) == (2, "")
    assert err == f"error: {file}: too short to evaluate on, at least 2 tokens are needed\n"


def test_a_run_that_is_none_is_refused(tmp_path: Path, text: Path, capsys: Any) -> None:
    status, out, err = evaluated(capsys, tmp_path / "no", text)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"error: no such run: {tmp_path / 'no'} ")


def test_weights_that_are_no_numbers_are_refused(
    tiny_run: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = evaluation.find_model(tiny_run)
    with torch.no_grad():
        found.model.final_norm.weight.fill_(math.nan)
    monkeypatch.setattr(evaluation, "find_model", lambda _: found)
    with pytest.raises(UserError, match="damaged: its loss is nan"):
        minigpt.evaluate(tiny_run, text)
