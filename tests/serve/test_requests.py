"""Any request gets an answer in the right shape, whatever it holds, and leaves nothing behind."""

import asyncio
import gc
import json
import os
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigpt
from minigpt import SampleConfig, UserError
from minigpt.data.dialogue import Dialogue
from minigpt.generation.writer import Writer
from minigpt.runs.find import find_model
from minigpt.serve.settings import ServeConfig

from ..patience import PATIENCE
from .conftest import Local

pytest.importorskip("uvicorn", reason="make installs what these tests need")
from minigpt.serve.app import BODY
from minigpt.serve.requests import Order, read_bias, read_order

COUNT = int(os.environ.get("MINIGPT_REQUESTS", "1000"))
ERROR = {"message", "type", "param", "code"}
COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"

odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
texts = st.sampled_from(["", "the fox", "a crow said\nno", "ф🦊", "x" * 5000]) | st.text(max_size=9)
token_ids = st.lists(st.integers(0, 299), min_size=1, max_size=18)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "prompt": texts | token_ids | st.lists(texts, max_size=3) | st.lists(token_ids, max_size=2),
    "messages": st.lists(
        st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": texts}),
        max_size=3,
    ),
    "max_tokens": st.integers(0, 50),
    "temperature": st.floats(0, 2),
    "top_p": st.floats(0, 1),
    "top_k": st.integers(-1, 400),
    "min_p": st.floats(0, 1),
    "n": st.integers(1, 3),
    "stop": st.text(max_size=3) | st.lists(st.sampled_from(["the", " ", "fox"]), max_size=5),
    "seed": st.integers(-5, 1 << 70),
    "logprobs": st.integers(0, 5) | st.booleans(),
    "top_logprobs": st.integers(0, 5),
    "echo": st.booleans(),
    "presence_penalty": st.floats(-2, 2),
    "frequency_penalty": st.floats(-2, 2),
    "repetition_penalty": st.floats(0.5, 2),
    "dry_multiplier": st.floats(0, 2),
    "dry_allowed_length": st.integers(1, 5),
    "logit_bias": st.dictionaries(st.integers(0, 310).map(str), st.floats(-100, 100), max_size=3),
    "stream": st.booleans(),
    "stream_options": st.fixed_dictionaries({"include_usage": st.booleans()}),
    "suffix": st.just(""),
    "unknown": odd,
}
orders = st.fixed_dictionaries({}, optional=FIELDS)
broken = st.tuples(orders, st.sampled_from(sorted(FIELDS)), odd).map(
    lambda drawn: {**drawn[0], drawn[1]: drawn[2]}
)


def test_the_seed_minus_one_means_any(local: Local) -> None:
    asked = {"prompt": "the", "max_tokens": 20, "temperature": 2, "n": 1, "seed": -1}
    written = {local.complete(**asked)["choices"][0]["text"] for _ in range(4)}
    assert len(written) > 1
    assert local.ask(COMPLETIONS, {**asked, "seed": -2})[0] == 400


def test_what_a_request_leaves_out_is_as_the_run_says(tiny_run: Path) -> None:
    """The same text as that of the writer, with the same settings given or left out."""
    writer = minigpt.load(tiny_run, device="cpu")
    assert writer.usual != SampleConfig()
    server = Local(tiny_run, writer=writer)
    asked: list[dict[str, Any]] = [{}, {"temperature": 0.4}, {"temperature": 1}, {"dry_base": 3}]
    for chosen in asked:
        body = {"prompt": "the fox", "max_tokens": 30, "seed": 3, **chosen}
        written = server.complete(**body)["choices"][0]["text"]
        expected = writer.generate("the fox", max_new_tokens=30, seed=3, **chosen)
        assert "the fox" + written == expected

    def order(**body: Any) -> Order:
        return read_order(body, is_chat=False, writer=writer, config=ServeConfig())[0]

    usual = writer.usual
    left_out = order(prompt="the")
    assert left_out.temperature == usual.temperature and left_out.max_tokens == 16
    assert left_out.dry_allowed_length == usual.dry_allowed_length
    for temperature in (0, 1):
        assert order(temperature=temperature).dry_multiplier == 0.0
        asked_for = order(temperature=temperature, dry_multiplier=0.5)
        assert asked_for.dry_multiplier == 0.5


