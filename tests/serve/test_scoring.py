"""Log-probabilities: one for each token of a prompt and one for each that was drawn, as evaluation
harnesses read them; and what a request is said to have used."""

import asyncio
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigpt
from minigpt.generation.writer import Writer

from .conftest import Local

pytest.importorskip("uvicorn", reason="make installs what these tests need")
from minigpt.serve.answers import by_name

TEXTS = ("the fox asked a crow for bread", "no", "a mill by night said no, then flew")


@pytest.fixture(scope="module")
def harness(tiny_run: Path) -> Local:
    """A server of a model that knows documents, so that a text begins after the end of another."""
    return Local(tiny_run, writer=replace(minigpt.load(tiny_run), knows_documents=True))


def parsed(answer: dict[str, Any], context_lengths: list[int]) -> list[tuple[float, bool]]:
    """The log-probability of what follows each context, and whether each token of it was the
    likeliest; as `parse_logprobs` of lm-eval 0.4 has it for local-completions."""
    found = []
    choices = sorted(answer["choices"], key=lambda choice: choice["index"])
    for choice, begin in zip(choices, context_lengths, strict=True):
        nats = choice["logprobs"]["token_logprobs"][begin:-1]
        tops = choice["logprobs"]["top_logprobs"][begin:-1]
        is_greedy = all(chance == max(top.values()) for chance, top in zip(nats, tops, strict=True))
        found.append((sum(nats), is_greedy))
    return found


