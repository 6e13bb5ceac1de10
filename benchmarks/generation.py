"""Generation: tokens/s beside the torch model, transformers and llama.cpp; start-up; sampling.

python benchmarks/generation.py [--quick]. All engines have the same random weights, read from the
same run or exported folder, and write the same number of tokens greedily after the same prompt.
Each waits in a process of its own and writes a text when its turn comes, round after round, so that
all meet the same machine. The tables show medians and the slowest and fastest round, and how many
times as fast as it the glass engine is (the median over the rounds of that ratio); they go to
benchmarks/results/generation.json too. llama.cpp takes part where llama-cpp-python is installed.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from minigpt.config import GPTConfig, SampleConfig, TextConfig, TrainConfig

RESULTS = Path(__file__).parent / "results"
SIZES = {
    "1M": GPTConfig(2048, context_length=256, emb_dim=128, num_layers=4, num_heads=2),
    "12M": GPTConfig(2048, context_length=256, emb_dim=384, num_layers=6, num_heads=6),
    "124M": GPTConfig(50257, "gpt2", 1024, emb_dim=768, num_layers=12, num_heads=12),
}
TOKENS = {"1M": 500, "12M": 200, "124M": 60}
ENGINES = ["glass", "torch", "transformers", "llama.cpp"]
PROMPT = list(range(3, 35))  # token ids
Write = Callable[[int], object]  # so many tokens


def main() -> None:
    """Print the tables; or, as a worker, write texts when told to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small models only, fewer rounds")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, help="only these")
    parser.add_argument("--rounds", type=int, help="5 if unset, 3 with --quick")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(*given.worker)
        return
    rounds = given.rounds or (3 if given.quick else 5)
    sizes = given.sizes or (["1M", "12M"] if given.quick else list(SIZES))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            make_models(Path(folder, size), SIZES[size])
            rows += generation(Path(folder, size), size, rounds)
        rows += start_up(Path(folder, sizes[0]), sizes[0], rounds)
        rows += sampling(rounds)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "generation.json").write_text(json.dumps(rows, indent=2) + "\n")


def report(name: str, values: list[float], unit: str, ratios: list[float]) -> dict[str, Any]:
    """Print a row of a table."""
    median, ratio = statistics.median(values), statistics.median(ratios)
    span = f"({min(values):,.4g} - {max(values):,.4g})"
    print(f"  {name:34}{median:>10,.4g} {unit:9}{span:22}{ratio:>7.2f}", flush=True)
    return {"name": name, "unit": unit, "median": median, "values": values, "ratio": ratio}


def make_models(folder: Path, shape: GPTConfig) -> None:
    """A run with random weights, and the same model for transformers and llama.cpp."""
    import torch

    from minigpt.data.origin import Origin
    from minigpt.generation.torch_gpt import glass_of
    from minigpt.interop.gguf import write_gguf
    from minigpt.interop.huggingface import write_folder
    from minigpt.model import GPT
    from minigpt.runs.folder import CONFIG, TOKENIZER, WEIGHTS, RunConfig
    from minigpt.runs.weights import save_weights
    from minigpt.tokenizer import CharacterTokenizer

    torch.manual_seed(0)
    model = GPT(shape)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.05)
    tokenizer = CharacterTokenizer([chr(0x20000 + i) for i in range(shape.vocab_size - 1)])
    for name in ("run", "transformers"):
        (folder / name).mkdir(parents=True)
    save_weights(model, folder / "run" / WEIGHTS)
    config = RunConfig(shape, TrainConfig(), Origin(TextConfig())).to_json()
    (folder / "run" / CONFIG).write_text(config)
    (folder / "run" / TOKENIZER).write_text(tokenizer.to_json())
    weights = glass_of(model).weights
    write_folder(folder / "transformers", shape, weights, tokenizer)
    if has_llama():
        write_gguf(folder / "model.gguf", shape, weights, tokenizer, "benchmark")


def has_llama() -> bool:
    """Whether llama.cpp can take part."""
    return importlib.util.find_spec("llama_cpp") is not None


# Tokens a second


def generation(folder: Path, size: str, rounds: int) -> list[dict[str, Any]]:
    """Let every engine write in turn."""
    tokens = TOKENS[size]
    jobs = [(engine, 1) for engine in ENGINES if engine != "llama.cpp" or has_llama()]
    jobs += [("glass", 16), ("torch", 16)] if size == "12M" else []
    workers = [Worker(folder, *job) for job in jobs]
    speeds: list[list[float]] = [[] for _ in jobs]
    for _ in range(rounds):
        for (_, batch_size), worker, found in zip(jobs, workers, speeds, strict=True):
            found.append(batch_size * tokens / worker.seconds(tokens))
    for worker in workers:
        worker.process.kill()
    print(f"\n{size}, {tokens} tokens after {len(PROMPT)}; last: how many times as fast glass is")
    return [
        report(
            f"{size} {engine}, batch {batch_size}",
            found,
            "tokens/s",
            [ours / other for ours, other in zip(speeds[0], found, strict=True)],
        )
        for (engine, batch_size), found in zip(jobs, speeds, strict=True)
    ]


