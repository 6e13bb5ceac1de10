"""Reads a tokenizer from its file: `tokenizer.json` in the Hugging Face format, data only."""

import json
from pathlib import Path
from typing import Any

import tiktoken

from .. import UserError
from .base import END_OF_TEXT, Tokenizer
from .bpe import BytePairTokenizer, merges_by_id, printable_to_bytes
from .characters import CharacterTokenizer
from .chunked_encoding import PATTERNS
from .library import LibraryTokenizer, word_pattern


def load_tokenizer(path: str | Path, vocab_size: int = 0) -> Tokenizer:
    """A tokenizer from a `tokenizer.json`: one that `to_json` made, or byte-level BPE with an
    <|endoftext|>. Ids below `vocab_size` that have no token become special tokens.

    Raises:
        UserError: if the file is missing, damaged or of another kind.
    """
    try:
        return _tokenizer(json.loads(Path(path).read_text(encoding="utf-8")), vocab_size)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise UserError(f"{path} is damaged: it is not JSON in UTF-8") from None
    except KeyError as error:
        raise UserError(f"{path} is damaged or not supported: it has no {error}") from None
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise UserError(f"{path} is damaged or not supported ({error})") from None


def _tokenizer(data: dict[str, Any], vocab_size: int) -> Tokenizer:
    kind = data["model"]["type"]
    if kind not in ("BPE", "WordLevel"):
        raise ValueError(f"its type is {kind!r}")
    vocab: dict[str, int] = data["model"]["vocab"]
    added = {token["content"]: token["id"] for token in data["added_tokens"]}
    if not all(isinstance(i, int) and i >= 0 for i in (*vocab.values(), *added.values())):
        raise ValueError("ids must be non-negative integers")
    if END_OF_TEXT not in added:
        raise ValueError(f"it has no {END_OF_TEXT}")
    if kind == "WordLevel":
        return _character_tokenizer(vocab, added)
    used = {*vocab.values(), *added.values()}
    unused = {f"<|unused_{i}|>": i for i in range(vocab_size) if i not in used}
    more = [_SPECIAL | {"content": name, "id": i} for name, i in unused.items()]
    # All names go into the vocabulary: the library would give others the next free id.
    model = data["model"] | {"vocab": vocab | added | unused}
    data |= {"model": model, "added_tokens": data["added_tokens"] + more}
    return _byte_pair_tokenizer(data)


_FLAGS = ("single_word", "lstrip", "rstrip", "normalized")
_SPECIAL: dict[str, Any] = dict.fromkeys(_FLAGS, False) | {"special": True}


def _character_tokenizer(vocab: dict[str, int], specials: dict[str, int]) -> CharacterTokenizer:
    characters = sorted(vocab.keys() - specials.keys(), key=lambda c: vocab[c])
    if [vocab[c] for c in characters] != list(range(len(characters))):
        raise ValueError("its ids are not 0, 1, 2, ...")
    "".join(characters).encode()  # refuses half a surrogate pair
    if any(len(c) != 1 for c in characters) or specials != {END_OF_TEXT: len(characters)}:
        raise ValueError("its tokens are not characters")
    return CharacterTokenizer(characters)


def _byte_pair_tokenizer(data: dict[str, Any]) -> Tokenizer:
    """tiktoken encodes if it gives the ids of this file; else the tokenizers library does."""
    special = {token["content"]: token["special"] for token in data["added_tokens"]}
    names = {name: i for name, i in data["model"]["vocab"].items() if name in special}
    vocab = {token: i for token, i in data["model"]["vocab"].items() if token not in special}
    ranks = {printable_to_bytes(token): i for token, i in vocab.items()}
    ids = {*vocab.values(), *names.values()}
    if len(ids) != len(vocab) + len(names):
        raise ValueError("two tokens share an id")
    if any(bytes([b]) not in ranks for b in range(256)):
        raise ValueError("it lacks some single bytes")
    if max(ids) >= len(ids):
        raise ValueError("some ids have no token")
    pattern = word_pattern(data["pre_tokenizer"])
    plain = pattern in PATTERNS.values() and all(special.values()) and not data.get("normalizer")
    if plain and [tuple(pair) for pair in data["model"]["merges"]] == merges_by_id(vocab):
        encoding = tiktoken.Encoding(
            "bpe", pat_str=str(pattern), mergeable_ranks=ranks, special_tokens=names
        )
        return BytePairTokenizer(encoding)
    tokens = {i: token for token, i in ranks.items()}
    tokens |= {i: b"" if special[name] else name.encode() for name, i in names.items()}
    return LibraryTokenizer(data, tokens)