def test_a_harness_gets_the_score_of_the_writer(harness: Local) -> None:
    """The requests of lm-eval 0.4: for whole texts after the end of another one, in batches, and
    for the second half of each after the first."""
    writer = harness.writer
    usual: dict[str, Any] = {"model": "tiny", "temperature": 0, "max_tokens": 1}
    usual |= {"logprobs": 1, "seed": 1234, "echo": True}
    first = writer.first_token()
    assert first == writer.tokenizer.end_of_text
    ids = [[first, *writer.tokenizer.encode(text)][:16] for text in TEXTS]

    answer = harness.complete(prompt=ids, **usual)
    halves = [len(row) // 2 for row in ids]
    rolling = parsed(answer, [1] * len(ids))
    continued = parsed(answer, halves)

    for row, half, whole, rest in zip(ids, halves, rolling, continued, strict=True):
        text = writer.tokenizer.decode(row)
        score = writer.score(text)
        bits = -whole[0] / math.log(2) / len(text.encode())
        assert bits == pytest.approx(score.bits_per_byte, abs=1e-6)
        nats = [token.log_probability for token in score.tokens]
        assert rest[0] == pytest.approx(sum(nats[half - 1 :]), abs=1e-5)
        best = writer.glass(np.array([row]))[0].argmax(axis=-1).tolist()
        assert rest[1] == (best[half - 1 : -1] == row[half:])


def test_a_harness_may_send_texts_too(harness: Local) -> None:
    """Their first token is predicted by nothing."""
    texts = list(TEXTS[:2])
    ids = [harness.writer.tokenizer.encode(text) for text in texts]
    usual: dict[str, Any] = {"max_tokens": 1, "logprobs": 1, "echo": True, "temperature": 0}
    as_texts, as_ids = (harness.complete(prompt=prompt, **usual) for prompt in (texts, ids))
    assert [choice["logprobs"] for choice in as_texts["choices"]] == [
        choice["logprobs"] for choice in as_ids["choices"]
    ]


PROMPTS: list[Any] = ["", "t", "the fox", "END", "END the", "a END no", "no END", "END END"]
ENDINGS: list[dict[str, Any]] = [{}, {"ends": True}, {"stop": ["e", "o", " "]}]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("max_tokens", [0, 1, 5])
@pytest.mark.parametrize("prompt", PROMPTS)
def test_each_token_read_or_drawn_has_its_log_probability(
    local: Local, prompt: str, max_tokens: int, ending: dict[str, Any]
) -> None:
    """Also the end of a text and what a stop string hides; and each is counted once. END stands
    for the token between two documents."""
    tokenizer = local.writer.tokenizer
    end = tokenizer.end_of_text
    ids = [
        i
        for n, part in enumerate(prompt.split("END"))
        for i in ([end] if n else []) + tokenizer.encode(part)
    ]
    asked: dict[str, Any] = {"prompt": ids or "", "echo": True, "logprobs": 2, "seed": 3}
    asked |= {"max_tokens": max_tokens, "n": 2, "stop": ending.get("stop")}
    asked["logit_bias"] = {str(end): 100 if ending.get("ends") else -100}
    answer = local.complete(**asked)

    drawn = 0
    for choice in answer["choices"]:
        told = choice["logprobs"]
        size = len(told["tokens"])
        drawn += size - len(ids)
        assert {len(values) for values in told.values()} == {size}
        assert told["tokens"][: len(ids)] == [tokenizer.decode([i]) or "<|endoftext|>" for i in ids]
        assert [nats is None for nats in told["token_logprobs"]] == [
            bool(ids) and i == 0 for i in range(size)
        ]
        assert [top is None for top in told["top_logprobs"]] == [
            nats is None for nats in told["token_logprobs"]
        ]
        seen = choice["text"]
        assert seen.startswith(tokenizer.decode(ids))
        assert told["text_offset"] == sorted(told["text_offset"])
        for name, place in zip(told["tokens"], told["text_offset"], strict=True):
            if name != "<|endoftext|>" and "\\" not in name and place + len(name) <= len(seen):
                assert seen[place:].startswith(name)

        if max_tokens == 0:
            assert size == len(ids) and choice["finish_reason"] == "length"
        elif ending.get("ends"):
            assert size == len(ids) + 1 and choice["finish_reason"] == "stop"
            assert told["tokens"][-1] == "<|endoftext|>"
        elif not ending:
            assert size == len(ids) + max_tokens and choice["finish_reason"] == "length"
    usage = answer["usage"]
    assert usage["prompt_tokens"] == len(ids) and usage["completion_tokens"] == drawn
    assert usage["total_tokens"] == len(ids) + drawn


@pytest.mark.parametrize("logprobs", [None, 0, 3])
@pytest.mark.parametrize("stop", [[], ["e"]])
def test_a_stream_tells_what_a_whole_answer_tells(
    local: Local, logprobs: int | None, stop: list[str]
) -> None:
    """Half characters too: this model may write any bytes."""
    asked: dict[str, Any] = {"prompt": "the fox", "echo": True, "max_tokens": 30, "seed": 5}
    asked |= {"n": 2, "logprobs": logprobs, "stop": stop, "temperature": 5.0}
    whole = local.complete(**asked)["choices"]
    _, _, events = local.ask("/v1/completions", {**asked, "stream": True})
    joined: list[dict[str, Any]] = [
        {"index": i, "text": "", "logprobs": None, "finish_reason": None} for i in range(2)
    ]
    for line in events.decode().split("\n\n")[:-2]:
        for choice in json.loads(line.removeprefix("data: "))["choices"]:
            told = joined[choice["index"]]
            told["text"] += choice["text"]
            told["finish_reason"] = told["finish_reason"] or choice["finish_reason"]
            if choice["logprobs"] and told["logprobs"]:
                for name, values in choice["logprobs"].items():
                    told["logprobs"][name] += values
            else:
                told["logprobs"] = told["logprobs"] or choice["logprobs"]
    assert joined == whole


def test_a_prompt_is_echoed_as_it_was_sent_and_half_a_character_is_left_out(
    local: Local,
) -> None:
    """Also a prompt that ends with the sign that stands for what is no character."""
    asked: dict[str, Any] = {"echo": True, "max_tokens": 0, "logprobs": 1}
    for prompt in ("a ф\ufffd", "\ufffd"):
        (choice,) = local.complete(prompt=prompt, **asked)["choices"]
        assert choice["text"] == prompt
        assert len(choice["logprobs"]["tokens"]) == len(local.writer.tokenizer.encode(prompt))
    *_, half = local.writer.tokenizer.encode("ф")  # its second byte
    (choice,) = local.complete(prompt="a", max_tokens=2, logit_bias={str(half): 100})["choices"]
    assert choice["text"] == ""


def test_a_token_after_half_a_character_begins_after_it(local: Local) -> None:
    """A prompt of token ids may end anywhere; what follows is a text of its own."""
    first, _ = local.writer.tokenizer.encode("ф")
    (letter,) = local.writer.tokenizer.encode("t")
    asked: dict[str, Any] = {"echo": True, "logprobs": 0, "max_tokens": 2, "temperature": 0}
    bias = {str(letter): 100}
    (choice,) = local.complete(prompt=[letter, first], logit_bias=bias, **asked)["choices"]
    assert choice["text"] == "t\ufffdtt"
    assert choice["logprobs"]["text_offset"] == [0, 1, 2, 3]
    assert choice["logprobs"]["tokens"] == ["t", "\\xd1", "t", "t"]


def test_of_two_tokens_with_one_name_the_likelier_is_told() -> None:
    r"""Half a character may be named as four others are, \xd1. So the largest value of a table
    is that of the likeliest token, with which a harness compares."""
    token = {"token": "\\xd1", "logprob": -3.0}
    tops = [{"token": "\\xd1", "logprob": -0.5}, {"token": "a", "logprob": -1.0}]
    assert by_name(token, tops) == {"\\xd1": -0.5, "a": -1.0}
    assert by_name({"token": "a", "logprob": None}, []) is None


def test_a_token_without_a_text_has_a_name_of_its_own(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As models of other programs have several: a table by name loses none."""
    local = Local(tiny_run)
    tokenizer: Any = local.writer.tokenizer
    special, end = 260, tokenizer.end_of_text
    monkeypatch.setattr(tokenizer, "_special_ids", {special, end})
    asked: dict[str, Any] = {"echo": True, "max_tokens": 0, "logprobs": 0}
    (choice,) = local.complete(prompt=[end, special, special, end], **asked)["choices"]
    names = ["<|endoftext|>", "token_id:260", "token_id:260", "<|endoftext|>"]
    assert choice["logprobs"]["tokens"] == names and choice["text"] == ""


def test_a_chat_tells_each_token_too(local: Local) -> None:
    end = local.writer.tokenizer.end_of_text
    asked = {
        "messages": [{"role": "user", "content": "the"}],
        "logprobs": True,
        "top_logprobs": 2,
        "max_tokens": 4,
        "logit_bias": {str(end): -100},
    }
    answer = json.loads(local.ask("/v1/chat/completions", asked)[2])
    told = answer["choices"][0]["logprobs"]["content"]
    assert len(told) == answer["usage"]["completion_tokens"] == 4
    assert all(len(token["top_logprobs"]) == 2 for token in told)


def test_a_text_has_as_many_tokens_as_were_asked_for(local: Local) -> None:
    """An echoed prompt is none of them."""
    end = str(local.writer.tokenizer.end_of_text)
    for count in (0, 1, 2, 17, 40):
        for echo in (False, True):
            asked: dict[str, Any] = {"prompt": "the fox", "echo": echo, "n": 3}
            answer = local.complete(max_tokens=count, logit_bias={end: -100}, **asked)
            assert answer["usage"]["completion_tokens"] == 3 * count
            read = len(local.writer.tokenizer.encode("the fox"))
            assert answer["usage"]["prompt_tokens"] == read
    new_name = local.complete(max_tokens=9, max_completion_tokens=3, logit_bias={end: -100})
    assert new_name["usage"]["completion_tokens"] == 3
    more = local.complete(prompt="the", max_tokens=100, logit_bias={end: -100})
    assert more["usage"]["completion_tokens"] == 40  # --max-tokens


def test_n_texts_are_those_that_the_writer_samples(tiny_run: Path) -> None:
    """Far beyond the context, while others are written, and with fewer places than texts. Their
    log-probabilities tell whether the model saw the same tokens before each."""
    writer: Writer = minigpt.load(tiny_run)
    local = Local(tiny_run, writer=writer, max_tokens=60)
    settings: dict[str, Any] = {"temperature": 0.9, "seed": 5}
    samples = writer.samples(
        "the fox",
        max_new_tokens=60,
        samples=5,
        stop=("mill n",),
        log_probabilities=True,
        **settings,
    )
    assert max(len(sample.token_ids) for sample in samples) == 60
    asked: dict[str, Any] = {"prompt": "the fox", "max_tokens": 60, "stop": "mill n", "n": 5}
    asked |= {"logprobs": 0, **settings}

    async def together() -> dict[str, Any]:
        path = "/v1/completions"
        others = [local.send(path, {"n": 3, "max_tokens": 50}) for _ in range(2)]
        (_, _, answer), *_ = await asyncio.gather(local.send(path, asked), *others)
        found: dict[str, Any] = json.loads(answer)
        return found

    answer = local.run(together())
    for choice, sample in zip(answer["choices"], samples, strict=True):
        assert choice["text"] == sample.text
        nats = choice["logprobs"]["token_logprobs"]
        assert nats == pytest.approx(sample.log_probabilities, abs=1e-4)
    used = answer["usage"]["completion_tokens"]
    assert used == sum(len(sample.token_ids) for sample in samples)
