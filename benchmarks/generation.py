"""Generation: tokens/s, time to the first token and peak memory, beside other programs.

python benchmarks/generation.py [--help]. Every engine writes the same number of tokens after the
same prompt, greedily, with the same random weights (nanoGPT's own for nanoGPT), in a process of
its own; several rounds, in turn. The table shows medians with the slowest and fastest round, how
many times as fast as transformers in float32 that is, and goes to
benchmarks/results/generation.json too. The first run compiles, which is not timed.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from minigpt.config import GPTConfig
from minigpt.model import GPT, count_parameters

RESULTS = Path(__file__).parent / "results"
SIZES = {  # as GPT-2, so that transformers has the same model
    "0.8M": GPTConfig(65, "gpt2", context_length=256, emb_dim=128, num_layers=4, num_heads=4),
    "10.7M": GPTConfig(65, "gpt2", context_length=256, emb_dim=384, num_layers=6, num_heads=6),
    "124M": GPTConfig(50257, "gpt2", context_length=1024, emb_dim=768, num_layers=12, num_heads=12),
}
BASELINE = "transformers float32"
ENGINES = (
    "minigpt float32",
    "minigpt float32 compiled",
    "minigpt bfloat16 compiled",
    "minigpt int8 compiled",
    BASELINE,
    "transformers bfloat16",
)
Write = Callable[[int], object]  # so many new tokens


def main() -> None:
    """Print the table, or, told so, time one engine."""
    given = arguments()
    if given.worker:
        size, engine, batch_size = given.worker
        print(json.dumps(timed(size, engine, int(batch_size), given)))
        return
    engines = (*ENGINES, *(["nanoGPT float32"] if given.nanogpt else []))
    engines += ("llama.cpp float32", "llama.cpp float16", "llama.cpp q8_0") if given.llama else ()
    rows = [row for size in given.sizes for row in of_size(size, engines, given)]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "generation.json").write_text(json.dumps(rows, indent=2) + "\n")


def of_size(size: str, engines: tuple[str, ...], given: argparse.Namespace) -> list[dict]:
    """Time and print every engine with a model of that size."""
    jobs = [(engine, 1) for engine in engines]
    if size == "10.7M":
        jobs += [("minigpt float32 compiled", 16), (BASELINE, 16)]
    runs: dict[tuple[str, int], list[dict]] = {job: [] for job in jobs}
    for _ in range(given.rounds):
        for job in jobs:
            runs[job].append(in_a_process(size, *job, given))
            speed = runs[job][-1]["tokens_per_second"]
            print(f"{size} {job[0]}, batch {job[1]}: {speed:,.1f} tokens/s", file=sys.stderr)
    shape = SIZES[size]
    print(
        f"\n{size}: {shape.num_layers} layers, width {shape.emb_dim}, vocabulary "
        f"{shape.vocab_size:,} ({count_parameters(shape) / 1e6:.1f} M parameters); "
        f"{given.tokens} tokens after {given.prompt}, {torch.get_num_threads()} threads"
    )
    print(
        f"{'':32}{'tokens/s':>10}{'(min - max)':>16}{'ratio':>7}{'first, ms':>11}{'peak, MB':>10}"
    )
    rows = []
    for (engine, batch_size), results in runs.items():
        base = statistics.median(r["tokens_per_second"] for r in runs[BASELINE, 1])
        row = summary(size, engine, batch_size, results, base)
        rows.append(row)
        span = f"({row['slowest']:,.0f} - {row['fastest']:,.0f})"
        name = engine + (f", batch {batch_size}" if batch_size > 1 else "")
        print(
            f"{name:32}{row['tokens_per_second']:>10,.1f}{span:>16}{row['ratio']:>7.2f}"
            f"{1000 * row['first_token_seconds']:>11.1f}{row['peak_megabytes']:>10,.0f}",
            flush=True,
        )
    return rows


def summary(
    size: str, engine: str, batch_size: int, results: list[dict], base: float
) -> dict[str, str | float]:
    """Medians over the rounds."""
    speeds = [r["tokens_per_second"] for r in results]
    return {
        "size": size,
        "engine": engine,
        "batch_size": batch_size,
        "tokens_per_second": statistics.median(speeds),
        "slowest": min(speeds),
        "fastest": max(speeds),
        "ratio": statistics.median(speeds) / base,
        "first_token_seconds": statistics.median(r["first_token_seconds"] for r in results),
        "peak_megabytes": statistics.median(r["peak_megabytes"] for r in results),
    }


def arguments() -> argparse.Namespace:
    """What to time, and how long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=SIZES)
    parser.add_argument("--tokens", type=int, default=200, help="new tokens")
    parser.add_argument("--prompt", type=int, default=32, help="tokens before them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nanogpt", metavar="FOLDER", help="a checkout of nanoGPT to time too")
    parser.add_argument(
        "--llama", metavar="PYTHON", help="a Python that has llama-cpp-python, to time it too"
    )
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


