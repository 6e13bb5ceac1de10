"""Makes a run to keep in the tests, so that every later version proves that it can still use it:

    python -m tests.runs.keep tests/runs/kept/0.2.0

One is added for each release, named after its version, and whenever what a run holds changes. Those
of earlier versions stay as they are, because they cannot be made again. `test_kept_runs.py` uses
all of them. A folder holds the text, the run and `expected.json`: what the version that made it
wrote and measured with it.
"""

import contextlib
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import minigpt
from minigpt.recipe.run import resume_run
from minigpt.runs.folder import METRICS, read_metrics
from minigpt.runs.listing import Run
from tests.conftest import some_text

RUN = Path("runs/my")
PROMPT = "the fox"
# As small as a model with pieces of words can be: the run lies in the repository.
SETTINGS: dict[str, Any] = {
    "vocab_size": 260,
    "emb_dim": 4,
    "num_layers": 1,
    "num_heads": 1,
    "hidden_dim": 8,
    "context_length": 16,
    "batch_size": 4,
    "steps": 20,
    "num_evals": 2,
    "device": "cpu",
    "compile": "off",
    "precision": "float32",
}
_NOT_KEPT = ("loss.png", ".lock", "checkpoint/previous.safetensors")


def keep(folder: Path) -> None:
    """Train a run in a new folder, and write down what to expect of it."""
    folder.mkdir(parents=True)
    with contextlib.chdir(folder):
        Path("my.txt").write_text(some_text(300))
        minigpt.train("my.txt", out=RUN, **SETTINGS)
        for name in _NOT_KEPT:
            (RUN / name).unlink(missing_ok=True)

        shutil.copytree(RUN, "continued")
        expected = used(Path("continued"))
        shutil.rmtree("continued")
        Path("expected.json").write_text(json.dumps(expected, indent=2) + "\n")


def used(run: Path) -> dict[str, Any]:
    """What a run writes, how well it predicts its text, and its loss after one more step."""
    text = minigpt.load(run, "cpu").generate(PROMPT, max_new_tokens=40, seed=3)
    bits_per_byte = minigpt.evaluate(run, "my.txt", device="cpu").bits_per_byte
    parameters = Run(run).about()["parameters"]

    resume_run(run, {"steps": SETTINGS["steps"] + 1}, time.monotonic())
    last = read_metrics(run / METRICS)[-1]
    return {
        "text": text,
        "bits_per_byte": bits_per_byte,
        "parameters": parameters,
        "step": last["step"],
        "val_loss": last["val_loss"],
    }


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
