"""Folders in the Hugging Face layout: read as a model with its tokenizer, and written from one.

Only `config.json`, `model.safetensors` (whole or in shards) and the tokenizer's files are read from
a folder: data, never a pickle.
"""

import json
from pathlib import Path
from typing import Any

from .. import UserError
from ..config import PLAIN, GPTConfig, SampleConfig
from ..config.parts.norms import Array, NamedArrays
from ..system.safetensors_files import read_weights, write_tensors
from ..tokenizer import END_OF_TEXT, Tokenizer, has_tokenizer, load_tokenizer, tiktoken_tokenizer
from .chat import ChatFormat
from .mapping import (
    config_from_huggingface,
    config_to_huggingface,
    weights_from_huggingface,
    weights_to_huggingface,
)

_CONFIG = "config.json"
_WEIGHTS = "model.safetensors"
_SHARDS = "model-*-of-*.safetensors"
_GPT2_VOCAB_SIZE = 50_257


def read_folder(folder: Path) -> tuple[GPTConfig, dict[str, Array], Tokenizer]:
    """The config, the weights and the tokenizer of a folder. The error names what is missing,
    damaged or not supported."""
    data = _read_json(folder / _CONFIG)
    try:
        config = config_from_huggingface(data)
        weights = weights_from_huggingface(_read_weights(folder), config)
    except UserError as error:
        raise UserError(f"{folder}: {error}") from None
    return config, weights, read_tokenizer(folder, config.vocab_size)


def write_folder(
    folder: Path,
    config: GPTConfig,
    weights: NamedArrays,
    tokenizer: Tokenizer,
    *,
    usual: SampleConfig = PLAIN,
    chat: ChatFormat | None = None,
) -> None:
    """Fill an empty folder so that transformers loads it without code of ours, and samples as is
    `usual` with the model, as far as it can; with the template of `chat` if the model can be talked
    with.

    Raises:
        UserError: if the model is of no architecture that other programs run.
    """
    theirs = config_to_huggingface(config)
    write_tensors(weights_to_huggingface(weights, config), folder / _WEIGHTS)

    end = tokenizer.end_of_text
    ids: dict[str, Any] = {"bos_token_id": end, "eos_token_id": end}
    # transformers has nothing like the penalty on repeated passages, nor like those on presence and
    # frequency.
    generation = {
        "do_sample": usual.temperature > 0.0,
        "temperature": usual.temperature or 1.0,  # where the likeliest is taken it wants no 0
        "top_k": usual.top_k or 0,  # all of them; transformers' own default is 50
        "top_p": usual.top_p or 1.0,
        "min_p": usual.min_p,
        "repetition_penalty": usual.repetition_penalty,
        "max_new_tokens": max(config.context_length // 2, 1),
        "pad_token_id": end,
    }
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END_OF_TEXT,
        "eos_token": END_OF_TEXT,
        "pad_token": END_OF_TEXT,
        "model_max_length": config.context_length,
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # the name of a special token in a text is text, as here
    }
    if chat is not None:
        tokenizer_config["chat_template"] = chat.jinja()
    if tokenizer.end_of_turn is not None:
        # Where a template writes the tokens around a turn as text, they have to be read as tokens.
        tokenizer_config["split_special_tokens"] = False
        ids["eos_token_id"] = [end, tokenizer.end_of_turn]
    _write_json(theirs | ids, folder / _CONFIG)
    _write_json(generation | ids, folder / "generation_config.json")
    _write_json(tokenizer_config, folder / "tokenizer_config.json")
    (folder / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")


def read_tokenizer(folder: Path, vocab_size: int) -> Tokenizer:
    """The tokenizer of a folder whose model has `vocab_size` tokens, from its files; without these,
    a model with GPT-2's vocabulary gets tiktoken's. Ids that have no token become special tokens.
    """
    if not has_tokenizer(folder) and vocab_size == _GPT2_VOCAB_SIZE:
        return tiktoken_tokenizer("gpt2")

    tokenizer = load_tokenizer(folder, vocab_size)
    if (found := tokenizer.vocab_size) != vocab_size:
        problem = f"{found} tokens but the model's vocab_size is {vocab_size}"
        raise UserError(f"the tokenizer of {folder} has {problem}")
    return tokenizer


def _read_weights(folder: Path) -> dict[str, Array]:
    if (folder / _WEIGHTS).exists():
        return read_weights(folder / _WEIGHTS)
    weights: dict[str, Array] = {}
    for shard in folder.glob(_SHARDS):
        weights |= read_weights(shard)
    if not weights:
        raise UserError(
            f"it has no {_WEIGHTS} and no {_SHARDS}; a pickle, such as *.bin, can run code and is "
            "not read; convert it where you trust it: "
            "transformers.AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(FOLDER)"
        )
    return weights


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UserError(f"{path} is damaged: it is not JSON") from None
    if not isinstance(data, dict):
        raise UserError(f"{path} is damaged: it is not a JSON object")
    return data


def _write_json(data: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
