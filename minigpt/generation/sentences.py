"""Where a sentence ends, so that a text can end there too while it is written."""

import re

_ENDS = ".!?…؟۔।॥։።"  # also Arabic, Urdu, Hindi, Armenian, Ethiopic
_WIDE_ENDS = "。！？｡"  # Chinese and Japanese: no space follows
_CLOSING = "\"'”’»›)\\]」』）】"  # may follow the full stop, and belong to the sentence
_SENTENCE_END = re.compile(
    # Known to have ended by the end of the line, or by the first letter of the next sentence.
    rf"[{_ENDS}]+[{_CLOSING}]*(?=[^\S\n]*\n|\s+(?P<next>\S))"
    rf"|[{_WIDE_ENDS}]+[{_CLOSING}]*(?=\s*[^\s{_CLOSING}])"
    r"|(?=\n\s*\n)"  # the end of a paragraph
)
_OPEN_END = re.compile(rf"(?:[{_ENDS}{_WIDE_ENDS}][{_CLOSING}]*|(?=\n))(?P<held>\s*)\Z")
_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|vs|\w)\.\Z")  # or an initial
_LOOK_BACK = 200  # characters before the place where a text is to end


class SentenceEnd:
    """A text that comes in pieces, and is to end with a whole sentence once it is long enough.

    From then on it holds back the white space after what may be the end of a sentence, until the
    next character tells.
    """

    def __init__(self) -> None:
        self.reached = False  # whether the text has ended; nothing may be added then
        self._shown = ""  # the end of it
        self._held = ""

    def add(self, text: str, *, is_long_enough: bool, last: bool = False) -> str:
        """What may be shown after another piece; nothing is held back after the last."""
        start = len(self._shown)
        known = self._shown + self._held + text
        end = len(known)
        if is_long_enough and not last:
            ended = sentence_end(known, start)
            self.reached = ended is not None
            open_end = _OPEN_END.search(known)
            if ended is not None:
                end = ended
            elif open_end is not None:
                end = max(start, open_end.start("held"))

        self._held = known[end:]
        self._shown = known[max(end - _LOOK_BACK, 0) : end]
        return known[start:end]


def sentence_end(text: str, start: int) -> int | None:
    """The place, at `start` or later, where a text can end with a whole sentence; None if no
    sentence is known to end there.

    A sentence ends with a full stop or the like and the quotes after it, before a line end or white
    space, unless a small letter follows; or with its paragraph. A line in capitals names who speaks
    next, and ends nothing. It may have ended before `start` if only white space has followed.
    """
    for found in _SENTENCE_END.finditer(text):
        if text[found.end() : start].strip() or _names_speaker(text, found.end()):
            continue
        follows = found["next"] or ""
        is_abbreviated = follows and _ABBREVIATION.search(text, 0, found.end())
        if not is_abbreviated and not follows.islower():
            return max(found.end(), start)
    return None


def _names_speaker(text: str, end: int) -> bool:
    """Whether a line ends at a place, is in capitals and has a full stop, as in a play."""
    line = text[text.rfind("\n", 0, end) + 1 : end]
    rest_of_line, _, _ = text[end:].partition("\n")
    return line.isupper() and line.endswith(".") and not rest_of_line.strip()
