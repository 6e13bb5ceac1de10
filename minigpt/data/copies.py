"""What of a text stands word for word in the training text: what a model recites, not invents.

Exact. The training text is read as a stream, of any size; ten megabytes take about a second.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .corpus import Corpus, Document, Part, whole
from .readers import find_line, title

LEAST = 30  # characters; shorter stretches are phrases that many people write
_HALF = LEAST // 2
_ENOUGH = 1 << 17  # characters of validation text


@dataclass(frozen=True)
class Copies:
    """How much of a text stands in the training text, in stretches of at least LEAST characters,
    and how much of the validation text, which nobody has copied."""

    characters: int  # of the text
    share: float  # of these that is inside such a stretch, between 0 and 1
    longest: str  # of these stretches; empty if there is none
    place: str  # the file and the line in which the longest begins
    usual_share: float  # the share of the validation text
    usual_longest: str  # and its longest stretch

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        longest = f", the longest of {len(self.longest)}: {self.longest[:80]!r}{place}"
        return (
            f"{self.share:.1%} of {self.characters:,} characters stand word for word in the "
            f"training text, in stretches of {LEAST} or more{longest if self.longest else ''}; "
            f"of the validation text {self.usual_share:.1%}, at most {len(self.usual_longest)}"
        )


def copies(texts: Sequence[str], training: Part, validation: Part) -> Copies:
    """What of some texts stands in the training text, and of (much of) the validation text."""
    share, longest = find_copies(texts, training.documents())
    others = whole(validation.at_most(_ENOUGH).documents())
    place = _place(longest, training.corpus) if longest else ""
    characters = sum(map(len, texts))
    return Copies(characters, share, longest, place, *find_copies(others, training.documents()))


def _place(stretch: str, corpus: Corpus) -> str:
    for file in corpus.files:
        if line := find_line(file, corpus.text_field, stretch):
            return f"{title(file)}, line {line:,}"
    return ""


def find_copies(texts: Sequence[str], documents: Iterable[Document]) -> tuple[float, str]:
    """The share of some texts that stands in documents, and the longest stretch that does."""
    windows = {window for text in texts for window in _windows(text, LEAST)}
    halves = {half for text in texts for half in _windows(text, _HALF)}
    everything = "\ud800".join(texts)  # a character that stands in no text
    found: set[str] = set()
    longest = ""
    for stretch in _stretches(documents, windows, halves):
        found.update(_windows(stretch, LEAST))
        longest = _longest(stretch, everything, longest)
    copied = 0
    for text in texts:
        starts = (i for i, window in enumerate(_windows(text, LEAST)) if window in found)
        copied += sum(min(b - a, LEAST) for a, b in pairwise([*starts, len(text)]))
    return copied / max(sum(map(len, texts)), 1), longest


def _windows(text: str, length: int) -> Iterator[str]:
    return (text[i : i + length] for i in range(len(text) - length + 1))


def _stretches(documents: Iterable[Document], windows: set[str], halves: set[str]) -> Iterator[str]:
    """The stretches of documents of which every window is one of `windows`."""
    last, held = -1, ""
    for number, piece in documents:
        text = held + piece if number == last else piece
        begin = end = -1  # of a row of such windows
        for i in _starts(text, halves):
            if text[i : i + LEAST] in windows:
                if i != end and end > 0:
                    yield text[begin : end + LEAST - 1]
                begin, end = begin if i == end else i, i + 1
        if end > 0:
            yield text[begin : end + LEAST - 1]
        # What reaches the end of this piece may go on in the next one.
        goes_on = 0 < end > len(text) - LEAST
        last, held = number, text[begin if goes_on else 1 - LEAST :]


def _starts(text: str, halves: set[str]) -> Iterator[int]:
    """Where windows may begin. Each covers one of the halves that lie side by side in the text."""
    for i in range(0, len(text), _HALF):
        if text[i : i + _HALF] in halves:
            yield from range(max(i - _HALF + 1, 0), i + 1)


def _longest(stretch: str, text: str, longest: str) -> str:
    """The longest part of a stretch that stands in `text`, if longer than the longest so far."""
    for i in range(len(stretch)):
        more = 1
        while more:  # twice as many characters if that went well, else half as many
            end = i + len(longest) + more
            if end <= len(stretch) and stretch[i:end] in text:
                longest, more = stretch[i:end], 2 * more
            else:
                more //= 2
    return longest
