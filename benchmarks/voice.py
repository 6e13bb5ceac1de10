"""Whether a tuned model writes in the voice of its author, or still in that of the base.

python benchmarks/voice.py --judge FOLDER [--texts diary letters children] [--minutes 1] [--help]

For each text a classifier (classifier.py) learns to tell the author's text from what the base
writes, in pieces of 64 tokens, as many of each kind. Then it is asked about pieces that it has not
seen: of the author's text that nobody has trained on, of the base, of the other texts, and of the
model that `train.py` makes of the author's text. The tuned model should be taken for the author at
least 0.8 times as often as the author is; the other texts show how often people who write
differently are.

Both models write without a prompt, at temperature 1: below it they prefer frequent words, and a
tuned model looks more like the author than the author does.

Ten texts of each tuned model are left in voice.json too, in benchmarks/results.
"""

import argparse
import json
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from classifier import fit
from judging import ENGLISH, KB, add_options, cut, find_text, split
from measuring import MADE, run
from written_texts import pieces_of, spread, texts_of, written

import minigpt
from minigpt.generation.writer import Writer

PIECE = 64  # tokens
LONG = 256  # tokens that a model writes at a time, of which pieces are cut
ASKED = 200  # pieces of each kind that the classifier is asked about
SHOWN = 10  # texts, of so many tokens, at this temperature
SHOWN_TOKENS = 150
SHOWN_TEMPERATURE = 0.7


@dataclass(frozen=True)
class Author:
    """The texts of an author, and texts of others."""

    text: str  # what the command is given, of which the last tenth is set aside
    learned: str  # what the model is trained on
    held_out: str
    others: list[str]


@dataclass(frozen=True)
class Voice:
    """What share of pieces a classifier takes to be the author's."""

    learned_from: int  # pieces of the author, and as many of the base
    author: float  # of text that nobody has trained on
    base: float
    tuned: float
    others: float | None  # of the other texts, if there are any

    @property
    def ratio(self) -> float:
        """How often the tuned model is taken for the author, beside the author."""
        return self.tuned / self.author

    def __str__(self) -> str:
        others = "" if self.others is None else f", {self.others:.0%} of the other texts'"
        return (
            f"taken for the author's: {self.tuned:.0%} of the tuned model's pieces, "
            f"{self.author:.0%} of the author's own, {self.base:.0%} of the base's{others}; "
            f"ratio {self.ratio:.2f}; learned from {self.learned_from} of each"
        )


def main() -> None:
    """Tune the base for each text, and ask a classifier."""
    given = arguments()
    texts = {name: find_text(name, given) for name in given.texts}
    base = minigpt.load(given.base)
    authors = {name: author_of(name, texts, given.size * KB) for name in texts}

    # Enough to learn from for the longest text, and to ask about.
    most = max(len(pieces(base, [author.learned])) for author in authors.values())
    of_base = pieces_by(base, base, most + ASKED, given.temperature)

    found = {}
    for name, author in authors.items():
        tuned = tune(author.text, given)
        of_tuned = pieces_by(tuned, base, ASKED, given.temperature)
        voice = compare(
            learned=pieces(base, [author.learned]),
            held_out=spread(pieces(base, [author.held_out]), ASKED),
            others=spread(pieces(base, author.others), ASKED),
            base=of_base,
            tuned=of_tuned,
        )
        print(f"{name}: {voice}", flush=True)
        shown = written(tuned, SHOWN, SHOWN_TOKENS, SHOWN_TEMPERATURE)
        found[name] = {**asdict(voice), "ratio": voice.ratio, "texts": shown}

    MADE.mkdir(exist_ok=True)
    (MADE / "voice.json").write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def arguments() -> argparse.Namespace:
    """Which texts, and for how long."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", nargs="+", default=ENGLISH, metavar="TEXT")
    parser.add_argument("--size", type=int, default=100, metavar="KB", help="of each text")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--temperature", type=float, default=1.0, help="of both models")
    parser.add_argument("--base", default="base", metavar="MODEL", help="whose voice it is not")
    parser.add_argument("--init", metavar="MODEL", help="as of train.py (default: as planned)")
    add_options(parser)
    return parser.parse_args()


def author_of(name: str, texts: dict[str, str], size: int) -> Author:
    """An author's text: what a model learns from, and what it does not see."""
    text = cut(texts[name], size)
    learned, _ = split(text)
    return Author(
        text=text,
        learned=learned,
        held_out=texts[name][len(learned) :],  # also what follows the text of this size
        others=[other for other_name, other in texts.items() if other_name != name],
    )


def tune(text: str, given: argparse.Namespace) -> Writer:
    """The model that the command makes of a text."""
    command = f"python train.py text.txt --split end --minutes {given.minutes:g} --seed 0"
    if given.init:
        command += f" --init '{given.init}'"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "text.txt").write_text(text, encoding="utf-8")
        run(command, Path(folder))
        return minigpt.load(Path(folder, "runs/text"))


def pieces(base: Writer, documents: Iterable[str]) -> list[str]:
    """Documents, cut into pieces by the base's tokenizer."""
    return [*pieces_of(base.tokenizer, documents, PIECE)]


def pieces_by(writer: Writer, base: Writer, count: int, temperature: float) -> list[str]:
    """So many pieces of what a model writes, cut in the same way."""
    texts = texts_of(writer, LONG, temperature)
    return [*islice(pieces_of(base.tokenizer, texts, PIECE), count)]


def compare(
    *, learned: list[str], held_out: list[str], others: list[str], base: list[str], tuned: list[str]
) -> Voice:
    """Learn to tell the author from the base, and ask about pieces that are new to all; the last
    of the base's are kept for that."""
    classifier = fit(learned, base[: len(learned)])
    return Voice(
        learned_from=len(learned),
        author=classifier.share(held_out),
        base=classifier.share(base[-ASKED:]),
        tuned=classifier.share(tuned),
        others=classifier.share(others) if others else None,
    )


if __name__ == "__main__":
    main()
