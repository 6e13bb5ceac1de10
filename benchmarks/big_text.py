"""A text larger than memory should be: how fast it is prepared, and how much memory that and
training on it take.

python benchmarks/big_text.py [--help]. The text is made anew: lines of twelve words, drawn at
random from those of data/fables.txt and of Python's own help texts (pydoc_data), one word in ten
invented letter by letter. Each stage is a process of its own, whose peak resident memory the
system tells; the table goes to benchmarks/results/big_text.json too.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from minigpt.data.token_file import META, read_meta
from minigpt.model import count_parameters
from minigpt.runs import read_config

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
_LINES = 200_000  # different ones
PREPARE = """
import sys
from minigpt.config import TextConfig
from minigpt.data.dataset import find_source, prepare
from minigpt.training.plan import TextStats, plan_vocabulary
files = (sys.argv[1],)
source = find_source(TextConfig(files))
config = TextConfig(files, vocab_size=plan_vocabulary(TextStats(source.training.size)))
prepare(source, config)
"""
TRAIN = """
import sys, minigpt
minigpt.train(sys.argv[1], out=sys.argv[2], steps=int(sys.argv[3]), num_evals=2)
"""


def main() -> None:
    """Print the table."""
    given = arguments()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        text, run = folder / "big.txt", folder / "run"
        os.environ["MINIGPT_CACHE"] = str(folder / "cache")
        seconds = time.perf_counter()
        write_text(text, round(given.gigabytes * 1e9))
        print(f"text made in {time.perf_counter() - seconds:.0f} s", file=sys.stderr)
        size = text.stat().st_size / 1e6
        rows = []
        if given.kill:
            rows.append(stage("killed", PREPARE, text, until=lambda: shards(folder) >= given.kill))
        rows.append(stage("preparation", PREPARE, text) | {"shards": shards(folder)})
        rows.append(stage("training", TRAIN, text, run, str(given.steps)))
        model = count_parameters(read_config(run).model) * 4 / 1e6  # float32
    print(f"{size:,.0f} MB of text, a model of {model:.1f} MB, {given.steps} steps")
    print(f"{'':14}{'seconds':>9}{'MB/s':>7}{'peak MB':>9}")
    for row in rows:
        row["megabytes_per_second"] = size / row["seconds"]
        speed = f"{row['megabytes_per_second']:.1f}" if row["stage"] == "preparation" else ""
        print(f"{row['stage']:14}{row['seconds']:>9.1f}{speed:>7}{row['peak_megabytes']:>9,.0f}")
    RESULTS.mkdir(exist_ok=True)
    record = {"text_megabytes": size, "model_megabytes": model, "stages": rows}
    (RESULTS / "big_text.json").write_text(json.dumps(record, indent=2) + "\n")


def arguments() -> argparse.Namespace:
    """How much text, and what is done with it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=4.0, help="of text")
    parser.add_argument("--steps", type=int, default=100, help="training steps")
    parser.add_argument("--kill", type=int, default=0, help="first kill it after so many shards")
    parser.add_argument("--folder", help="where there is room for the text and half as much again")
    return parser.parse_args()


def write_text(file: Path, size: int) -> None:
    """A text of about `size` bytes, always the same."""
    draw = random.Random(0)
    known = ((ROOT / "data/fables.txt").read_text() + " ".join(topics.values())).split()
    letters = [letter for word in known for letter in word if letter.isascii()]
    invented = ["".join(draw.choices(letters, k=draw.randrange(2, 11))) for _ in range(20_000)]
    lines = []
    for _ in range(_LINES):
        words = draw.choices(known, k=11)
        words.insert(draw.randrange(12), draw.choice(invented))
        lines.append(" ".join(words) + "\n")
    with open(file, "w", encoding="utf-8") as out:
        while out.tell() < size:
            out.write("".join(draw.choices(lines, k=10_000)))


def shards(folder: Path) -> int:
    """How many there are by now."""
    return sum(len(read_meta(meta.parent).shards) for meta in folder.glob(f"cache/*/{META}"))


def stage(
    name: str, code: str, *given: str | Path, until: Callable[[], bool] = lambda: False
) -> dict[str, Any]:
    """Run `code` in a process of its own, and kill it if something comes true.

    Returns:
        Its name, seconds, and peak resident memory.
    """
    seconds = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", code, *map(str, given)], env=environment)
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if until():
            process.send_signal(signal.SIGKILL)
        time.sleep(0.1)
    if os.waitstatus_to_exitcode(status) not in (0, -signal.SIGKILL):
        raise SystemExit(f"{name} failed")
    unit = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, kilobytes elsewhere
    return {
        "stage": name,
        "seconds": time.perf_counter() - seconds,
        "peak_megabytes": usage.ru_maxrss / unit,
    }


if __name__ == "__main__":
    main()
