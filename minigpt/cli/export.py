"""`minigpt export`: a model as a folder for other programs."""

import argparse
import shlex
from pathlib import Path
from typing import Any

from .. import UserError
from .options import Parser
from .terminal import say, write


def options(parser: Parser) -> None:
    add, types = parser.add_argument, ("float32", "float16", "q8_0")
    add("run", nargs="?", help="the run to export (default: the newest)")
    add("--to", choices=("hf", "gguf"), default="hf", help="for transformers, or for llama.cpp")
    add("--out", metavar="FOLDER", help="the new folder (default: exports/RUN-hf or -gguf)")
    add("--dtype", choices=types, help="type of the matrices in gguf (default: float32)")


def run(given: argparse.Namespace) -> None:
    """Write a model for other programs; print the folder, and how to use it."""
    if given.dtype and given.to != "gguf":
        raise UserError("--dtype is for --to gguf; a folder for transformers holds float32")
    from .. import runs
    from ..interop.gguf import write_gguf
    from ..interop.huggingface import write_folder

    source = given.run if given.run is not None else runs.newest_run()
    name = runs.model_name(source)
    out = Path(given.out or f"exports/{name}-{given.to}")
    runs.check_free(out)
    found = runs.find_model(source)
    config, weights = found.glass.config, found.glass.weights
    dtype: Any = given.dtype or "float32"
    file = out / f"{name}-{dtype}.gguf"
    with runs.new_folder(out) as folder:
        if given.to == "gguf":
            write_gguf(folder / file.name, config, weights, found.tokenizer, name, dtype)
            use = f"llama-cli -m {shlex.quote(str(file))} -p 'Once upon a time'"
        else:
            write_folder(folder, config, weights, found.tokenizer)
            use = f"transformers.AutoModelForCausalLM.from_pretrained({str(out)!r})"
    write(str(out))
    say(f"to use it:  {use}")
