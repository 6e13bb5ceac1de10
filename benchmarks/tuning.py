"""What the base is worth: trainings that begin with it beside trainings that begin from nothing.

python benchmarks/tuning.py --judge FOLDER [--rows prose-100 notes] [--seeds 3] [--help]
python benchmarks/tuning.py --judge FOLDER --rows prose-100 --base runs/6h runs/12h runs/24h

Each training is the command that a user types, with an empty cache, and sets the last tenth of its
text aside. Trainings of both kinds take turns; a pair has the same text, seed and minutes. Without
--base the plan chooses what to begin with, as it does for a user; `--base base` insists on the
base, and names of runs compare these, such as the weights after 6, 12 and 24 hours.

The texts are described in judging.py. Each training goes at once to a line of the file --out, and
the same command continues a measurement that was interrupted: name another file to measure again.
At the end a table is printed and left in tuning.json beside that file. Nothing else may run.
"""

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judging import (
    ENGLISH,
    KB,
    add_options,
    bits_per_byte,
    cut,
    digest,
    find_text,
    is_there,
    split,
    tokens_of,
)
from measuring import MADE, best_evaluation, run

from minigpt import UserError
from minigpt.runs.find import find_model
from minigpt.runs.folder import PLAN, read_config

NOTHING = "none"  # as --init names it
PLANNED = "plan"  # no --init

Line = dict[str, Any]  # a training, as a line of the file
Figures = dict[str, str]  # of a line of the table, by column


@dataclass(frozen=True)
class Row:
    """A kind of text, how much of it, and for how many minutes."""

    name: str  # for --rows
    title: str
    texts: tuple[str, ...]
    size: int | None  # bytes; None: the whole text
    minutes: float
    at_most: float  # the ratio that is aimed at
    seeds: int = 1


ROWS = (
    Row("prose-100", "English prose, 100 KB", ENGLISH, 100 * KB, 1, at_most=0.69, seeds=3),
    Row("prose-30", "English prose, 30 KB", ENGLISH, 30 * KB, 0.5, at_most=0.55, seeds=3),
    Row("prose-5", "English prose, 5 KB", ENGLISH, 5 * KB, 0.5, at_most=0.52, seeds=3),
    Row("notes", "technical notes, 100 KB", ("technical",), 100 * KB, 1, at_most=0.76),
    Row("novels", "English novels, 1.4 MB", ("novels",), None, 2, at_most=0.88),
    Row("shakespeare", "tinyshakespeare", ("shakespeare",), None, 3, at_most=0.98),
    Row("shakespeare-10", "tinyshakespeare", ("shakespeare",), None, 10, at_most=1.0),
    Row("tales", "the tales", ("tales",), None, 2, at_most=0.96),
    Row("german-30", "German, 30 KB", ("german",), 30 * KB, 0.5, at_most=1.01, seeds=3),
    Row("german", "German, the whole text", ("german",), None, 2, at_most=1.01),
    Row("russian-30", "Russian, 30 KB", ("russian",), 30 * KB, 0.5, at_most=1.01, seeds=3),
    Row("russian", "Russian, the whole text", ("russian",), None, 2, at_most=1.01),
    Row("python-30", "Python sources, 30 KB", ("python",), 30 * KB, 0.5, at_most=1.01, seeds=3),
    Row("python", "Python sources, 20 MB", ("python",), None, 2, at_most=1.01),
)


def main() -> None:
    """Train what is not in the file yet, and make the table."""
    given = arguments()
    rows = chosen_rows(given)
    texts = {name: find_text(name, given) for row in rows for name in row.texts}

    bases = {init: weights_of(init) for init in (NOTHING, *given.base)}

    known = read_lines(given.out)
    measured: list[Line] = []
    for row in rows:
        minutes = given.minutes or row.minutes
        for name in row.texts:
            text = cut(texts[name], row.size)
            for seed in range(min(given.seeds, row.seeds)):
                pair = {"row": row.name, "text": name, "minutes": minutes, "seed": seed}
                for init, weights in bases.items():
                    line = pair | {"init": init, "weights": weights}
                    measured.append(trained(line, text, known, given.out))

    table: dict[str, Figures] = {}
    for row in rows:
        table |= summary(row, [line for line in measured if line["row"] == row.name])
    for title, figures in table.items():
        print(title, *(f"{column} {figure}" for column, figure in figures.items()), sep="; ")
    given.out.with_name("tuning.json").write_text(json.dumps(table, indent=2) + "\n")


