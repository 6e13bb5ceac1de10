"""What of a text stands word for word in the training text: what a model recites, not invents.

Exact. The training text is read as a stream, of any size; ten megabytes take some seconds.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter

from .corpus import Document, Part, place_of, whole

LEAST = 30  # characters; shorter stretches are phrases that many people write
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
        longest = f", the longest of {len(self.longest)}: {self.longest[:80]!r} ({self.place})"
        return (
            f"{self.share:.1%} of {self.characters:,} characters stand word for word in the "
            f"training text, in stretches of {LEAST} or more{longest if self.longest else ''}; "
            f"of the validation text {self.usual_share:.1%}, at most {len(self.usual_longest)}"
        )


def copies(texts: Sequence[str], training: Part, validation: Part) -> Copies:
    """What of some texts stands in the training text, and of (much of) the validation text."""
    share, longest = find_copies(texts, training.documents())
    place = place_of(longest, training.pieces()) if longest else ""
    usual = find_copies(whole(validation.at_most(_ENOUGH).documents()), training.documents())
    return Copies(sum(map(len, texts)), share, longest, place, *usual)


def find_copies(texts: Sequence[str], documents: Iterable[Document]) -> tuple[float, str]:
    """The share of some texts that stands in documents, and the longest stretch that does."""
    windows = {text[i : i + LEAST] for text in texts for i in range(len(text) - LEAST + 1)}
    everything, longest = "\ud800".join(texts), ""  # joined by what no text contains
    found: set[str] = set()
    for stretch in _stretches(documents, windows):
        found.update(stretch[i : i + LEAST] for i in range(len(stretch) - LEAST + 1))
        longest = _longest(stretch, everything, longest)
    copied = 0
    for text in texts:
        starts = (i for i in range(len(text)) if text[i : i + LEAST] in found)
        copied += sum(min(b - a, LEAST) for a, b in pairwise([*starts, len(text)]))
    return copied / max(sum(map(len, texts)), 1), longest


def _stretches(documents: Iterable[Document], windows: set[str]) -> Iterator[str]:
    """The stretches of documents of which every window is one of `windows`."""
    last, held = -1, ""
    for number, piece in documents:
        text = held + piece if number == last else piece
        goes_on = end = max(len(text) - LEAST + 1, 0)  # from where text may go on in the next piece
        known = enumerate(text[i : i + LEAST] in windows for i in range(end))
        for is_known, group in groupby(known, itemgetter(1)):
            if is_known:
                places = [i for i, _ in group]
                yield text[places[0] : places[-1] + LEAST]
                goes_on = places[0] if places[-1] == end - 1 else end
        last, held = number, text[goes_on:]


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
