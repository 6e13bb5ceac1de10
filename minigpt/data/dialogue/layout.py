"""How a play or an interview writes its turns. Its text stays as it is.

    ROMEO:                    Anna: Did you feed the cat?      Q. Where were you?
    Is the day so young?      Otto: Twice.
                                                               A. At home. It was dark.
    BENVOLIO:
    But new struck nine.                                       I saw nobody.

Most turns write the name, and what goes around it, in the same way. A turn ends with an empty line
or a line end. If turns often have these inside, as in the third text, only the next name ends one.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, takewhile

from ..documents.document import Layout
from .script import DIRECTION, HEADING, NamedLine, named_lines

_MOST_LINE_ENDS = 3  # after a turn
_SELDOM = 0.25  # of the turns may have in their text what ends a turn


def layout_of(text: str) -> Layout:
    """How most turns of a play or an interview are written, judging by its beginning."""
    lines = named_lines(text)
    counts = Counter(line.name for line in lines if line.name)
    begins = [number for number, line in enumerate(lines) if line.name and counts[line.name] > 1]

    openings = Counter(_opening(lines[number]) for number in begins)
    usual = Counter({words: count for words, count in openings.items() if words.count("{") == 1})
    opening = usual.most_common(1)[0][0] if usual else "{speaker}: "

    turns = list(pairwise(begins))
    ends = Counter(_end(lines[begin:following]) for begin, following in turns)
    end = ends.most_common(1)[0][0]
    holding = sum(end in _said(lines[begin:following]) for begin, following in turns)
    return Layout(f"{opening}{{text}}{end}", ends_at_name=holding > _SELDOM * len(turns))


def _opening(first: NamedLine) -> str:
    """What goes before the text of the turn with this first line, with {speaker} as the name."""
    line, name, text = first
    assert name is not None
    before = line.removesuffix(text)
    if not text.strip():  # the name has a line of its own
        before = line + "\n"
    return before.replace(name, "{speaker}", 1)


def _end(turn: Sequence[NamedLine]) -> str:
    """What goes after the text of a turn: a line end, and the empty lines."""
    before = takewhile(lambda line: not line.line.strip(), reversed(turn))
    return "\n" * min(1 + sum(1 for _ in before), _MOST_LINE_ENDS)


def _said(turn: Sequence[NamedLine]) -> str:
    """The text of a turn, up to the first heading or direction after an empty line."""
    said = [turn[0].text]
    for before, line in pairwise(turn):
        is_new_paragraph = not before.line.strip()
        if is_new_paragraph and (HEADING.fullmatch(line.line) or DIRECTION.fullmatch(line.line)):
            break
        said.append(line.line)
    return "\n".join(said).strip()
