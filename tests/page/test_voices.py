"""The page of a run with voices: a text can go on in one, and its mark stays in every window."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minigpt.generation.explanation import explain_token
from minigpt.generation.writer import Writer
from minigpt.page.build import page_model
from minigpt.runs.find import find_model, glass_writer
from minigpt.runs.found import FoundModel

from .conftest import Open, choose, open_view, until, until_drawn, until_read, write
from .facts import check_facts
from .in_node import Worker
from .test_every_number import as_in_the_package, check_sheet

LINK = "#prompt=the fox asked&seed=1&maxNewTokens=60"
UNFOLD = """() => {
  for (const fold of document.querySelectorAll("#panels details")) fold.open = true;
}"""
VIEWS = ("draw", "why", "attention", "numbers", "layers", "feedForward", "vectors")


@pytest.fixture(scope="module")
def found(voiced_run: Path) -> FoundModel:
    return find_model(voiced_run)


@pytest.fixture(scope="module")
def writer(found: FoundModel) -> Writer:
    return glass_writer(found)


@pytest.fixture(scope="module")
def worker(found: FoundModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    worker = Worker(tmp_path_factory.mktemp("node"))
    worker.open(found)
    yield worker
    worker.close()


@pytest.mark.parametrize("count", [0, 3, 60])  # tokens of the prompt; the context is 32
def test_the_page_writes_in_a_voice_what_the_package_writes(
    found: FoundModel, writer: Writer, worker: Worker, count: int
) -> None:
    """Of the likeliest tokens: the die of the page is its own."""
    ids = writer.tokenizer.encode("the fox asked a crow for bread. " * 4)
    prompt = writer.tokenizer.decode(ids[:count])
    greedy = {"temperature": 0, "repetitionPenalty": 1.3, "seed": 1}
    for voice in page_model(found, "test", "float32")[0]["voices"]:
        in_voice = writer.in_voice(voice["name"])
        settings = {"temperature": 0, "repetition_penalty": 1.3, "max_new_tokens": 50}
        (sample,) = in_voice.samples(prompt, **settings)
        written = worker.ask("generate", prompt, 50, greedy, [], voice["ids"])
        assert tuple(written) == sample.token_ids


def test_a_full_window_keeps_the_mark_when_a_text_is_read(writer: Writer, worker: Worker) -> None:
    mark = list(writer.in_voice("LOUD").mark)
    ids = [*mark, *writer.tokenizer.encode("THE FOX asked a crow for bread. " * 4)[:90]]
    told = worker.told("read", {"ids": ids, "kept": len(mark)}, [])
    assert len(told) == len(ids) and told[-1]["start"] > 0
    for event in told[1:]:
        place, start = event["place"], event["start"]
        window = [*ids[:place][: len(mark)], *ids[len(mark) + start : place]]
        assert 1 <= len(window) == place - start <= writer.glass.context_length
        logit = writer.glass.next_logits(np.array([window]), writer.glass.new_cache(1))[0]
        bits = float(np.log2(np.exp(logit - logit[ids[place]]).sum()))
        assert event["bits"] == pytest.approx(bits, abs=1e-3)


def check_views(page: Any, writer: Writer) -> set[str]:
    """Every number in sight is of the model with the mark in its window."""
    now = page.evaluate("minigpt.now()")
    kept = 0 if now["voice"] is None else len(writer.in_voice(now["voice"]).mark)
    about = {
        "starts": now["starts"],
        "hidden": now["hidden"],
        "kept": kept,
        "settings": as_in_the_package(now["settings"]),
        "forbidden": np.flatnonzero(writer.bias).tolist(),
    }
    check_sheet(page, writer.glass, now["ids"], about)
    kinds: set[str] = set()
    for view in VIEWS:
        open_view(page, view)
        page.evaluate(UNFOLD)
        until_drawn(page)
        kinds |= check_facts(page, "body", writer.glass, now["ids"], **about)
    return kinds


def in_voice(page: Any, name: str) -> None:
    page.select_option("#voice", label=name)
    until_read(page)
    until_drawn(page)


@pytest.mark.page
def test_every_number_is_that_in_the_voice_also_past_the_context(
    open_page: Open, found: FoundModel, writer: Writer
) -> None:
    page = open_page(found, link=LINK, weights="float32")
    until_read(page)
    check_views(page, writer)
    before = page.evaluate("minigpt.now().ids")

    in_voice(page, "LOUD")
    mark = list(writer.in_voice("LOUD").mark)
    now = page.evaluate("minigpt.now()")
    assert now["ids"] == [*mark, *before] and now["hidden"] == len(mark)
    assert page.evaluate("minigpt.text()") == "the fox asked"
    check_views(page, writer)

    write(page)
    now = page.evaluate("minigpt.now()")
    assert now["ids"][: len(mark)] == mark and now["starts"][-1] > 0
    kinds = check_views(page, writer)
    choose(page, len(now["ids"]) - 2)
    kinds |= check_views(page, writer)
    assert {"word", "without", "part", "cell", "weight", "lens", "unit", "key"} <= kinds

    # The answer to why is that of the glass engine behind the mark.
    chosen, start = len(now["ids"]) - 2, now["starts"][-3]
    window = [*mark, *now["ids"][len(mark) + start : chosen]]
    why = explain_token(writer.glass, [*window, now["ids"][chosen]], len(window))
    open_view(page, "why")
    logit = page.evaluate("Number(document.querySelector('#panel-why [data-what=logit]').value)")
    assert logit == pytest.approx(why.logit, abs=1e-3)

    in_voice(page, "none")
    assert page.evaluate("minigpt.now().ids") == now["ids"][len(mark) :]
    check_views(page, writer)


@pytest.mark.page
def test_a_link_a_reload_an_edit_and_undo_keep_the_voice(
    open_page: Open, found: FoundModel, writer: Writer
) -> None:
    page = open_page(found, link=f"{LINK}&voice=quiet", weights="float32")
    until_read(page)
    assert page.evaluate("minigpt.now().voice") == "quiet"
    text = write(page)
    now = page.evaluate("minigpt.now()")

    page.get_by_role("button", name="Copy link").click()
    until(page, "document.querySelector('#status').textContent.includes('Copied')")
    other = open_page(found, link=page.evaluate("navigator.clipboard.readText()"))
    until_read(other)
    again = other.evaluate("minigpt.now()")
    same = ("ids", "origin", "starts", "hidden", "voice")
    assert [again[name] for name in same] == [now[name] for name in same]

    page.reload()
    until(page, "window.minigpt && document.querySelector('#status').textContent.includes('still')")
    again = page.evaluate("minigpt.now()")
    assert [again[name] for name in same] == [now[name] for name in same]

    for typed in ("", "a crow", "the fox, " + text):
        page.fill("#text", typed)
        until_read(page)
        assert page.evaluate("minigpt.now().voice") == "quiet"
        assert page.evaluate("minigpt.text()") == typed
    check_views(page, writer)

    in_voice(page, "LOUD")
    page.get_by_role("button", name="Undo").click()
    until_read(page)
    assert page.evaluate("document.querySelector('#voice').selectedOptions[0].text") == "quiet"


@pytest.mark.page
def test_a_page_without_voices_has_no_choice_and_scripts_can_name_one(
    open_page: Open, found: FoundModel, tiny_run: Path, writer: Writer
) -> None:
    plain = open_page(find_model(tiny_run))
    assert plain.query_selector("#voice") is None

    page = open_page(found, link=LINK, weights="float32")
    settings = "{temperature: 0, maxNewTokens: 40, voice: 'LOUD'}"
    written = page.evaluate(f"minigpt.generate('the fox', {settings})")
    expected = writer.in_voice("LOUD").generate("the fox", temperature=0, max_new_tokens=40)
    assert written == expected
