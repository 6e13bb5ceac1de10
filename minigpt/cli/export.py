"""`minigpt export`: a model as a folder for other programs."""

import argparse
import shlex
from pathlib import Path

from .options import A_MODEL, Parser, chosen_model
from .terminal import print_message, write


def options(parser: Parser) -> None:
    add = parser.add_argument
    add("run", nargs="?", help=A_MODEL)
    add(
        "--to",
        choices=("hf", "gguf"),
        default="hf",
        help="hf: for transformers; gguf: for llama.cpp (default: hf)",
    )
    add(
        "--out",
        metavar="FOLDER",
        help="the new folder (default: exports/RUN-hf or exports/RUN-gguf)",
    )


def run(given: argparse.Namespace) -> None:
    """Write a model for other programs; print the folder, and how to use it."""
    from ..interop.gguf import write_gguf
    from ..interop.huggingface import write_folder
    from ..runs.card import CARD, model_card
    from ..runs.find import find_model, model_name
    from ..runs.folder import check_free, new_folder

    source = chosen_model(given.run)
    name = model_name(source)
    out = Path(given.out or f"exports/{name}-{given.to}")
    check_free(out)

    found = find_model(source)
    config = found.glass.config
    weights = found.glass.weights
    with new_folder(out) as folder:
        if given.to == "gguf":
            file = f"{name}.gguf"
            write_gguf(folder / file, config, weights, tokenizer=found.tokenizer, name=name)
            shown = shlex.quote(str(out / file))
            use = f"llama-cli -m {shown} -p 'Once upon a time'"
        else:
            write_folder(folder, config, weights, tokenizer=found.tokenizer)
            card = model_card(found, out.resolve().name)
            (folder / CARD).write_text(card, encoding="utf-8")
            use = f"transformers.AutoModelForCausalLM.from_pretrained({str(out)!r})"

    write(str(out))
    print_message(f"to use it:  {use}")
