"""How well a model predicts a text: every token but the first, once, in nats a token and in bits a
byte; of a long validation text always the same part, of text files all of it.
"""

import dataclasses
import io
import json
import math
import re
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import minigpt
from minigpt import UserError
from minigpt.cli import main
from minigpt.config import GPTConfig
from minigpt.data.batches import windows_of_stream, windows_side_by_side
from minigpt.data.counting import CountingModel
from minigpt.data.source import find_source
from minigpt.data.token_cache import prepare_tokens
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.measure import evaluate as evaluate_module
from minigpt.model import GPT
from minigpt.runs.read_model import load_run
from minigpt.training.evaluation import Evaluation, evaluate_windows

from ..conftest import some_text, train_tiny
from ..data.readers.made import p, word
from ..data.texts import write

few = settings(max_examples=25, deadline=None)

VOCAB, CONTEXT = 7, 5
ONE_BYTE = torch.ones(VOCAB, dtype=torch.int64)
MORE_BYTES = torch.tensor([1, 2, 3, 4, 0, 1, 2])  # such as a BPE's, 0 for a special token


def gpt(architecture: str = "qwen3", std: float = 0.5, **changes: Any) -> GPT:
    torch.manual_seed(0)
    shape = {"context_length": CONTEXT, "emb_dim": 8, "num_layers": 1, "num_heads": 2} | changes
    model = GPT(GPTConfig(VOCAB, architecture, **shape)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=std)
    return model


def tokens(length: int) -> np.ndarray:
    return np.random.default_rng(0).integers(VOCAB, size=length).astype(np.uint16)


def assert_predicted_one_by_one(
    result: Evaluation, model: GPT, text: np.ndarray, stride: int = CONTEXT
) -> None:
    """In windows of the context length, each `stride` tokens after the one before, each token by
    itself, in the first window that holds it."""
    nats, size, right, count = 0.0, 0, 0, len(text) - 1
    by_length = defaultdict[int, list[int]](list)  # those that see so many tokens, by their places
    for i in range(1, len(text)):
        number = max(math.ceil((i - CONTEXT) / stride), 0)
        start = number * stride
        assert i - start >= min(i, CONTEXT - stride + 1)  # tokens that it sees
        by_length[i - start].append(i)

    for length, places in by_length.items():
        before = [text[i - length : i].tolist() for i in places]
        with torch.no_grad():
            logits = model(torch.tensor(before))[:, -1]
        for i, row in zip(places, logits, strict=True):
            token = int(text[i])
            nats -= row.log_softmax(-1)[token].item()
            size += int(MORE_BYTES[token])
            right += int(row.argmax()) == token
    assert result.loss == pytest.approx(nats / count, rel=1e-5)
    assert result.bits_per_byte == pytest.approx(nats / math.log(2) / max(size, 1), rel=1e-5)
    assert (result.tokens, result.bytes) == (count, size)
    assert result.right == pytest.approx(right / count)


def evaluated(
    model: GPT, text: np.ndarray, byte_lengths: Tensor = ONE_BYTE, most: int = 1000, **how: Any
) -> Evaluation:
    """In windows side by side, or spread over the text."""
    windows = windows_side_by_side(text, CONTEXT, most)
    return evaluate_windows(model, windows, byte_lengths, context_length=CONTEXT, **how)


def windows_read(model: GPT, text: np.ndarray, max_tokens: int, at_once: int = 16) -> list[Any]:
    """The windows that an evaluation gives the model."""
    seen: list[Any] = []
    embedding = model.token_embedding
    hook = embedding.register_forward_pre_hook(lambda _, inputs: seen.extend(inputs[0].tolist()))
    evaluated(model, text, most=max_tokens, at_once=at_once)
    hook.remove()
    return seen


# Validation tokens, in windows side by side


@given(
    length=st.integers(2, 40),
    batch_size=st.integers(1, 4),
    architecture=st.sampled_from(["qwen3", "gpt2"]),
)
@few
def test_every_token_but_the_first_is_predicted_once(
    length: int, batch_size: int, architecture: str
) -> None:
    """Also of a text shorter than the context, and of one that ends with a short window."""
    model, text = gpt(architecture), tokens(length)
    result = evaluated(model, text, MORE_BYTES, at_once=batch_size)
    assert_predicted_one_by_one(result, model, text)


def test_guessing_takes_log2_of_the_vocabulary_for_each_token() -> None:
    result = evaluated(gpt(std=0.0), tokens(33))
    assert result.loss == pytest.approx(math.log(VOCAB), rel=1e-6)
    assert result.bits_per_byte == pytest.approx(math.log2(VOCAB), rel=1e-6)
    assert result.perplexity == pytest.approx(VOCAB)
    assert Evaluation(1e4, 1.0, 1, 1, 1, 1).perplexity == math.inf


