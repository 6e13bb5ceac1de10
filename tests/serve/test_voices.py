"""A server of a run with voices writes in the one that is asked for as a model's name."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigpt
from minigpt import UserError
from minigpt.generation.scoring import log_probabilities

from .conftest import Local

pytest.importorskip("uvicorn", reason="make test-serve installs what these tests need")
from minigpt.serve.app import with_answerer
from minigpt.serve.settings import ServeConfig

pytestmark = pytest.mark.long

NAMES = ("LOUD", "quiet")


@pytest.fixture(scope="module")
def local(voiced_run: Path) -> Local:
    return Local(voiced_run, writer=minigpt.load(voiced_run))


def post(local: Local, path: str, **body: Any) -> dict[str, Any]:
    status, _, content = local.ask(path, {"temperature": 0, "max_tokens": 40} | body)
    assert status == 200, content
    found: dict[str, Any] = json.loads(content)
    return found["choices"][0]


def test_each_voice_is_a_model_by_its_name(local: Local) -> None:
    status, _, content = local.ask("/v1/models", method="GET")
    assert status == 200
    models = [model["id"] for model in json.loads(content)["data"]]
    assert models == ["tiny", "tiny:LOUD", "tiny:quiet"]
    assert local.ask("/v1/models/tiny:LOUD", method="GET")[0] == 200
    assert local.ask("/v1/models/tiny:nobody", method="GET")[0] == 404


@pytest.mark.parametrize("prompt", ["", "the fox", "THE FOX " * 12])
def test_a_text_is_the_same_as_the_writers_also_past_the_context(local: Local, prompt: str) -> None:
    prompt = local.writer.tokenizer.decode(local.writer.tokenizer.encode(prompt)[:20])
    for name in NAMES:
        choice = post(local, "/v1/completions", prompt=prompt, model=f"tiny:{name}")
        writer = local.writer.in_voice(name)
        (sample,) = writer.samples(prompt, temperature=0, max_new_tokens=40)
        assert choice["text"] == sample.text


def test_a_chat_is_continued_in_a_voice(local: Local) -> None:
    messages = [{"role": "user", "content": "the fox"}]
    path = "/v1/chat/completions"
    loud, quiet = (
        post(local, path, messages=messages, model=f"tiny:{name}")["message"]["content"]
        for name in NAMES
    )
    assert loud != quiet


def test_the_log_probabilities_of_a_prompt_are_those_in_the_voice(local: Local) -> None:
    text = "the fox asked a crow"
    for name in NAMES:
        choice = post(
            local,
            "/v1/completions",
            prompt=text,
            model=f"tiny:{name}",
            echo=True,
            logprobs=0,
            max_tokens=0,
        )
        found = choice["logprobs"]["token_logprobs"][1:]
        writer = local.writer.in_voice(name)
        ids = [*writer.mark, *writer.tokenizer.encode(text)]
        logits = writer.glass(np.array([ids[:-1]]))[0, len(writer.mark) :]
        expected = log_probabilities(logits, np.array(ids[len(writer.mark) + 1 :]))
        assert found == pytest.approx(expected.tolist(), abs=1e-4)


def test_the_voice_of_a_server_must_be_one_of_the_runs(local: Local) -> None:
    assert with_answerer(ServeConfig(answerer="qui"), local.writer).answerer == "quiet"
    with pytest.raises(UserError, match="no voice 'x'; there are LOUD and quiet"):
        with_answerer(ServeConfig(answerer="x"), local.writer)
    beside = ServeConfig(answerer="LOUD", chat_template=("user=Q:",))
    with pytest.raises(UserError, match="no voice has learned the words of --chat-template"):
        with_answerer(beside, local.writer)
