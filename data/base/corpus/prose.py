"""What is dropped from books and articles, and why. The rules come from reading samples of them.

A rule is a function of a paragraph that says whether the paragraph is bad. Rules of documents look
at what the paragraphs left.
"""

import re
from collections import Counter
from collections.abc import Callable

from .document import Document

SMALL_WORDS = frozenset(
    """the of and to a in is that it for was on with as he be his at by i this had not are but
    from or have an they which one you were all her she there would their we him been has when
    who will no more if out so said what up its about into than them can only other time new
    some could these two may then do first any my now such like our over me even most made
    after also did many off before must well back through years where much your way down
    should because long each just those people how too little us good very make see work""".split()
)
MARKUP = re.compile(r"<[/?!A-Za-z][^<>]*>|\{[{%.]|\}\}|\]\(|&[a-z]+;|\\[a-z]|[`{}~\0]| \| ")
APPARATUS = re.compile(
    r"CHAPTER PAGE|[IVXLC]+\. .{,80} \d+$|LIST OF ILL|CONTENTS|\(?\*|\{|.*\d_\d"
    r"|Footnote|Illustration|Transcriber"
)
CATALOGUE = re.compile(r"\$ ?\d+\.\d\d$|12mo\b|\bvols?\.,? boxed|Twenty-\w+ Impression")
CODE = re.compile(
    r"\w_\w|\w\(\)|::|[-=]>|==|\w\.\w+\(|\s--\w|\$\w|\w/\w+/\w|\b[a-z]+[A-Z]\w|[a-z]\.[a-z]{2}"
)
CAPTION = re.compile(
    r"(Figure|Table|Listing|Credit|Source|Photo|Image|Filename|Posted|Published|Author)s?\b[ :]?\d*"
)
AIM = re.compile(
    r"- (Explain|Describe|Identify|Define|Discuss|Compare|Analyze|Summarize|Evaluate|Recognize"
    r"|Differentiate|Distinguish|Outline|Assess|Interpret|Students)\b"
)
ADDRESS = re.compile(r"[^.!?\n]*(https?://|www\.|\S@\w+\.\w)\S*[^.!?\n]*[.!?]?")
ENDED = re.compile(r"[.!?:;,\u2026\u2014\"'\u201d\u2019)\]-]$")
LESSON = re.compile(r"Lesson Objectives|Exit Ticket|Learning Objectives")

LEAST = 250  # characters of a document
HEADING = 70  # characters at most


def words(paragraph: str) -> list[str]:
    """Words in the order of the paragraph."""
    return re.findall(r"[A-Za-z']+", paragraph)


def has_markup(paragraph: str) -> bool:
    return bool(MARKUP.search(paragraph))


def is_apparatus(paragraph: str) -> bool:
    """An editor's note, a line of the contents. Short notes in brackets are a play's directions."""
    note = paragraph.startswith("[") and paragraph.endswith("]") and len(paragraph) > 150
    return note or bool(APPARATUS.match(paragraph))


def is_catalogue(paragraph: str) -> bool:
    """The publisher's list of books and prices."""
    return bool(CATALOGUE.search(paragraph))


def is_numbers(paragraph: str) -> bool:
    """More than an eighth is digits, or it is a table of percentages."""
    digits = sum(character.isdigit() for character in paragraph)
    dense = len(paragraph) > 20 and digits > 0.12 * len(paragraph)
    return dense or len(re.findall(r"\d%", paragraph)) >= 6


def is_names(paragraph: str) -> bool:
    """A long paragraph of capitalised words: names, titles, references."""
    found = words(paragraph)
    capitals = sum(word[0].isupper() for word in found)
    return len(paragraph) > 160 and capitals > 0.6 * len(found)


def is_other_language(paragraph: str) -> bool:
    """Hardly a small word of English in a long paragraph; lists of names have none either."""
    found = words(paragraph)
    small = sum(word.lower() in SMALL_WORDS for word in found)
    return len(paragraph) > 160 and small < 0.18 * len(found)


