"""What a letter says itself: without what it quotes of another one, and without its signature.

Mailers write who is quoted in the language of their user. So a line that says who is quoted is
known by what it has in all languages (a date or an address, and a colon at its end), and by what
follows it.
"""

import re
from collections.abc import Sequence

from ..document import Report
from .turns import clean_text

QUOTATIONS = "quotations"
SIGNATURES = "signatures"
_MOST_BROKEN = 4  # lines that together say who is quoted
_LONGEST_WHO = 300  # characters of these lines
_MOST_BETWEEN = 3  # lines with text after a divider, in which the quoted header begins
_MOST_SIGNED = 10  # lines of a signature that only two dashes or a line begin
_HEADER_WITHIN = 6  # lines with text ...
_LEAST_FIELDS = 3  # ... in which a header has at least so many fields

_WHO = re.compile(r"\S@\S")
_TIME = re.compile(r"(?<!\d)\d{1,2}[:.]\d{2}(?!\d)")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_WHEN = re.compile(rf"{_YEAR.pattern}|(?<!\d)\d{{1,2}}(?::\d\d|[./]\d{{1,2}}[./]\d{{2}})(?!\d)")
_END = (":", "：", "----")  # of a line that says who is quoted
_DIVIDER = re.compile(r"-{4,}[^-].{0,80}[^-]-{4,}|_{20,}")  # -----Original Message-----
_LINE = re.compile(r"--|_{20,}")  # may be above a signature
_SUBJECT = (
    "subject|betreff|objet|asunto|assunto|oggetto|onderwerp|ämne|emne|aihe|temat|předmět|тема|konu|"
    "tárgy|subiect|θέμα|נושא|主题|主旨|件名|제목"
)
_FIELD = re.compile(  # From: Anna, in the header of a letter that is quoted
    rf"\*?(?:(?P<subject>{_SUBJECT})|"
    "from|sent|date|to|cc|reply-to|von|gesendet|datum|an|de|envoyé|à|para|enviad[oa](?: el)?|fecha|"
    "data|da|inviato|a|van|verzonden|aan|från|skickat|till|fra|sendt|dato|til|"
    "lähettäjä|lähetetty|päivämäärä|vastaanottaja|od|wysłan[oe]|do|odesláno|komu|"
    "от|отправлено|дата|кому|від|надіслано|kimden|gönderildi|gönderilme tarihi|tarih|kime|"
    "feladó|elküldve|dátum|címzett|de la|trimis|către|από|στάλθηκε|ημερομηνία|προς|"
    "מאת|נשלח|תאריך|אל|发件人|发送时间|日期|收件人|寄件者|收件者|差出人|送信者|送信日時|日付|宛先|"
    "보낸 ?사람|보낸 ?날짜|날짜|받는 ?사람"
    r")\*?\s?[:：]",
    re.IGNORECASE,
)
_DEVICE = re.compile(
    "iphone|ipad|android|samsung|galaxy|huawei|xiaomi|blackberry|windows|outlook|yahoo|proton|"
    "smartphone|handy|mobile",
    re.IGNORECASE,
)
_SENT = re.compile(  # from a telephone: as its program writes it
    "(?:sent|get outlook|envoyé|enviad[oa]|inviato|verstuurd|verzonden|skickat|sendt|lähetetty|"
    "odesláno|wysłan[oe]|отправлено|надіслано|gönderildi|trimis|στάλθηκε|נשלח|elküldve|发自).{,60}"
    r"|.{,60}(?:gesendet|送信|보냄|gönderildi|küldve)\W{,2}",
    re.IGNORECASE,
)


def own_text(text: str, report: Report) -> str:
    """What a letter says itself. What is left out of it is counted."""
    lines = text.splitlines()
    own: list[str] = []
    number = 0
    while number < len(lines):
        end = _end_of_quoted(lines, number)
        if end > number:
            report.leave_out(QUOTATIONS)
            _drop_who_is_quoted(own)
        elif _begins_letter(lines, number):
            report.leave_out(QUOTATIONS)
            break
        else:
            end = _end_of_signature(lines, number)
            report.leave_out(SIGNATURES, end > number)

        if end == number:
            own.append(lines[number])
            end = number + 1
        number = end
    return "\n".join(own).strip()


# Quotations with a mark


def _is_marked(line: str) -> bool:
    return line.lstrip().startswith(">")


