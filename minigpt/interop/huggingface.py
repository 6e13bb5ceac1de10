"""Folders in the Hugging Face layout: read as a GPT with its tokenizer, written from one.

Read are `config.json`, `model.safetensors` (whole or in shards) and the tokenizer's files: data
only, never a pickle.
"""

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from .. import UserError
from ..config import GPTConfig, SampleConfig
from ..model import GPT
from ..tokenizer import END_OF_TEXT, Tokenizer
from .architectures import config_from_huggingface, config_to_huggingface
from .safetensors_files import read_tensors, write_tensors
from .tokenizer_import import read_tokenizer
from .weights import weights_from_huggingface, weights_to_huggingface

CONFIG, WEIGHTS = "config.json", "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
_PICKLES = ("*.bin", "*.bin.index.json", "*.pt", "*.pth", "*.ckpt")


def is_huggingface_folder(folder: Path) -> bool:
    """Whether the folder's config.json is in transformers' format."""
    if not (folder / CONFIG).is_file():
        return False
    try:
        data = _read_json(folder / CONFIG)
    except UserError:
        return False
    return "model_type" in data or "architectures" in data


def read_folder(folder: Path) -> tuple[GPT, Tokenizer]:
    """The model and the tokenizer of a folder.

    Raises:
        UserError: if a file is missing or damaged, the architecture or something it asks for
            is not supported, or the weights do not fit the config.
    """
    data = _read_json(folder / CONFIG)
    try:
        config = config_from_huggingface(data)
    except UserError as error:
        raise UserError(f"{folder / CONFIG}: {error}") from None
    try:
        state = weights_from_huggingface(_read_weights(folder), config)
    except UserError as error:
        raise UserError(f"{folder}: {error}") from None
    tokenizer = read_tokenizer(folder, config.vocab_size)
    model = GPT(config)
    model.load_state_dict(state)  # float16 and bfloat16 become float32
    return model.eval(), tokenizer


def write_folder(folder: Path, model: GPT, tokenizer: Tokenizer, card: str) -> None:
    """Write a folder that transformers loads as it is.

    Args:
        folder: exists and is empty.
        model: to write.
        tokenizer: its own.
        card: the text of README.md.
    """
    config, end = model.config, tokenizer.end_of_text
    weights = weights_to_huggingface(model.state_dict(), config)
    write_tensors({name: tensor.cpu() for name, tensor in weights.items()}, folder / WEIGHTS)
    ids = {"bos_token_id": end, "eos_token_id": end}
    _write_json(config_to_huggingface(config) | ids, folder / CONFIG)
    _write_json(
        _generation_config(config) | ids | {"pad_token_id": end}, folder / "generation_config.json"
    )
    (folder / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
    _write_json(_tokenizer_config(config), folder / "tokenizer_config.json")
    (folder / "README.md").write_text(card, encoding="utf-8")


def _generation_config(config: GPTConfig) -> dict[str, Any]:
    """Generate as `generate.py` does by default."""
    return {
        "do_sample": True,
        "temperature": SampleConfig.temperature,
        "top_k": 0,  # all of them; transformers' own default is 50
        "max_new_tokens": max(config.context_length // 2, 1),
    }


def _tokenizer_config(config: GPTConfig) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END_OF_TEXT,
        "eos_token": END_OF_TEXT,
        "pad_token": END_OF_TEXT,
        "model_max_length": config.context_length,
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # one that is written out in a text is text, as with us
    }


def _read_weights(folder: Path) -> dict[str, Tensor]:
    if (folder / WEIGHTS).exists():
        return read_tensors(folder / WEIGHTS)
    if (folder / INDEX).exists():
        tensors: dict[str, Tensor] = {}
        for name in _shards(folder / INDEX):
            tensors |= read_tensors(folder / name)
        return tensors
    pickles = sorted(file.name for kind in _PICKLES for file in folder.glob(kind))
    if pickles:
        raise UserError(
            f"its weights are a pickle ({pickles[0]}), which can run code and is not read; convert "
            "it where you trust it: transformers.AutoModelForCausalLM.from_pretrained(FOLDER)"
            ".save_pretrained(FOLDER)"
        )
    raise UserError(f"it has no {WEIGHTS} and no {INDEX}")


def _shards(index: Path) -> list[str]:
    weight_map = _read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise UserError(f"{INDEX} is damaged: it has no weight_map")
    names = sorted(set(map(str, weight_map.values())))
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise UserError(f"{INDEX} names {name!r}, which is no safetensors file of the folder")
    return names


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path.parent} has no {path.name}") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UserError(f"{path} is damaged: it is not JSON") from None
    if not isinstance(data, dict):
        raise UserError(f"{path} is damaged: it is no JSON object")
    return data


def _write_json(data: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