@given(length=st.integers(2, 300), max_tokens=st.integers(1, 100), batch_size=st.integers(1, 4))
@example(length=CONTEXT + 1, max_tokens=1, batch_size=1)
@few
def test_of_a_long_text_the_same_part_is_read_every_time(
    length: int, max_tokens: int, batch_size: int
) -> None:
    """At most max_tokens and a window more, or, if the text is not longer than that, all of it."""
    model, text = gpt(), np.arange(length, dtype=np.uint16) % VOCAB
    read = windows_read(model, text, max_tokens)
    assert windows_read(model, text, max_tokens, batch_size) == read
    count = sum(map(len, read))
    assert 1 <= count <= max_tokens + CONTEXT
    if length - 1 + CONTEXT <= max_tokens:
        assert [token for window in read for token in window] == text[:-1].tolist()


def test_the_part_that_is_read_is_spread_over_the_text() -> None:
    text = np.repeat(np.arange(VOCAB, dtype=np.uint16), 30)
    read = windows_read(gpt(), text, max_tokens=70)
    assert {token for window in read for token in window} == set(range(VOCAB))


@pytest.mark.parametrize("training", [True, False])
def test_the_model_keeps_its_mode_and_is_judged_without_dropout(training: bool) -> None:
    model = gpt(dropout=0.5).train(training)
    first, second = (evaluated(model, tokens(33)) for _ in range(2))
    assert first == second == evaluated(gpt(), tokens(33))
    assert model.training == training


def test_of_the_logits_only_a_few_are_in_memory_at_a_time() -> None:
    """All of them would take 131 MB; a step of training takes less than a tenth of that."""
    vocab_size, context_length = 32_000, 64
    config = GPTConfig(vocab_size, "gpt2", context_length, emb_dim=8, num_layers=1, num_heads=1)
    model, text = GPT(config), np.arange(16 * context_length + 1)
    lengths = torch.ones(vocab_size, dtype=torch.int64)
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, profile_memory=True) as profile:
        windows = windows_side_by_side(text, context_length, 10**6)
        result = evaluate_windows(model, windows, lengths, context_length=context_length)
    assert result.tokens == 16 * context_length

    allocated = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            allocated += event.nbytes()
            peak = max(peak, allocated)
    assert 4 * vocab_size < peak < 16e6


# A stream of tokens


def cut(text: np.ndarray, places: list[int]) -> list[np.ndarray]:
    return np.split(text, sorted({place for place in places if place < len(text)}))


@given(
    length=st.integers(2, 40),
    batch_size=st.integers(1, 4),
    places=st.lists(st.integers(0, 40), max_size=5),
)
@example(length=CONTEXT + 1, batch_size=3, places=[])
@example(length=CONTEXT + 2, batch_size=3, places=[])
@few
def test_a_stream_is_predicted_as_token_by_token(
    length: int, batch_size: int, places: list[int]
) -> None:
    model, text = gpt(), tokens(length)
    windows = windows_of_stream(cut(text, places), CONTEXT)
    result = evaluate_windows(
        model, windows, MORE_BYTES, context_length=CONTEXT, at_once=batch_size
    )
    assert_predicted_one_by_one(result, model, text)


@given(
    length=st.integers(2, 40),
    stride=st.integers(1, CONTEXT),
    batch_size=st.integers(1, 4),
    places=st.lists(st.integers(0, 40), max_size=5),
)
@example(length=CONTEXT + 1, stride=1, batch_size=3, places=[])
@example(length=CONTEXT + 2, stride=4, batch_size=3, places=[])
@few
def test_in_windows_that_overlap_every_token_is_predicted_once_from_more_before_it(
    length: int, stride: int, batch_size: int, places: list[int]
) -> None:
    model, text = gpt(), tokens(length)
    windows = windows_of_stream(cut(text, places), CONTEXT, stride)
    result = evaluate_windows(
        model, windows, MORE_BYTES, context_length=CONTEXT, stride=stride, at_once=batch_size
    )
    assert_predicted_one_by_one(result, model, text, stride)