def test_filters_and_penalties_of_the_run_can_be_turned_off(tiny_run: Path) -> None:
    usual = SampleConfig(temperature=0.7, top_k=5, top_p=0.9, min_p=0.1, presence_penalty=0.5)
    writer = replace(minigpt.load(tiny_run, device="cpu"), usual=usual)

    def order(**body: Any) -> Order:
        return read_order(body, is_chat=False, writer=writer, config=ServeConfig())[0]

    assert order().top_k == order(top_k=None).top_k == 5
    for off in (0, -1):
        assert order(top_k=off).top_k is None
    assert order(top_p=1).top_p == 1 and order(min_p=0).min_p == 0
    assert order().presence_penalty == 0.5
    assert order(temperature=1).presence_penalty == order(presence_penalty=0).presence_penalty == 0


any_request = given(
    path=st.sampled_from([COMPLETIONS, CHAT]),
    body=orders | broken | odd | st.binary(max_size=20),
    leaves=st.integers(0, 9).map(lambda n: n == 0),
)


@any_request
@settings(max_examples=20, deadline=None)
def test_any_request_is_answered(local: Local, path: str, body: Any, leaves: bool) -> None:
    assert_answered(local, path, body, leaves)


@pytest.mark.serve
@any_request
@settings(max_examples=COUNT, deadline=None, derandomize=True)
def test_a_thousand_requests_are_answered(local: Local, path: str, body: Any, leaves: bool) -> None:
    """As many as MINIGPT_REQUESTS says."""
    assert_answered(local, path, body, leaves)


def assert_answered(local: Local, path: str, body: Any, leaves: bool) -> None:
    status, headers, answer = local.ask(path, body, leaves=leaves)
    assert status in (200, 400, 422) or (leaves and not status), answer
    if leaves and not answer:
        return
    if status != 200:
        error = json.loads(answer)["error"]
        assert set(error) == ERROR and error["message"]
        assert "Traceback" not in error["message"] and "/" not in error["message"][:1]
    elif "event-stream" in headers["content-type"]:
        assert leaves or answer.endswith(b"data: [DONE]\n\n")
        chunks = [json.loads(line[6:]) for line in answer.decode().split("\n\n")[:-2]]
        assert len({chunk["id"] for chunk in chunks}) <= 1
    else:
        found = json.loads(answer)
        usage, asked = found["usage"], body
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
        assert {choice["finish_reason"] for choice in found["choices"]} <= {"stop", "length"}
        for choice in found["choices"]:
            text = choice["text"] if "text" in choice else choice["message"]["content"]
            stops = asked.get("stop") or []
            new = "" if asked.get("echo") else text
            assert not any(s in new for s in ([stops] if isinstance(stops, str) else stops))


@pytest.mark.long
def test_nothing_is_left_running_and_memory_is_flat(local: Local) -> None:
    """With whole, streamed, refused and left answers."""

    def used(times: int) -> int:
        for _ in range(times):
            local.ask(COMPLETIONS, {"prompt": "the", "n": 2, "logprobs": 1})
            local.ask(CHAT, {"messages": [{"role": "user", "content": "a"}], "stream": True})
            local.ask(COMPLETIONS, {"n": 20}, leaves=True)
            local.ask(COMPLETIONS, {"n": -1})
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    before = used(10)
    assert used(max(COUNT // 80, 5)) < before + 200_000  # bytes; each text has as many as 2,400
    tracemalloc.stop()
    writing, deadline = local.writing, time.monotonic() + PATIENCE
    while writing.waiting or writing.reading or writing.rows:  # until its next step
        assert time.monotonic() < deadline, "a place is still taken"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/nowhere", {}, {}, 404),
        ("/v1/models", {}, {}, 405),
        (COMPLETIONS, b"{", {}, 400),
        (COMPLETIONS, b"[" * 100_000, {}, 400),
        (COMPLETIONS, {"suffix": "end"}, {}, 422),
        (COMPLETIONS, b" " * (BODY + 1), {}, 413),
        (COMPLETIONS, {}, {"content-type": "text/plain"}, 415),
        (COMPLETIONS, {}, {"host": "evil.example:8000"}, 400),
        (COMPLETIONS, {}, {"host": ""}, 400),
        (COMPLETIONS, {}, {"host": "LocalHost:8000"}, 200),
        (COMPLETIONS, {}, {"host": "[::1]:8000"}, 200),
        (COMPLETIONS, {"prompt": [999_999]}, {}, 422),
        (COMPLETIONS, {"logit_bias": {"999999": 1}}, {}, 422),
        (COMPLETIONS, {"logit_bias": {"1" + "0" * 5_000: 1}}, {}, 422),
        (COMPLETIONS, {"prompt": "half of a pair: \ud800"}, {}, 400),
        (CHAT, {"messages": []}, {}, 400),
        (COMPLETIONS, {"model": "another"}, {}, 404),
        (COMPLETIONS, {"n": 100, "prompt": ["a", "b"]}, {}, 400),
    ],
)
def test_each_refusal_has_its_status(
    local: Local, path: str, body: Any, headers: dict[str, str], status: int
) -> None:
    found, told, answer = local.ask(path, body, headers=headers)
    assert found == status, answer
    assert status == 200 or set(json.loads(answer)["error"]) == ERROR
    assert "access-control-allow-origin" not in told


