"""Which parts of a text are word for word in the training text: what a model recites, not invents.

Exact. The training text is read as a stream, of any size; ten megabytes take some seconds.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from .corpus import Part, Piece, place_of, whole_documents

LEAST = 30  # characters; shorter stretches are phrases that many people write
_ENOUGH = 1 << 17  # characters of validation text


@dataclass(frozen=True)
class Copies:
    """How much of a text is in the training text, in stretches of at least LEAST characters,
    and how much of the validation text, which nobody has copied."""

    characters: int  # of the text
    share: float  # of these that is inside such a stretch, between 0 and 1
    longest: str  # of these stretches; empty if there is none
    place: str  # the file and, except in a chat, the line in which the longest begins
    usual_share: float  # the share of the validation text
    usual_longest: str  # and its longest stretch

    def __str__(self) -> str:
        longest = ""
        if self.longest:
            shown = f"{self.longest[:80]!r} ({self.place})"
            longest = f", the longest of {len(self.longest)}: {shown}"

        return (
            f"{self.share:.1%} of {self.characters:,} characters are found word for word in the "
            f"training text, in stretches of {LEAST} or more{longest}; "
            f"of the validation text {self.usual_share:.1%}, at most {len(self.usual_longest)}"
        )


def copies(texts: Sequence[str], training: Part, validation: Part) -> Copies:
    """How much of some texts is in the training text, and how much of (a part of) the validation
    text."""
    share, longest = find_copies(texts, training.pieces())
    place = place_of(longest, training.pieces()) if longest else ""

    others = whole_documents(validation.at_most(_ENOUGH).pieces())
    usual_share, usual_longest = find_copies(others, training.pieces())

    return Copies(
        characters=sum(map(len, texts)),
        share=share,
        longest=longest,
        place=place,
        usual_share=usual_share,
        usual_longest=usual_longest,
    )


def find_copies(texts: Sequence[str], pieces: Iterable[Piece]) -> tuple[float, str]:
    """The share of some texts that is in documents, which come in pieces, and the longest
    stretch that is."""
    found: set[str] = set()  # windows of the texts that are in the documents
    longest = ""
    everything = "\ud800".join(texts)  # joined by what no text contains
    for stretch in shared_stretches(texts, pieces):
        found.update(_windows(stretch))
        longest = _longest(stretch, everything, longest)

    copied = sum(_copied(text, found) for text in texts)
    characters = sum(map(len, texts))
    return copied / max(characters, 1), longest


def shared_stretches(texts: Sequence[str], pieces: Iterable[Piece]) -> Iterator[str]:
    """The stretches of documents that hold all that some texts share with them: in each, any LEAST
    characters side by side are in one of the texts."""
    windows: set[str] = set()
    for text in texts:
        windows.update(_windows(text))
    return _stretches(pieces, windows)


def _windows(text: str) -> Iterator[str]:
    """The stretches of exactly LEAST characters, one from each place of a text."""
    return (text[i : i + LEAST] for i in range(len(text) - LEAST + 1))


def _copied(text: str, found: set[str]) -> int:
    """How many characters of a text are in one of the windows found."""
    starts = [i for i, window in enumerate(_windows(text)) if window in found]
    # Windows overlap: each counts up to where the next one begins.
    return sum(min(after - start, LEAST) for start, after in pairwise([*starts, len(text)]))


def _stretches(pieces: Iterable[Piece], windows: set[str]) -> Iterator[str]:
    """The stretches of documents of which every window is one of `windows`."""
    last = -1  # number of the document of the piece before
    held = ""  # the end of that piece
    for piece in pieces:
        is_same_document = piece.number == last
        text = held + piece.text if is_same_document else piece.text
        end = max(len(text) - LEAST + 1, 0)  # from here on a window is not complete yet
        goes_on = end  # from where the text is to be read again, with the next piece

        is_known = [text[i : i + LEAST] in windows for i in range(end)]
        for are_known, group in groupby(range(end), key=is_known.__getitem__):
            if not are_known:
                continue
            places = list(group)
            yield text[places[0] : places[-1] + LEAST]
            if places[-1] == end - 1:  # the stretch may go on in the next piece
                goes_on = places[0]

        last = piece.number
        held = text[goes_on:]


def _longest(stretch: str, text: str, longest: str) -> str:
    """The longest part of a stretch that is in `text`, if longer than the longest so far."""
    for start in range(len(stretch)):
        more = 1
        while more > 0:  # twice as many characters if that went well, else half as many
            end = start + len(longest) + more
            if end <= len(stretch) and stretch[start:end] in text:
                longest = stretch[start:end]
                more *= 2
            else:
                more //= 2
    return longest
