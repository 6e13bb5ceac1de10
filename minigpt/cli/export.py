"""`minigpt export`: a model as a folder for other programs."""

import argparse
from pathlib import Path

from .. import UserError
from ..config.system import quote
from .options import A_MODEL, NO_NAMES, Parser, chosen_model
from .terminal import print_message, write

MODELFILE = "Modelfile"  # of Ollama


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
    answerer = (
        "who answers, of a run on conversations (default: the most frequent); or the voice that "
        "Ollama writes in, of a run with --voices (default: none)"
    )
    add("--as", dest="answerer", metavar="NAME", help=answerer)


def run(given: argparse.Namespace) -> None:
    """Write a model for other programs; print the folder, and how to use it."""
    from ..data.dialogue.dialogue import MANNER
    from ..data.voices import find_voice, list_names
    from ..interop.chat import ChatFormat
    from ..interop.gguf import write_gguf
    from ..interop.huggingface import write_folder
    from ..interop.voices import voice_modelfile
    from ..runs.card import CARD, model_card
    from ..runs.find import export_name, find_model
    from ..runs.folder import check_free, new_folder

    source = chosen_model(given.run)
    name = export_name(source)
    out = Path(given.out or f"exports/{name}-{given.to}")
    check_free(out)

    found = find_model(source)
    config = found.glass.config
    weights = found.glass.weights
    dialogue = found.config.origin.dialogue if found.config else None
    voices = found.config.origin.voices if found.config else ()
    voice = None
    if voices and given.answerer is not None:
        voice = find_voice(voices, given.answerer)
        if given.to != "gguf":
            raise UserError(
                f"--as is for --to gguf: elsewhere a prompt begins with {voice}: itself"
            )
    elif given.answerer is not None and dialogue is None:
        raise UserError(NO_NAMES)
    chat = None
    if dialogue is not None:
        chat = ChatFormat(dialogue, found.tokenizer, given.answerer)

    with new_folder(out) as folder:
        if given.to == "gguf":
            file = f"{name}.gguf"
            write_gguf(
                folder / file, config, weights, tokenizer=found.tokenizer, name=name, chat=chat
            )
            shown = quote(str(out / file))
            use = f"llama-cli -m {shown} -p {quote('Once upon a time')}"
            modelfile = None
            if chat is not None:
                modelfile = chat.modelfile(file, config.context_length)
            elif voices:
                modelfile = voice_modelfile(file, voices, config.context_length, voice)
            if modelfile is not None:
                (folder / MODELFILE).write_text(modelfile, encoding="utf-8")
                use = f"ollama create {name} -f {quote(str(out / MODELFILE))}"
        else:
            write_folder(folder, config, weights, tokenizer=found.tokenizer, chat=chat)
            card = model_card(found, out.resolve().name)
            (folder / CARD).write_text(card, encoding="utf-8")
            use = f"transformers.AutoModelForCausalLM.from_pretrained({str(out)!r})"

    write(str(out))
    if chat is not None:
        print_message(f"it answers as {chat.answerer}, and the user is {chat.asker}: {MANNER}")
    if voices:
        line = f"a prompt that begins with a line such as {voices[0]}: is continued in that voice"
        print_message(f"its voices: {list_names(voices)}; {line}")
    print_message(f"to use it:  {use}")