def test_a_bias_is_added_as_it_was_sent(local: Local) -> None:
    """A token is drawn as soon as its logit with the bias is the largest."""
    ids = local.writer.tokenizer.encode("the fox")
    logits = local.writer.glass(np.array([ids]))[0, -1]
    best, other = np.argsort(-logits)[[0, 3]].tolist()
    gap = float(logits[best] - logits[other])
    asked: dict[str, Any] = {"prompt": ids, "max_tokens": 1, "temperature": 0, "logprobs": 0}
    for bias, drawn in ((0.9 * gap, best), (1.1 * gap, other)):
        (choice,) = local.complete(logit_bias={str(other): bias}, **asked)["choices"]
        (name,) = choice["logprobs"]["tokens"]
        assert local.writer.tokenizer.token_bytes(drawn).decode(errors="backslashreplace") == name


def test_a_bias_is_for_the_token_whose_number_it_is_with_zeros_before_it_too(local: Local) -> None:
    token_id = local.writer.tokenizer.encode("e")[0]
    for zeros in (0, 1, 9, 5_000):
        bias = read_bias({"logit_bias": {"0" * zeros + str(token_id): 3}}, local.writer)
        assert np.flatnonzero(bias != local.writer.bias).tolist() == [token_id]


def test_of_a_long_chat_the_end_is_read(local: Local) -> None:
    words = "the fox asked a crow for bread and said no then flew to old mill by night"
    asked = {"seed": 1, "max_tokens": 8}
    for content in (words, f"{words} " * 200):
        chat = {"messages": [{"role": "user", "content": content}], **asked}
        answer = json.loads(local.ask(CHAT, chat)[2])
        ids = local.writer.tokenizer.encode(content)[-16:]
        text = local.complete(prompt=ids, **asked)
        assert answer["choices"][0]["message"]["content"] == text["choices"][0]["text"]
        assert answer["usage"] == text["usage"]


def test_a_reply_ends_at_its_own_stop_strings_and_at_the_next_turn(local: Local) -> None:
    def stops(writer: Writer, config: ServeConfig, is_chat: bool) -> tuple[str, ...]:
        body = {"stop": ["x", "y"], "messages": []}
        return read_order(body, is_chat=is_chat, writer=writer, config=config)[0].stop

    template = ServeConfig(chat_template=("user=Q:",))
    assert stops(local.writer, template, is_chat=True) == ("x", "y", "\nQ:")
    assert stops(local.writer, template, is_chat=False) == ("x", "y")
    spoken = replace(local.writer, dialogue=Dialogue({"Anna": 1}))
    assert stops(spoken, ServeConfig(), is_chat=True) == ("x", "y", "\n\n")
    assert stops(spoken, ServeConfig(), is_chat=False) == ("x", "y")


def test_a_character_that_the_model_does_not_know_is_named(letters_run: Path) -> None:
    local = Local(letters_run)
    status, _, answer = local.ask(COMPLETIONS, {"prompt": "the 🦊"})
    assert status == 400 and "🦊" in json.loads(answer)["error"]["message"]


def test_a_chat_is_joined_by_its_template(tiny_run: Path) -> None:
    messages = [
        {"role": r, "content": c} for r, c in [("user", "no"), ("assistant", "fox"), ("user", "a")]
    ]
    plain, roles = Local(tiny_run), ("user=Q:", "assistant=A:")
    dialogue = Local(tiny_run, chat_template=roles)
    for local, prompt in [(plain, "no\nfox\na"), (dialogue, "Q:no\nA:fox\nQ:a\nA:")]:
        asked = {"seed": 1, "max_tokens": 8}
        _, _, chat = local.ask(CHAT, {"messages": messages, **asked})
        ids = local.writer.tokenizer.encode(prompt)[-16:]
        _, _, text = local.ask(COMPLETIONS, {"prompt": ids, "stop": "\nQ:", **asked})
        reply = json.loads(chat)["choices"][0]["message"]["content"]
        assert reply == json.loads(text)["choices"][0]["text"]


