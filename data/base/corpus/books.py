"""Readers of books: Project Gutenberg's plain text and the XHTML of Standard Ebooks."""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from .document import Document, one_line

START = re.compile(r"^\*\*\* ?START OF.*$", re.MULTILINE)
END = re.compile(r"^(\*\*\* ?END OF|End of ([Tt]he )?Project Gutenberg).*$", re.MULTILINE)
SMALL_PRINT = re.compile(r"^\*END.{,5}THE SMALL PRINT.*$", re.MULTILINE)  # of old files
CHAPTER = re.compile(
    r"(CHAPTER|Chapter|BOOK|Book|PART|Part|CANTO|Canto|ACT|Act|LETTER|Letter|STAVE|VOLUME)"
    r"\.? ([IVXLC]+|\d+|[A-Z]{3,}|[A-Z][a-z]{2,})\b.{0,80}|[IVXLC]+\.?"
)
CHAPTERS = 3  # at least so many headings, or the book stays whole
NOTE = re.compile(
    r"\[(Footnote|Illustration|Transcriber)|\*|\(\*|Produced by |E-text prepared|(?i:Transcriber)"
    r"|(?i:by|contents)\.?$"
)
APPENDIX = re.compile(
    r"(NOTES( AND REFERENCES)?|(THE )?FOOTNOTES|ENDNOTES|GLOSSARY|APPENDIX|INDEX|BIBLIOGRAPHY)\b"
    r".{0,20}|Footnotes:?"
)  # what follows it is the editor's
VERSE_WIDTH = 60  # characters: longer lines are prose
EPUB_TYPE = "{http://www.idpf.org/2007/ops}type"
INVISIBLE = str.maketrans({"\u00a0": " ", "\u200a": " ", "\u2060": None, "\u00ad": None})


def read_gutenberg(file: Path) -> Iterator[Document]:
    """The chapters between the publisher's header and its licence.

    What comes before the first chapter (title page, contents, pictures) is left out, and so are an
    editor's notes, glossary and index.
    """
    text = decoded(file).replace("\r\n", "\n")
    begin = START.search(text) or SMALL_PRINT.search(text, 0, len(text) // 3)
    if begin:
        text = text[begin.end() :]
    end = END.search(text)
    if end:
        text = text[: end.start()]

    paragraphs = [block(lines) for lines in re.split(r"\n\s*\n", text.strip("\n"))]
    kept = [paragraph for paragraph in paragraphs if paragraph and not NOTE.match(paragraph)]
    kept = without_appendix(kept)
    starts = [i for i, paragraph in enumerate(kept) if CHAPTER.fullmatch(paragraph)]
    if len(starts) < CHAPTERS:
        yield Document(kept)
        return
    for first, after in zip(starts, [*starts[1:], len(kept)], strict=True):
        yield Document(kept[first:after])


def without_appendix(paragraphs: list[str]) -> list[str]:
    """Without the notes, the glossary or the index in the second half, and what follows them."""
    half = sum(map(len, paragraphs)) // 2
    before = 0
    for i, paragraph in enumerate(paragraphs):
        if before > half and APPENDIX.fullmatch(paragraph):
            return paragraphs[:i]
        before += len(paragraph)
    return paragraphs


def decoded(file: Path) -> str:
    """Old files of Gutenberg are in Latin-1."""
    data = file.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def block(text: str) -> str:
    """A paragraph of Gutenberg's: verse keeps its lines, prose becomes one line."""
    text = re.sub(r"(?<=\S) {2,}\d+[ \t]*$", "", text, flags=re.MULTILINE)  # numbers of lines
    lines = [one_line(line) for line in text.split("\n") if line.strip()]
    short = all(len(line) < VERSE_WIDTH for line in lines)
    indented = all(line.startswith(" ") for line in text.split("\n") if line.strip())
    joint = "\n" if len(lines) > 1 and (short or indented) else " "

    if joint == "\n":
        lines = [re.sub(r"^\d+ (?=[A-Z'])", "", line) for line in lines]  # numbers of verses
    joined = joint.join(lines)
    joined = re.sub(r"\[\d+\]|\[[A-Z]\]| *\{\d+[a-z]?\}", "", joined)  # footnote marks
    joined = re.sub(r"\b_|_\b", "", joined.replace("=", "").replace("~", ""))  # italics, bold
    return joined


def read_standard_ebook(file: Path) -> Iterator[Document]:
    """A chapter, if the file holds one: title page, imprint, dedication and notes are left out."""
    root = ElementTree.parse(file).getroot()
    body = next(element for element in root.iter() if local(element) == "body")
    kinds = " ".join(element.get(EPUB_TYPE, "") for element in [body, *body])
    if re.search(r"frontmatter|backmatter|titlepage|imprint|dedication|colophon", kinds):
        return
    yield Document([text for text in paragraphs_of(body) if text])


def paragraphs_of(element: Element) -> Iterator[str]:
    """The paragraphs, headings and verses below an element."""
    tag = local(element)
    if tag in ("p", "h1", "h2", "h3", "h4", "h5", "h6", "li", "dt", "dd"):
        yield inline(element)
    elif tag == "tr":  # a play: who speaks, what is said
        *speaker, said = [inline(cell) for cell in element]
        yield "".join(f"{name}. " for name in speaker if name) + said
    elif tag not in ("figure", "img", "header"):
        for child in element:
            yield from paragraphs_of(child)


def inline(element: Element) -> str:
    """The text of a paragraph. A <br/> begins a line; the marks of notes are left out."""
    pieces = [element.text or ""]
    for child in element:
        if local(child) == "br":
            pieces.append("\0")
        elif not is_mark(child):
            pieces.append(inline(child).replace("\n", "\0"))
        pieces.append(child.tail or "")

    text = "".join(pieces).translate(INVISIBLE)
    lines = [one_line(line) for line in text.split("\0")]
    return "\n".join(line for line in lines if line)


def is_mark(element: Element) -> bool:
    """The mark of a note, or the number of a verse."""
    number = local(element) == "sup" and (element.text or "").isdigit()
    return number or element.get(EPUB_TYPE) == "noteref"


def local(element: Element) -> str:
    """The tag without its namespace."""
    return str(element.tag).rpartition("}")[2]
