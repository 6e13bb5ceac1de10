"""`minigpt serve`: the OpenAI API on a trained model."""

import argparse
import logging
import os

from .. import UserError
from ..serve.settings import ServeConfig
from ..system.platforms import how_to_install
from .options import Parser, add_fields, add_model, chosen_model, given_fields, typed_model


def options(parser: Parser) -> None:
    add_model(parser)
    server = add_fields(parser, ServeConfig, "server", skip=("answerer",))
    field = ServeConfig.__dataclass_fields__["answerer"]
    answerer = f"{field.metadata['help']} (default: the most frequent speaker)"
    server.add_argument(
        "--as", dest="answerer", metavar="NAME", default=argparse.SUPPRESS, help=answerer
    )


def run(given: argparse.Namespace) -> None:
    """Serve until a signal comes."""
    config = ServeConfig(**given_fields(given, ServeConfig))
    # Beside other programs, a team of threads that waits for its last member is slower than one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from ..serve.app import serve
    except ImportError:
        raise UserError(f"minigpt serve needs: {how_to_install('serve')}") from None
    from ..runs.find import find_model, model_name

    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    source = chosen_model(typed_model(given))
    serve(find_model(source), model_name(source), config)
