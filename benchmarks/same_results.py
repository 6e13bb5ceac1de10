"""Whether two checkouts of this project train, write and plan the same, bit for bit.

    python benchmarks/same_results.py OLD NEW [TEXT ...]

OLD and NEW are folders with a checkout each. The same commands run in both: small trainings of
every kind, of a chat too, one that is finished and resumed for more steps, and texts written by
their models. Then plans are made of each TEXT (the tales and the fables without one) for half a
minute to an hour, as if the machine always had the same speed. What is compared: every weight, the
losses of a training, the texts of its evaluations, and the first and the last text in its journal;
what `generate` and `train --plan` print. Prints a line for each; exit status 1 if anything differs.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

ROOT = Path(__file__).resolve().parents[1]
MINUTES = ("0.5", "2", "10", "60")
SMALL = [
    "--vocab-size",
    "512",
    "--emb-dim",
    "64",
    "--num-layers",
    "2",
    "--context-length",
    "64",
    "--batch-size",
    "16",
]
USUAL = ["--device", "cpu", "--compile", "off", "--precision", "float32", "--num-workers", "2"]

# Runs a command as if the speed of the machine were known, and as if no reading took too long.
RUNNER = """
import sys
try:
    from minigpt.recipe import choose_plan as planning, machine as speed, text_stats as first_loss
except ImportError:  # of an older checkout
    from minigpt.recipe import choose as planning, machine as speed, text_stats as first_loss
planning.measure_speed = lambda *_: speed.Speed(flops=1.35e11, start=0.0095, num_workers=2)
first_loss._LIMIT = 1e9
from minigpt.cli import main
sys.exit(main(sys.argv[1:]))
"""

CHAT = "chat.txt"  # written before the first training
JOURNAL_ROW = ("step", "beginning", "text", "words", "known", "unknown", "tokens", "looks")

# A name for each training, its text, and the options that it has besides those of all.
TRAININGS = {
    "usual": ("fables.txt", [*SMALL, "--steps", "40"]),
    "planned": ("tales.txt", ["--steps", "12"]),
    "bfloat16": ("fables.txt", [*SMALL, "--steps", "20", "--precision", "bfloat16"]),
    "characters": ("fables.txt", [*SMALL[2:], "--steps", "40", "--tokenizer", "char"]),
    "gpt2": ("fables.txt", [*SMALL, "--steps", "20", "--architecture", "gpt2"]),
    "adamw": ("fables.txt", [*SMALL, "--steps", "20", "--optimizer", "adamw"]),
    "dropout": ("fables.txt", [*SMALL, "--steps", "20", "--dropout", "0.2"]),
    "in parts": ("fables.txt", [*SMALL, "--steps", "20", "--micro-batch-size", "4"]),
    "further": ("fables.txt", ["--steps", "20", "--init", "runs/usual", "--batch-size", "8"]),
    "a chat": (CHAT, [*SMALL, "--steps", "20"]),
    "only one speaker": (CHAT, [*SMALL, "--steps", "20", "--only", "Otto"]),
    "kept steps": ("fables.txt", [*SMALL, "--steps", "20", "--keep", "4"]),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("texts", nargs="*", type=Path)
    given = parser.parse_args()
    texts = given.texts or [ROOT / "data/tales.txt", ROOT / "data/fables.txt"]

    old = results(given.old.resolve(), texts)
    new = results(given.new.resolve(), texts)
    different = [name for name in old if old[name] != new[name]]
    for name, digest in old.items():
        print(f"{'differs' if name in different else 'same':8} {digest}  {name}")
    print(f"{len(old) - len(different)} of {len(old)} are the same")
    return 1 if different else 0


def results(tree: Path, texts: list[Path]) -> dict[str, str]:
    """A digest of each thing that a checkout makes."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / CHAT).write_text(chat(), encoding="utf-8")
        found = {}
        for training, (name, options) in TRAININGS.items():
            out = f"runs/{training.replace(' ', '-')}"
            text = folder / name if name == CHAT else ROOT / "data" / name
            command = ["train", str(text), "--out", out, *USUAL, *options]
            run_command(tree, folder, command)
            found[f"train: {training}"] = digest_of_run(folder / out)
            found[f"its journal: {training}"] = digest_of_journal(folder / out)

        longer = ["train", "--resume", "--out", "runs/usual", "--steps", "60"]
        run_command(tree, folder, longer)
        found["train --resume: usual"] = digest_of_run(folder / "runs/usual")
        found["its journal"] = digest_of_journal(folder / "runs/usual")

        prompt = ["generate", "Anna: Where is it?", "--run", "runs/only-one-speaker"]
        for options in (["--as", "Otto", "--seed", "7"], ["--as", "Otto", "--temperature", "0"]):
            command = [*prompt, *options]
            found[" ".join(command)] = digest(run_command(tree, folder, command))
        for options in (["--temperature", "0"], ["--samples", "3", "--seed", "7"]):
            command = ["generate", "The fox", "--run", "runs/usual", *options]
            found[" ".join(command)] = digest(run_command(tree, folder, command))

        for text in texts:
            for minutes in MINUTES:
                command = ["train", str(text.resolve()), "--plan", "--minutes", minutes]
                plan = run_command(tree, folder, [*command, "--precision", "bfloat16"])
                found[f"plan: {text.name}, {minutes} minutes"] = digest(plan)
        return found


