"""Who gets a row of the batch: the oldest texts, of a request at most as many as half of the rows;
and none is left without an answer. Steps are made one by one here."""

import asyncio
import contextlib
import itertools
import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigpt
from minigpt.generation.sampler import nats_of
from minigpt.generation.writer import Writer

from .conftest import Local

pytest.importorskip("uvicorn", reason="make installs what these tests need")
from minigpt.serve import app
from minigpt.serve import batch as batching
from minigpt.serve.answers import TextPiece
from minigpt.serve.batch import Job, WritingThread
from minigpt.serve.requests import ApiError, Order
from minigpt.serve.settings import ServeConfig


@pytest.fixture(scope="module")
def writer(tiny_run: Path) -> Writer:
    return minigpt.load(tiny_run)


def by_hand(check: Callable[[], None]) -> None:
    """Run a check that submits jobs, where an event loop runs."""

    async def run() -> None:
        check()

    asyncio.run(run())


def a_job(writer: Writer, n: int = 1, prompt: str = "the fox", **fields: Any) -> Job:
    """A request that goes on until its last token."""
    bias = writer.bias.copy()
    bias[writer.tokenizer.end_of_text] = -np.inf
    count = fields.pop("max_tokens", 3)
    fields = {"temperature": 1.0, **fields}
    order = Order(n=n, max_tokens=count, max_new_tokens=count, **fields)
    ids = writer.tokenizer.encode(prompt)
    return Job(order, [(prompt, ids)], bias, time.monotonic() + 100)


def a_thread(writer: Writer, rows: int, **settings: Any) -> WritingThread:
    return WritingThread(writer, ServeConfig(max_batch=rows, **settings))


def pieces(job: Job, i: int = 0) -> list[TextPiece]:
    """All that the client of a job was told of a text."""
    return list(job.texts[i].pieces)


def drawn(job: Job, i: int = 0) -> list[int]:
    """The tokens that were written of a text."""
    return [token.id for piece in pieces(job, i) if not piece.is_prompt for token in piece.tokens]


def finish(writing: WritingThread) -> None:
    """Until all texts are written."""
    while writing.waiting or writing.reading or writing.rows:
        writing.step()


def test_the_oldest_request_comes_first(writer: Writer) -> None:
    def check() -> None:
        writing = a_thread(writer, rows=1)
        jobs = dict(zip("abcd", [a_job(writer, n) for n in (3, 1, 2, 1)], strict=True))
        for job in jobs.values():
            writing.submit(job)
        begun = list[str]()
        while writing.waiting or writing.rows:
            writing.step()
            for name, job in jobs.items():
                for i, text in enumerate(job.texts):
                    if text.pieces and f"{name}{i}" not in begun:
                        begun.append(f"{name}{i}")
        assert begun == ["a0", "a1", "a2", "b0", "c0", "c1", "d0"]

    by_hand(check)


def test_a_request_has_half_of_the_rows_and_leaves_the_others_to_later_ones(
    writer: Writer,
) -> None:
    """Its texts are the same as without that, also where its contexts are full and read again."""
    samples = writer.samples("the fox", max_new_tokens=40, samples=9, seed=1, temperature=1.0)

    def check() -> None:
        writing = a_thread(writer, rows=5)
        large = a_job(writer, 9, max_tokens=40, seed=1)
        large.bias = writer.bias
        writing.submit(large)
        writing.step()
        assert [text.job for text in writing.rows] == [large] * 2

        others = [a_job(writer, 2, max_tokens=20) for _ in range(2)]
        for other in others:
            writing.submit(other)
        writing.step()
        taken = Counter(text.job for text in writing.rows)
        assert taken == {large: 2, others[0]: 2, others[1]: 1}

        while writing.waiting or writing.reading or writing.rows:
            writing.step()
            taken = Counter(text.job for text in writing.rows)
            assert max(taken.values(), default=0) <= 2
        for i, sample in enumerate(samples):
            assert tuple(drawn(large, i)) == sample.token_ids

    by_hand(check)


def test_a_stream_of_single_texts_does_not_starve_a_request_of_several(writer: Writer) -> None:
    """Others always wait, and more come than can be served; three texts need three turns."""

    def check() -> None:
        writing = a_thread(writer, rows=2, max_waiting=8)
        several = a_job(writer, 3)
        for job in (a_job(writer), a_job(writer), several):
            writing.submit(job)
        for _ in range(60):
            for _ in range(2):
                with contextlib.suppress(ApiError):  # too many wait
                    writing.submit(a_job(writer))
            writing.step()
        assert all(text.has_ended for text in several.texts) and len(writing.waiting) > 5

    by_hand(check)