def in_a_process(size: str, engine: str, batch_size: int, given: argparse.Namespace) -> dict:
    """Time one engine where nothing else has filled memory."""
    if engine.startswith("llama.cpp"):
        return llama(size, engine.split()[1], given)
    options = ["--tokens", str(given.tokens), "--prompt", str(given.prompt)]
    options += ["--nanogpt", given.nanogpt] if given.nanogpt else []
    command = [sys.executable, __file__, *options, "--worker", size, engine, str(batch_size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{engine}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def timed(size: str, engine: str, batch_size: int, given: argparse.Namespace) -> dict[str, float]:
    """The median of three texts, and of three first tokens."""
    torch.manual_seed(0)
    prompt = torch.randint(SIZES[size].vocab_size, (1, given.prompt))  # (1, T)
    write = {"minigpt": minigpt, "transformers": transformers, "nanoGPT": nanogpt}[
        engine.split(maxsplit=1)[0]
    ](SIZES[size], engine, prompt, batch_size, given)
    write(given.tokens)
    return {
        "tokens_per_second": batch_size * given.tokens / seconds(write, given.tokens),
        "first_token_seconds": seconds(write, 1),
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def seconds(write: Write, tokens: int) -> float:
    """Median time of three texts."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        write(tokens)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def minigpt(
    shape: GPTConfig,
    engine: str,
    prompt: torch.Tensor,
    batch_size: int,
    given: argparse.Namespace,
) -> Write:
    """Ours."""
    from itertools import islice

    from minigpt.generation.compiled import CompiledStep
    from minigpt.generation.decode import decode
    from minigpt.generation.precision import in_precision

    model = in_precision(GPT(shape).eval(), engine.split()[1])  # type: ignore[arg-type]
    predict = CompiledStep(model) if "compiled" in engine else None
    ids = prompt[0].tolist()

    def write(tokens: int) -> list[torch.Tensor]:
        drawn = decode(
            model, ids, lambda logits: logits.argmax(-1), samples=batch_size, predict=predict
        )
        return list(islice(drawn, tokens))

    write(4)
    if predict is not None and predict.problem:
        raise SystemExit(f"not compiled: {predict.problem}")
    return write


def transformers(
    shape: GPTConfig,
    engine: str,
    prompt: torch.Tensor,
    batch_size: int,
    given: argparse.Namespace,
) -> Write:
    """Its `generate`, with a cache, on our weights."""
    from transformers import GPT2Config, GPT2LMHeadModel
    from transformers.utils import logging

    from minigpt.interop.mapping import config_to_huggingface, weights_to_huggingface

    logging.set_verbosity_error()
    config = config_to_huggingface(shape) | {"bos_token_id": None, "eos_token_id": None}
    model = GPT2LMHeadModel(GPT2Config(**config)).eval()
    weights = weights_to_huggingface(GPT(shape).state_dict(), shape)
    missing = model.load_state_dict(weights, strict=False).missing_keys
    assert missing == ["lm_head.weight"], missing  # tied to the embedding
    model.to(torch.bfloat16 if "bfloat16" in engine else torch.float32)
    batch = prompt.expand(batch_size, -1)

    def write(tokens: int) -> torch.Tensor:
        return model.generate(
            batch,
            attention_mask=torch.ones_like(batch),
            max_new_tokens=tokens,
            do_sample=False,
            pad_token_id=0,
        )

    return write


def nanogpt(
    shape: GPTConfig,
    engine: str,
    prompt: torch.Tensor,
    batch_size: int,
    given: argparse.Namespace,
) -> Write:
    """The model and loop that its sample.py runs, from a checkout."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("nanogpt", Path(given.nanogpt) / "model.py")
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules["nanogpt"] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    config = module.GPTConfig(
        block_size=shape.context_length,
        vocab_size=shape.vocab_size,
        n_layer=shape.num_layers,
        n_head=shape.num_heads,
        n_embd=shape.emb_dim,
    )
    model = module.GPT(config).eval()
    batch = prompt.expand(batch_size, -1)

    def write(tokens: int) -> torch.Tensor:
        with torch.no_grad():
            return model.generate(batch, tokens, top_k=1)

    return write


LLAMA = """
import json, resource, statistics, sys, time
from llama_cpp import Llama
path, prompt, tokens, vocabulary = sys.argv[1], *map(int, sys.argv[2:5])
model = Llama(path, n_ctx=prompt + tokens + 8, n_threads=2, n_threads_batch=2, verbose=False)
ids = [(7 * i + 3) % vocabulary for i in range(prompt)]
def seconds(count):
    times = []
    for _ in range(3):
        model.reset()
        start = time.perf_counter()
        for i, _ in enumerate(model.generate(ids, temp=0.0, repeat_penalty=1.0), 1):
            if i == count:
                break
        times.append(time.perf_counter() - start)
    return statistics.median(times)
seconds(tokens)
print(json.dumps({
    "tokens_per_second": tokens / seconds(tokens),
    "first_token_seconds": seconds(1),
    "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""


def llama(size: str, dtype: str, given: argparse.Namespace) -> dict:
    """llama.cpp on a GGUF file of ours, through another Python that has its bindings."""
    from minigpt.interop.gguf import write_gguf
    from minigpt.tokenizer import CharacterTokenizer

    torch.manual_seed(0)
    shape = SIZES[size]
    characters = [chr(0x20000 + i) for i in range(shape.vocab_size - 1)]  # as many as needed
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        path = Path(file.name)
        write_gguf(path, GPT(shape), CharacterTokenizer(characters), "benchmark", dtype)  # type: ignore[arg-type]
        numbers = map(str, (given.prompt, given.tokens, shape.vocab_size))
        command = [given.llama, "-c", LLAMA, str(path), *numbers]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"llama.cpp: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