class Worker:
    """A process that has loaded an engine."""

    def __init__(self, folder: Path, engine: str, batch_size: int):
        command = [sys.executable, __file__, "--worker", str(folder), engine, str(batch_size)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.seconds(4)  # not before everything is loaded

    def seconds(self, tokens: int) -> float:
        """How long it takes to write so many."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{tokens}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def work(folder: str, engine: str, batch_size: str) -> None:
    """Write as many tokens as each line of standard input says, and say how long it took."""
    make = {"transformers": transformers, "llama.cpp": llama}.get(engine, ours)
    write = make(Path(folder), engine, int(batch_size))
    write(8)
    for line in sys.stdin:
        time.sleep(0.2)  # threads of others that wait by spinning come to rest
        start = time.perf_counter()
        write(int(line))
        print(time.perf_counter() - start, flush=True)


def ours(folder: Path, engine: str, batch_size: int) -> Write:
    """The glass engine, or the torch model, one plain step for each token."""
    import minigpt
    from minigpt.generation.window import Window

    writer = minigpt.load(folder / "run", device="cpu")
    model: Any = writer.engine
    if engine == "torch":
        from minigpt.generation.torch_gpt import TorchGPT

        model = TorchGPT(writer.model)

    def write(tokens: int) -> None:
        window = Window(model, PROMPT, batch_size)
        for _ in range(tokens):
            window.append(window.next_logits().argmax(axis=-1))

    return write


def transformers(folder: Path, engine: str, batch_size: int) -> Write:
    """Its `generate`, with a cache."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder / "transformers").eval()
    model.generation_config.eos_token_id = None
    ids = torch.tensor([PROMPT] * batch_size)
    options = {"do_sample": False, "pad_token_id": 0, "attention_mask": torch.ones_like(ids)}
    return lambda tokens: model.generate(ids, max_new_tokens=tokens, **options)


def llama(folder: Path, engine: str, batch_size: int) -> Write:
    """llama.cpp in float32, with as many threads as there are cores."""
    from llama_cpp import Llama

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    path = str(folder / "model.gguf")
    model = Llama(path, n_ctx=1024, n_threads=cores, n_threads_batch=cores, verbose=False)

    def write(tokens: int) -> None:
        model.reset()
        drawn = model.generate(PROMPT, temp=0.0, top_k=1, repeat_penalty=1.0)
        for _ in range(tokens):
            next(drawn)

    return write


# Start-up and sampling


def start_up(folder: Path, size: str, rounds: int) -> list[dict[str, Any]]:
    """From the shell to the first token on standard output, beside the import of torch."""
    root = Path(__file__).parent.parent
    prompt = chr(0x20003)
    ask = [sys.executable, str(root / "generate.py"), prompt, "--run", str(folder / "run")]
    shown: list[float] = []
    imported: list[float] = []
    for _ in range(rounds + 1):  # the first fills the disk's cache
        start = time.perf_counter()
        with subprocess.Popen(ask, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            process.stdout.read(len(prompt.encode()) + 1)
            shown.append(time.perf_counter() - start)
            process.kill()
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import torch"], check=True)
        imported.append(time.perf_counter() - start)
    print("\nstart-up; last: seconds as a share of those of the import of torch")
    shares = [ours / other for ours, other in zip(shown[1:], imported[1:], strict=True)]
    first = report(f"{size}, shell to first token", shown[1:], "s", shares)
    return [first, report("python -c 'import torch'", imported[1:], "s", [1.0])]


def sampling(rounds: int) -> list[dict[str, Any]]:
    """A draw with top p from GPT-2's vocabulary."""
    from minigpt.generation.sampler import TokenSampler

    size = SIZES["124M"].vocab_size
    config = SampleConfig(top_p=0.9, seed=0)
    sampler = TokenSampler(config, np.zeros(size, np.float32), [])
    logits = np.random.default_rng(0).normal(scale=3, size=(1, size)).astype(np.float32)
    times = []
    for _ in range(10 * rounds):
        start = time.perf_counter()
        sampler(logits)
        times.append(1000 * (time.perf_counter() - start))
    print("\nsampling; last: none")
    return [report(f"top p of {size:,} tokens", times, "ms", [1.0])]


if __name__ == "__main__":
    main()
