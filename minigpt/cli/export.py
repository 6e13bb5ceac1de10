"""`minigpt export` and `minigpt import`: a model as a folder for other programs, and back.

A folder is built under another name and renamed when it is whole. Only a new or an empty folder is
written to.
"""

import argparse
from pathlib import Path

from .. import UserError
from ..config import ExportConfig, TextConfig, TrainConfig
from .options import Parser, add_fields, given_fields
from .terminal import say, write


def add_options(parser: Parser) -> None:
    """The options of `minigpt export`."""
    parser.add_argument("run", nargs="?", help="the run to export (default: the newest)")
    add_fields(parser, ExportConfig, "export")


def run(given: argparse.Namespace) -> None:
    """Write a model for other programs; print the folder, and how to use it."""
    config = ExportConfig(**given_fields(given, ExportConfig))
    from ..interop.gguf import check_gguf, write_gguf
    from ..interop.huggingface import model_card, write_folder
    from ..runs import (
        METRICS,
        check_free,
        find_model,
        model_name,
        new_folder,
        newest_run,
        read_metrics,
    )

    source = given.run if given.run is not None else newest_run()
    name = model_name(source)
    out = Path(config.out or f"exports/{name}-{config.to}")
    check_free(out)
    found = find_model(source)
    if config.to == "gguf":
        file = f"{name}-{config.dtype}.gguf"
        check_gguf(found.tokenizer)
        with new_folder(out) as folder:
            write_gguf(folder / file, found.model, found.tokenizer, name, config.dtype)
        use = f"llama-cli -m {out / file} -p 'Once upon a time'"
    else:
        card = model_card(name, found.model.config, read_metrics(found.folder / METRICS))
        with new_folder(out) as folder:
            write_folder(folder, found.model, found.tokenizer, card)
        use = f"transformers.AutoModelForCausalLM.from_pretrained({str(out)!r})"
    write(str(out))
    say(f"to use it:  {use}")


def add_import_options(parser: Parser) -> None:
    """The options of `minigpt import`."""
    parser.add_argument("model", help="a folder with config.json and safetensors, or hf:NAME")
    parser.add_argument("--out", metavar="FOLDER", help="the run's folder (default: runs/MODEL)")


def run_import(given: argparse.Namespace) -> None:
    """Make a run of a folder in the Hugging Face layout, or of a model of the hub; print it."""
    from ..interop.huggingface import is_huggingface_folder
    from ..runs import (
        CONFIG,
        TOKENIZER,
        WEIGHTS,
        RunConfig,
        check_free,
        find_model,
        free_name,
        model_name,
        new_folder,
        save_weights,
        write_text,
    )

    source = given.model
    out = Path(given.out) if given.out is not None else free_name(model_name(source))
    check_free(out)
    found = find_model(source)
    if not is_huggingface_folder(found.folder):
        raise UserError(f"{source} is a run already")
    # Its text and training are unknown; all that is known is the model it came from.
    text = TextConfig(files=(source,), init=source)
    config = RunConfig(found.model.config, TrainConfig(), text)
    with new_folder(out) as folder:
        write_text(found.tokenizer.to_json(), folder / TOKENIZER)
        save_weights(found.model, folder / WEIGHTS)
        write_text(config.to_json(), folder / CONFIG)
    write(str(out))
