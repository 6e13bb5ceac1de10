"""What a reader makes of a file."""

from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 60_000  # characters
LONGEST_TALK = 12_000


@dataclass(frozen=True)
class Document:
    """A chapter, an article, a talk.

    A paragraph is one line. Only verse and lists have several: a verse a line, an item a line that
    begins with "- ". In a dialogue each paragraph is a turn, "Speaker: what was said".
    """

    paragraphs: list[str]
    dialogue: bool = False

    def parts(self) -> Iterator["Document"]:
        """The document, or a long one cut between paragraphs."""
        longest = LONGEST_TALK if self.dialogue else LONGEST
        part: list[str] = []
        size = 0
        for paragraph in self.paragraphs:
            if part and size + len(paragraph) > longest:
                yield Document(part, self.dialogue)
                part = []
                size = 0
            part.append(paragraph)
            size += len(paragraph)
        yield Document(part, self.dialogue)


def one_line(text: str) -> str:
    """The text with single spaces."""
    return " ".join(text.split())
