"""The readers, by the name that SOURCES.md gives them."""

from collections.abc import Callable, Iterator
from pathlib import Path

from . import books, dialogues, markup, textbooks
from .document import Document

READERS: dict[str, Callable[[Path], Iterator[Document]]] = {
    "gutenberg": books.read_gutenberg,
    "standard-ebooks": books.read_standard_ebook,
    "markdown": markup.read_markdown,
    "rst": markup.read_rst,
    "storybook": markup.read_storybook,
    "openstax": textbooks.read_openstax,
    "medquad": textbooks.read_medquad,
    "zip": textbooks.read_zip,
    "qmsum": dialogues.read_qmsum,
    "taskmaster": dialogues.read_taskmaster,
    "aci-bench": dialogues.read_aci_bench,
    "mts-dialog": dialogues.read_mts_dialog,
    "spacelog": dialogues.read_spacelog,
}
