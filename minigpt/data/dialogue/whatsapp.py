"""Chats that WhatsApp exports, from Android and iOS, in the languages and date formats of many
countries. Signal's exporters write lines of the same form, which are read here too.

    31.12.23, 21:41 - Anna: Happy new year!          Android
    [12/31/23, 9:41:05 PM] Anna: Happy new year!     iOS
    [2023-12-31, 21:41] Anna: Happy new year!        Signal, by sigexport

A line that does not begin like this belongs to the message before it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from .turns import NOTHING, Message

_MARKS = "\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff"  # of direction; nobody sees them
_SPACE = "[ \u00a0\u202f]"
_DATE = (
    rf"\d{{1,4}}(?P<separator>[./-]){_SPACE}?\d{{1,2}}(?P=separator){_SPACE}?\d{{1,4}}\.?"
    rf"|\d{{4}}[年년]{_SPACE}?\d{{1,2}}[月월]{_SPACE}?\d{{1,2}}[日일]"
)
_HALF = (  # of the day
    rf"[AaPp]\.?{_SPACE}?[Mm]\.?|上午|下午|凌晨|早上|中午|晚上|午前|午後|오전|오후|[صم]|[πΠ]\.?μ\.?|"
    r"[μΜ]\.?μ\.?|п\.?п\.?|пп|дп|[SC]H|PG|PTG|ÖÖ|ÖS"
)
_TIME = rf"(?:(?:{_HALF}){_SPACE}?)?\d{{1,2}}[:.]\d{{2}}{{seconds}}(?:{_SPACE}?(?:{_HALF}))?"
_WORD = rf"(?:(?:à|at|um|kl\.|klo|às|a las|om|в|o){_SPACE})?"  # between date and time


def _time(seconds: str) -> str:
    return _TIME.replace("{seconds}", seconds)


# The beginning of a message, up to what was written.
_ANDROID = re.compile(
    rf"(?P<date>{_DATE})[,،]?{_SPACE}{_WORD}(?P<time>{_time('')}){_SPACE}[-–]{_SPACE}"
)
_KOREAN = re.compile(
    rf"(?P<date>\d{{4}}년 \d{{1,2}}월 \d{{1,2}}일(?P<separator>)) (?P<time>{_time('')}), "
)
_BRACKETS = re.compile(
    rf"\[(?P<date>{_DATE})[,،]?{_SPACE}{_WORD}(?P<time>{_time('(?:[:.][0-9]{2})?')})\]{_SPACE}"
)
_FORMS = {"android": _ANDROID, "korean": _KOREAN, "brackets": _BRACKETS}
_NAME = re.compile(rf"[{_MARKS}]*(?P<name>[^:\n]{{1,80}}?){_SPACE}?[:：](?:{_SPACE}|$)")

# What the program writes in the place of a message, or after one that was changed.
_PLACEHOLDER = re.compile(r"<[^<>\n]{3,60}>")  # <Media omitted>, in any language
_ATTACHED = re.compile(r"[\w-]+\.\w{2,5} \([^()\n]+\)")  # IMG-20231231-WA0001.jpg (file attached)
_OMITTED = re.compile(  # "image omitted", where the invisible mark before it is lost
    r"(?:contact card|\w+) "
    r"(?:omitted|weggelassen|absente?|omitid[ao]|omess[ao]|ocultad[ao]|weggelaten)",
    re.IGNORECASE,
)
_BRACKETED = re.compile(
    r"!?\[[^\]\n]{0,200}\]\([^)\n]{0,200}\)"
)  # of Markdown, which sigexport writes
_REACTIONS = re.compile(r"\(- .{1,80}: .{1,20} -\)$")  # which sigexport adds
_GONE = {
    "this message was deleted", "you deleted this message", "null",
    "missed voice call", "missed video call", "waiting for this message",
    "diese nachricht wurde gelöscht", "du hast diese nachricht gelöscht",
    "verpasster sprachanruf", "verpasster videoanruf",
    "ce message a été supprimé", "vous avez supprimé ce message",
    "se eliminó este mensaje", "este mensaje fue eliminado", "eliminaste este mensaje",
    "questo messaggio è stato eliminato", "hai eliminato questo messaggio",
    "mensagem apagada", "esta mensagem foi apagada", "você apagou esta mensagem",
    "apagou esta mensagem", "dit bericht is verwijderd", "u hebt dit bericht verwijderd",
    "je hebt dit bericht verwijderd", "bu mesaj silindi", "bu mesajı sildiniz",
    "данное сообщение удалено", "вы удалили данное сообщение", "сообщение удалено",
    "ta wiadomość została usunięta", "usunięto tę wiadomość", "此消息已删除", "你已删除此消息",
    "このメッセージは削除されました", "삭제된 메시지입니다", "meddelandet raderades",
    "denne besked blev slettet", "denne meldingen ble slettet", "tämä viesti poistettiin",
}  # fmt: skip
_EDITED = re.compile(
    r"<(?:this message was edited|diese nachricht wurde bearbeitet|ce message a été modifié|"
    r"se editó este mensaje|questo messaggio è stato modificato|mensagem editada|"
    r"esta mensagem foi editada|dit bericht is bewerkt|bu mesaj düzenlendi|"
    r"данное сообщение изменено|ta wiadomość została edytowana)\.?>$",
    re.IGNORECASE,
)

# With what the program begins an exported chat. On iOS somebody seems to say it.
_ENCRYPTED = re.compile(
    r"end-to-end|ende-zu-ende|extremo a extremo|bout en bout|ponta a ponta|ponto a ponto|"
    r"сквозным шифрованием|наскрізн|uçtan uca|エンドツーエンド|端對端|端到端|종단간|مشفرة|מוצפנ|"
    r"pełnego szyfrowania|ände till ände|ende-til-ende|päästä päähän|végpontok|cap la cap",
    re.IGNORECASE,
)
_AMONG_FIRST = 3  # messages

# Who speaks in the logs of programs.
LEVELS = frozenset({
    "trace", "debug", "info", "notice", "warn", "warning", "error", "err", "critical", "crit",
    "fatal", "severe", "exception",
})  # fmt: skip
_FEWEST = 3  # messages
_HEAD = 200  # lines that are looked at first


class _Line(NamedTuple):
    """A message that begins with a line of the file."""

    date: str
    time: str
    text: str  # with the name, if there is one


def kind_of_chat(text: str) -> str | None:
    """What to call a text if it is a chat of this form, else None.

    A log, or a diary that has a time before each entry, is none: in a chat the same few names come
    back after the times.
    """
    lines = text.splitlines()
    form = _form_of(lines)
    if form is None:
        return None
    begun = [line for line in _begun_lines(lines, form) if line is not None]
    names = Counter(name for line in begun if (name := _name_in(line.text)) is not None)
    is_exported = any(_ENCRYPTED.search(line.text) for line in begun[:_AMONG_FIRST])
    if not (is_exported and len(names) >= 2) and not _are_speakers(names, len(begun)):
        return None
    has_seconds = sum(len(line.time.split(":")) > 2 or line.time.count(".") > 1 for line in begun)
    is_signal = form == "brackets" and not has_seconds and begun[0].date[:4].isdigit()
    return "Signal" if is_signal else "WhatsApp"


def messages_of_chat(text: str) -> Iterator[Message]:
    """The messages of a chat, in the order of the file. What the program writes itself, such as who
    joins, has no text."""
    lines = text.splitlines()
    form = _form_of(lines)
    assert form is not None  # the text has been recognised
    entries = _entries(lines, form)
    order = _order_of_date([entry.date for entry in entries])
    names = Counter(_name_in(entry.text) for entry in entries)

    for number, entry in enumerate(entries):
        match = _NAME.match(entry.text)
        is_said = match is not None and not _is_title(match["name"], names)
        if number < _AMONG_FIRST and _ENCRYPTED.search(entry.text):
            is_said = False
        if match is None or not is_said:  # of the program
            yield NOTHING
            continue
        written = _written(entry.text[match.end() :], by_program=form == "brackets")
        name = match["name"].strip().lstrip("~ \u00a0\u202f")  # ~: nobody in the address book
        yield Message(name, written, _moment(entry, order))


def _form_of(lines: Sequence[str]) -> str | None:
    """Which form of a beginning a text has, if it has enough of one."""
    head = [line.strip(" \ufeff\u200e\u200f") for line in lines[:_HEAD] if line.strip()]
    counts = {
        name: sum(form.match(line) is not None for line in head) for name, form in _FORMS.items()
    }
    best = max(counts, key=lambda name: counts[name])
    is_enough = counts[best] >= _FEWEST and counts[best] >= len(head) / 5
    return best if is_enough else None


def _begun_lines(lines: Iterable[str], form: str) -> Iterator[_Line | None]:
    """Of each line the message that begins with it; None if none does."""
    pattern = _FORMS[form]
    for line in lines:
        bare = line.lstrip(" \ufeff\u200e\u200f\u202a")
        match = pattern.match(bare)
        yield match and _Line(match["date"], match["time"], bare[match.end() :])


def _entries(lines: Sequence[str], form: str) -> list[_Line]:
    """The messages with all their lines."""
    found: list[_Line] = []
    rest: list[str] = []  # lines of the last one
    for line, begun in zip(lines, _begun_lines(lines, form), strict=True):
        if begun is None:
            rest.append(line)
            continue
        if found and rest:
            found[-1] = found[-1]._replace(text="\n".join([found[-1].text, *rest]))
        found.append(begun)
        rest = []

    if found and rest:
        found[-1] = found[-1]._replace(text="\n".join([found[-1].text, *rest]))
    return found


def _name_in(text: str) -> str | None:
    match = _NAME.match(text)
    return match["name"].strip() if match else None


def _is_title(name: str, names: Counter[str | None]) -> bool:
    """Whether a name is half of a line such as: Anna changed the subject to "Party: tonight"."""
    return names[name.strip()] == 1 and re.search('["“”„«»「]', name) is not None


def _are_speakers(names: Counter[str], lines: int) -> bool:
    """Whether these are the people of a chat that has so many lines with a time."""
    count = names.total()
    if len(names) < 2 or count < _FEWEST or count < lines / 2:
        return False
    if any(LEVELS & set(re.split(r"\W+", name.lower())) for name in names):
        return False  # a log
    processes = sum(count for name, count in names.items() if re.search(r"\[\d+\]$", name))
    if processes > count / 10:
        return False
    come_back = sum(times for times in names.values() if times > 1)
    return come_back >= count / 2


def _written(text: str, *, by_program: bool) -> str:
    """What somebody wrote; nothing if the program wrote it in their place. On iOS, in brackets, it
    marks that invisibly."""
    if by_program and text.startswith("\u200e"):
        return ""
    text = text.rstrip()
    if by_program:
        text = re.sub(r"\u200e<[^<>]*>$", "", text)  # it was edited
    text = text.strip(" \u200e\u200f\n")
    text = _EDITED.sub("", text).rstrip()
    text = _REACTIONS.sub("", text)
    text = _BRACKETED.sub("", text).strip()

    is_omitted = _PLACEHOLDER.fullmatch(text) or _OMITTED.fullmatch(text)
    if is_omitted or text.lower().strip(". ") in _GONE:
        return ""
    first, _, rest = text.partition("\n")
    if _ATTACHED.fullmatch(first.strip("\u200e ")):  # the lines after it are its caption
        return rest
    return text


# Dates


def _order_of_date(dates: Sequence[str]) -> str:
    """The order of day, month and year: if there is a choice, that in which time goes on."""
    numbers = [_numbers(date) for date in dates]
    if any(first > 31 for first, _, _ in numbers):
        return "ymd"
    orders = {
        "dmy": all(second <= 12 for _, second, _ in numbers),
        "mdy": all(first <= 12 for first, _, _ in numbers),
    }
    possible = [order for order, holds in orders.items() if holds]
    if not possible:
        return "dmy"

    def steps_back(order: str) -> int:
        days = [_year_month_day(three, order) for three in numbers]
        return sum(after < before for before, after in pairwise(days))

    return min(possible, key=steps_back)


def _numbers(date: str) -> tuple[int, int, int]:
    first, second, third = re.findall(r"\d+", date)
    return int(first), int(second), int(third)


def _year_month_day(numbers: tuple[int, int, int], order: str) -> tuple[int, int, int]:
    year, month, day = (numbers[order.index(part)] for part in "ymd")
    if year < 100:
        year += 2000
    return year, month, day


def _moment(entry: _Line, order: str) -> datetime | None:
    """When a message was written; None if there is no such day."""
    hour, minute, second = map(int, [*re.findall(r"\d+", entry.time), "0"][:3])
    half = re.sub(r"[\d:.\s\u00a0\u202f]", "", entry.time).lower()
    is_afternoon = half in (
        "pm",
        "下午",
        "晚上",
        "午後",
        "오후",
        "م",
        "μμ",
        "пп",
        "ös",
        "ch",
        "ptg",
    )
    is_morning = bool(half) and not is_afternoon and half != "中午"

    if is_afternoon and hour < 12:
        hour += 12
    elif is_morning and hour == 12:
        hour = 0

    try:
        return datetime(*_year_month_day(_numbers(entry.date), order), hour, minute, second)
    except ValueError:
        return None
