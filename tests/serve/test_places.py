"""Who gets a place: requests in the order in which they come, none of them more than half of the
places, and none left without an answer. Steps are made one by one here."""

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
from minigpt.generation.results import Step
from minigpt.generation.sampler import nats_of
from minigpt.generation.writer import Writer

from .conftest import Local

pytest.importorskip("uvicorn", reason="make installs what these tests need")
from minigpt.serve import scheduler as scheduling
from minigpt.serve.jobs import NOT_DRAWN, ApiError, Job
from minigpt.serve.scheduler import Scheduler
from minigpt.serve.settings import READERS, Order, ServeConfig


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
    order = Order(n=n, max_tokens=count, max_new_tokens=count, **fields)
    ids = writer.tokenizer.encode(prompt)
    return Job(order, [(prompt, ids)], bias, time.monotonic())


def a_scheduler(writer: Writer, places: int, **settings: Any) -> Scheduler:
    return Scheduler(writer, ServeConfig(max_batch=places, **settings))


def news(scheduler: Scheduler, job: Job) -> list[tuple[int, Any]]:
    """All that a job was told."""
    return list(scheduler._outbox[job])


def steps(scheduler: Scheduler, job: Job, i: int) -> list[Step]:
    return [step for text, step in news(scheduler, job) if text == i]


def test_the_oldest_request_comes_first(writer: Writer) -> None:
    def check() -> None:
        scheduler = a_scheduler(writer, places=1)
        jobs = dict(zip("abcd", [a_job(writer, n) for n in (3, 1, 2, 1)], strict=True))
        for job in jobs.values():
            scheduler.submit(job)
        begun = list[str]()
        while scheduler.waiting or scheduler.batch:
            scheduler.step()
            for name, job in jobs.items():
                for i, _ in news(scheduler, job):
                    if f"{name}{i}" not in begun:
                        begun.append(f"{name}{i}")
        assert begun == ["a0", "a1", "a2", "b0", "c0", "c1", "d0"]

    by_hand(check)


def test_a_request_has_half_of_the_places_and_leaves_the_others_to_later_ones(
    writer: Writer,
) -> None:
    """Its texts are the same as without that."""
    samples = writer.samples("the fox", max_new_tokens=40, samples=9, seed=1, temperature=1.0)

    def check() -> None:
        scheduler = a_scheduler(writer, places=5)
        large = a_job(writer, 9, max_tokens=40, seed=1)
        large.bias = writer.bias
        scheduler.submit(large)
        scheduler.step()
        assert [text.job for text in scheduler.batch] == [large] * 2

        others = [a_job(writer, 2, max_tokens=20) for _ in range(2)]
        for other in others:
            scheduler.submit(other)
        scheduler.step()
        taken = Counter(text.job for text in scheduler.batch)
        assert taken == {large: 2, others[0]: 2, others[1]: 1}

        while scheduler.waiting or scheduler.reading or scheduler.batch:
            scheduler.step()
            taken = Counter(text.job for text in (*scheduler.batch, *scheduler.reading))
            assert max(taken.values(), default=0) <= 2
        for i, sample in enumerate(samples):
            assert tuple(step.token_id for step in steps(scheduler, large, i)) == sample.token_ids

    by_hand(check)


def test_a_stream_of_single_texts_does_not_starve_a_request_of_several(writer: Writer) -> None:
    """Others always wait, and more come than can be served; three texts need three turns."""

    def check() -> None:
        scheduler = a_scheduler(writer, places=2, max_waiting=8)
        several = a_job(writer, 3)
        for job in (a_job(writer), a_job(writer), several):
            scheduler.submit(job)
        for _ in range(60):
            for _ in range(2):
                with contextlib.suppress(ApiError):  # too many wait
                    scheduler.submit(a_job(writer))
            scheduler.step()
        ends = [step for _, step in news(scheduler, several) if step.stop_reason]
        assert len(ends) == 3 and len(scheduler.waiting) > 5

    by_hand(check)