def run_command(tree: Path, folder: Path, command: list[str]) -> str:
    """Run a command of a checkout in a folder; what it prints on standard output."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree),
        "MINIGPT_CACHE": str(folder / "cache"),
    }
    ended = subprocess.run(
        [sys.executable, "-c", RUNNER, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        sys.exit(f"{tree}: {' '.join(command)}\n{ended.stderr}")
    return ended.stdout


def chat() -> str:
    """A chat as WhatsApp exports it: two people tell each other the fables, a line each in turn."""
    lines = (ROOT / "data/fables.txt").read_text(encoding="utf-8").split("\n")
    lines = [line for line in lines if line.strip()][:1500]

    messages = []
    for number, line in enumerate(lines):
        day, hour, minute = number // 300 + 1, number // 60 % 24, number % 60
        name = ("Anna", "Otto")[number % 2]
        messages.append(f"{day:02}.01.24, {hour:02}:{minute:02} - {name}: {line}\n")
    return "".join(messages)


def digest_of_run(folder: Path) -> str:
    """A digest of a run's weights, those of kept steps too, of the texts that its evaluations
    wrote, and of its losses."""
    parts = hashlib.sha256()
    kept = sorted((folder / "kept").glob("*.safetensors"))
    for file in (folder / "model.safetensors", *kept):
        parts.update(file.name.encode())
        for name, array in sorted(load_file(file).items()):
            parts.update(name.encode())
            parts.update(array.tobytes())

    parts.update(json.dumps(texts_of_evaluations(folder)).encode())
    for row in rows(folder / "metrics.jsonl"):
        losses = [row["step"], row["train_loss"], row["val_loss"]]
        parts.update(json.dumps(losses).encode())
    return parts.hexdigest()[:12]


def texts_of_evaluations(folder: Path) -> list[tuple[int, str]]:
    """The steps of a run's evaluations, and the texts that were written then. Before format 9 of a
    run they stood in a file of their own."""
    older = folder / "samples.txt"
    if older.exists():
        _, *parts = re.split(r"^--- step (\d+)\n", older.read_text("utf-8"), flags=re.MULTILINE)
        return [(int(step), text[:-1]) for step, text in zip(parts[::2], parts[1::2], strict=True)]
    samples = rows(folder / "journal" / "samples.jsonl")
    return [(row["step"], row["text"]) for row in samples if row["is_evaluation"]]


def digest_of_journal(folder: Path) -> str:
    """A digest of the first and the last text in a run's journal: when those between were written,
    the clock decides."""
    samples = rows(folder / "journal" / "samples.jsonl")
    samples = [row for row in samples if not row.get("is_evaluation", False)]
    ends = [[row[name] for name in JOURNAL_ROW] for row in (samples[0], samples[-1])]
    return digest(json.dumps(ends))


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file with a row of JSON in each line."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


if __name__ == "__main__":
    sys.exit(main())
