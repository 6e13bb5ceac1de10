"""What `minigpt export` and `minigpt import` do from start to end.

A folder is built beside its place and renamed when it is whole; a place that holds something
already is refused.
"""

import sys
from pathlib import Path

from .. import UserError
from ..config import ExportConfig, TextConfig, TrainConfig
from ..interop.gguf import check_gguf, write_gguf
from ..interop.huggingface import is_huggingface_folder, model_card, write_folder
from ..runs import (
    CONFIG,
    METRICS,
    TOKENIZER,
    WEIGHTS,
    RunConfig,
    check_free,
    find_model,
    free_name,
    model_name,
    new_folder,
    newest_run,
    read_metrics,
    save_weights,
    write_text,
)


def export_model(run: str | Path | None, config: ExportConfig) -> Path:
    """Write a model as a folder for other programs.

    Args:
        run: anything that :func:`minigpt.load` takes, or None for the newest run.
        config: for which programs, and where to.

    Returns:
        The new folder.

    Raises:
        UserError: if the model cannot be read or written, or the place is taken.
    """
    source = run if run is not None else newest_run()
    name = model_name(source)
    out = Path(config.out or f"exports/{name}-{config.to}")
    check_free(out)
    found = find_model(source)
    if config.to == "gguf":
        check_gguf(found.tokenizer)
    with new_folder(out) as folder:
        if config.to == "gguf":
            file = folder / f"{name}-{config.dtype}.gguf"
            write_gguf(file, found.model, found.tokenizer, name, config.dtype)
        else:
            card = model_card(name, found.model.config, read_metrics(found.folder / METRICS))
            write_folder(folder, found.model, found.tokenizer, card)
    return out


def say_exported(out: Path, config: ExportConfig) -> None:
    """The folder on standard output; how to use it on standard error."""
    print(out, flush=True)
    if config.to == "gguf":
        file = next(out.glob("*.gguf"))
        hint = f"llama-cli -m {file} -p 'Once upon a time'"
    else:
        hint = f"transformers.AutoModelForCausalLM.from_pretrained({str(out)!r})"
    print(f"to use it:  {hint}", file=sys.stderr, flush=True)


def import_model(source: str | Path, out: str | Path | None) -> Path:
    """Make a run of a folder in the Hugging Face layout, or of a model of the hub.

    Args:
        source: to read.
        out: the run's folder, or None for a new one in runs/ of the same name.

    Returns:
        The run's folder.

    Raises:
        UserError: if the model cannot be read, or the place is taken.
    """
    out = Path(out) if out is not None else free_name(model_name(source))
    check_free(out)
    found = find_model(source)
    if not is_huggingface_folder(found.folder):
        raise UserError(f"{source} is a run already")
    # Its text and training are not known; that it began as another model is.
    text = TextConfig(files=(str(source),), init=str(source))
    config = RunConfig(found.model.config, TrainConfig(), text)
    with new_folder(out) as run:
        write_text(found.tokenizer.to_json(), run / TOKENIZER)
        save_weights(found.model, run / WEIGHTS)
        write_text(config.to_json(), run / CONFIG)
    return out
