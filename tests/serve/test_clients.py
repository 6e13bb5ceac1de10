"""The clients that people use, at a port; a process of its own where a signal ends it."""

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import minigpt
from minigpt.serve.settings import ServeConfig

from ..conftest import unix_only
from ..lazy import lazily
from ..patience import PATIENCE
from .conftest import COMMAND, Served, Server, served

pytestmark = pytest.mark.serve
needs = "make installs what these tests need"
pytest.importorskip("uvicorn", reason=needs)
openai = lazily("openai", needs)
langchain_openai = lazily("langchain_openai", needs)

ENDLESS = 100_000_000  # tokens
ONE_PLACE = {"max_batch": 1, "max_tokens": ENDLESS}


def has_a_place(server: Served, seconds: float) -> bool:
    """Whether a text is written within so many seconds."""
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
    with contextlib.suppress(openai.APITimeoutError):
        asked = {"model": server.model, "prompt": "the", "max_tokens": 1}
        client.with_options(timeout=seconds).completions.create(**asked)
        return True
    return False


def endless(run: Path) -> dict[str, Any]:
    """A request for a text that never ends."""
    bias = {str(minigpt.load(run).tokenizer.end_of_text): -100}
    return {"prompt": "the", "max_tokens": ENDLESS, "stream": True, "logit_bias": bias}


@pytest.fixture
def client(server: Served) -> Any:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)


def test_a_text_is_the_one_that_generate_writes(
    client: Any, server: Served, tiny_run: Path
) -> None:
    """Each of n too, far beyond the context, streamed or not, alone and in company."""
    settings: dict[str, Any] = {"temperature": 0.9}
    writer, seeds = minigpt.load(tiny_run), range(8)
    asked: dict[str, Any] = {"model": server.model, "prompt": "the fox", "max_tokens": 60, "n": 3}
    asked |= {"stop": ["mill n"], **settings}
    settings |= {"stop": ("mill n",), "max_new_tokens": 60, "samples": 3}
    samples = [writer.samples("the fox", seed=seed, **settings) for seed in seeds]
    expected = [[it.text.rstrip("\ufffd") for it in three] for three in samples]  # half a character
    whole = client.completions.create(seed=5, **asked)
    assert [choice.text for choice in whole.choices] == expected[5]
    assert whole.usage and whole.usage.completion_tokens == sum(
        len(s.token_ids) for s in samples[5]
    )

    async def together() -> list[list[str]]:
        many = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)

        async def one(seed: int) -> list[str]:
            texts = ["", "", ""]
            async for chunk in await many.completions.create(stream=True, seed=seed, **asked):
                texts[chunk.choices[0].index] += chunk.choices[0].text
            return [text.rstrip("\ufffd") for text in texts]

        return await asyncio.gather(*map(one, seeds))

    assert asyncio.run(together()) == expected


def test_a_stream_has_the_shape_that_clients_expect(client: Any, server: Served) -> None:
    messages = [{"role": "user", "content": "the fox"}]
    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(
        client.chat.completions.create(
            model=server.model, messages=messages, max_tokens=5, **options
        )
    )
    *texts, last, usage = chunks
    assert len({chunk.id for chunk in chunks}) == 1
    assert texts[0].choices[0].delta.role == "assistant"
    assert texts[0].choices[0].delta.content == ""
    assert {chunk.choices[0].finish_reason for chunk in texts} == {None}
    assert last.choices[0].finish_reason == "length" and not last.choices[0].delta.content
    assert usage.choices == [] and usage.usage.completion_tokens == 5


