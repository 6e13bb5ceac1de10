"""`minigpt export`: a model as a folder for other programs."""

import argparse
import re
import shutil
from pathlib import Path

from .. import UserError
from ..system.platforms import quote, quote_path
from .options import Parser, add_model, chosen_model, typed_model
from .terminal import print_message, write

MODELFILE = "Modelfile"  # of Ollama


def options(parser: Parser) -> None:
    add = parser.add_argument
    add_model(parser)
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
    answerer = (
        "who answers, of a model that learned from conversations (default: the most frequent)"
    )
    add("--as", dest="answerer", metavar="NAME", help=answerer)


def run(given: argparse.Namespace) -> None:
    """Write a model for other programs; print the folder, and how to use it."""
    from ..data.dialogue import MANNER
    from ..interop.chat import ChatFormat
    from ..interop.gguf import sampling_options, write_gguf
    from ..interop.huggingface import write_folder
    from ..measure.card import CARD, model_card
    from ..runs.begin import check_free, new_folder
    from ..runs.find import export_name, find_model
    from ..runs.folder import GENERATION

    source = chosen_model(typed_model(given))
    name = export_name(source)
    out = Path(given.out or f"exports/{name}-{given.to}")
    check_free(out)

    found = find_model(source)
    config = found.glass.config
    weights = found.glass.weights
    usual = found.usual
    dialogue = found.config.origin.dialogue if found.config else None
    if given.answerer is not None and dialogue is None:
        raise UserError("--as is for a model that learned from conversations; this one did not")
    chat = None
    if dialogue is not None:
        chat = ChatFormat(dialogue, found.tokenizer, given.answerer)

    with new_folder(out) as folder:
        if given.to == "gguf":
            file = f"{name}.gguf"
            write_gguf(
                folder / file,
                config,
                weights,
                tokenizer=found.tokenizer,
                name=name,
                usual=usual,
                chat=chat,
            )
            shown = quote_path(out / file)
            options = sampling_options(usual)
            use = f"llama-cli -m {shown} {options} -p {quote('Once upon a time')}"
            if chat is not None:
                modelfile = chat.modelfile(file, config.context_length, usual)
                (folder / MODELFILE).write_text(modelfile, encoding="utf-8", newline="\n")
                use = f"ollama create {_ollama_name(name)} -f {quote_path(out / MODELFILE)}"
        else:
            write_folder(
                folder,
                config,
                weights,
                tokenizer=found.tokenizer,
                usual=usual,
                chat=chat,
            )
            card = model_card(found, out.resolve().name)
            (folder / CARD).write_text(card, encoding="utf-8")
            if (found.folder / GENERATION).exists():  # for minigpt itself
                shutil.copy(found.folder / GENERATION, folder)
            use = f"transformers.AutoModelForCausalLM.from_pretrained({str(out)!r})"

    write(str(out))
    if chat is not None:
        print_message(f"it answers as {chat.answerer}, and the user is {chat.asker}: {MANNER}")
    print_message(f"to use it:  {use}")


def _ollama_name(name: str) -> str:
    """A name that Ollama takes for a model."""
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-.") or "model"
