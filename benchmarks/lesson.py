"""The figures of docs/lesson.md: python benchmarks/results.py --measure lesson

All are of trainings in lesson mode, and so the same to the third digit on every machine, busy or
not. Only how long it takes differs: about three minutes of one core.
"""

import argparse
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measuring import ROOT, best_evaluation, measured, run, workplace
from results_pages import Section

from minigpt.runs.folder import kept_steps

BEGINNING = "The old king"
OF_A_CLASS = 30_000  # characters: two dozen learners write a page each
PROMPTS = ("The ice was", "The fire was", "Three and four are", "The king of France is")


def lesson(given: argparse.Namespace) -> Iterator[Section]:
    """A training on the tales, one on a text as long as a class's, and that letter by letter."""
    with workplace() as name:
        folder = Path(name)
        train = "python train.py data/tales.txt --lesson --minutes 1 --keep 6"
        run(train, folder)
        yield measured(
            "A lesson on the tales",
            train,
            figures_of(folder / "runs/tales") | copied(folder, "tales"),
            output=childhood(folder),
            note=f"The texts are what `{writing(BEGINNING, 'tales@STEP')}` writes.",
        )

        asked = [
            writing(prompt, "tales", "--temperature 0 --max-new-tokens 8") for prompt in PROMPTS
        ]
        answers = [written(folder, command) for command in asked]
        yield measured("What a model of fairy tales says", asked[0], {}, output=block(answers))

        text = (ROOT / "data/fables.txt").read_text(encoding="utf-8")[:OF_A_CLASS]
        (folder / "class.txt").write_text(text, encoding="utf-8")
        train = "python train.py class.txt --lesson --minutes 0.5"
        run(train, folder)
        found = figures_of(folder / "runs/class") | copied(folder, "class")
        note = "class.txt is the first 30,000 characters of data/fables.txt."
        yield measured("A lesson on a short text", train, found, note=note)

        train += " --tokenizer char --out runs/letters"
        run(train, folder)
        yield measured("The same letter by letter", train, figures_of(folder / "runs/letters"))


def figures_of(folder: Path) -> dict[str, str]:
    """How sure a run is of its next letter and of its next piece."""
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    best = best_evaluation(folder)

    def letters(bits: float) -> str:
        return f"{2 ** (bits * plan['text']['bytes_per_character']):.1f}"

    return {
        "steps": f"{plan['steps']:,}",
        "chooses among letters, unseen pages": letters(best["val_bits_per_byte"]),
        "chooses among letters, studied pages": letters(best["train_bits_per_byte"]),
        "counting chooses among letters": letters(best["counting_bits_per_byte"]),
        "first guess right, of 100": f"{100 * best['val_right']:.0f}",
    }


def copied(folder: Path, name: str) -> dict[str, str]:
    """How much of what a run writes it has copied, and how much of an unseen page is."""
    found: dict[str, Any] = json.loads(run(f"minigpt evaluate {name} --copied --json", folder).out)
    return {
        "copied, %": f"{100 * found['share']:.1f}",
        "of an unseen page, %": f"{100 * found['usual_share']:.1f}",
    }


def writing(prompt: str, name: str, options: str = "--max-new-tokens 20") -> str:
    """The command with which a run writes."""
    return f"minigpt generate {shlex.quote(prompt)} --run {name} {options} --seed 1"


def written(folder: Path, command: str) -> str:
    """What it writes, in a line."""
    return re.sub(r"\s+", " ", run(command, folder).out).strip()


def childhood(folder: Path) -> str:
    """What a run writes after each step that it has kept."""
    lines = []
    for step in kept_steps(folder / "runs/tales"):
        lines.append(f"{step:>5}  {written(folder, writing(BEGINNING, f'tales@{step}'))}")
    return block(["step", *lines])


def block(lines: list[str]) -> str:
    """Lines as pages show them."""
    return "\n".join(["```", *lines, "```"])
