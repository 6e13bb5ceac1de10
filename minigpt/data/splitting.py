"""Which documents of a text are set aside to validate on, and the streams of text that makes."""

from array import array
from collections.abc import Iterable, Iterator, Sequence

from ..tokenizer import TextChunk

# Of a text, from Corpus.documents: the number of a document, and a piece of it.
Numbered = tuple[int, str]


def document_lengths(pieces: Iterable[Numbered]) -> "array[int]":
    """The number of characters of each document."""
    lengths: array[int] = array("Q")
    for number, text in pieces:
        if number == len(lengths):
            lengths.append(0)
        lengths[number] += len(text)
    return lengths


def set_aside(lengths: Sequence[int], fraction: float) -> bytearray:
    """For each document, 1 if it is set aside and 0 if not.

    The documents set aside are spread over the text: one is taken whenever its share of what has
    been read is nearer to `fraction` with it than without it. Of two documents or more at least
    one is taken and one is not, if need be the one whose length fits best.

    Args:
        lengths: of the documents, in characters.
        fraction: share of the text to set aside, between 0 and 1.
    """
    chosen, owed = bytearray(), 0.0
    for length in lengths:
        owed += fraction * length
        chosen.append(owed > length / 2)
        owed -= length * chosen[-1]
    whole = sum(lengths)
    if not any(chosen):
        chosen[_nearest(lengths, fraction * whole)] = 1
    elif all(chosen):
        chosen[_nearest(lengths, (1 - fraction) * whole)] = 0
    return chosen


def _nearest(lengths: Sequence[int], wanted: float) -> int:
    """The document whose length is nearest to `wanted`, the last of several."""
    return min(reversed(range(len(lengths))), key=lambda i: abs(lengths[i] - wanted))


def selected(pieces: Iterable[Numbered], chosen: bytearray, wanted: bool) -> Iterator[Numbered]:
    """The pieces of the documents that were set aside, or of those that were not."""
    return (piece for piece in pieces if chosen[piece[0]] == wanted)


def between(pieces: Iterable[Numbered], start: int, stop: int) -> Iterator[Numbered]:
    """The characters from `start` up to `stop`."""
    position = 0
    for number, text in pieces:
        if position >= stop:
            return
        end = position + len(text)
        if end > start:
            yield number, text[max(start - position, 0) : stop - position]
        position = end


def stretches(pieces: Iterable[tuple[object, str]]) -> Iterator[TextChunk]:
    """The same with an end of text between documents, as a tokenizer encodes it."""
    last = None
    for number, text in pieces:
        yield last is not None and number != last, text
        last = number


def after(texts: Iterable[TextChunk], characters: int) -> Iterator[TextChunk]:
    """What comes after so many characters."""
    for separate, text in texts:
        if characters == 0:
            yield separate, text
        elif len(text) > characters:
            yield False, text[characters:]
        characters = max(characters - len(text), 0)
