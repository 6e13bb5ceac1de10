"""How much the base copies from its corpus, and how much people's texts share with it.

python benchmarks/copied_by_base.py CORPUS.jsonl VALIDATION.jsonl [--model base] [--help]

The base writes texts without a prompt. Beside them are texts of the same length out of the
validation text, which nobody has copied. All of the corpus is searched, in some minutes.
"""

import argparse
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from measuring import MADE
from written_texts import pieces_of, spread, written

import minigpt
from minigpt.data.copies import LEAST, find_copies, shared_stretches
from minigpt.data.corpus import Corpus, Piece, whole_documents

LONG = 50  # characters word for word
MANY_WORDS = 12  # whole words within the longest such stretch


@dataclass(frozen=True)
class Copied:
    """How much of some texts is word for word in a corpus."""

    texts: int
    characters: int
    share: float  # of the characters, that are in stretches of LEAST or more
    long: float  # share of texts with a stretch of at least LONG characters
    many_words: float  # share of texts with a stretch of at least MANY_WORDS words
    median_longest: float  # characters; 0 for a text without a stretch of LEAST
    longest: str

    def __str__(self) -> str:
        return (
            f"{self.share:.1%} of {self.characters:,} characters are in stretches of {LEAST} or "
            f"more; {self.long:.1%} of {self.texts} texts have one of {LONG} or more, "
            f"{self.many_words:.1%} one of {MANY_WORDS} words or more; the longest has "
            f"{len(self.longest)}: {self.longest!r}"
        )


def main() -> None:
    """Count for the base and for people."""
    given = arguments()
    writer = minigpt.load(given.model)
    own = written(writer, given.texts, given.tokens, given.temperature)
    documents = whole_documents(Corpus((given.validation,)).pieces())
    others = spread([*pieces_of(writer.tokenizer, documents, given.tokens)], given.texts)

    # The corpus is read once for both.
    stretches = set(shared_stretches([*own, *others], Corpus((given.corpus,)).pieces()))
    found = {}
    for name, texts in (("the base", own), ("people", others)):
        found[name] = copied(texts, stretches)
        print(f"{name}: {found[name]}", flush=True)

    MADE.mkdir(exist_ok=True)
    table = {name: asdict(figures) for name, figures in found.items()}
    (MADE / "copied_by_base.json").write_text(json.dumps(table, indent=2) + "\n")


def arguments() -> argparse.Namespace:
    """Which corpus, and how many texts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path, help="what the base was trained on, .jsonl")
    parser.add_argument("validation", type=Path, help="what it was validated on, .jsonl")
    parser.add_argument("--model", default="base")
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=150, help="of each text")
    parser.add_argument("--temperature", type=float, default=0.7)
    return parser.parse_args()


def copied(texts: Sequence[str], stretches: Iterable[str]) -> Copied:
    """How much of each text is in a corpus, of which these are the stretches that it shares with
    the texts."""
    shared = [Piece(number, text, Path(), 0) for number, text in enumerate(stretches)]
    found = [find_copies([text], shared) for text in texts]

    longest = [stretch for _, stretch in found]
    characters = sum(map(len, texts))
    of_these = sum(share * len(text) for (share, _), text in zip(found, texts, strict=True))
    return Copied(
        texts=len(texts),
        characters=characters,
        share=of_these / max(characters, 1),
        long=statistics.fmean(len(stretch) >= LONG for stretch in longest),
        many_words=statistics.fmean(whole_words(stretch) >= MANY_WORDS for stretch in longest),
        median_longest=statistics.median(map(len, longest)),
        longest=max(longest, key=len),
    )


def whole_words(stretch: str) -> int:
    """The words in a stretch; one that its end may have cut is not counted."""
    return max(len(stretch.split()) - 2, 0)


if __name__ == "__main__":
    main()
