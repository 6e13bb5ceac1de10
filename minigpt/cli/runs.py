"""`minigpt runs`: the runs there are, newest first."""

import argparse
import json

from .. import UserError
from ..runs.commands import command
from .options import Parser
from .terminal import print_message, write


def options(parser: Parser) -> None:
    parser.add_argument(
        "folder", nargs="?", default="runs", help="the folder that the runs are in (default: runs)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print a JSON record for each run, one a line"
    )


def run(given: argparse.Namespace) -> None:
    """Print a line for each run, or a JSON record."""
    from ..runs.find import all_runs

    runs = all_runs(given.folder)
    for one in runs:
        try:
            write(json.dumps(one.about()) if given.json else repr(one))
        except UserError as error:
            print_message(str(error))
    if not runs:
        print_message(f"no run in {given.folder}/ yet; train one first: {command('train')} my.txt")
