"""What benchmarks/results.py measures of the base, by benchmarks of its own."""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from measuring import MADE, benchmark, measured, quoted
from results_pages import ROOT, Section


def tuning(given: argparse.Namespace) -> Iterator[Section]:
    """Trainings that begin with the base beside trainings that begin from nothing."""
    options = given_options(given, "judge", "shakespeare", "german", "russian", "rows", "seeds")
    rows = benchmark("tuning", *options)
    figures = {
        f"{row} | {column}": figure
        for row, columns in rows.items()
        for column, figure in columns.items()
        if column not in ("at most", "seconds")  # what is aimed at, and whether it ended on time
    }
    note = (
        "Bits per byte of the last tenth, the mean of the seeds: up to as many of prose and of "
        "the\n30 KB of other languages as the command says, one of the others. A row without the "
        "name of\na text is the mean of its texts; a ratio is the mean of the pairs' ratios."
    )
    yield measured("With the base", shown_command("tuning", options), figures, note=note)


def voice(given: argparse.Namespace) -> Iterator[Section]:
    """Whether a classifier takes a tuned model for its author, with ten texts of one such model."""
    options = given_options(given, "judge")
    rows = benchmark("voice", *options)
    columns = {
        "the tuned model": "tuned",
        "the author": "author",
        "other authors": "others",
        "the base": "base",
    }
    figures = {}
    for text, row in rows.items():
        for column, name in columns.items():
            figures[f"{text} | {column}"] = f"{row[name]:.0%}"
        figures[f"{text} | ratio"] = f"{row['ratio']:.2f}"

    first = next(iter(rows))
    texts = [quoted(text) for text in rows[first]["texts"]]
    shown = "\n\n---\n\n".join([f"Ten texts of the model trained on {first}.txt:", *texts])
    note = (
        "The share of pieces of 64 tokens that are taken for the author's; the ratio is that of\n"
        "the tuned model to the author. Nobody has trained on the pieces of authors."
    )
    yield measured(
        "The author's voice",
        shown_command("voice", options),
        figures,
        output=shown,
        note=note,
    )


def names(given: argparse.Namespace) -> Iterator[Section]:
    """Whether names stay, in the run of `--measure tales`, in the base's texts and in the tales."""
    if not (MADE / "tales").is_dir():
        raise SystemExit("--measure names needs a run on the tales: --measure tales names")
    models = [str(MADE / "tales"), "base"]
    shares = benchmark("staying_names", *models, "--reference", str(ROOT / "data/tales.txt"))
    rows = ("two minutes on the tales", "the base", "the tales themselves")
    figures = {row: f"{share:.0%}" for row, share in zip(rows, shares.values(), strict=True)}
    command = "python benchmarks/staying_names.py runs/tales base --reference data/tales.txt"
    note = "Of the names after the first in a text of 150 tokens, the share that was there before."
    yield measured("Names that stay", command, figures, note=note)


def copied(given: argparse.Namespace) -> Iterator[Section]:
    """How much the base copies from its corpus."""
    files = [str(given.corpus), str(given.validation)]
    figures = {}
    for row, found in benchmark("copied_by_base", *files).items():
        figures[f"{row} | characters in copied stretches"] = f"{found['share']:.1%}"
        figures[f"{row} | texts with 50 characters"] = f"{found['long']:.1%}"
        figures[f"{row} | texts with 12 words"] = f"{found['many_words']:.1%}"
        figures[f"{row} | longest, characters"] = str(len(found["longest"]))
    command = shown_command("copied_by_base", files)
    yield measured("Copied by the base", command, figures)


def kinds(given: argparse.Namespace) -> Iterator[Section]:
    """The base's loss by kind of text, beside counting's."""
    files = [str(given.corpus), str(given.validation)]
    figures = {}
    for kind, found in benchmark("loss_by_kind", *files).items():
        figures[f"{kind} | the base"] = f"{found['the base']:.3f}"
        figures[f"{kind} | counting"] = f"{found['counting']:.3f}"
    yield measured("The base by kind of text", shown_command("loss_by_kind", files), figures)


def sampling(given: argparse.Namespace) -> Iterator[Section]:
    """How a run's texts are, sampled as the run says and otherwise, beside the author's."""
    options = given_options(given, "judge", "chat", "teacher", "runs")
    figures = {}
    for text, kinds in benchmark("sampling", *options).items():
        for kind, found in kinds.items():
            row = f"{text}: {kind}"
            figures[f"{row} | repeated"] = f"{found['repeated']:.1f}"
            figures[f"{row} | different"] = f"{found['different']:.0f}"
            figures[f"{row} | names"] = f"{found['names']:.0f}%"
            figures[f"{row} | bits a byte"] = f"{found['bits a byte']:.2f}"
            figures[f"{row} | copied"] = f"{found['copied']:.1f}"
    note = (
        "Of 40 texts of 150 tokens: words of 100 that end four in a row which stood in the text\n"
        "before; different words among a hundred; names that were in the text before; bits a byte\n"
        "under a larger model, which wrote none of them; characters of 100 that are copied."
    )
    command = shown_command("sampling", options)
    yield measured("How runs are sampled", command, figures, note=note)


def given_options(given: argparse.Namespace, *names: str) -> list[str]:
    """The options of these names that the command line has, as another benchmark takes them."""
    options: list[str] = []
    for name in names:
        value = getattr(given, name)
        if value is not None:
            values = value if isinstance(value, list) else [value]
            options += [f"--{name}", *map(str, values)]
    return options


def shown_command(benchmark: str, options: list[str]) -> str:
    """A command as pages show it: of a path, only its last part."""
    shown = [Path(option).name if "/" in option else option for option in options]
    return " ".join(["python", f"benchmarks/{benchmark}.py", *shown])


OF_THE_BASE: dict[str, Callable[[argparse.Namespace], Iterator[Section]]] = {
    "tuning": tuning,
    "voice": voice,
    "names": names,
    "copied": copied,
    "kinds": kinds,
    "sampling": sampling,
}