def test_what_a_text_was_scored_is_what_the_writer_says(
    client: Any, server: Served, tiny_run: Path
) -> None:
    """With echo and no new tokens, as evaluation harnesses ask."""
    text = "the fox asked a crow"
    found = client.completions.create(
        model=server.model, prompt=text, max_tokens=0, echo=True, logprobs=2
    ).choices[0]
    writer = minigpt.load(tiny_run)
    ids = writer.tokenizer.encode(text)
    assert found.text == text and found.finish_reason == "length" and found.logprobs
    assert found.logprobs.tokens == [writer.tokenizer.decode([i]) for i in ids]
    nats = found.logprobs.token_logprobs
    assert nats is not None and nats[0] is None
    for i in range(1, len(ids)):
        likely = writer.next_tokens(writer.tokenizer.decode(ids[:i]), k=300)
        chance = next(token.log_probability for token in likely if token.id == ids[i])
        assert nats[i] == pytest.approx(chance, abs=1e-4)
        assert found.logprobs.text_offset[i] == len(writer.tokenizer.decode(ids[:i]))


def test_a_client_that_leaves_frees_its_place(tiny_run: Path) -> None:
    with served(tiny_run, **ONE_PLACE) as server:
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
        asked = {"model": server.model, **endless(tiny_run)}
        with client.completions.create(**asked) as stream:
            next(iter(stream))
            assert not has_a_place(server, seconds=0.5)
        with pytest.raises(openai.APITimeoutError):
            client.with_options(timeout=0.5).completions.create(n=4, **{**asked, "stream": False})
        assert has_a_place(server, seconds=PATIENCE)


def test_errors_are_those_of_the_official_client(client: Any, server: Served) -> None:
    with pytest.raises(openai.NotFoundError):
        client.completions.create(model="another", prompt="")
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model=server.model, prompt="the fox " * 100)
    assert caught.value.code == "context_length_exceeded" and caught.value.param == "prompt"
    with pytest.raises(openai.UnprocessableEntityError):
        client.completions.create(model=server.model, prompt=[10**6])
    assert [model.id for model in client.models.list()] == [server.model]
    assert client.models.retrieve(server.model).owned_by == "minigpt"


def test_langchain_and_curl(server: Served) -> None:
    chain = langchain_openai.OpenAI(
        base_url=f"{server.url}/v1", api_key="any", model=server.model, max_tokens=9
    )
    texts = chain.generate(["the fox", "the crow"]).generations
    assert len(texts) == 2 and "".join(chain.stream("the fox"))
    asked = json.dumps({"prompt": "the", "max_tokens": 3, "stream": True})
    curl = ["curl", "-sNi", f"{server.url}/v1/completions", "-d", asked]
    told = subprocess.run(
        [*curl, "-H", "content-type: application/json"], capture_output=True, text=True, check=True
    ).stdout
    assert "content-type: text/event-stream" in told and told.endswith("data: [DONE]\n\n")
    assert "415" in subprocess.run(curl, capture_output=True, text=True, check=True).stdout


def test_a_signal_lets_texts_end(tiny_run: Path) -> None:
    short_grace = "from minigpt.serve import batch; batch.GRACE = 1; "
    server = Server(tiny_run, "--max-tokens", str(ENDLESS), first=short_grace)
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
    asked: dict[str, Any] = {"model": server.model, "prompt": "the fox", "stream": True}
    asked["logit_bias"] = {str(minigpt.load(tiny_run).tokenizer.end_of_text): -100}
    short = client.completions.create(max_tokens=50, **asked)
    endless = client.completions.create(max_tokens=ENDLESS, **asked)
    next(iter(endless))
    server.process.send_signal(signal.SIGTERM)
    assert list(short)[-1].choices[0].finish_reason == "length"
    assert list(endless)[-1].choices[0].finish_reason == "length"
    log = server.end()
    assert server.process.returncode == -signal.SIGTERM
    assert "/v1/completions" in log and "the fox" not in log and "Traceback" not in log


