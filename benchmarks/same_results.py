"""Whether two checkouts of this project train, write and plan the same, bit for bit.

    python benchmarks/same_results.py OLD NEW [TEXT ...]

OLD and NEW are folders with a checkout each. Twelve commands run in both: small trainings of every
kind, one that is interrupted and resumed, and texts written by their models. Then plans are made of
each TEXT (the tales and the fables without one) for half a minute to an hour, as if the machine
always had the same speed. What is compared: every weight, the samples and the losses of a training;
what `generate` and `train --plan` print. Prints a line for each; exit status 1 if anything differs.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

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

# Runs a command as if the speed of the machine were known.
RUNNER = """
import sys
from minigpt.recipe import speed
try:
    from minigpt.recipe import planner
except ImportError:  # of an older checkout
    from minigpt.recipe import plan as planner
planner.measure_speed = lambda *_: speed.Speed(flops=1.35e11, start=0.0095, num_workers=2)
from minigpt.cli import main
sys.exit(main(sys.argv[1:]))
"""

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
        found = {}
        for training, (name, options) in TRAININGS.items():
            out = f"runs/{training.replace(' ', '-')}"
            command = ["train", str(ROOT / "data" / name), "--out", out, *USUAL, *options]
            run_command(tree, folder, command)
            found[f"train: {training}"] = digest_of_run(folder / out)

        longer = ["train", "--resume", "--out", "runs/usual", "--steps", "60"]
        run_command(tree, folder, longer)
        found["train --resume: usual"] = digest_of_run(folder / "runs/usual")
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


def digest_of_run(folder: Path) -> str:
    """A digest of a run's weights, of the texts that it wrote, and of its losses."""
    parts = hashlib.sha256()
    for name, array in sorted(load_file(folder / "model.safetensors").items()):
        parts.update(name.encode())
        parts.update(array.tobytes())
    parts.update((folder / "samples.txt").read_bytes())

    for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        losses = [row["step"], row["train_loss"], row["val_loss"]]
        parts.update(json.dumps(losses).encode())
    return parts.hexdigest()[:12]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


if __name__ == "__main__":
    sys.exit(main())
