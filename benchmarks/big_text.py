"""A text larger than memory should be: how fast it is prepared, and the memory that this takes.

python benchmarks/big_text.py [--help]. The text is made up: lines of twelve words, drawn at random
from data/fables.txt and Python's own help texts (pydoc_data), one word in twelve invented letter by
letter. Preparation and training each run in a process of their own, whose peak resident memory the
operating system reports. The table goes to benchmarks/results/big_text.json too.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
LINES = 200_000  # different ones


def main() -> None:
    """Print the table; as a process of its own, do one stage."""
    given = arguments()
    if given.stage:
        {"preparation": prepare_text, "training": train}[given.stage](given)
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        given.folder = name
        os.environ["MINIGPT_CACHE"] = f"{name}/cache"
        write_text(Path(name) / "big.txt", round(given.gigabytes * 1e9))
        size = os.path.getsize(f"{name}/big.txt") / 1e6
        rows = [measured(stage, given) for stage in ("preparation", "training")]
    print(f"{size:,.0f} MB of text, {given.steps} steps of training")
    print(f"{'':14}{'seconds':>9}{'MB/s':>7}{'peak MB':>9}")
    for row in rows:
        speed = f"{size / row['seconds']:.1f}" if row["stage"] == "preparation" else ""
        print(f"{row['stage']:14}{row['seconds']:>9.1f}{speed:>7}{row['peak_megabytes']:>9,.0f}")
    RESULTS.mkdir(exist_ok=True)
    record = {"text_megabytes": size, "stages": rows}
    (RESULTS / "big_text.json").write_text(json.dumps(record, indent=2) + "\n")


def arguments() -> argparse.Namespace:
    """How much text, and how long to train on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=4.0, help="of text")
    parser.add_argument("--steps", type=int, default=100, help="training steps")
    parser.add_argument("--folder", help="where there is room for one and a half times the text")
    parser.add_argument("--stage", choices=("preparation", "training"), help=argparse.SUPPRESS)
    return parser.parse_args()


def write_text(file: Path, size: int) -> None:
    """A text of about `size` bytes, always the same."""
    draw = random.Random(0)
    known = ((ROOT / "data/fables.txt").read_text() + " ".join(topics.values())).split()
    letters = [letter for word in known for letter in word if letter.isascii()]
    invented = ["".join(draw.choices(letters, k=draw.randrange(2, 11))) for _ in range(20_000)]
    lines = []
    for _ in range(LINES):
        words = draw.choices(known, k=11)
        words.insert(draw.randrange(12), draw.choice(invented))
        lines.append(" ".join(words) + "\n")
    with open(file, "w", encoding="utf-8") as out:
        while out.tell() < size:
            out.write("".join(draw.choices(lines, k=10_000)))


def measured(stage: str, given: argparse.Namespace) -> dict[str, Any]:
    """Seconds and peak resident memory of one stage, run as a process of its own."""
    command = [sys.executable, __file__, "--stage", stage, "--folder", given.folder]
    start = time.perf_counter()
    process = subprocess.Popen([*command, "--steps", str(given.steps)])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{stage} failed")
    unit = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, kilobytes elsewhere
    seconds = time.perf_counter() - start
    return {"stage": stage, "seconds": seconds, "peak_megabytes": usage.ru_maxrss / unit}


def prepare_text(given: argparse.Namespace) -> None:
    """Turn the text into a cached file of token ids, with the vocabulary of a long text."""
    from minigpt.config import TextConfig
    from minigpt.data.source import find_source
    from minigpt.data.token_cache import prepare_tokens

    config = TextConfig((f"{given.folder}/big.txt",), vocab_size=16_384)
    prepare_tokens(find_source(config), config)


def train(given: argparse.Namespace) -> None:
    """Train on what was prepared."""
    import minigpt

    text, out = f"{given.folder}/big.txt", f"{given.folder}/run"
    minigpt.train(text, out=out, steps=given.steps, vocab_size=16_384, num_evals=2)


if __name__ == "__main__":
    main()