def test_with_a_key_only_those_who_know_it_are_served(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    from minigpt.serve.app import read_key

    monkeypatch.setenv("MINIGPT_API_KEY", "sésame")
    key = read_key(ServeConfig(host="0.0.0.0"))
    with served(tiny_run, key=key) as server:
        for wrong in ("wrong", "sesame"):
            client = openai.OpenAI(base_url=f"{server.url}/v1", api_key=wrong, max_retries=0)
            with pytest.raises(openai.AuthenticationError):
                client.models.list()
        known = urllib.request.Request(
            f"{server.url}/v1/models", headers={"Authorization": "Bearer sésame".encode()}
        )
        with urllib.request.urlopen(known) as answer:
            assert answer.status == 200
    assert "401" in caplog.text and "sésame" not in caplog.text


def test_port_0_is_told_and_a_server_leaves_no_socket_behind(tiny_run: Path) -> None:
    """Started again at once at the same port, it listens."""
    command = [sys.executable, "-c", COMMAND, str(tiny_run), "--port"]
    port = "0"
    for _ in range(2):
        server = subprocess.Popen([*command, port], stderr=subprocess.PIPE, text=True)
        assert server.stderr is not None
        line = server.stderr.readline()
        url = line.split()[-1]
        port = url.rpartition(":")[2]
        assert f"serving {tiny_run.name} at http://127.0.0.1:" in line and port != "0"
        with urllib.request.urlopen(f"{url}/health") as answer:
            assert answer.status == 200
        server.send_signal(signal.SIGTERM)
        assert "Traceback" not in server.communicate(timeout=PATIENCE)[1]


def test_a_client_that_is_slow_to_send_or_does_not_read_is_dropped(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("minigpt.serve.sockets.PATIENCE", 0.4)
    monkeypatch.setattr("minigpt.serve.batch._SEND_EVERY", 0)
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    body = json.dumps({**endless(tiny_run), "logprobs": 20}).encode()
    with served(tiny_run, **ONE_PLACE) as server:
        address = ("127.0.0.1", server.port)
        for half in (b"", head, head + b"Content-Length: 9\r\n\r\n{"):
            with socket.create_connection(address, timeout=PATIENCE) as slow:
                slow.sendall(half)
                with contextlib.suppress(ConnectionResetError):
                    assert slow.recv(100) == b""
        server.listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 12)
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
            deaf.connect(address)
            deaf.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            deaf.recv(1)
            deadline = time.monotonic() + PATIENCE
            while server.connections:
                assert time.monotonic() < deadline, "it is not dropped"
                time.sleep(0.01)
            server.let_all_be_slow()
            assert has_a_place(server, seconds=PATIENCE)
    assert "Traceback" not in caplog.text


def test_of_too_many_clients_some_are_refused_but_health_is_told_to_all(tiny_run: Path) -> None:
    with served(tiny_run, max_waiting=1) as server, contextlib.ExitStack() as idle:
        server.let_all_be_slow()
        for _ in range(4):
            idle.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        with urllib.request.urlopen(f"{server.url}/health") as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{server.url}/v1/models")
        with refused.value as answer:
            assert answer.code == 503 and "retry-after" in answer.headers
            assert json.load(answer)["error"]["type"] == "server_error"

        idle.close()
        deadline = time.monotonic() + PATIENCE
        while server.connections:
            assert time.monotonic() < deadline, "one stays"
            time.sleep(0.01)
        with urllib.request.urlopen(f"{server.url}/v1/models") as answer:
            assert answer.status == 200


@unix_only
def test_it_lets_the_system_allow_its_connections(tiny_run: Path) -> None:
    """macOS begins with 256 open files, and 512 clients may come."""
    resource = pytest.importorskip("resource")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, {most})); "
    drops_nobody = "from minigpt.serve import sockets; sockets.PATIENCE = 1e6; "
    server = Server(tiny_run, first=few + drops_nobody)
    try:
        with contextlib.ExitStack() as idle:
            for _ in range(300):
                idle.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            with urllib.request.urlopen(f"{server.url}/v1/models", timeout=PATIENCE) as answer:
                assert answer.status == 200
    finally:
        server.end()
