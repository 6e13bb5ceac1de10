"""Serving: what batching gives, and how a server fares with 100 streams at once.

python benchmarks/serving.py [--sizes 1M base 12M] [--streams 100]. First the engine alone, with
batches of 1 to 64 texts of different lengths; then a server in a process of its own: streams one
after the other, and all at once, each with a seed of its own and the text that it gave alone.
Meanwhile another process asks for /health ten times a second, which has to take less than 50 ms.
Then the same model in a plain transformers loop behind the same framework. Figures go to
benchmarks/results/serving.json too.

python benchmarks/serving.py --before CHECKOUT [--rounds 5]. The servers of another checkout and of
this one beside each other, asked in turns: 1, 8, 40 and 100 streams, /health beside each, and the
requests of an evaluation harness. Printed are medians, lowest and highest, and how many times as
fast this checkout is: the median over the rounds of that ratio.
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import httpx2
import numpy as np
from generation import RESULTS, SIZES, make_models

import minigpt
from minigpt.config import GPTConfig
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.runs.base import base_folder
from minigpt.runs.folder import read_config

TOKENS = 100
ROOT = Path(__file__).parent.parent
COMMAND = "import sys; from minigpt.cli import main; sys.exit(main(['serve', *sys.argv[1:]]))"
BASE = "base"  # a model with random weights as large as the base
STREAMS = (1, 8, 40, 100)  # at once, of two checkouts
SCORED = 64  # tokens of a text that a harness sends, and how many of these texts it sends
Measure = Callable[[httpx2.AsyncClient], Awaitable[dict[str, float]]]


def free_port() -> int:
    """A free port, lest another server answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


PORT = int(os.environ.setdefault("MINIGPT_PORT", str(free_port())))  # for children too


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", nargs="+", choices=[*SIZES, BASE], default=["1M", "12M"])
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--before", type=Path, help="another checkout, to compare with")
    parser.add_argument("--rounds", type=int, default=5, help="of both checkouts")
    parser.add_argument("--plain", help=argparse.SUPPRESS)
    parser.add_argument("--watch", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.watch:
        watch()
        return
    if given.plain:
        plain(given.plain)
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in given.sizes:
            make_models(Path(folder, size), shape_of(size))
            run = Path(folder, size, "run")
            if given.before:
                rows += asyncio.run(compare(run, size, given.before, given.rounds))
                continue
            rows += [{"size": size, **row} for row in batches(minigpt.load(run).glass)]
            rows.append({"size": size, **asyncio.run(load(ours(run, PORT), given.streams))})
            print("transformers, one text after the other")
            plainly = [sys.executable, __file__, "--plain", str(Path(folder, size, "transformers"))]
            rows.append({"size": size, "plain": True, **asyncio.run(load(plainly, 10))})
    name = "serving_before.json" if given.before else "serving.json"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / name).write_text(json.dumps(rows, indent=2) + "\n")


def batches(glass: NumpyGPT, steps: int = 15) -> list[dict[str, Any]]:
    """Tokens a second of the engine alone; texts are 8 to 80 tokens long."""
    rows: list[dict[str, Any]] = []
    for size in (1, 2, 4, 8, 16, 32, 64):
        cache, ids, speeds = glass.new_cache(size), np.full((size, 1), 5), []
        for i in range(size):
            glass.next_logits(np.full((1, 8 + 37 * i % 73), 3), cache.part(slice(i, i + 1)))
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(steps):
                glass.next_logits(ids, cache)
            speeds.append(size * steps / (time.perf_counter() - start))
        rows.append({"batch": size, "tokens_per_second": statistics.median(speeds)})
        print(f"batch {size:3}: {rows[-1]['tokens_per_second']:8,.0f} tokens/s", flush=True)
    return rows


def shape_of(size: str) -> GPTConfig:
    """The shape of a model by its name in the tables."""
    if size != BASE:
        return SIZES[size]
    shape = read_config(base_folder()).model
    assert shape is not None
    return shape


def ours(run: Path, port: int) -> list[str]:
    """The command that serves a run."""
    return [sys.executable, "-c", COMMAND, str(run.resolve()), "--port", str(port)]


