"""A document as people write it: in one of two habits of quotation marks, and of line ends.

Which ones is chosen by a hash of its text, so half of the documents have each.
"""

import textwrap

from .document import Document
from .repeats import fingerprint

WIDTH = 72
STRAIGHT = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2014": "--", "\u2026": "..."}
)


def written(document: Document) -> str:
    """The document's text. Paragraphs are separated by an empty line.

    Half have straight quotation marks, half those of the source. Half have lines of WIDTH
    characters, half a line per paragraph. Dialogues name the speakers, or begin turns with "- ".
    """
    number = fingerprint("\n".join(document.paragraphs))
    paragraphs = document.paragraphs
    between = "\n\n"
    if document.dialogue:
        paragraphs = [labelled(turn, habit=number // 4 % 4) for turn in paragraphs]
        between = "\n\n" if number // 16 % 2 else "\n"

    if number % 2:
        paragraphs = [paragraph.translate(STRAIGHT) for paragraph in paragraphs]
    if number // 2 % 2:
        paragraphs = [wrapped(paragraph) for paragraph in paragraphs]
    return between.join(paragraphs)


def labelled(turn: str, habit: int) -> str:
    """A turn with the speaker's name, the name in capitals, or a dash in its place."""
    speaker, _, said = turn.partition(": ")
    if habit == 0:
        return f"- {said}"
    if habit == 1:
        return f"{speaker.upper()}: {said}"
    return turn


def wrapped(paragraph: str) -> str:
    """Lines of WIDTH characters. An item of a list is indented from its second line on."""
    lines = []
    for line in paragraph.split("\n"):
        indent = "  " if line.startswith("- ") else ""
        lines.append(
            textwrap.fill(
                line,
                WIDTH,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
        )
    return "\n".join(lines)