def test_a_text_whose_context_is_full_goes_on_before_others_and_is_none_that_waits(
    writer: Writer,
) -> None:
    """Its row is the first that is free, and the queue has as much room as before."""

    def check() -> None:
        writing = a_thread(writer, rows=1, max_waiting=2)
        long, other = a_job(writer, max_tokens=40), a_job(writer)
        writing.submit(long)
        writing.step()
        writing.submit(other)
        for text in writing.rows:  # as after so many tokens
            text.read = (text.read * writer.engine.context_length)[: writer.engine.context_length]
        writing._free_rows()
        assert [text.job for text in writing.waiting] == [long, other]
        writing.check_room(1)
        with pytest.raises(ApiError, match="Too many texts are waiting"):
            writing.check_room(2)
        writing.step()
        assert [text.job for text in writing.rows] == [long]
        finish(writing)
        assert len(drawn(long)) == 40 and len(drawn(other)) == 3

    by_hand(check)


def test_a_request_that_waited_too_long_is_told_so(writer: Writer) -> None:
    """One whose texts are all begun ends with what it has."""

    def check() -> None:
        writing = a_thread(writer, rows=1)
        running, waiting = a_job(writer, max_tokens=400), a_job(writer, 2)
        writing.submit(running)
        writing.step()
        writing.submit(waiting)
        writing.step()
        assert waiting.error is None
        waiting.deadline -= 101
        writing.step()
        assert waiting.error is not None and waiting.error.status == 503
        assert waiting.is_unwanted and not writing.waiting and not running.is_unwanted
        running.deadline -= 101
        writing.step()
        assert pieces(running)[-1].stop_reason == "length" and len(drawn(running)) < 10
        writing.step()
        assert not writing.rows

    by_hand(check)


