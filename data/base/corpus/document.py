"""What a reader makes of a file."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Document:
    """A chapter, an article, a talk.

    A paragraph is one line. Only verse and lists have several: a verse a line, an item a line that
    begins with "- ". In a dialogue each paragraph is a turn, "Speaker: what was said".
    """

    paragraphs: list[str]
    dialogue: bool = False


def one_line(text: str) -> str:
    """The text with single spaces."""
    return " ".join(text.split())
