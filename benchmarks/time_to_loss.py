"""Loss over time on one text: ours for several numbers of minutes, and nanoGPT's CPU recipe.

python benchmarks/time_to_loss.py TEXT [--help]. Each run is the command that a user types, timed
from its start to its end. The last tenth of the text is not trained on; the loss is that of this
tenth, in nats a character, so that tokenizers compare. With --nanogpt FOLDER nanoGPT's recipe for a
CPU runs too (its loss is a mean of 20 random batches). Two more runs compare the tokens per second
of both programs with the same shape, biases included. Results: a table, and time_to_loss.json and
.png in benchmarks/results.
"""

import argparse
import json
import math
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent
TRAIN = HERE.parent / "train.py"
RESULTS = HERE / "results"
# "I only have a macbook", from its README.
RECIPE = shlex.split(
    "--device=cpu --compile=False --eval_iters=20 --log_interval=1 --block_size=64 "
    "--batch_size=12 --n_layer=4 --n_head=4 --n_embd=128 --max_iters=2000 "
    "--lr_decay_iters=2000 --dropout=0.0"
)
# To compare the speed: with GPT-2's biases, and half of the steps.
WITH_BIASES = shlex.split("--bias=True --max_iters=1000 --eval_interval=1000")
SAME_SHAPE = shlex.split(
    "--architecture gpt2 --tokenizer char --num-layers 4 --num-heads 4 --emb-dim 128 "
    "--context-length 64 --batch-size 12 --dropout 0 --optimizer adamw --precision float32 "
    "--compile off --steps 1000 --num-evals 4"
)


@dataclass
class Run:
    """What one training gave."""

    name: str
    seconds: float  # of the whole command
    curve: list[tuple[float, float]]  # (seconds since its start, nats a character)
    tokens_per_second: float

    @property
    def best(self) -> float:
        """The lowest loss, nats a character."""
        return min(loss for _, loss in self.curve)


def main() -> None:
    """Run everything, print the table, draw the curves."""
    given = arguments()
    runs = []
    for round_ in range(given.rounds):
        for minutes in given.minutes:
            options = ["--minutes", f"{minutes:g}", "--seed", str(round_)]
            runs.append(ours(f"minigpt, {minutes:g} minutes", given.text, options))
            show(runs[-1])
        if given.nanogpt:
            runs.append(ours("minigpt, nanoGPT's shape", given.text, SAME_SHAPE))
            show(runs[-1])
            name = "nanoGPT with biases"
            runs.append(nanogpt(name, given.text, given.nanogpt, [*RECIPE, *WITH_BIASES]))
            show(runs[-1])
            name = "nanoGPT's CPU recipe"
            runs.append(nanogpt(name, given.text, given.nanogpt, RECIPE))
            show(runs[-1])
    RESULTS.mkdir(exist_ok=True)
    table = [asdict(run) for run in runs]
    (RESULTS / "time_to_loss.json").write_text(json.dumps(table, indent=2) + "\n")
    draw(runs)


def arguments() -> argparse.Namespace:
    """Which text, and how long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", nargs="?", type=Path, default=HERE.parent / "data/fables.txt")
    parser.add_argument("--minutes", type=float, nargs="+", default=[1.5, 3.0, 10.0])
    parser.add_argument("--rounds", type=int, default=1, help="repeat all runs, with another seed")
    parser.add_argument(
        "--nanogpt", type=Path, metavar="FOLDER", help="a checkout of nanoGPT, to run it too"
    )
    return parser.parse_args()


def ours(name: str, text: Path, options: list[str]) -> Run:
    """One `train.py`, from nothing."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(TRAIN), str(text.resolve()), "--out", f"{folder}/run"]
        command += ["--init", "none"]
        start = time.monotonic()
        done = subprocess.run([*command, *options], cwd=folder, capture_output=True, check=False)
        seconds = time.monotonic() - start
        if done.returncode:
            raise SystemExit(done.stderr.decode())
        lines = (Path(folder) / "run/metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    scale = math.log(2) * bytes_a_character(text)
    curve = [(row["seconds"], scale * row["val_bits_per_byte"]) for row in rows]
    return Run(name, seconds, curve, statistics.median(r["tokens_per_second"] for r in rows))


def nanogpt(name: str, text: Path, checkout: Path, options: list[str]) -> Run:
    """One training of nanoGPT, in a copy of its checkout."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "nanoGPT"
        shutil.copytree(checkout, folder, ignore=shutil.ignore_patterns(".git"))
        shutil.copy(text, folder / "data/shakespeare_char/input.txt")
        start = time.monotonic()
        prepare = [sys.executable, "data/shakespeare_char/prepare.py"]
        subprocess.run(prepare, cwd=folder, check=True, capture_output=True)
        curve, steps = [], []
        command = [sys.executable, "-u", "train.py", "config/train_shakespeare_char.py", *options]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if found := re.search(r"val loss ([\d.]+)", line):
                    curve.append((time.monotonic() - start, float(found[1])))
                elif found := re.search(r"time ([\d.]+)ms", line):
                    steps.append(float(found[1]) / 1000)
        seconds = time.monotonic() - start
    return Run(name, seconds, curve, 12 * 64 / statistics.median(steps))


def bytes_a_character(text: Path) -> float:
    """In the last tenth of a text."""
    characters = text.read_text(encoding="utf-8")
    tail = characters[int(0.9 * len(characters)) :]
    return len(tail.encode()) / len(tail)


def show(run: Run) -> None:
    """One line of the table."""
    print(
        f"{run.name:26}{run.seconds:7.1f} s {run.best:8.4f} nats/char at best "
        f"{run.curve[-1][1]:8.4f} at the end {run.tokens_per_second:9,.0f} tokens/s",
        flush=True,
    )
    points = [f"{seconds:.0f} s {loss:.3f}" for seconds, loss in run.curve]
    print(f"    {', '.join(points)}", flush=True)


def draw(runs: list[Run]) -> None:
    """Every loss curve, over a logarithmic time axis."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for run in runs:
        axes.plot(*zip(*run.curve, strict=True), marker=".", label=run.name)
    axes.set(xscale="log", xlabel="seconds since the command began", ylabel="nats a character")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(RESULTS / "time_to_loss.png", dpi=120)


if __name__ == "__main__":
    main()