# minigpt.evaluate, and the command


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that the run was not trained on."""
    return write(tmp_path_factory.mktemp("other") / "other.txt", some_text(400, seed=9))


def test_it_is_the_loss_of_the_text_encoded_whole(tiny_run: Path, text: Path) -> None:
    run = load_run(tiny_run)
    ids = torch.tensor(run.tokenizer.encode(text.read_text())).numpy()
    lengths = torch.tensor(run.tokenizer.byte_lengths())
    expected = evaluate_windows(run.model, windows_of_stream([ids], 16), lengths, context_length=16)
    read: list[int] = []
    result = minigpt.evaluate(tiny_run, text, progress=read.append)
    assert result.loss == pytest.approx(expected.loss, rel=1e-6)
    assert result.bits_per_byte == pytest.approx(expected.bits_per_byte, rel=1e-6)
    assert result.tokens == len(ids) - 1 and sum(read) == len(text.read_text())
    assert result.context_length == 16
    assert result.bytes == len(text.read_bytes()) - lengths[ids[0]]


def test_windows_that_overlap_by_half_give_what_the_writer_gives(
    tiny_run: Path, text: Path
) -> None:
    """Of as many tokens as fill windows; it reads the rest with more before them."""
    run, writer = load_run(tiny_run), minigpt.load(tiny_run)
    ids = [writer.first_token(), *run.tokenizer.encode(text.read_text())][: 16 + 8 * 20 + 1]
    score = writer.score(run.tokenizer.decode(ids[1:]))
    assert [token.id for token in score.tokens] == ids[1:]
    expected = -score.log_probability / len(score.tokens)
    lengths = torch.tensor(run.tokenizer.byte_lengths())
    windows = windows_of_stream([np.array(ids)], 16, stride=8)
    result = evaluate_windows(run.model, windows, lengths, context_length=16, stride=8)
    assert result.loss == pytest.approx(expected, rel=1e-6)


def test_windows_overlap_only_if_asked_to_and_many_or_few_are_computed_at_once(
    tiny_run: Path, text: Path
) -> None:
    overlapping, side_by_side = (minigpt.evaluate(tiny_run, text, stride=n) for n in (4, 16))
    assert side_by_side == minigpt.evaluate(tiny_run, text)
    assert overlapping.loss != pytest.approx(side_by_side.loss, rel=1e-5)
    assert overlapping.tokens == side_by_side.tokens and overlapping.stride == 4
    one_by_one = minigpt.evaluate(tiny_run, text, stride=4, batch_size=1)
    assert one_by_one.loss == pytest.approx(overlapping.loss, rel=1e-6)


@pytest.mark.parametrize("stride", [17, 0])
def test_a_stride_that_leaves_tokens_out_is_refused(
    tiny_run: Path, text: Path, stride: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(tiny_run), str(text), "--stride", str(stride)]) == 2
    limits = "between 1 and the context length 16" if stride else "at least 1"
    assert f"error: stride must be {limits}, got {stride}" in capsys.readouterr().err


def test_counting_in_the_training_text_is_compared_with_while_that_is_as_it_was(
    workplace: Path, text: Path
) -> None:
    run = train_tiny(steps=1, num_evals=1)
    found = load_run(run)
    assert found.config is not None
    dataset = prepare_tokens(find_source(found.config.text), found.config.text)
    ids = np.array(found.tokenizer.encode(text.read_text()))
    model = CountingModel(dataset.train[:], found.tokenizer.vocab_size)
    lengths = found.tokenizer.byte_lengths()
    for stride, length in ((16, 16), (4, len(ids))):
        windows = windows_of_stream([ids], length)
        bits = minigpt.evaluate(run, text, stride=stride).counting_bits_per_byte
        assert bits == pytest.approx(model.bits_per_byte(windows, lengths), rel=1e-9)

    Path("my.txt").write_text("another text")
    assert minigpt.evaluate(run, text).counting_bits_per_byte is None


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


@pytest.mark.parametrize("copied", [[], ["--copied"]])
def test_of_several_files_one_that_cannot_be_read_is_named_and_left_out(
    copied: list[str],
    tiny_run: Path,
    text: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tiny_run.parents[1])  # where its training text is
    bad = write(tmp_path / "bad.docx", word(p("text"))[:-40])
    assert main(["evaluate", str(tiny_run), str(text), *copied]) == 0
    expected = capsys.readouterr().out

    assert main(["evaluate", str(tiny_run), str(bad), str(text), *copied]) == 0
    out, err = capsys.readouterr()
    assert out == expected
    assert err.count(f"left out: cannot read {bad}: ") == 1

    assert main(["evaluate", str(tiny_run), str(bad), *copied]) == 2
    assert f"error: cannot read {bad}: " in capsys.readouterr().err


def test_the_command_prints_one_line_or_one_record(
    tiny_run: Path,
    text: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tiny_run.parents[1])  # where its training text is
    result = minigpt.evaluate(tiny_run, text)
    command = ["evaluate", str(tiny_run), str(text)]
    assert main(command) == 0
    out, err = capsys.readouterr()
    loss = f"{result.loss:.4f} nats/token, token perplexity {math.exp(result.loss):.2f}"
    assert out == f"{tiny_run}: {result.bits_per_byte:.4f} bits/byte ({loss})\n"
    assert f"read {result.tokens} tokens in sequences of 16" in err and "\nbits/byte: " in err
    counting = f"{result.counting_bits_per_byte:.4f} bits/byte on the same text"
    assert f"counting which token follows which four in the training text gives {counting}" in err
    assert main([*command, "--stride", "4"]) == 0
    assert "sequences of 16, each 4 tokens after the one before" in capsys.readouterr().err
    assert main([*command, "--json"]) == 0
    figures = vars(result) | {"perplexity": math.exp(result.loss)}
    record = {"run": str(tiny_run), "files": [str(text)], **figures}
    assert json.loads(capsys.readouterr().out) == record


def test_standard_input_is_evaluated_as_a_file_of_the_same_text_is(
    tiny_run: Path, text: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(tiny_run), str(text)]) == 0
    out = capsys.readouterr().out
    with open(text) as piped:
        monkeypatch.setattr("sys.stdin", piped)
        assert main(["evaluate", str(tiny_run), "-"]) == 0
    assert capsys.readouterr().out == out

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a")))
    assert main(["evaluate", str(tiny_run), "-"]) == 2
    assert "error: stdin: too short to evaluate on" in capsys.readouterr().err


def test_a_folder_is_read_as_the_options_say(
    tiny_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "Ворона сидела на дереве.\n" * 9
    alone = write(tmp_path / "alone.txt", text)
    folder = tmp_path / "letters"
    folder.mkdir()
    write(folder / "old.txt", text.encode("cp1251"))
    assert main(["evaluate", str(tiny_run), str(alone)]) == 0
    expected = capsys.readouterr().out
    assert main(["evaluate", str(tiny_run), str(folder)]) == 2
    capsys.readouterr()
    assert main(["evaluate", str(tiny_run), str(folder), "--encoding", "cp1251"]) == 0
    assert capsys.readouterr().out == expected


def test_a_file_that_is_named_twice_is_read_once(
    tiny_run: Path, text: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = minigpt.evaluate(tiny_run, text)
    assert minigpt.evaluate(tiny_run, text.parent, text) == expected
    monkeypatch.chdir(tiny_run.parents[1])  # where its training text is
    for files in ([text], [text, text.parent]):
        assert main(["evaluate", str(tiny_run), *map(str, files), "--copied"]) == 0
        size = f"of {len(text.read_text()):,} characters"
        assert size in capsys.readouterr().out


def test_a_file_does_not_hide_the_run_of_its_name(
    tiny_run: Path,
    text: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("notes", "newer"):
        shutil.copytree(tiny_run, tmp_path / "runs" / name)
    write(tmp_path / "notes", "the fox asked a crow")
    result = minigpt.evaluate("runs/notes", text)
    assert main(["evaluate", "notes", str(text)]) == 0
    assert capsys.readouterr().out.startswith(f"runs/notes: {result.bits_per_byte:.4f} ")
    assert main(["evaluate", "notes"]) == 2
    assert "name a text to predict" in capsys.readouterr().err


def test_what_does_nothing_beside_copied_is_refused(
    tiny_run: Path, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for typed, words in (
        (["--encoding", "latin1"], "--encoding is for a text that is named"),
        (["--rename", "a=b"], "--rename is for a text that is named"),
        (["--text-field", "body"], "--text-field is for a text that is named"),
        ([str(text), "--device", "abacus"], "--device does nothing beside a text and --copied"),
    ):
        assert main(["evaluate", str(tiny_run), "--copied", *typed]) == 2
        assert f"error: {words}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        ("the fox", ["nowhere.txt"], "no such file: nowhere.txt"),
        ("", [], "there is no text in .*short.txt"),
        ("a", [], ".*short.txt: too short to evaluate on, at least 2 tokens are needed"),
        ("the fox", ["--anonymous"], "--anonymous is for chats, interviews and plays; none was .*"),
        ("the fox", ["--rename", "a=b", "--copied"], "--rename is for chats, .*"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_in_one_line(
    content: str, arguments: list[str], words: str, tiny_run: Path, tmp_path: Path, capsys: Any
) -> None:
    file = write(tmp_path / "short.txt", content)
    assert main(["evaluate", str(tiny_run), str(file), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and re.match(f"error: {words}$", err.splitlines()[-1])


def test_weights_that_are_not_finite_are_refused(
    tiny_run: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = load_run(tiny_run)
    spoiled = {"final_norm.weight": np.full(16, math.nan, np.float32)}
    glass = NumpyGPT(found.glass.config, {**found.glass.weights, **spoiled})
    damaged = dataclasses.replace(found, glass=glass)
    monkeypatch.setattr(evaluate_module, "find_model", lambda _: damaged)
    with pytest.raises(UserError, match="damaged: its loss is nan"):
        minigpt.evaluate(tiny_run, text)