def test_texts_end_when_the_server_leaves(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have begun with what they have, the others with an error."""
    monkeypatch.setattr(batching, "GRACE", -1)

    def check() -> None:
        writing = a_thread(writer, rows=1)
        running, waiting = a_job(writer, max_tokens=400), a_job(writer)
        writing.submit(running)
        writing.step()
        writing.submit(waiting)
        writing.is_leaving = lambda: True
        writing.step()
        assert pieces(running)[-1].stop_reason == "length"
        assert waiting.error is not None and not pieces(waiting)

    by_hand(check)


def test_a_late_text_shows_what_was_held_back_for_a_stop_string(writer: Writer) -> None:
    def check() -> None:
        writing = a_thread(writer, rows=1)
        everything = tuple(f"{letter}?" for letter in "abcdefghijklmnopqrstuvwxyz \n")
        job = a_job(writer, max_tokens=400, stop=everything)
        writing.submit(job)
        for _ in range(6):
            writing.step()
        job.deadline -= 101
        writing.step()
        text = writer.tokenizer.decode(drawn(job))
        assert "".join(piece.text for piece in pieces(job)) == text
        assert pieces(job)[-1].stop_reason == "length" and len(drawn(job)) == 7

    by_hand(check)


def test_who_left_is_not_waited_for_whatever_the_engine_does_meanwhile(writer: Writer) -> None:
    """The event loop may say so at any moment between two lines of the thread."""

    class Leaving(Job):
        asked = 0

        @property
        def is_unwanted(self) -> bool:
            before = self.__dict__.get("left", False)
            self.asked += 1
            if self.asked == 3:  # the client leaves as soon as the thread has looked
                self.__dict__["left"] = True
            return before

        @is_unwanted.setter
        def is_unwanted(self, value: bool) -> None:
            self.__dict__["left"] = value

    def check() -> None:
        for look in range(1, 9):
            writing = a_thread(writer, rows=1)
            job = a_job(writer, max_tokens=400)
            prompts = [(text.prompt, text.ids) for text in job.texts]
            leaving = Leaving(job.order, prompts, job.bias, job.deadline)
            leaving.asked = 3 - look
            writing.submit(leaving)
            for _ in range(9):
                if writing.waiting or writing.rows:
                    writing.step()
            assert not writing.rows and leaving.is_unwanted

    by_hand(check)


def test_who_left_while_it_waited_takes_no_room(writer: Writer) -> None:
    def check() -> None:
        writing = a_thread(writer, rows=1, max_waiting=2)
        writing.submit(a_job(writer, max_tokens=400))
        writing.step()
        left = a_job(writer, 2)
        writing.submit(left)
        with pytest.raises(ApiError, match="Too many texts are waiting"):
            writing.submit(a_job(writer))
        left.is_unwanted = True
        writing.step()
        writing.submit(a_job(writer, 2))
        assert not any(text.pieces for text in left.texts)

    by_hand(check)


def test_a_prompt_is_read_no_further_when_nobody_waits_for_it(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "_TOKENS_AT_ONCE", 4)

    def check() -> None:
        writing = a_thread(writer, rows=2)
        writing.submit(a_job(writer, max_tokens=400))
        writing.step()
        for leaves in (True, False):  # or is late
            job = a_job(writer, prompt="the fox asked a crow for bread and said no")
            writing.submit(job)
            writing.step()
            assert writing.reading is not None and writing.reading.job == job
            if leaves:
                job.is_unwanted = True
            else:
                job.deadline -= 101
            writing.step()
            assert writing.reading is None and len(writing.rows) == 1
            assert (job.error is None) == leaves

    by_hand(check)


# What costs much


def test_a_long_prompt_is_read_in_parts_while_others_write(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And scored in parts; its log-probabilities are those of reading it at once."""
    monkeypatch.setattr(batching, "_TOKENS_AT_ONCE", 4)
    monkeypatch.setattr(batching, "_LOGITS_AT_ONCE", 3 * len(writer.bias))
    rows = list[int]()
    logits_of = type(writer.glass).logits

    def watched(glass: Any, x: Any) -> Any:
        rows.append(len(x))
        return logits_of(glass, x)

    monkeypatch.setattr(type(writer.glass), "logits", watched)

    def check() -> None:
        writing = a_thread(writer, rows=2)
        other = a_job(writer, max_tokens=400)
        writing.submit(other)
        writing.step()
        text = "the fox asked a crow for bread and said no"
        scored = a_job(writer, prompt=text, max_tokens=0, echo=True, logprobs=0)
        writing.submit(scored)
        before = len(drawn(other))
        while not pieces(scored):
            writing.step()
        assert len(drawn(other)) > before + 1
        assert max(rows) == 3

        (piece,) = pieces(scored)
        assert piece.text == text and piece.stop_reason == "length"
        first, *told = [token.log_probability for token in piece.tokens]
        ids = scored.texts[0].ids
        logits = writer.glass(np.array([ids[:-1]]))[0]
        assert first is None and len(ids) > 9
        np.testing.assert_allclose(told, nats_of(logits, np.array(ids[1:])), rtol=1e-5)

    by_hand(check)


def test_logits_of_a_prompt_are_computed_and_sorted_only_for_who_wants_them(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    for name, owner in (("logits", type(writer.glass)), ("likeliest", Writer)):
        found = getattr(owner, name)

        def watched(*given: Any, name: str = name, found: Any = found) -> Any:
            if name == "logits" or given[2]:
                asked.append(name)
            return found(*given)

        monkeypatch.setattr(owner, name, watched)

    def check() -> None:
        for logprobs, expected in [(None, set()), (0, {"logits"}), (2, {"logits", "likeliest"})]:
            asked.clear()
            writing = a_thread(writer, rows=1)
            writing.submit(a_job(writer, max_tokens=0, echo=True, logprobs=logprobs))
            writing.step()
            assert set(asked) == expected

    by_hand(check)


def test_the_longest_token_is_looked_for_once(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = Local(tiny_run)
    tokenizer, calls = local.writer.tokenizer, itertools.count()
    lengths = tokenizer.byte_lengths()
    monkeypatch.setattr(
        type(tokenizer), "byte_lengths", lambda _: lengths if next(calls) >= 0 else []
    )
    for _ in range(3):
        local.complete(prompt=["the", "fox"] * 9, max_tokens=1)
    assert next(calls) <= 1


def test_a_full_server_refuses_before_it_reads_a_prompt(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = Local(tiny_run, max_waiting=2)
    monkeypatch.setattr(local.writing, "waiting", a_job(local.writer).texts)
    monkeypatch.setattr(type(local.writer.tokenizer), "encode", lambda *_: 1 / 0)
    status, headers, answer = local.ask("/v1/completions", {"prompt": ["the", "fox"]})
    assert status == 429 and "retry-after" in headers, answer


def test_many_requests_at_once_leave_turns_to_others(tiny_run: Path) -> None:
    """The event loop reads a few of them, and then looks for what else there is, as /health."""
    local = Local(tiny_run)
    turns = itertools.count()
    turn = next(turns)
    read_in = Counter[int]()
    submit = local.writing.submit

    def watched(job: Job) -> None:
        read_in[turn] += 1
        submit(job)

    local.writing.submit = watched  # type: ignore[method-assign]

    async def others() -> None:
        nonlocal turn
        while True:
            turn = next(turns)
            await asyncio.sleep(0)

    async def ask() -> None:
        other = asyncio.create_task(others())
        asked = {"prompt": "the", "max_tokens": 1}
        await asyncio.gather(*(local.send("/v1/completions", asked) for _ in range(30)))
        other.cancel()

    local.run(ask())
    assert read_in.total() == 30 and max(read_in.values()) <= app._READERS


def test_a_request_of_more_texts_than_may_wait_is_never_let_in(tiny_run: Path) -> None:
    """It is told so, rather than to come again."""
    local = Local(tiny_run, max_waiting=4)
    assert local.complete(prompt=["the", "a"], n=2)["choices"][3]
    status, _, answer = local.ask("/v1/completions", {"prompt": ["the", "a"], "n": 3})
    assert status == 400 and "at most 4" in json.loads(answer)["error"]["message"]