def test_a_request_that_waited_too_long_is_told_so(writer: Writer) -> None:
    """Its time counts from its arrival. One whose texts are all begun ends with what it has."""

    def check() -> None:
        scheduler = a_scheduler(writer, places=1, max_seconds=100.0)
        running, waiting = a_job(writer, max_tokens=400), a_job(writer, 2)
        scheduler.submit(running)
        scheduler.step()
        scheduler.submit(waiting)
        scheduler.step()
        assert not news(scheduler, waiting)
        waiting.arrived -= 101
        scheduler.step()
        assert [(i, error.status) for i, error in news(scheduler, waiting)] == [(0, 503)]
        assert waiting.is_over and not scheduler.waiting
        running.arrived -= 101
        scheduler.step()
        assert steps(scheduler, running, 0)[-1].stop_reason == "length" and not scheduler.batch

    by_hand(check)


def test_texts_end_when_the_server_leaves(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have begun with what they have, the others with an error."""
    monkeypatch.setattr(scheduling, "GRACE", -1)

    def check() -> None:
        scheduler = a_scheduler(writer, places=1)
        running, waiting = a_job(writer, max_tokens=400), a_job(writer)
        scheduler.submit(running)
        scheduler.step()
        scheduler.submit(waiting)
        scheduler.is_leaving = lambda: True
        scheduler.step()
        assert steps(scheduler, running, 0)[-1].stop_reason == "length"
        assert isinstance(news(scheduler, waiting)[0][1], ApiError)

    by_hand(check)


def test_a_late_text_shows_what_was_held_back_for_a_stop_string(writer: Writer) -> None:
    def check() -> None:
        scheduler = a_scheduler(writer, places=1, max_seconds=100.0)
        everything = tuple(f"{letter}?" for letter in "abcdefghijklmnopqrstuvwxyz \n")
        job = a_job(writer, max_tokens=400, stop=everything)
        scheduler.submit(job)
        for _ in range(6):
            scheduler.step()
        job.arrived -= 101
        scheduler.step()
        told = steps(scheduler, job, 0)
        drawn = [step.token_id for step in told if step.sample != NOT_DRAWN]
        text = writer.tokenizer.decode(drawn)
        assert "".join(step.text for step in told) == text and told[-1].stop_reason == "length"

    by_hand(check)


def test_who_left_is_not_waited_for_whatever_the_engine_does_meanwhile(writer: Writer) -> None:
    """The event loop may say so at any moment between two lines of the scheduler's thread."""

    class Leaving(Job):
        asked = 0

        @property
        def is_over(self) -> bool:
            before = self.__dict__.get("left", False)
            self.asked += 1
            if self.asked == 3:  # the client leaves as soon as the scheduler has looked
                self.__dict__["left"] = True
            return before

        @is_over.setter
        def is_over(self, value: bool) -> None:
            self.__dict__["left"] = value

    def check() -> None:
        for look in range(1, 9):
            scheduler = a_scheduler(writer, places=1)
            job = a_job(writer, max_tokens=400)
            leaving = Leaving(job.order, job.prompts, job.bias, job.arrived)
            leaving.asked = 3 - look
            scheduler.submit(leaving)
            for _ in range(9):
                if scheduler.waiting or scheduler.batch:
                    scheduler.step()
            assert not scheduler.batch and leaving.is_over

    by_hand(check)


def test_a_prompt_is_read_no_further_when_nobody_waits_for_it(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "TOKENS_AT_ONCE", 4)

    def check() -> None:
        scheduler = a_scheduler(writer, places=2, max_seconds=100.0)
        scheduler.submit(a_job(writer, max_tokens=400))
        scheduler.step()
        for leave in (True, False):  # or is late
            job = a_job(writer, prompt="the fox asked a crow for bread and said no")
            scheduler.submit(job)
            scheduler.step()
            assert [text.job for text in scheduler.reading] == [job]
            job.is_over = leave
            job.arrived -= 101
            scheduler.step()
            assert not scheduler.reading and len(scheduler.batch) == 1
            assert [isinstance(error, ApiError) for _, error in news(scheduler, job)] == [True][
                leave:
            ]

    by_hand(check)


# What costs much


def test_a_long_prompt_is_read_in_parts_while_others_write(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And scored in parts; its log-probabilities are those of reading it at once."""
    monkeypatch.setattr(scheduling, "TOKENS_AT_ONCE", 4)
    monkeypatch.setattr(scheduling, "LOGITS_AT_ONCE", 3 * len(writer.bias))
    rows = list[int]()
    logits_of = type(writer.glass).logits

    def watched(glass: Any, x: Any) -> Any:
        rows.append(len(x))
        return logits_of(glass, x)

    monkeypatch.setattr(type(writer.glass), "logits", watched)

    def check() -> None:
        scheduler = a_scheduler(writer, places=2)
        other = a_job(writer, max_tokens=400)
        scheduler.submit(other)
        scheduler.step()
        text = "the fox asked a crow for bread and said no"
        scored = a_job(writer, prompt=text, max_tokens=0, echo=True, logprobs=0)
        scheduler.submit(scored)
        before = len(news(scheduler, other))
        while scheduler.waiting or scheduler.reading:
            scheduler.step()
        assert len(news(scheduler, other)) > before + 1
        assert max(rows) == 3

        first, *told, _ = [step.log_probability for step in steps(scheduler, scored, 0)]
        ids = scored.prompts[0][1]
        logits = writer.glass(np.array([ids[:-1]]))[0]
        assert first is None and len(ids) > 9
        np.testing.assert_allclose(told, nats_of(logits, np.array(ids[1:])), rtol=1e-5)

    by_hand(check)


def test_logits_of_a_prompt_are_computed_and_sorted_only_for_who_wants_them(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    for name, owner in (("logits", type(writer.glass)), ("likeliest", scheduling.Writer)):
        found = getattr(owner, name)

        def watched(*given: Any, name: str = name, found: Any = found) -> Any:
            if name == "logits" or given[2]:
                asked.append(name)
            return found(*given)

        monkeypatch.setattr(owner, name, watched)

    def check() -> None:
        for logprobs, expected in [(None, set()), (0, {"logits"}), (2, {"logits", "likeliest"})]:
            asked.clear()
            scheduler = a_scheduler(writer, places=1)
            scheduler.submit(a_job(writer, max_tokens=0, echo=True, logprobs=logprobs))
            scheduler.step()
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
    monkeypatch.setattr(type(local.writer.tokenizer), "encode", lambda *_: 1 / 0)
    monkeypatch.setattr(local.scheduler, "waiting", [None])
    status, headers, answer = local.ask("/v1/completions", {"prompt": ["the", "fox"]})
    assert status == 429 and "retry-after" in headers, answer


def test_many_requests_at_once_leave_turns_to_others(tiny_run: Path) -> None:
    """The event loop reads a few of them, and then looks for what else there is, as /health."""
    local = Local(tiny_run)
    turns = itertools.count()
    turn = next(turns)
    read_in = Counter[int]()
    submit = local.scheduler.submit

    def watched(job: Job) -> None:
        read_in[turn] += 1
        submit(job)

    local.scheduler.submit = watched  # type: ignore[method-assign]

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
    assert read_in.total() == 30 and max(read_in.values()) <= READERS


def test_a_request_of_more_texts_than_may_wait_is_never_let_in(tiny_run: Path) -> None:
    """It is told so, rather than to come again."""
    local = Local(tiny_run, max_waiting=4)
    assert local.complete(prompt=["the", "a"], n=2)["choices"][3]
    status, _, answer = local.ask("/v1/completions", {"prompt": ["the", "a"], "n": 3})
    assert status == 400 and "at most 4" in json.loads(answer)["error"]["message"]
