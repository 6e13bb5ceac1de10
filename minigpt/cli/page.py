"""`minigpt page`: one HTML file that holds a model, writes with it and shows it think."""

import argparse
import os
import webbrowser
from pathlib import Path

from .. import UserError
from .options import Parser, add_model, chosen_model, typed_model
from .terminal import write


def options(parser: Parser) -> None:
    add = parser.add_argument
    add_model(parser)
    add("--out", metavar="FILE", help="the file to write (default: page.html in the run's folder)")
    stored = "type of the weights (default: the smallest that raises the loss by at most 0.1%%)"
    add("--weights", choices=("int8", "float16", "float32"), help=stored)
    called = "what the page calls the text that the model has read (default: the name of its file)"
    add("--text-name", metavar="NAME", help=called)
    add("--open", action="store_true", help="open the page in a browser")


def run(given: argparse.Namespace) -> None:
    """Write the page and print its name."""
    from ..page.build import build_page
    from ..runs.base import is_base
    from ..runs.find import find_model, model_name
    from ..runs.folder import PAGE, kept_page
    from ..system.atomic import write_text

    source = chosen_model(typed_model(given))
    found = find_model(source)
    name = model_name(source)
    if given.out:
        out = Path(given.out)
    elif found.config and not is_base(found.folder):  # a run of the user's
        out = found.folder / PAGE if found.step is None else kept_page(found.folder, found.step)
    else:
        out = Path("page.html")
    if out.is_file() and out.suffix not in (".html", ".htm"):  # the run's weights, perhaps
        raise UserError(f"{out} exists and is not a page; choose another --out")

    page = build_page(found, name, weights=given.weights, text_name=given.text_name)
    write_text(page, out)
    megabytes = os.path.getsize(out) / 1e6
    write(f"{out}: {megabytes:.1f} MB")
    if given.open:
        webbrowser.open(out.resolve().as_uri())
