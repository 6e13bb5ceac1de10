"""Plays and interviews: texts in which a name goes before what is said.

    Anna: Did you feed the cat?          Q: Where were you?          HAMLET.
    Otto: Twice.                         A: At home.                 Words, words, words.

A novel may have a passage like this, and a log or a list of records may have a word and a colon in
each line. They are told apart by how much of the text is said by somebody, and by whether the names
come back in the way in which people take turns.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from ..content import Content
from ..document import Document, Layout, Report
from ..encoding import text_head
from ..plain import all_text, read_plain
from .turns import Message, documents_of_chat
from .whatsapp import LEVELS

_LETTER = r"[^\W\d_]"
_WORD = rf"(?:[A-Z0-9À-ÞĀ-ŽΑ-ΩА-ЯЁ]|(?![a-zß-öø-ÿα-ωа-яё]){_LETTER})[\w.'’-]*"
_SMALL = r"(?:of|the|and|de|la|le|du|des|von|van|der|und|y|di|et)"
_NAME = rf"{_WORD}(?: (?:{_WORD}|{_SMALL})){{0,4}}"
_AFTER = r"(?: ?[(\[][^()\[\]\n]{1,60}[)\]])?"  # Anna (laughing):
_COLON = re.compile(
    rf"[ \t]{{0,8}}(?:\*\*|__|\*|_)?(?P<name>{_NAME}){_AFTER}(?:\*\*|__|\*|_)?"
    rf"[ \u00a0\u202f]?(?::(?:\*\*|__|\*|_)?(?=\s|$)|：)[ \t]*(?P<text>.*)"
)
_CAPITALS = r"[A-ZÀ-ÖØ-ÞĀ-ŽΑ-ΩА-ЯЁ]"
_TITLE = r"(?:(?:MRS?|MS|DR|ST|REV|PROF|CAPT|COL|GEN|LT|SGT|MME|MLLE)\. )?"
_NAME_IN_CAPITALS = (
    rf"{_TITLE}(?:{_CAPITALS}[{_CAPITALS[1:-1]}.'’-]*[{_CAPITALS[1:-1]}]|[QA])"
    rf"(?: (?:{_CAPITALS}[{_CAPITALS[1:-1]}'’-]*|\d+)){{0,4}}"
)
_FULL_STOP = re.compile(
    rf"[ \t]{{0,8}}(?P<name>{_NAME_IN_CAPITALS}){_AFTER}\.(?:[ \t]+(?P<text>.*)|$)"
)
_FORMS = (_COLON, _FULL_STOP)
HEADING = re.compile(
    r"\s*+[#\s*_]{0,8}"
    r"(?:(?:act|scene|acte|scène|akt|aufzug|szene|auftritt|acto|escena|atto|scena|chapter|"
    r"prologue|epilogue|prolog|epilog|акт|действие|сцена|явление)\b.{0,60}|[*=_~-]{3,}+|"
    r"(?:the end|finis|ende|fin)\.?|<\|endoftext\|>)[\s*_]*+",
    re.IGNORECASE,
)
_NUMERAL = re.compile(r"[IVXLC]+|(?:ACT|SCENE|CHAPTER|BOOK|PART|VOLUME|THE END|FINIS|CONTENTS)\b.*")
DIRECTION = re.compile(
    r"\s*(?:[\[(_].*[\])_]\.?|(?:Enter|Re-enter|Exit|Exeunt|Alarums?|Flourish|Curtain)\b.{0,200})\s*"
)
_LABELS = LEVELS | {
    "note", "notes", "tip", "hint", "example", "examples", "title", "author", "date", "subject",
    "from", "to", "cc", "sent", "time", "place", "step", "chapter", "section", "name", "address",
    "phone", "email", "summary", "status", "version", "url", "source", "todo", "fixme", "see",
    "returns", "raises", "args", "parameters", "usage", "input", "output", "result", "results",
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "morning", "noon",
    "afternoon", "evening", "night", "word", "definition", "front", "back", "key", "value", "type",
    "description", "price", "quantity", "id", "size", "weight", "files", "copyright", "license",
    "comment", "comments", "format", "package", "what", "why", "when", "how", "before", "after",
}  # fmt: skip
_END = re.compile(r"[.!?…:;,—–\-\"'”’)\]*_]$")  # of a line after which somebody else may speak
_LONGEST_NAME = 40  # characters
_FEWEST = 8  # turns
_COVER = 0.5  # of the text that is said by somebody
_ANSWERED = 0.2  # of the turns; in plays and meetings it is 0.22 and more, in records 0.18 and less
_MOST_LINE_ENDS = 3  # after a turn
_SELDOM = 0.25  # of the turns may have in their text what ends a turn


class NamedLine(NamedTuple):
    """A line of the text, and the name and the rest if it begins with a name."""

    line: str
    name: str | None
    text: str


def form_of(text: str) -> re.Pattern[str] | None:
    """How a turn begins in a play or an interview; None if a text is none."""
    return next((form for form in _FORMS if _is_in_form(named_lines(text, form))), None)


def read_play(content: Content, report: Report) -> Iterator[Document]:
    """The documents of a play or an interview, whose text stays as it is, each with how its turns
    are written. Where speakers are given other names, it is rewritten as turns."""
    changed_by = [name for name in ("rename", "anonymous") if getattr(content.reading, name)]
    head = text_head(content)
    form = form_of(head)
    assert form is not None
    if not changed_by:
        layout = layout_of(named_lines(head, form))
        for document in read_plain(content, report):
            yield document._replace(layout=layout)
        return

    report.note(f"rewritten as turns, NAME: TEXT, without its layout, for --{changed_by[0]}")
    for scene in scenes(named_lines(all_text(content, report), form)):
        yield from documents_of_chat(scene, content, report, is_private=False)


def named_lines(text: str, form: re.Pattern[str]) -> list[NamedLine]:
    """The lines of a text, and the name that each of them begins with."""
    lines = []
    for line in text.splitlines():
        match = form.match(line)
        name = match["name"].strip() if match else None
        if match is None or name is None or not is_a_name(name):
            lines.append(NamedLine(line, None, ""))
        else:
            lines.append(NamedLine(line, name, match["text"] or ""))
    return lines


def name_pattern(*, in_capitals: bool) -> str:
    """A regular expression of a speaker's name, before a colon or, in capitals, a full stop."""
    return _NAME_IN_CAPITALS if in_capitals else _NAME


