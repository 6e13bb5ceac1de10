"""The tokenizer of a Hugging Face folder: byte-level BPE of GPT-2's kind, or our own characters.

tiktoken does the encoding. It merges the two neighbours that together form the token with the
lowest id, whereas these files list the pairs to merge; a file is accepted only if both ways give
the same ids.
"""

import json
from pathlib import Path
from typing import Any

from .. import UserError
from ..tokenizer import END_OF_TEXT, Tokenizer, tiktoken_tokenizer
from ..tokenizer.chunked_encoding import GPT2_PATTERN
from ..tokenizer.tokenizer_json import tokenizer_from_data

_GPT2_VOCAB_SIZE = 50_257


def read_tokenizer(folder: Path, vocab_size: int) -> Tokenizer:
    """The tokenizer of a folder whose model has `vocab_size` tokens; one that would give other ids
    than ours is refused.

    It comes from `tokenizer.json`, or from `vocab.json` with `merges.txt`. A model with GPT-2's
    vocabulary and neither file gets tiktoken's. Unused ids at the end of the vocabulary are added.
    """
    file = folder / "tokenizer.json"
    try:
        if file.exists():
            data = _read_json(file)
        elif (folder / "vocab.json").exists():
            file = folder / "vocab.json"
            data = _from_vocabulary(_read_json(file), folder / "merges.txt")
        elif vocab_size == _GPT2_VOCAB_SIZE:
            return tiktoken_tokenizer("gpt2")
        else:
            raise UserError(f"{folder} has no tokenizer: no tokenizer.json, no vocab.json")
        tokenizer = tokenizer_from_data(_in_our_format(data, vocab_size))
    except UserError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OSError) as error:
        raise UserError(f"{file} cannot be used: {error}") from None
    if tokenizer.vocab_size != vocab_size:
        raise UserError(
            f"{file} has {tokenizer.vocab_size} tokens but the model's vocab_size is {vocab_size}"
        )
    return tokenizer


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None


def _from_vocabulary(vocab: dict[str, int], merges: Path) -> dict[str, Any]:
    """GPT-2's first two files as the content of a `tokenizer.json`."""
    lines = merges.read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    return {
        "added_tokens": [{"content": END_OF_TEXT, "id": vocab[END_OF_TEXT], "special": True}],
        "pre_tokenizer": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": pairs},
    }


def _in_our_format(data: dict[str, Any], vocab_size: int) -> dict[str, Any]:
    """The content of a file as `tokenizer_from_data` reads it, if it gives the same ids there."""
    if data["model"]["type"] != "BPE":
        return data
    _check_parts(data)
    _check_merges(data)
    added, last = list(data["added_tokens"]), vocab_size - 1
    if last > max(*data["model"]["vocab"].values(), *(token["id"] for token in added)):
        added.append({"content": f"<|unused_{last}|>", "id": last, "special": True})
    return {
        "normalizer": data.get("normalizer"),
        "added_tokens": added,
        "pre_tokenizer": {"pretokenizers": [{"pattern": {"Regex": _pattern(data)}}]},
        "model": data["model"],
    }


def _check_parts(data: dict[str, Any]) -> None:
    """Refuse a tokenizer that changes a text before it is encoded, or its ids afterwards."""
    if _adds_tokens(data.get("post_processor") or {"type": "ByteLevel"}):
        raise ValueError("it adds special tokens to every text, which is not supported")
    for token in data["added_tokens"]:
        for flag in ("lstrip", "rstrip", "single_word", "normalized"):
            if token.get(flag) and not token["special"]:
                raise ValueError(f"{flag} of its added token {token['content']!r} is not supported")
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if data["model"].get(name):
            raise ValueError(f"{name} is not supported")


def _adds_tokens(processor: dict[str, Any]) -> bool:
    """Whether a post-processor puts something before or after the ids of a text."""
    if processor["type"] == "Sequence":
        return any(map(_adds_tokens, processor["processors"]))
    if processor["type"] == "TemplateProcessing":
        return any("SpecialToken" in part for part in processor["single"])
    return processor["type"] != "ByteLevel"


def _pattern(data: dict[str, Any]) -> str:
    """The pattern that cuts a text into words before bytes are merged."""
    first, *rest = data["pre_tokenizer"].get("pretokenizers", [data["pre_tokenizer"]])
    if any(part.get("add_prefix_space") for part in (first, *rest)):
        raise ValueError("add_prefix_space is not supported")
    if first["type"] == "ByteLevel" and first.get("use_regex", True) and not rest:
        return GPT2_PATTERN
    isolates = first["type"] == "Split" and first["behavior"] == "Isolated"
    then_bytes = [(part["type"], part.get("use_regex", True)) for part in rest]
    if isolates and not first["invert"] and then_bytes == [("ByteLevel", False)]:
        return first["pattern"]["Regex"]
    raise ValueError("its way to cut a text into words is not supported")


def _check_merges(data: dict[str, Any]) -> None:
    """Refuse merges that give other ids than merging by lowest id.

    They give the same ids if the pairs are listed by rising id of what they form, and if every
    token, encoded alone, becomes itself: where the two ways first differ, merging by id joins two
    tokens that the list never joins, so that the token they form would stay in two parts.
    """
    from tokenizers import models

    vocab: dict[str, int] = data["model"]["vocab"]
    pairs = data["model"]["merges"]
    merges = [tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in pairs]
    added = {token["content"] for token in data["added_tokens"]}
    formed = [left + right for left, right in merges]
    if not added.isdisjoint(formed):
        raise ValueError("its merges form an added token, which is not supported")
    ids = [vocab[token] for token in formed]
    if ids != sorted(ids):
        raise ValueError("its merges are not in the order of their ids, which is not supported")
    try:
        model = models.BPE(vocab=vocab, merges=merges)
    except Exception as error:  # the tokenizers library raises no narrower class
        raise ValueError(str(error)) from None
    for token in vocab.keys() - added:
        if len(model.tokenize(token)) != 1:
            raise ValueError(f"its merges never form its token {token!r}")
