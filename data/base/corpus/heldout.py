"""The texts that the base must not have read, because it is measured on them."""

import re
from collections.abc import Iterable
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
IN_A_ROW = 9  # words: nobody writes so many of another's by chance, but for a few


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
        self.stretches: set[int] = set()
        for file in files:
            self.stretches.update(stretches(file.read_text(encoding="utf-8")))

    def shares(self, document: Document) -> bool:
        """Whether the document has IN_A_ROW words in a row of one of the texts."""
        return not self.stretches.isdisjoint(stretches("\n".join(document.paragraphs)))


def stretches(text: str, length: int = IN_A_ROW) -> Iterable[int]:
    """A hash of each `length` words in a row."""
    words = words_of(text)
    return (hash(tuple(words[i : i + length])) for i in range(len(words) - length + 1))


def words_of(text: str) -> list[str]:
    """The words in small letters, without apostrophes."""
    return re.findall(r"[a-z0-9]+", re.sub("['\u2019\u2018]", "", text.lower()))