def _end_of_quoted(lines: Sequence[str], number: int) -> int:
    """The number of the line after what is quoted from this line on; this one if nothing is."""
    end = number
    for place in range(number, len(lines)):
        if _is_marked(lines[place]):
            end = place + 1
        elif lines[place].strip() or place == number:
            break
    return end


def _drop_who_is_quoted(own: list[str]) -> None:
    """Remove the last lines if they say who is quoted below: they hold a date or an address. More
    lines are taken only if these hold both."""
    end = len(own)
    while end > 0 and not own[end - 1].strip():
        end -= 1

    found = 0  # how many lines
    for count in range(1, min(_MOST_BROKEN, end) + 1):
        lines = own[end - count : end]
        if not _may_be_broken(lines):
            break
        line = clean_text(" ".join(lines))
        signs = sum(sign.search(line) is not None for sign in (_WHO, _WHEN))
        is_short = len(line) <= _LONGEST_WHO
        if signs and is_short and line.endswith(_END) and (not found or signs == 2):
            found = count
        if signs == 2:
            break
    if found:
        del own[end - found :]


def _may_be_broken(lines: Sequence[str]) -> bool:
    """Whether lines may be one that was broken: none but the last ends as a sentence does."""
    is_text = all(line.strip() for line in lines)
    return is_text and not any(line.rstrip().endswith((".", "!", "?", ":")) for line in lines[:-1])


# Quotations without a mark


def _begins_letter(lines: Sequence[str], number: int) -> bool:
    """Whether all from this line on is another letter."""
    if not lines[number].strip():
        return False
    if _FIELD.match(lines[number]):
        fields = _fields_after(lines, number, _HEADER_WITHIN)
        has_subject = any(field["subject"] for field in fields)
        return has_subject and len(fields) >= _LEAST_FIELDS
    is_divider = _DIVIDER.fullmatch(lines[number].strip()) is not None
    if is_divider and _fields_after(lines, number + 1, _MOST_BETWEEN):
        return True
    return _says_who_wrote(lines, number)


def _fields_after(lines: Sequence[str], number: int, within: int) -> list[re.Match[str]]:
    """Which of the next lines with text are fields of a header."""
    found = map(_FIELD.match, _next_with_text(lines, number, within))
    return [field for field in found if field is not None]


def _next_with_text(lines: Sequence[str], number: int, most: int) -> list[str]:
    """The next lines with text, at most so many; few empty lines may be between them."""
    following = lines[number : number + 3 * most]
    return [line.strip() for line in following if line.strip()][:most]


def _says_who_wrote(lines: Sequence[str], number: int) -> bool:
    """Whether a line, perhaps broken, says who wrote all that follows: with an address, a date and
    a time, and what follows has no mark."""
    if not (_WHO.search(lines[number]) or _YEAR.search(lines[number])):
        return False
    for count in range(1, _MOST_BROKEN + 1):
        broken = lines[number : number + count]
        if len(broken) < count or not _may_be_broken(broken):
            return False
        line = clean_text(" ".join(broken))
        is_full = all(sign.search(line) for sign in (_WHO, _TIME, _YEAR))
        if is_full and line.endswith(_END):
            following = _next_with_text(lines, number + count, 1)
            return not any(map(_is_marked, following))
    return False


# Signatures


def _end_of_signature(lines: Sequence[str], number: int) -> int:
    """The number of the line after a signature that begins with this line; this one if none does.
    What is quoted below a signature does not belong to it."""
    line = lines[number]
    if _is_of_telephone(lines, number):
        return number + 1

    if _LINE.fullmatch(line.strip()) is None:
        return number
    is_certain = line == "-- "
    written = 0
    end = number + 1
    while end < len(lines) and not (_is_marked(lines[end]) or _begins_letter(lines, end)):
        written += bool(lines[end].strip())
        if written > _MOST_SIGNED and not is_certain:
            return number
        end += 1
    return end


def _is_of_telephone(lines: Sequence[str], number: int) -> bool:
    """Whether a line by itself is one that a telephone or a program adds."""
    line = lines[number].strip()
    beside = [*lines[max(number - 1, 0) : number], *lines[number + 1 : number + 2]]
    is_alone = all(not other.strip() or _is_marked(other) for other in beside)
    return is_alone and _SENT.fullmatch(line) is not None and _DEVICE.search(line) is not None
