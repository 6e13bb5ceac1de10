"""Paragraphs and documents that were there before."""

import hashlib

from .document import Document
from .heldout import words_of

LONG = 60  # characters: shorter paragraphs may come again
SHINGLE = 6  # words
ONE_OF = 8  # shingles that are remembered
SEEN_BEFORE = 0.45  # of a document's shingles: it is nearly a copy


def fingerprint(text: str) -> int:
    """The same number for the same text in every process, unlike hash()."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


class Repeats:
    """Remembers what has been read."""

    def __init__(self) -> None:
        self.paragraphs: set[int] = set()
        self.shingles: set[int] = set()

    def fresh(self, document: Document) -> list[str]:
        """The paragraphs that are new, or too short to count."""
        kept = []
        for paragraph in document.paragraphs:
            key = fingerprint(" ".join(words_of(paragraph)))
            if len(paragraph) < LONG or key not in self.paragraphs:
                kept.append(paragraph)
            self.paragraphs.add(key)
        return kept

    def known(self, document: Document) -> bool:
        """Whether nearly the same document came before. This one is remembered."""
        words = words_of(" ".join(document.paragraphs))
        numbers = {
            fingerprint(" ".join(words[i : i + SHINGLE])) for i in range(len(words) - SHINGLE + 1)
        }
        sample = {number for number in numbers if number % ONE_OF == 0}
        before = len(sample & self.shingles)
        self.shingles |= sample
        return before > SEEN_BEFORE * len(sample) if sample else False
