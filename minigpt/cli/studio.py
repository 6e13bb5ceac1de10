"""`minigpt studio`: a window in the browser, to train on a text and to use what comes of it."""

import argparse
from pathlib import Path

from .. import UserError
from ..system.platforms import how_to_install
from .options import Parser


def options(parser: Parser) -> None:
    """What can be typed."""
    parser.add_argument(
        "--port", type=_port, metavar="N", help="port to listen at (default: 8765, or any free one)"
    )
    parser.add_argument(
        "--lesson",
        dest="is_lesson",
        action="store_true",
        help="train as train --lesson does: the same text and minutes give the same numbers",
    )
    parser.add_argument(
        "--no-browser",
        dest="opens_browser",
        action="store_false",
        help="print the address alone, open no browser",
    )


def _port(typed: str) -> int:
    try:
        port = int(typed)
    except ValueError:
        port = -1
    if not 0 <= port < 1 << 16:
        raise argparse.ArgumentTypeError("must be between 0 and 65,535")
    return port


def run(given: argparse.Namespace) -> None:
    """Open the studio of the current folder until it is closed."""
    try:
        from ..studio.opening import open_studio
    except ImportError:
        raise UserError(f"minigpt studio needs: {how_to_install('studio')}") from None
    from ..studio.workspace import Workspace

    open_studio(
        Workspace(Path.cwd()),
        port=given.port,
        opens_browser=given.opens_browser,
        is_lesson=given.is_lesson,
    )