def is_a_name(words: str) -> bool:
    """Whether words that are written like a name are no number or heading, and not too long."""
    return not _NUMERAL.fullmatch(words) and len(words) <= _LONGEST_NAME


def scenes(lines: Sequence[NamedLine]) -> Iterator[list[Message]]:
    """What is said in each scene. What goes before the first turn, such as the list of the people,
    is left out, and so are directions that have lines of their own."""
    counts = Counter(line.name for line in lines if line.name)
    is_line_by_line = _is_line_by_line(lines)

    scene: list[Message] = []
    is_after_blank = True
    is_open = False  # whether a line without a name belongs to the last turn
    for line, name, rest in lines:
        if not line.strip():
            is_after_blank = True
            continue
        times = 0 if name is None else counts[name]
        begins = times > 1 or (times == 1 and (is_after_blank or is_line_by_line))
        if times <= 2 and HEADING.fullmatch(line):
            if scene:
                yield scene
            scene = []
            is_open = False
        elif begins and name is not None:
            scene.append(Message(name, rest))
            is_open = True
        elif is_open and not (is_after_blank and DIRECTION.fullmatch(line)):
            said = _without_directions(line)
            scene[-1] = scene[-1]._replace(text=f"{scene[-1].text}\n{said}")
        is_after_blank = False
    if scene:
        yield scene


def _without_directions(line: str) -> str:
    """A line as it is said; empty if it is a direction in brackets."""
    bare = line.strip()
    is_direction = bare[:1] == "[" and bare[-1:] == "]"
    return "" if is_direction else line


def _is_in_form(lines: Sequence[NamedLine]) -> bool:
    """Whether these lines are turns that people take."""
    names = [line.name for line in lines if line.name]
    counts = Counter(names)
    often = [name for name, count in counts.items() if count >= 3]
    turns = sum(count for count in counts.values() if count >= 2)
    if len(often) < 2 or turns < _FEWEST or turns < 0.7 * len(names):
        return False

    labels = sum(count for name, count in counts.items() if name.lower() in _LABELS)
    if labels > 0.2 * len(names) or _are_records(names) or _seldom_alternate(names):
        return False
    if _are_in_sentences(lines):
        return False
    return _share_said(lines, counts) >= _COVER


def _are_records(names: Sequence[str]) -> bool:
    """Whether three or more names follow each other as the fields of records do. People answer each
    other: often somebody speaks again right after the answer."""
    if len(set(names)) < 3:
        return False
    triples = list(zip(names, names[1:], names[2:], strict=False))
    answered = sum(first == third != second for first, second, third in triples)
    return answered < _ANSWERED * len(triples)


def _are_in_sentences(lines: Sequence[NamedLine]) -> bool:
    """Whether most names before a full stop end sentences that began in the lines before, as words
    of a licence in capitals do."""
    stopped = [
        before.line.strip()
        for before, line in pairwise(lines)
        if line.name is not None and line.line.lstrip().startswith(f"{line.name}.")
    ]
    going_on = [line for line in stopped if line and _END.search(line) is None]
    return len(going_on) > len(stopped) / 2


def _seldom_alternate(names: Sequence[str]) -> bool:
    changes = sum(name != following for name, following in pairwise(names))
    return changes < 0.4 * (len(names) - 1)


def _share_said(lines: Sequence[NamedLine], counts: Counter[str]) -> float:
    """The share of the text, from its first turn on, in paragraphs that begin with a name, or in
    lines that do."""
    said = characters = 0
    is_said = False  # whether a name came before in this paragraph
    has_begun = False
    for line in lines:
        size = len(line.line.strip())
        if size == 0:
            is_said = False
            continue
        if line.name is not None and counts[line.name] > 1:
            is_said = True
            has_begun = True
        if has_begun:
            characters += size
            said += size * is_said
    whole = sum(len(line.line.strip()) for line in lines)
    return min(said / max(characters, 1), 2 * said / max(whole, 1))


def _is_line_by_line(lines: Sequence[NamedLine]) -> bool:
    """Whether nearly every line begins with a name."""
    filled = [line for line in lines if line.line.strip()]
    return sum(line.name is not None for line in filled) >= 0.8 * len(filled)


# How turns are written


def layout_of(lines: Sequence[NamedLine]) -> Layout:
    """How most turns of a play or an interview are written, judging by its first lines."""
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
