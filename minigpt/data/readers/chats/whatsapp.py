"""Chats that WhatsApp exports, from Android, iOS and the web, as phones in any country write them.
Signal's exporters write lines of the same form, which are read here too.

    31.12.23, 21:41 - Anna: Happy new year!          Android
    [12/31/23, 9:41:05 PM] Anna: Happy new year!     iOS
    [2023-12-31, 21:41] Anna: Happy new year!        Signal, by sigexport

A message begins with a date and a time, in a form that is the same in all of an export; the
exports in a file may have different ones. A line that does not begin like this belongs to the
message before it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import date, datetime, timedelta
from itertools import groupby, pairwise
from typing import NamedTuple

from ..content import Content
from ..document import Document, Report
from ..encoding import text_head
from ..plain import all_text, read_plain
from .turns import NOTHING, Message, documents_of_chat

# The beginning of a message, up to the name. All repetitions are short, so that no line takes long.
_MARKS = "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"  # nobody sees them
_SPACE = "[ \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
_GAP = rf"(?:{_SPACE}|[{_MARKS}]){{0,4}}"
_DATE = (
    rf"\d{{1,4}}{_GAP}(?P<separator>[./\u2010\u2011–年년-]){_GAP}\d{{1,2}}"
    rf"{_GAP}(?:(?P=separator)|[月월]){_GAP}\d{{1,4}}(?!\d)(?:{_GAP}[日일])?"
)
_TIME = (
    rf"\d{{1,2}}{_GAP}[:.٫hH時时시]{_GAP}\d{{2}}"
    rf"(?:{_GAP}[:.٫分분]{_GAP}\d{{2}})?(?!\d){_GAP}[分분秒초]?"
)
_FIRST = r"(?:[^\d\s\[\]<>:,-]{1,12})?"  # the day of the week, or the half of the day
_BETWEEN = r"[^\d\n\[\]<>:]{1,24}?"  # such as "," or " à "
_AFTER = r"[^\d\n\[\]<>:,–-]{0,20}?"  # such as " p. m."
_END = rf"(?(open)\]{_GAP}(?:[-–]{_GAP})?|{_GAP}(?:[-–—]{_GAP}|[:,]{_SPACE}{_GAP}))"
_STAMPS = tuple(
    re.compile(rf"{_GAP}(?P<open>\[)?{_GAP}(?P<before>{_FIRST}){_GAP}{stamp}{_END}")
    for stamp in (
        rf"(?P<date>{_DATE})(?P<between>{_BETWEEN})(?P<time>{_TIME})(?P<after>{_AFTER})",
        rf"(?P<time>{_TIME})(?P<after>{_BETWEEN})(?P<date>{_DATE})(?P<between>{_AFTER})",
    )
)
_TIME_ALONE = re.compile(rf"\[(?P<time>{_TIME})(?P<after>{_AFTER})\] ?(?=\*\*)")  # in Markdown
_DAY = re.compile(r"## .*\d")  # the heading of a day in Markdown
_LONGEST_STAMP = 120  # characters
_NAME = re.compile(
    rf"[{_MARKS}]*(?:\*\*)?(?P<name>[^:\n]{{1,80}}?){_SPACE}?[:：](?:\*\*)?(?:{_SPACE}|\n|$)"
)
_LIKE_CHAT = re.compile(  # a line of a form that is not known, with a date and a time
    r"(?P<stamp>.{6,60}?\d.{0,12}?)[\s\]|>)–-]\s?(?P<name>[^\W\d][^:\d]{0,40}): ?\S"
)

# What the program writes in the place of a message, before one, or after one that was changed.
_ATTACHED_WORDS = (
    "file attached|datei angehängt|fichier joint|archivo adjunto|file allegato|arquivo anexado|"
    "ficheiro anexado|bestand bijgevoegd|plik w załączeniu|файл добавлен|dosya ekli"
)
_INSTEAD = re.compile(  # after it there may be words of the sender
    r"<[^<>\n]{3,80}>"  # <Media omitted>, in any language
    r"|[\w-]+\.\w{2,5} \([^()\n]+\)"  # IMG-20231231-WA0001.jpg (file attached)
    rf"|[^\n]{{1,200}}?\.\w{{2,5}} \((?:{_ATTACHED_WORDS})\)",
    re.IGNORECASE,
)
_OF_PROGRAM = re.compile(  # the whole message
    r"(?:contact card|\w+) "  # "image omitted", where the invisible mark before it is lost
    r"(?:omitted|weggelassen|absente?|omitid[ao]|omess[ao]|ocultad[ao]|weggelaten)"
    r"|(?:this message was deleted by|you deleted this message as) .{1,80}"
    r"|waiting for this message\b.{0,80}|you received a view once\b.{0,150}"
    r"|(?:missed|verpasster) (?:group )?(?:voice |video |sprach|video)(?:call|anruf)\b.{0,40}"
    r"|live location shared\b.{0,40}|location: .{0,40}https?://\S+|contact: .{1,80}"
    r"|\d+ contacts shared|(?:gif|image|video|audio|sticker|document) attached"
    r"|\[forwarded[^\]\n]{0,20}\].*|poll:.*",
    re.IGNORECASE | re.DOTALL,
)
_BRACKETED = re.compile(
    r"!?\[[^\]\n]{0,200}\]\([^)\n]{0,200}\)"
)  # of Markdown, which sigexport writes
_REACTIONS = re.compile(r"\(- .{1,80}: .{1,20} -\)$")  # which sigexport adds
_GONE = {
    "this message was deleted", "you deleted this message", "null",
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

_AFTERNOON = {  # where it has another name, the order of the messages tells
    "pm", "下午", "晚上", "午後", "오후", "م", "بظ", "μμ", "пп", "ös", "ch", "ptg",
    "अपराह्न", "du", "gd",
}  # fmt: skip
_NOON = "中午"


class _Entry(NamedTuple):
    """A message that begins with a line of the file."""

    stamp: str  # the form of its date and time
    date: str
    time: str
    half_of_day: str  # or another word beside the time
    text: str  # with the name, if there is one


def is_chat(text: str) -> bool:
    """Whether a text is a chat of this form.

    A log, or a diary that has a time before each entry, is none: in a chat the same few names come
    back after the times.
    """
    lines = text.splitlines()
    head = [line for line in lines[:_HEAD] if line.strip()]
    begun = [line for line in map(_begun, head) if line is not None]
    return len(begun) >= max(_FEWEST, len(head) / 5) and bool(_entries(lines))


def read_chat(content: Content, report: Report) -> Iterator[Document]:
    """The conversations of a file."""
    begun = _entries(text_head(content).splitlines())
    report.kind = f"{_program_of(begun[0])} chat"
    forms = {entry.stamp for entry in begun}
    for messages in exports(all_text(content, report), forms):
        yield from documents_of_chat(messages, content, report)


def _program_of(first: _Entry) -> str:
    """The program that wrote a chat with this first message."""
    is_signal = first.stamp == "[date-" and first.date[:4].isdigit()
    return "Signal" if is_signal else "WhatsApp"


def looks_like_chat(text: str) -> bool:
    """Whether the same names come back after dates and times in a text that is no chat of this
    form: it may be a chat of another one."""
    head = [line for line in text.splitlines()[:_HEAD] if line.strip()]
    matches = [_LIKE_CHAT.match(line) for line in head]
    found = [match for match in matches if match and len(re.findall(r"\d+", match["stamp"])) >= 3]
    names = Counter(match["name"].strip() for match in found)
    return len(found) >= max(_FEWEST, len(head) / 2) and _are_speakers(names, len(found))


def read_unknown_chat(content: Content, report: Report) -> Iterator[Document]:
    """The text of a chat of a form that is not known, as it is."""
    report.note(
        "looks like a chat in a form that is not known: it is read as a text, with its dates, "
        "names and telephone numbers"
    )
    return read_plain(content, report)


def exports(text: str, forms: Set[str] = frozenset()) -> Iterator[Iterator[Message]]:
    """The messages of each export in a file, in the order of the file. What the program writes
    itself, such as who joins, has no text. `forms` are those of messages that were found by the
    beginning of the file, whatever comes after it."""
    entries = _entries(text.splitlines(), forms)
    for number, (_, group) in enumerate(groupby(entries, key=lambda entry: entry.stamp)):
        yield _messages(list(group), is_first=number == 0)


def _messages(entries: Sequence[_Entry], *, is_first: bool) -> Iterator[Message]:
    """The messages of an export."""
    moments = _moments(entries)
    names = Counter(_name_in(entry.text) for entry in entries)
    for number, (entry, moment) in enumerate(zip(entries, moments, strict=True)):
        match = _NAME.match(entry.text)
        is_said = match is not None and not _is_title(match["name"], names)
        if number < _AMONG_FIRST and _ENCRYPTED.search(entry.text):
            is_said = False
        if match is None or not is_said:  # of the program
            yield NOTHING
            continue
        words = _own_words(entry.text[match.end() :], has_marks=entry.stamp.startswith("["))
        name = match["name"].strip().lstrip("~ \u00a0\u202f")  # ~: nobody in the address book
        yield Message(name, words, moment)


def _begun(line: str) -> _Entry | None:
    """The message that begins with a line; None if none does."""
    head = line[:_LONGEST_STAMP]
    for order, pattern in zip(("date", "time"), _STAMPS, strict=True):
        match = pattern.match(head)
        if match is None:
            continue
        opening = match["open"] or ""
        seconds = "seconds" if _has_seconds(match["time"]) else ""
        form = f"{opening}{order}{match['separator']}{seconds}"
        halves = [_letters(match[part]) for part in ("after", "before", "between")]
        half = next(filter(None, halves), "")
        return _Entry(form, match["date"], match["time"], half, line[match.end() :])

    match = _TIME_ALONE.match(head)
    if match is None:
        return None
    return _Entry("[time", "", match["time"], _letters(match["after"]), line[match.end() :])


def _has_seconds(time: str) -> bool:
    return len(re.findall(r"\d+", time)) > 2


def _letters(words: str) -> str:
    """The letters of a word such as "p. m." """
    return re.sub(rf"(?:{_SPACE}|[{_MARKS}.,،、])+", "", words).lower()


def _entries(lines: Sequence[str], known: Set[str] = frozenset()) -> list[_Entry]:
    """The messages with all their lines, in forms that are known or in which people speak."""
    begun = [_begun(line) for line in lines]
    forms = known | _spoken_forms([line for line in begun if line is not None])
    found: list[_Entry] = []
    rest: list[str] = []  # lines of the last one
    day = date(2000, 1, 1)  # where the file names it in headings only

    def end() -> None:
        if found and rest:
            found[-1] = found[-1]._replace(text="\n".join([found[-1].text, *rest]))
        rest.clear()

    for line, entry in zip(lines, begun, strict=True):
        if "[time" in forms and (_DAY.match(line) or line.startswith((">", "---"))):
            day += timedelta(days=bool(_DAY.match(line)))
        elif entry is None or entry.stamp not in forms:
            rest.append(line)
        else:
            end()
            found.append(entry if entry.date else entry._replace(date=day.isoformat()))
    end()
    return found


def _spoken_forms(begun: Sequence[_Entry]) -> Set[str]:
    """The forms in which the messages of an export begin; a list of dates in a message is none."""
    forms = set()
    for form in {line.stamp for line in begun}:
        own = [line for line in begun if line.stamp == form]
        names = Counter(name for line in own if (name := _name_in(line.text)) is not None)
        is_exported = any(_ENCRYPTED.search(line.text) for line in own[:_AMONG_FIRST])
        if (is_exported and len(names) >= 2) or _are_speakers(names, len(own)):
            forms.add(form)
    return forms


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


def _own_words(text: str, *, has_marks: bool) -> str:
    """What somebody wrote; nothing if the program wrote it in their place. `has_marks` tells that
    the program marks such texts with an invisible character, as on iOS."""
    if has_marks and text.startswith("\u200e"):
        return ""
    text = text.rstrip()
    if has_marks:
        text = re.sub(r"\u200e<[^<>]*>$", "", text)  # it was edited
    text = text.strip(" \u200e\u200f\n")
    text = _EDITED.sub("", text).rstrip()
    text = _REACTIONS.sub("", text)
    text = _BRACKETED.sub("", text).strip()

    if _OF_PROGRAM.fullmatch(text) or text.lower().strip(". ") in _GONE:
        return ""
    instead = _INSTEAD.match(text)
    return text if instead is None else text[instead.end() :].strip()


# Dates


def _moments(entries: Sequence[_Entry]) -> list[datetime | None]:
    """When each message of an export was written; None if there is no such day. The file may not
    tell in which order day, month and year stand, or which word means the afternoon. Then those are
    taken with which time goes back least often and, among these, the least time passes."""
    dates = [_numbers(entry.date) for entry in entries]
    orders = [order for order in ("dmy", "mdy", "ymd") if _is_possible(dates, order)] or ["dmy"]
    halves = {entry.half_of_day for entry in entries}
    has_halves = all(1 <= _numbers(entry.time)[0] <= 12 for entry in entries)
    known = halves & _AFTERNOON
    choices: list[Set[str]] = [set()]
    if has_halves and known:
        choices = [known]
    elif has_halves and len(halves) == 2:
        choices = [{half} for half in sorted(halves)]

    tried = [
        [
            _moment(entry, numbers, order, afternoon)
            for entry, numbers in zip(entries, dates, strict=True)
        ]
        for order in orders
        for afternoon in choices
    ]
    return min(tried, key=_disorder)


def _disorder(moments: Sequence[datetime | None]) -> tuple[int, timedelta]:
    """How often time goes back, and how much time passes in all."""
    known = [moment for moment in moments if moment is not None]
    steps_back = sum(after < before for before, after in pairwise(known))
    return steps_back, max(known) - min(known) if known else timedelta.max


def _numbers(words: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", words)]


def _is_possible(dates: Iterable[Sequence[int]], order: str) -> bool:
    for numbers in dates:
        _, month, day = (numbers[order.index(part)] for part in "ymd")
        if not (1 <= month <= 12 and 1 <= day <= 31):
            return False
    return True


def _moment(
    entry: _Entry, numbers: Sequence[int], order: str, afternoon: Set[str]
) -> datetime | None:
    """When a message was written; `afternoon` are the words for the later half of the day, none
    where there are 24 hours."""
    hour, minute, second = [*_numbers(entry.time), 0][:3]
    if afternoon and entry.half_of_day in afternoon and hour < 12:
        hour += 12
    elif afternoon and entry.half_of_day not in (*afternoon, _NOON) and hour == 12:
        hour = 0

    year, month, day = (numbers[order.index(part)] for part in "ymd")
    if year < 100:
        year += 2000
    try:
        return datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None
