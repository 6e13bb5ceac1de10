"""The texts that the base must not have read, because it is measured on them."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from minigpt import UserError

from .document import Document
from .sources import Source

AUTHORS = (
    "Shakespeare",
    "Conan Doyle",
    "Edith Wharton",
    "H. G. Wells",
    "Barbellion",
    "Elinore Pruitt Stewart",
    "Hugh Lofting",
    "Microsoft",
)
OUR_OWN = ("tales.txt", "fables.txt")  # in data/
BY_CHANCE = 9  # words in a row: a few paragraphs share so many with a text by chance
COPIED = 12  # words in a row: nobody writes so many of another's by chance


def refuse_authors(sources: Iterable[Source]) -> None:
    """UserError if a row of the table is by an author who is held out."""
    for source in sources:
        credit = f"{source.author} {source.title} {source.repository}".lower()
        for author in AUTHORS:
            name = author.lower()
            if name in credit or re.sub(r"\W+", "-", name) in credit:
                raise UserError(f"{source.name} is by {author}, whose texts are held out")


class HeldOut:
    """Finds sentences of held-out texts, whatever their quotation marks, dashes and line ends."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.short: set[int] = set()
        self.long: set[int] = set()
        for file in files:
            text = file.read_text(encoding="utf-8")
            self.short.update(stretches(text, BY_CHANCE))
            self.long.update(stretches(text, COPIED))

    def shares(self, document: Document) -> bool:
        """Whether the document has COPIED words in a row of one of the texts."""
        return not self.long.isdisjoint(stretches("\n".join(document.paragraphs), COPIED))

    def resembles(self, paragraph: str) -> bool:
        """Whether the paragraph has BY_CHANCE words in a row of one of the texts."""
        return not self.short.isdisjoint(stretches(paragraph, BY_CHANCE))


def stretches(text: str, length: int) -> Iterator[int]:
    """A hash of each `length` words in a row."""
    words = words_of(text)
    return (hash(tuple(words[i : i + length])) for i in range(len(words) - length + 1))


def words_of(text: str) -> list[str]:
    """The words in small letters, without apostrophes."""
    return re.findall(r"[a-z0-9]+", re.sub("['\u2019\u2018]", "", text.lower()))