def is_code(paragraph: str) -> bool:
    """An eighth of the words are identifiers or commands."""
    found = len(CODE.findall(paragraph))
    return found >= 3 and found > 0.12 * len(words(paragraph))


def is_caption(paragraph: str) -> bool:
    return len(paragraph) < 200 and bool(CAPTION.match(paragraph))


def is_aim(paragraph: str) -> bool:
    """The aims of a lesson."""
    return bool(AIM.match(paragraph))


def has_no_end(paragraph: str) -> bool:
    """A long paragraph that ends without a mark: a table, a caption."""
    return len(paragraph) > 110 and "- " not in paragraph[:2] and not ENDED.search(paragraph)


Rule = tuple[str, Callable[[str], bool]]
ALL: tuple[Rule, ...] = (
    ("left-over markup", has_markup),
    ("numbers", is_numbers),
    ("names, references", is_names),
    ("another language", is_other_language),
)
OF_BOOKS: tuple[Rule, ...] = (
    ("notes and lists of an edition", is_apparatus),
    ("prices", is_catalogue),
)
OF_ARTICLES: tuple[Rule, ...] = (
    ("identifiers, commands", is_code),
    ("captions", is_caption),
    ("aims of a lesson", is_aim),
    ("without an end", has_no_end),
)


def clean(document: Document, kind: str, dropped: Counter[str]) -> Document | None:
    """The document without bad paragraphs; None if it is bad as a whole.

    `dropped` counts the reasons.
    """
    rules = ALL + (OF_BOOKS if kind == "books" else OF_ARTICLES)
    kept = []
    for paragraph in document.paragraphs:
        text = repaired(paragraph)
        reason = next((reason for reason, is_bad in rules if is_bad(text)), "")
        if not text or reason:
            dropped[reason or "addresses"] += 1
        else:
            kept.append(text)

    if kind == "modern":
        kept = without_empty_sections(kept, dropped)
    reason = reason_against(kept, document, kind)
    if reason:
        dropped[f"document: {reason}"] += 1
        return None
    return Document(kept)


def repaired(paragraph: str) -> str:
    """Without sentences that hold an address, and without spaces before punctuation marks."""
    paragraph = ADDRESS.sub("", paragraph)
    paragraph = re.sub(r"(?<=\w) +([,!?;]|\.(?! \.))(?=\s|$)", r"\1", paragraph)
    paragraph = re.sub(r"(?<=[^\s\d])\*+(?=\s|$)", "", paragraph)
    return re.sub(r"-{3,}", "--", paragraph).strip()


def is_heading(paragraph: str) -> bool:
    """A short line without a mark at its end."""
    item = paragraph.startswith("- ")
    return len(paragraph) < HEADING and not item and not ENDED.search(paragraph)


def without_empty_sections(paragraphs: list[str], dropped: Counter[str]) -> list[str]:
    """Without headings that no text follows. The first, the title, stays before another heading."""
    kept = []
    for i, paragraph in enumerate(paragraphs):
        last = i + 1 == len(paragraphs)
        empty = last or (i > 0 and is_heading(paragraphs[i + 1]))
        if is_heading(paragraph) and empty:
            dropped["a heading without text"] += 1
        else:
            kept.append(paragraph)
    return kept


def reason_against(kept: list[str], document: Document, kind: str) -> str:
    """Why the document is bad as a whole, or ""."""
    size = sum(map(len, kept))
    if size < LEAST:
        return "too short"
    if size < 0.4 * sum(map(len, document.paragraphs)):
        return "most of it dropped"
    if kind == "books":
        return ""

    items = [item for text in kept if text.startswith("- ") for item in text.split("\n")]
    if sum(len(item) for item in items if len(item) < 90) > 0.45 * size:
        return "a list"
    if sum(len(text) for text in kept if is_heading(text)) > 0.35 * size:
        return "headings"
    if any(LESSON.search(text) for text in kept):
        return "the plan of a lesson"
    if sum(len(re.findall(r"\w_\w|\w\(\)|::|=>|==", text)) for text in kept) > 0.003 * size:
        return "full of identifiers"
    return ""
