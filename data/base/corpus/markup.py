"""Readers of articles and of story books: Markdown, reStructuredText.

Code and tables go. A sentence that introduces one ("Then run:") goes with it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from .document import Document, one_line

GAP = "\0"  # where code or a table was
ITEM = re.compile(r"\s{0,12}([-*+]|\d{1,3}[.)])\s+")
FREE = re.compile(r"\* License: \[(CC-BY|Public Domain)\]")
LEFT_OUT = re.compile(r"(References|Copyright|Footnotes|Table of contents|Contents)\W*", re.I)


def read_markdown(file: Path) -> Iterator[Document]:
    """One article."""
    yield Document(markdown_paragraphs(file.read_text(encoding="utf-8", errors="replace")))


def markdown_paragraphs(text: str) -> list[str]:
    """Headings, paragraphs and lists of a Markdown text, without its code, tables and links."""
    text = re.sub(r"\A(---|\+\+\+)\n.*?\n\1\n", "", text.replace("\r\n", "\n"), flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->|\{%.*?%\}|\{\{.*?\}\}|<%.*?%>", "", text, flags=re.DOTALL)
    text = re.sub(r"^\s*(```+|~~~+).*?(^\s*\1\s*$|\Z)", f"\n{GAP}\n", text, flags=re.M | re.S)
    text = re.sub(r"<(pre|table|style|script)\b.*?</\1>", f"\n{GAP}\n", text, flags=re.S)
    text = re.sub(r"^(#{1,6} .*)$", r"\n\1\n", text, flags=re.MULTILINE)
    text = re.sub(r"^(.+)\n(===+|---+)\s*$", r"\n\1\n", text, flags=re.MULTILINE)

    blocks = [markdown_block(lines) for lines in re.split(r"\n\s*\n", text)]
    return without_sections(close_gaps([block for block in blocks if block]))


def markdown_block(text: str) -> str:
    """A block between empty lines: its text, GAP for code and tables, "" for nothing."""
    lines = [re.sub(r"^\s{0,3}(> ?)+", "", line) for line in text.split("\n") if line.strip()]
    if not lines or all(
        re.match(r"\[[^\]]+\]: |\W*$|\{:|import .+ from ", line.strip()) for line in lines
    ):
        return GAP if GAP in text else ""
    if all(line.startswith(("    ", "\t")) for line in lines) and not ITEM.match(lines[0]):
        return GAP
    if all("|" in line for line in lines):
        return GAP

    if ITEM.match(lines[0]):
        return "\n".join(f"- {inline_markdown(item)}" for item in items(lines))
    return inline_markdown(" ".join(lines))


def items(lines: list[str]) -> Iterator[str]:
    """The items of a list, each with the lines that continue it."""
    current = ""
    for line in lines:
        begin = ITEM.match(line)
        if begin:
            if current:
                yield current
            current = line[begin.end() :]
        else:
            current += " " + line.strip()
    yield current


def inline_markdown(text: str) -> str:
    """A paragraph without marks: emphasis, code, links, pictures, tags, footnotes."""
    text = re.sub(r"!\[[^\]]*\](\([^)]*\)|\[[^\]]*\])", "", text)
    text = re.sub(r"\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])", r"\1", text)
    text = re.sub(r"\[\^[^\]]+\]:?|\{[:#.][^}]*\}", "", text)
    text = re.sub(r"^#+\s*|\s+#+$", "", text.strip())
    text = re.sub(r"</?[A-Za-z][^<>]*>", "", text)
    text = re.sub(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1", r"\2", text)
    text = re.sub(r"(?<!\w)([*_])(?=\S)(.+?)(?<=\S)\1(?!\w)", r"\2", text)
    text = text.replace("`", "").replace("\\", "")
    return one_line(text)


def close_gaps(paragraphs: list[str]) -> list[str]:
    """The paragraphs without GAPs. One that ends with ":" before a GAP loses its last sentence."""
    kept: list[str] = []
    for paragraph in paragraphs:
        if paragraph != GAP:
            kept.append(paragraph.replace(GAP, ""))
        elif kept and kept[-1].endswith(":"):
            sentences = re.match(r"(.+[.!?]) [^.!?]*:$", kept.pop(), re.DOTALL)
            if sentences:
                kept.append(sentences[1])
    return kept


def without_sections(paragraphs: list[str]) -> list[str]:
    """Without a section of references and what follows it."""
    for i, paragraph in enumerate(paragraphs):
        if LEFT_OUT.fullmatch(paragraph) and i > len(paragraphs) // 2:
            return paragraphs[:i]
    return [paragraph for paragraph in paragraphs if not LEFT_OUT.fullmatch(paragraph)]


def read_rst(file: Path) -> Iterator[Document]:
    """One article in reStructuredText, without the fields at its beginning."""
    text = file.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
    text = re.sub(r"\A([\w-]+:.*\n([ \t]+.*\n)*)+", "", text)
    text = re.sub(r"^(.*)\n([=\-~^\"'+*#])\2{2,}\s*$", r"\n\1\n", text, flags=re.MULTILINE)

    paragraphs: list[str] = []
    inside = False  # what is indented after a directive or "::"
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.split("\n") if line.strip()]
        if not lines:
            continue
        if lines[0].startswith((" ", "\t")) and inside:
            continue
        inside = lines[0].startswith("..") or lines[-1].rstrip().endswith("::")

        if lines[0].startswith("..") or re.match(r"[+=|][-=|+ ]+", lines[0]):
            paragraphs.append(GAP)
        elif ITEM.match(lines[0]):
            paragraphs.append("\n".join(f"- {inline_rst(item)}" for item in items(lines)))
        else:
            paragraphs.append(inline_rst(" ".join(lines)))
        if lines[-1].rstrip().endswith("::"):
            paragraphs.append(GAP)
    yield Document(
        without_sections(close_gaps([paragraph for paragraph in paragraphs if paragraph]))
    )


def inline_rst(text: str) -> str:
    """A paragraph without roles, links, emphasis and footnote marks."""
    text = re.sub(r":[\w:+-]+:`~?([^`<]+?)(\s*<[^>]*>)?`", r"\1", text)
    text = re.sub(r"`([^`<]+?)\s*<[^>]*>`_+", r"\1", text)
    text = re.sub(r"\[[\w#*]+\]_|\|[^|]+\|", "", text)
    text = re.sub(r"``(.+?)``|`(.+?)`_*|\*\*(.+?)\*\*|\*(\S.*?)\*", inner, text)
    return one_line(re.sub(r"(\w)__?(?=\W|$)", r"\1", text).replace("::", ":"))


def inner(match: re.Match[str]) -> str:
    """What stands between the marks."""
    return next(group for group in match.groups() if group)


def read_storybook(file: Path) -> Iterator[Document]:
    """A story for children, if its own licence is free: a page is a paragraph."""
    text = file.read_text(encoding="utf-8", errors="replace")
    if not FREE.search(text):
        return
    pages = re.split(r"^##.*$", text, flags=re.MULTILINE)
    paragraphs = [one_line(page).removeprefix("# ") for page in pages if "* License:" not in page]
    yield Document([paragraph for paragraph in paragraphs if paragraph])