def arguments() -> argparse.Namespace:
    """Which rows, with which bases, and where the texts are."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [row.name for row in ROWS]
    rows = f"some of {', '.join(names)} (default: all of which the texts are there)"
    parser.add_argument("--rows", nargs="+", choices=names, metavar="ROW", help=rows)
    parser.add_argument("--base", nargs="+", default=[PLANNED], metavar="MODEL")
    parser.add_argument(
        "--seeds", type=int, default=3, help="trainings of each kind, at most (default: 3)"
    )
    parser.add_argument("--minutes", type=float, help="other minutes than those of the rows")
    parser.add_argument("--out", type=Path, default=MADE / "tuning.jsonl", metavar="FILE")
    add_options(parser)
    return parser.parse_args()


def chosen_rows(given: argparse.Namespace) -> list[Row]:
    """The rows that are asked for or, if none are, those of which the texts are there."""
    if given.rows:
        return [row for row in ROWS if row.name in given.rows]
    return [row for row in ROWS if all(is_there(text, given) for text in row.texts)]


# Trainings


def weights_of(init: str) -> str:
    """A name of the weights that a training begins with, empty for none; a model that cannot be
    read ends the program."""
    if init == NOTHING:
        return ""
    try:
        return digest(find_model("base" if init == PLANNED else init))
    except UserError as error:
        raise SystemExit(f"error: {error}") from None


def read_lines(file: Path) -> list[Line]:
    """The trainings that a file holds."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def trained(line: Line, text: str, known: list[Line], out: Path) -> Line:
    """A training with what it showed: from the file if it is there, else measured now."""
    for other in known:
        if line.items() <= other.items():
            print(f"kept from {out.name}: {shown(other)}", flush=True)
            return other

    line = line | train(line, text)
    print(shown(line), flush=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    with open(out, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    return line


def train(line: Line, text: str) -> Line:
    """Run the command; what it showed."""
    command = f"python train.py text.txt --split end --minutes {line['minutes']:g}"
    command += f" --seed {line['seed']}"
    init = line["init"]
    if init != PLANNED:
        name = Path(init).resolve() if Path(init).is_dir() else init
        command += f" --init '{name}'"

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "text.txt").write_text(text, encoding="utf-8")
        start = time.monotonic()
        run(command, folder)
        seconds = time.monotonic() - start

        made = folder / "runs/text"
        plan = json.loads((made / PLAN).read_text(encoding="utf-8"))
        return {
            "began_with": read_config(made).text.init,
            "before": None if init == NOTHING else before_the_first_step(init, text),
            "bits": best_evaluation(made)["val_bits_per_byte"],
            "forecast": plan["bits_per_byte"],
            "seconds": seconds,
        }


def before_the_first_step(init: str, text: str) -> float:
    """The loss of the base on what is set aside, bits per byte."""
    found = find_model("base" if init == PLANNED else init)
    _, held_out = split(text)
    return bits_per_byte(found, tokens_of(found.tokenizer, [held_out]))


def shown(line: Line) -> str:
    """A line of the report."""
    return (
        f"{line['row']}: {line['text']}, {line['minutes']:g} minutes, seed {line['seed']}, "
        f"--init {line['init']}: {line['bits']:.4f} bits/byte, forecast {line['forecast']:.2f}, "
        f"{line['seconds']:.0f} s"
    )


# The table


def summary(row: Row, lines: list[Line]) -> dict[str, Figures]:
    """A line of the table for each text, and for all together if there are several."""
    minutes = lines[0]["minutes"]
    time_given = f"{minutes:g} {'minute' if minutes == 1 else 'minutes'}"
    table = {}
    if len(row.texts) > 1:
        for text in row.texts:
            of_text = [line for line in lines if line["text"] == text]
            table[f"{row.title}, {time_given}: {text}"] = figures_of(of_text)
    table[f"{row.title}, {time_given}"] = figures_of(lines) | {"at most": f"{row.at_most:.2f}"}
    return table


def figures_of(lines: list[Line]) -> Figures:
    """Means over texts and seeds. Of several bases, the loss and the ratio of each."""
    from_nothing = [line for line in lines if line["init"] == NOTHING]
    figures = {"from nothing": f"{mean('bits', from_nothing):.3f}"}

    bases = dict.fromkeys(line["init"] for line in lines if line["init"] != NOTHING)
    for base in bases:
        tuned = [line for line in lines if line["init"] == base]
        which = "" if len(bases) == 1 else f", {base}"
        figures[f"with the base{which}"] = f"{mean('bits', tuned):.3f}"
        figures[f"ratio{which}"] = f"{mean_ratio(tuned, from_nothing):.3f}"
    if len(bases) > 1:
        return figures

    began = {Path(line["began_with"] or "nothing").name for line in tuned}
    missed = max(abs(line["bits"] / line["forecast"] - 1) for line in tuned)
    return figures | {
        "began with": " or ".join(sorted(began)),
        "the base before the first step": f"{mean('before', tuned):.2f}",
        "forecast": f"{mean('forecast', tuned):.2f}",
        "forecast missed by at most": f"{missed:.0%}",
        "seconds": f"{max(line['seconds'] for line in tuned):.0f}",
    }


def mean(name: str, lines: list[Line]) -> float:
    return statistics.fmean(line[name] for line in lines)


def mean_ratio(tuned: list[Line], from_nothing: list[Line]) -> float:
    """The mean over pairs, each of the same text and seed, of bits by bits."""
    bits = {(line["text"], line["seed"]): line["bits"] for line in from_nothing}
    return statistics.fmean(line["bits"] / bits[line["text"], line["seed"]] for line in tuned)


if __name__ == "__main__":
    main()