@contextlib.asynccontextmanager
async def served(
    command: list[str], port: int, tree: Path = ROOT
) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the server that the command starts at a port, in a checkout."""
    # A program from the command line imports what is in its folder first.
    environment = {**os.environ, "PYTHONPATH": str(tree.resolve())}
    server = subprocess.Popen(command, cwd=tree, stderr=subprocess.DEVNULL, env=environment)
    # Before the server closes a connection that nothing comes on, which takes 5 seconds.
    limits = httpx2.Limits(max_connections=None, keepalive_expiry=1)
    url = f"http://127.0.0.1:{port}"
    try:
        async with httpx2.AsyncClient(base_url=url, timeout=600, limits=limits) as client:
            while not await is_well(client):
                assert server.poll() is None, "the server does not start"
                await asyncio.sleep(0.02)
            yield client
    finally:
        server.terminate()
        server.wait()


async def load(command: list[str], streams: int) -> dict[str, Any]:
    """The streams one after the other, then all at once, of the server that the command starts."""
    start = time.perf_counter()
    async with served(command, PORT) as client:
        ready = time.perf_counter() - start
        alone = [await stream(client, seed) for seed in range(streams)]
        one = statistics.median(TOKENS / seconds for _, _, seconds in alone)
        found, seconds, waits = await at_once(client, streams)
    wrong = sum(text != lone for (text, *_), (lone, *_) in zip(found, alone, strict=True))
    firsts = sorted(first for _, first, _ in found)
    row = {
        "ready_seconds": ready,
        "one_stream": one,
        "streams": streams,
        "all_streams": streams * TOKENS / seconds,
        "first_token_median": statistics.median(firsts),
        "first_token_last": firsts[-1],
        "health_median": statistics.median(waits),
        "health_slowest": max(waits),
        "lost": sum(not text for text, *_ in found),
        "other_than_alone": wrong,
    }
    print("\n".join(f"  {name:20}{value:10,.3f}" for name, value in row.items()), flush=True)
    return row


async def at_once(
    client: httpx2.AsyncClient, streams: int
) -> tuple[list[tuple[str, float, float]], float, list[float]]:
    """So many streams at once; the seconds that they took together, and those of each /health."""
    port = client.base_url.port
    assert port is not None
    watching = start_watching(port)
    start = time.perf_counter()
    found = await asyncio.gather(*(stream(client, seed) for seed in range(streams)))
    seconds = time.perf_counter() - start
    waits = json.loads(watching.communicate()[0])
    return list(found), seconds, waits


# Two checkouts


async def compare(run: Path, size: str, before: Path, rounds: int) -> list[dict[str, Any]]:
    """Both servers run, and each thing is asked of one and at once of the other; what each measured
    in each round."""
    measures: list[Measure] = [partial(beside_each_other, streams=streams) for streams in STREAMS]
    measures += [partial(harness, together=together) for together in (1, 8)]
    found: list[dict[str, list[float]]] = [defaultdict(list), defaultdict(list)]
    ports = [free_port(), free_port()]
    async with (
        served(ours(run, ports[0]), ports[0], before) as old,
        served(ours(run, ports[1]), ports[1]) as new,
    ):
        for i in range(rounds + 1):
            for measure in measures:
                for which in (0, 1) if i % 2 else (1, 0):
                    figures = await measure((old, new)[which])
                    if i == 0:  # until everything is loaded
                        continue
                    for name, value in figures.items():
                        found[which][name].append(value)

    rows = []
    print(f"{size}: before, now, how many times as fast now", flush=True)
    for name, of_old in found[0].items():
        of_new = found[1][name]
        is_time = name.startswith("health")
        ratios = [a / b if is_time else b / a for a, b in zip(of_old, of_new, strict=True)]
        print(f"  {name:28}{spread(of_old)}{spread(of_new)}{spread(ratios)}", flush=True)
        rows.append({"size": size, "name": name, "before": of_old, "now": of_new, "ratio": ratios})
    return rows


def spread(values: list[float]) -> str:
    """The median, the lowest and the highest."""
    low, median, high = min(values), statistics.median(values), max(values)
    return f"{median:10,.4g} ({low:,.4g} - {high:,.4g})".ljust(36)


async def beside_each_other(client: httpx2.AsyncClient, streams: int) -> dict[str, float]:
    """Tokens a second of so many streams, and seconds of /health beside them."""
    times = max(8 // streams, 1)  # one stream alone is over soon
    runs = [await at_once(client, streams) for _ in range(times)]
    assert all(text for texts, _, _ in runs for text, _, _ in texts), "a text is lost"
    seconds = sum(seconds for _, seconds, _ in runs)
    waits = [wait for _, _, waits in runs for wait in waits]
    return {
        f"{streams} streams, tokens/s": times * streams * TOKENS / seconds,
        f"health beside {streams}, median": statistics.median(waits),
        f"health beside {streams}, slowest": max(waits),
    }


async def harness(client: httpx2.AsyncClient, together: int) -> dict[str, float]:
    """Texts a second that are scored, so many at a time."""
    start = time.perf_counter()
    for first in range(0, SCORED, together):
        asked = (score(client, seed) for seed in range(first, first + together))
        await asyncio.gather(*asked)
    seconds = time.perf_counter() - start
    return {f"scored, {together} at once, texts/s": SCORED / seconds}


async def score(client: httpx2.AsyncClient, seed: int) -> None:
    """What lm-eval asks: how likely each token of a text is."""
    prompt = [3 + (7 * seed + i * i) % 2000 for i in range(SCORED)]
    usual = {"temperature": 0, "max_tokens": 1, "logprobs": 1, "seed": 1234, "echo": True}
    answer = await client.post("/v1/completions", json={"prompt": [prompt], **usual})
    (choice,) = answer.json()["choices"]
    assert len(choice["logprobs"]["token_logprobs"]) == SCORED + 1


# The clients


async def is_well(client: httpx2.AsyncClient) -> bool:
    """Whether the server answers."""
    try:
        return (await client.get("/health")).status_code == 200
    except httpx2.TransportError:
        return False


async def stream(client: httpx2.AsyncClient, seed: int) -> tuple[str, float, float]:
    """A text, and the seconds to its first token and to its end."""
    asked = {"prompt": [3, 4, 5], "max_tokens": TOKENS, "seed": seed, "stream": True}
    start, first, text, done = time.perf_counter(), 0.0, "", False
    async with client.stream("POST", "/v1/completions", json=asked) as answer:
        async for line in answer.aiter_lines():
            done = done or line == "data: [DONE]"
            if line.startswith("data: {"):
                first = first or time.perf_counter() - start
                text += json.loads(line[6:])["choices"][0]["text"]
    return text if done else "", first, time.perf_counter() - start


def start_watching(port: int) -> "subprocess.Popen[str]":
    """A process that measures /health until it is told to end; it has its first answer."""
    command = [sys.executable, __file__, "--watch"]
    environment = {**os.environ, "MINIGPT_PORT": str(port)}
    watching = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert watching.stdout is not None
    watching.stdout.readline()
    return watching


def watch() -> None:
    """How long /health takes, in seconds, until standard input ends."""
    connection = http.client.HTTPConnection("127.0.0.1", PORT)
    waits: list[float] = []
    while not (waits and select.select([sys.stdin], [], [], 0.1)[0]):
        start = time.perf_counter()
        connection.request("GET", "/health")
        connection.getresponse().read()
        waits.append(time.perf_counter() - start)
        if len(waits) == 1:
            print("begun", flush=True)
    print(json.dumps(waits))


def plain(folder: str) -> None:
    """A server with a transformers model, as one would write it in ten minutes."""
    import torch
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Route
    from transformers import AutoModelForCausalLM

    model, lock = AutoModelForCausalLM.from_pretrained(folder).eval(), asyncio.Lock()

    async def events(asked: dict[str, Any]) -> AsyncIterator[str]:
        ids, past = torch.tensor([asked["prompt"]]), None
        noise = torch.Generator().manual_seed(asked["seed"])
        step = torch.inference_mode()(model.forward)
        async with lock:
            for _ in range(asked["max_tokens"]):
                found = await run_in_threadpool(step, ids, past_key_values=past, use_cache=True)
                past, chances = found.past_key_values, found.logits[:, -1].softmax(-1)
                ids = torch.multinomial(chances, 1, generator=noise)
                yield f"data: {json.dumps({'choices': [{'text': str(ids.item())}]})}\n\n"
        yield "data: [DONE]\n\n"

    async def completions(request: Request) -> Response:
        return StreamingResponse(events(await request.json()), media_type="text/event-stream")

    async def well(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    routes = [Route("/health", well), Route("/v1/completions", completions, methods=["POST"])]
    uvicorn.run(Starlette(routes=routes), port=PORT, log_level="error")


if __name__ == "__main__":
    main()
