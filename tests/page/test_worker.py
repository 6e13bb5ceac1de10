"""The tasks of the page's worker, in node: what they find is what the glass engine computes, and
everybody who asks is answered."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.generation.sampler import log_softmax
from minigpt.generation.writer import Writer
from minigpt.page.build import page_model
from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from .conftest import random_found
from .in_node import TaskError, Worker

CONTEXT = 14
SHAPE = {"emb_dim": 24, "num_layers": 2, "num_heads": 3, "context_length": CONTEXT}
TOKENIZER = make_tokenizer("char", None, ["abcdefghijklmnopqrstuvwxyz ,.\n日本😀"])
VOCAB = TOKENIZER.vocab_size
GREEDY = {"temperature": 0, "seed": 1}
OFF = ["0.1", "1.2"]
few = settings(max_examples=20, deadline=None)
texts = st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=3 * CONTEXT)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> FoundModel:
    return random_found(TOKENIZER, tmp_path_factory.mktemp("run"), seed=3, **SHAPE)


@pytest.fixture(scope="module")
def worker(found: FoundModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    worker = Worker(tmp_path_factory.mktemp("node"))
    worker.open(found)
    yield worker
    worker.close()


def bits(found: FoundModel, window: list[int], token: int, off: Any = ()) -> float:
    """The surprise of a token after a window, by the glass engine."""
    heads = [tuple(map(int, name.split("."))) for name in off]
    record = found.glass.record(np.array(window), heads)
    nats = log_softmax(found.glass.logits(record.residual[-1, -1]))
    return float(-nats[token] / np.log(2))


def check(found: FoundModel, ids: list[int], told: list[dict[str, Any]], off: Any = ()) -> None:
    """What was told of the tokens of a text is true."""
    for event in told:
        place, start = event["place"], event["start"]
        assert event["event"] == "token" and event["id"] == ids[place]
        if place == 0:
            continue
        expected = bits(found, ids[start:place], ids[place], off)
        assert event["bits"] == pytest.approx(expected, abs=1e-3)


@given(ids=texts, off=st.sampled_from([[], OFF]))
@few
def test_every_token_of_a_text_is_read_in_a_window_of_half_a_context_at_least(
    worker: Worker, found: FoundModel, ids: list[int], off: list[str]
) -> None:
    """And the surprise that is told of it is that in this window, by the glass engine."""
    told = worker.told("read", {"ids": ids}, off)
    assert [event["place"] for event in told] == list(range(len(ids)))
    check(found, ids, told, off)
    for event in told:
        length = event["place"] - event["start"]
        assert length <= CONTEXT and (event["start"] == 0 or length >= CONTEXT / 2)


@given(ids=texts, count=st.integers(1, 2 * CONTEXT))
@few
def test_what_is_written_is_what_the_package_writes(
    worker: Worker, found: FoundModel, ids: list[int], count: int
) -> None:
    """However long the prompt; and so it is if it is written in two goes."""
    prompt = TOKENIZER.decode([token for token in ids if token != TOKENIZER.end_of_text]) or "a"
    ids = TOKENIZER.encode(prompt)
    expected = Writer(found.glass, TOKENIZER).generate(prompt, temperature=0, max_new_tokens=count)

    told = worker.told("write", {"ids": ids}, count, GREEDY, [])
    written = ids + [event["id"] for event in told]
    assert TOKENIZER.decode(written) == expected
    check(found, written, told)

    half = told[: count // 2]
    begun = ids + [event["id"] for event in half]
    starts = [0] * len(ids) + [event["start"] for event in half]
    origin = ["typed"] * len(ids) + ["written"] * len(half)
    text = {"ids": begun, "starts": starts, "origin": origin}
    rest = worker.told("write", text, len(told) - len(half), GREEDY, [])
    assert [event["id"] for event in half + rest] == [event["id"] for event in told]
    assert [event["start"] for event in half + rest] == [event["start"] for event in told]


def test_a_text_is_read_on_where_its_windows_are_known(worker: Worker, found: FoundModel) -> None:
    ids = np.random.default_rng(5).integers(VOCAB, size=3 * CONTEXT).tolist()
    text = {"ids": ids, "starts": [0] * 9 + [4, 5], "from": 9}
    told = worker.told("read", text, [])
    assert [event["start"] for event in told[:3]] == [4, 5, 5]
    assert told[0]["place"] == 9
    check(found, ids, told)


def test_a_window_is_looked_at_alone_whatever_was_read_before(
    worker: Worker, found: FoundModel
) -> None:
    """Windows that begin alike share what is read; each has its own numbers."""
    random = np.random.default_rng(0)
    ids: list[int] = []
    for _ in range(60):
        kept = int(random.integers(len(ids) + 1))
        ids = ids[:kept] + random.integers(VOCAB, size=1 + CONTEXT // 3).tolist()
        ids = ids[:CONTEXT]
        off = OFF if random.random() < 0.5 else []
        logits = np.array(worker.ask("logits", ids, off))
        token = int(random.integers(VOCAB))
        surprise = -log_softmax(logits)[token] / np.log(2)
        assert surprise == pytest.approx(bits(found, ids, token, off), abs=1e-3)


def test_a_text_goes_on_after_the_model_ended_it(worker: Worker, found: FoundModel) -> None:
    """The end is a token of the text, so that the model sees it and the die falls anew."""
    ids = [1, 2, TOKENIZER.end_of_text]
    settings = {"temperature": 1, "seed": 1}
    told = worker.told("write", {"ids": ids}, 5, settings, [])
    assert told[0]["place"] == 3
    check(found, ids + [event["id"] for event in told], told)
    assert worker.call("dieNumber", 1, 2, ids) != worker.call("dieNumber", 1, 3, ids)


def test_tokens_that_the_training_text_cannot_have_had_are_never_written(
    found: FoundModel, tmp_path: Path
) -> None:
    """However unlikely the others are."""
    worker = Worker(tmp_path)
    model, weights = page_model(found, "test")
    forbidden = [*range(10, VOCAB)]
    worker.ask("open", model | {"forbidden": forbidden}, weights)
    told = worker.told("write", {"ids": [1]}, 60, {"temperature": 2, "seed": 3}, [])
    assert len(told) == 60 and max(event["id"] for event in told) < 10
    worker.close()


def test_a_newer_task_ends_the_older_and_everybody_is_answered(worker: Worker) -> None:
    text = {"ids": [1, 2, 3]}
    long = {"ids": [i % VOCAB for i in range(600)]}
    questions = {
        "first": worker.send("write", text, 100_000, GREEDY, []),
        "second": worker.send("write", text, 100_000, GREEDY, []),
        "third": worker.send("read", long, []),
        "fourth": worker.send("write", text, 100_000, GREEDY, []),
        "stop": worker.send("stop"),
        "fifth": worker.send("write", text, 3, GREEDY, []),
        "logits": worker.send("logits", [1, 2], []),
    }
    answers = {name: worker.answer(question) for name, question in questions.items()}
    assert len(answers.pop("logits")) == VOCAB
    stopped = dict.fromkeys(("first", "second", "fourth"), "stopped")
    assert answers == stopped | {"third": False, "stop": None, "fifth": "length"}


def test_what_is_asked_while_a_text_is_written_is_answered_meanwhile(worker: Worker) -> None:
    writing = worker.send("write", {"ids": [1]}, 100_000, GREEDY, [])
    for i in range(5):
        assert len(worker.ask("logits", [i, 2, 3], OFF)) == VOCAB
    assert writing not in worker.answers
    worker.ask("stop")
    assert worker.answer(writing) == "stopped"


@pytest.mark.parametrize(
    ("name", "args", "problem"),
    [
        ("generate", ["a☃", 5, GREEDY, []], "☃"),
        ("logits", [[], []], "nothing is before the first token"),
        ("logits", [[1] * (CONTEXT + 1), []], "more than the model sees at once"),
        ("write", [{"ids": []}, 5, GREEDY, []], "nothing is before the first token"),
        ("attention", [[VOCAB], 0, 0, []], "no such token"),
        ("paint", [], "not a function"),
    ],
)
def test_an_error_reaches_the_one_who_asked(
    worker: Worker, name: str, args: list[Any], problem: str
) -> None:
    with pytest.raises(TaskError, match=problem):
        worker.ask(name, *args)
    assert len(worker.ask("generate", "ab", 2, GREEDY, [])) == 2