def test_cors_is_for_the_origins_that_were_named(tiny_run: Path) -> None:
    local = Local(tiny_run, cors_origin=("http://a.example",))
    for origin, allowed in [("http://a.example", True), ("http://b.example", False)]:
        _, headers, _ = local.ask(COMPLETIONS, {}, headers={"origin": origin})
        assert (headers.get("access-control-allow-origin") == origin) == allowed


def test_a_site_may_be_named_with_the_port_that_browsers_leave_out(tiny_run: Path) -> None:
    named = ("http://A.example:80", "https://b.example:443/", "http://c.example:8080")
    local = Local(tiny_run, cors_origin=named)
    for origin in ("http://a.example", "https://b.example", "http://c.example:8080"):
        _, headers, _ = local.ask(COMPLETIONS, {}, headers={"origin": origin})
        assert headers.get("access-control-allow-origin") == origin


@pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
def test_half_a_character_anywhere_gets_an_answer(local: Local, path: str) -> None:
    half = "\ud800"
    message = {"role": "user", "content": "the", "name": half}
    usual: dict[str, Any] = {"prompt": "the", "messages": [message], "max_tokens": 1}
    others = [{"messages": [{**message, name: half}]} for name in message]
    others += [{"stop": [half]}, {"logit_bias": {half: 1}}, {half: half}]
    for sent in [{name: half} for name in (*FIELDS, "model", "user")] + others:
        status, _, answer = local.ask(path, {**usual, **sent})
        assert status < 500 and json.loads(answer), sent


def test_the_body_may_say_its_encoding(local: Local) -> None:
    kind = {"content-type": "application/json; charset=utf-8"}
    assert local.ask(COMPLETIONS, {"max_tokens": 1}, headers=kind)[0] == 200


@pytest.mark.parametrize(
    "changes", [{"host": "0.0.0.0"}, {"api_key_file": "nowhere"}, {"host": "203.0.113.9"}]
)
def test_an_unsafe_server_does_not_start(tiny_run: Path, changes: dict[str, str]) -> None:
    from minigpt.serve.app import serve

    with pytest.raises((UserError, FileNotFoundError)):
        serve(find_model(tiny_run), "tiny", ServeConfig(**changes))


def test_the_page_comes_with_its_own_policy(local: Local) -> None:
    status, headers, page = local.ask("/", method="GET")
    assert status == 200 and b"<script" in page
    assert b'http-equiv="Content-Security-Policy" content="default-src' in page
    assert headers["content-security-policy"] == "frame-ancestors 'none'"


def test_a_step_that_fails_is_told_and_leaves_no_place_taken(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = Local(tiny_run)
    with monkeypatch.context() as broken_model:
        broken_model.setattr(type(local.writer.engine), "next_logits", lambda *_: 1 / 0)
        status, headers, answer = local.ask(COMPLETIONS, {"prompt": "the fox", "n": 5})
    assert status == 503 and "retry-after" in headers and b"division" not in answer
    assert local.ask(COMPLETIONS, {"prompt": "the fox", "n": 5})[0] == 200


def test_a_full_server_says_so_and_so_does_one_that_has_no_time(tiny_run: Path) -> None:
    full = Local(tiny_run, max_waiting=20)

    async def many() -> set[int]:
        asked = [full.send(COMPLETIONS, {"n": 20}) for _ in range(20)]
        return {status for status, _, _ in await asyncio.gather(*asked)}

    assert full.run(many()) == {200, 429}
    late = Local(tiny_run, max_seconds=1e-9)
    for is_stream in (False, True):
        status, headers, answer = late.ask(COMPLETIONS, {"prompt": "the", "stream": is_stream})
        assert b"no time for the request" in answer
        assert is_stream or (status == 503 and "retry-after" in headers)


def test_a_client_may_ask_for_whole_sentences(local: Local) -> None:
    asked = {"seed": 4, "temperature": 0.9, "whole_sentences": True}
    answer = local.complete(prompt="the fox", max_tokens=5, **asked)
    (sample,) = local.writer.samples("the fox", max_new_tokens=5, **asked)
    assert answer["choices"][0]["text"] == sample.text
    assert answer["usage"]["completion_tokens"] == len(sample.token_ids) > 5

    status, _, refusal = local.ask("/v1/completions", {"whole_sentences": "yes"})
    assert status == 400 and b"whole_sentences" in refusal
