"""`minigpt read`: prints what would be trained on, and a table of what was read and left out."""

import argparse
from typing import TYPE_CHECKING

from ..config import ReadingConfig
from .options import Parser, add_fields, given_fields
from .terminal import print_message, write

if TYPE_CHECKING:
    from ..data.corpus import Corpus


def options(parser: Parser) -> None:
    """What can be typed."""
    files = "files, folders, patterns ('a/*.docx'), or - for standard input"
    parser.add_argument("files", nargs="+", help=files)
    parser.add_argument("--summary", action="store_true", help="print the table alone")
    add_fields(parser, ReadingConfig, "reading")


def run(given: argparse.Namespace) -> None:
    """Print the text to standard output and the table to standard error."""
    from ..data.corpus import Corpus
    from ..data.files import each_once, find_files
    from ..data.readers.document import documents_read, table
    from ..data.source import check_names, check_text_field
    from ..training.interruption import orderly_exit

    reading = ReadingConfig(**given_fields(given, ReadingConfig))
    with orderly_exit():  # there may be a copy of standard input to remove
        files = each_once(find_files(tuple(given.files), print_message, reading))
        check_text_field(files, reading)
        corpus, reports = Corpus(files, reading).readable()
        check_names(corpus)
        if not given.summary:
            _print_text(corpus)

    for line in table(reports):
        print_message(line)
    size = f"{corpus.scan.text_bytes:,} bytes"
    print_message(f"together: {documents_read(reports)}, {size} in UTF-8")


def _print_text(corpus: "Corpus") -> None:
    """Print the documents, with a line <|endoftext|> between them."""
    from ..tokenizer import END_OF_TEXT

    last = 0
    is_at_line_end = True
    for piece in corpus.pieces():
        if piece.number != last:
            if not is_at_line_end:
                write("")
            write(f"\n{END_OF_TEXT}\n")
        write(piece.text, end="")
        last = piece.number
        is_at_line_end = piece.text.endswith("\n")
    if not is_at_line_end:
        write("")
