"""Readers of textbooks, questions and speeches: OpenStax CNXML, MedQuAD XML, zip files of NLTK."""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from .books import local
from .document import Document, one_line

NOT_READ = set("metadata figure table exercise equation media glossary footnote image math".split())
TASKS = re.compile(
    r"objectives|key-|review|exercise|multiple-choice|problem|question|homework|reference"
    r"|further|summary|glossary|suggested|works-cited|bibliography|assessment"
)
SYMPTOMS = "The Human Phenotype Ontology"  # begins a table of symptoms and percentages


def read_openstax(file: Path) -> Iterator[Document]:
    """A module of a textbook, without its pictures, tables, aims, exercises and references."""
    root = ElementTree.parse(file).getroot()
    title = next((one_line(text_of(child)) for child in root if local(child) == "title"), "")
    content = next(element for element in root.iter() if local(element) == "content")
    paragraphs = [title, *cnxml_paragraphs(content)]
    yield Document([paragraph for paragraph in paragraphs if paragraph])


def cnxml_paragraphs(element: Element) -> Iterator[str]:
    """The titles, paragraphs and lists below an element."""
    for child in element:
        tag = local(child)
        if tag in NOT_READ or TASKS.search(child.get("class", "")):
            continue

        if tag in ("title", "para"):
            yield one_line(text_of(child))
            yield from lists(child)
        elif tag == "list":
            yield items(child)
        else:
            yield from cnxml_paragraphs(child)


def lists(paragraph: Element) -> Iterator[str]:
    """The lists inside a paragraph."""
    for child in paragraph:
        if local(child) == "list":
            yield items(child)


def items(element: Element) -> str:
    """A list, an item a line."""
    texts = [one_line(text_of(item)) for item in element if local(item) == "item"]
    return "\n".join(f"- {text}" for text in texts if text)


def text_of(element: Element) -> str:
    """The text below an element, without lists, notes, pictures and formulas."""
    pieces = [element.text or ""]
    for child in element:
        tag = local(child)
        if tag == "newline":
            pieces.append(" ")
        elif tag not in NOT_READ and tag != "list":
            pieces.append(text_of(child))
        pieces.append(child.tail or "")
    return "".join(pieces)


def read_medquad(file: Path) -> Iterator[Document]:
    """Questions on one illness, each with its answer; those without an answer are left out."""
    paragraphs: list[str] = []
    for pair in ElementTree.parse(file).getroot().iter("QAPair"):
        question = one_line(pair.findtext("Question", ""))
        answer = pair.findtext("Answer", "").partition(SYMPTOMS)[0]
        if answer.strip():
            paragraphs.append(re.sub(r"[ ?]+$", "?", question.replace("(are) ", "")))
            paragraphs += answer_paragraphs(answer)
    if paragraphs:
        yield Document(paragraphs)


def answer_paragraphs(answer: str) -> Iterator[str]:
    """The paragraphs of an answer; " - " in a line begins an item of a list."""
    for line in answer.split("\n"):
        first, *rest = re.split(r"\s+-\s{1,4}(?=[A-Z])", " " + line.rstrip())
        text = one_line(first)
        if text and text != "Key Points":
            yield text
        if rest:
            yield "\n".join(f"- {one_line(item)}" for item in rest)


def read_zip(file: Path) -> Iterator[Document]:
    """The text files of a zip file, a document each; paragraphs are separated by empty lines."""
    with zipfile.ZipFile(file) as archive:
        names = [name for name in sorted(archive.namelist()) if name.endswith(".txt")]
        texts = [archive.read(name) for name in names if "README" not in name]
    for data in texts:
        text = data.decode("utf-8", errors="replace").replace("\r\n", "\n")
        paragraphs = [one_line(block) for block in re.split(r"\n\s*\n", text)]
        yield Document([paragraph for paragraph in paragraphs if paragraph])
