"""Reads a tokenizer from its file: `tokenizer.json` in the Hugging Face format, data only."""

import json
from pathlib import Path
from typing import Any

import tiktoken

from .. import UserError
from .base import END_OF_TEXT, Tokenizer
from .bpe import BytePairTokenizer, printable_to_bytes
from .characters import CharacterTokenizer


def load_tokenizer(path: str | Path) -> Tokenizer:
    """A tokenizer from the `tokenizer.json` that `to_json` made.

    Raises:
        UserError: if the file is missing, damaged or of another kind.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        return tokenizer_from_data(data)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise UserError(f"{path} is damaged: it is not JSON") from None
    except KeyError as error:
        raise UserError(f"{path} is damaged or not minigpt's: it has no {error}") from None
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise UserError(f"{path} is damaged or not minigpt's ({error})") from None


def tokenizer_from_data(data: dict[str, Any]) -> Tokenizer:
    """A tokenizer from the content of a `tokenizer.json` that `to_json` made; anything else gives
    a KeyError, TypeError, ValueError, IndexError, AttributeError or OverflowError."""
    vocab: dict[str, int] = data["model"]["vocab"]
    normalizer = data.get("normalizer")
    if normalizer is not None and normalizer["type"] != "NFC":
        raise ValueError(f"its normalizer {normalizer['type']} is not supported")
    specials = {token["content"]: token["id"] for token in data["added_tokens"]}
    if not all(isinstance(i, int) and i >= 0 for i in (*vocab.values(), *specials.values())):
        raise ValueError("ids must be non-negative integers")
    if END_OF_TEXT not in specials:
        raise ValueError(f"it has no {END_OF_TEXT}")
    if data["model"]["type"] == "WordLevel":
        return _character_tokenizer(vocab, specials)
    if data["model"]["type"] == "BPE":
        return _byte_pair_tokenizer(vocab, specials, data)
    raise ValueError(f"its type is {data['model']['type']!r}")


def _character_tokenizer(vocab: dict[str, int], specials: dict[str, int]) -> CharacterTokenizer:
    characters = sorted(vocab.keys() - specials.keys(), key=lambda c: vocab[c])
    if [vocab[c] for c in characters] != list(range(len(characters))):
        raise ValueError("its ids are not 0, 1, 2, ...")
    "".join(characters).encode()  # refuses half a surrogate pair
    if any(len(c) != 1 for c in characters) or specials != {END_OF_TEXT: len(characters)}:
        raise ValueError("its tokens are not characters")
    return CharacterTokenizer(characters)


def _byte_pair_tokenizer(
    vocab: dict[str, int], specials: dict[str, int], data: dict[str, Any]
) -> BytePairTokenizer:
    ranks = {printable_to_bytes(token): i for token, i in vocab.items() if token not in specials}
    ids, top = [*ranks.values(), *specials.values()], max(ranks.values())
    if len(set(ids)) != len(ids):
        raise ValueError("two tokens share an id")
    if any(bytes([b]) not in ranks for b in range(256)):
        raise ValueError("it lacks some single bytes")
    if sum(i < top for i in ids) != top or max(ids) > 2 * len(ids):
        raise ValueError("some ids have no token")  # only special tokens may leave a gap
    added = [token["content"] for token in data["added_tokens"] if not token["special"]]
    if added and any(name.split() != [name] for name in specials):
        raise ValueError("white space in an added token is not supported")  # a cut may be there
    pattern = data["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
    encoding = tiktoken.Encoding(
        "bpe", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials
    )
    return BytePairTokenizer(encoding, added=added, nfc=bool(data.get("normalizer")))
