"""Reads a tokenizer from its file: `tokenizer.json` in the Hugging Face format, or the `vocab.json`
and `merges.txt` of older GPT-2 models. Data only.
"""

import json
from pathlib import Path
from typing import Any

import tiktoken

from .. import UserError
from .base import END_OF_TEXT, Tokenizer
from .bpe import BytePairTokenizer, merges_by_id, printable_to_bytes
from .characters import CharacterTokenizer
from .chunked_encoding import PATTERNS, word_pattern
from .library import LibraryTokenizer, one_line

_PLAIN_TEXT = "\n" + "".join(map(chr, range(32, 127)))
FOREIGN = "foreign_tokenizer"  # the key under which a run describes somebody else's
_FILE = "tokenizer.json"
_VOCAB = "vocab.json"
_MERGES = "merges.txt"  # beside vocab.json
_ADDED = "added_tokens.json"  # beside them, with rules that only transformers knows
_SENTENCE_PIECE = ("tokenizer.model", "sentencepiece.bpe.model", "spiece.model")
_REMEDY = (
    "transformers writes one: "
    "transformers.AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
)


class NotInFolder(UserError):
    """The run was trained with somebody else's tokenizer, of which its folder has the name only."""

    def __init__(self, name: str, fingerprint: str):
        super().__init__(
            f"the run was trained with a tokenizer of your own, {name}, which its folder does not "
            "hold; give it: minigpt.load(RUN, tokenizer=...)"
        )
        self.fingerprint = fingerprint


def load_tokenizer(path: str | Path, vocab_size: int = 0) -> Tokenizer:
    """A tokenizer from a `tokenizer.json`, from a `vocab.json` with a `merges.txt` beside it, or
    from a folder that holds either. It is one that `to_json` made, or byte-level BPE with an
    <|endoftext|>. Ids below `vocab_size` that have no token become special tokens.

    Raises:
        UserError: if a file is missing, damaged or of another kind.
    """
    path = Path(path)
    file = _file_in(path) if path.is_dir() else path
    try:
        if file.name.endswith(_VOCAB):
            data = _from_vocabulary(file)
        else:
            data = json.loads(file.read_text(encoding="utf-8"))
        return _tokenizer(data, vocab_size)
    except NotInFolder:
        raise
    except OSError as error:
        raise UserError(f"cannot read {error.filename or file}: {error.strerror}") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise UserError(f"{file} is damaged: it is not JSON in UTF-8") from None
    except KeyError as error:
        raise UserError(f"{file} is damaged or not supported: it has no {error}") from None
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise UserError(f"{file} is damaged or not supported ({error})") from None


def has_tokenizer(folder: Path) -> bool:
    """Whether there is a file in a folder from which :func:`load_tokenizer` may read one."""
    return any((folder / name).exists() for name in (_FILE, _VOCAB))


def _file_in(folder: Path) -> Path:
    """The file of a folder that holds a tokenizer."""
    for name in (_FILE, _VOCAB):
        if (folder / name).exists():
            return folder / name

    for name in _SENTENCE_PIECE:
        if (folder / name).exists():
            raise UserError(f"{folder / name} is of the SentencePiece kind, which is not supported")
    raise UserError(f"{folder} has no {_FILE}, and no {_VOCAB} with {_MERGES}; {_REMEDY}")


def _from_vocabulary(file: Path) -> dict[str, Any]:
    """The content of a `tokenizer.json` for a `vocab.json` and its `merges.txt`, with GPT-2's way
    to cut a text into words."""
    import tokenizers
    from tokenizers import decoders, pre_tokenizers

    if (file.parent / _ADDED).exists():
        raise ValueError(f"{_ADDED} is beside it, but no {_FILE}; {_REMEDY}")
    merges = file.with_name(file.name.removesuffix(_VOCAB) + _MERGES)
    try:
        merges.read_text(encoding="utf-8")
    except UnicodeDecodeError:  # the library does not say in which file
        raise ValueError(f"{merges.name} beside it is not UTF-8") from None
    if END_OF_TEXT not in json.loads(file.read_text(encoding="utf-8")):
        raise ValueError(f"it has no {END_OF_TEXT}")

    with one_line():
        model = tokenizers.models.BPE.from_file(str(file), str(merges))
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([END_OF_TEXT])

    data: dict[str, Any] = json.loads(tokenizer.to_str())
    return data


def _tokenizer(data: dict[str, Any], vocab_size: int) -> Tokenizer:
    """The tokenizer of a `tokenizer.json` with this content."""
    if FOREIGN in data:
        about = data[FOREIGN]
        raise NotInFolder(str(about["name"]), str(about["fingerprint"]))

    # The first files, such as GPT-2's own, do not say that a list of merges makes them a BPE.
    kind = data["model"].get("type", "BPE" if "merges" in data["model"] else None)
    if kind == "Unigram" or data["model"].get("byte_fallback"):
        raise ValueError(f"it is a {kind} of the SentencePiece kind")
    if kind not in ("BPE", "WordLevel"):
        raise ValueError(f"its type is {kind!r}")

    vocab: dict[str, int] = data["model"]["vocab"]
    added = {token["content"]: token["id"] for token in data["added_tokens"]}
    ids: list[object] = [*vocab.values(), *added.values()]
    if not all(isinstance(i, int) and i >= 0 for i in ids):
        raise ValueError("ids must be non-negative integers")
    if END_OF_TEXT not in added:
        raise ValueError(f"it has no {END_OF_TEXT}")

    if kind == "WordLevel":
        return _character_tokenizer(vocab, added)
    return _byte_pair_tokenizer(_with_all_names(data, vocab | added, vocab_size))


def _character_tokenizer(vocab: dict[str, int], specials: dict[str, int]) -> CharacterTokenizer:
    characters = sorted(vocab.keys() - specials.keys(), key=lambda c: vocab[c])
    if [vocab[c] for c in characters] != list(range(len(characters))):
        raise ValueError("its ids are not 0, 1, 2, ...")

    "".join(characters).encode()  # refuses half a surrogate pair
    if any(len(c) != 1 for c in characters) or specials != {END_OF_TEXT: len(characters)}:
        raise ValueError("its tokens are not characters")
    return CharacterTokenizer(characters)


_FLAGS = ("single_word", "lstrip", "rstrip", "normalized")
_SPECIAL: dict[str, Any] = dict.fromkeys(_FLAGS, False) | {"special": True}


def _with_all_names(data: dict[str, Any], names: dict[str, int], vocab_size: int) -> dict[str, Any]:
    """The content of the file with a name for each id below `vocab_size` and all names in the
    vocabulary: the library would give a name that is not in it the next free id."""
    used = set(names.values())
    unused = {f"<|unused_{i}|>": i for i in range(vocab_size) if i not in used}
    more = [_SPECIAL | {"content": name, "id": i} for name, i in unused.items()]

    model = data["model"] | {"vocab": names | unused}
    return data | {"model": model, "added_tokens": data["added_tokens"] + more}


def _byte_pair_tokenizer(data: dict[str, Any]) -> Tokenizer:
    """tiktoken encodes if it gives the ids of this file; else the tokenizers library does."""
    special = {token["content"]: token["special"] for token in data["added_tokens"]}
    added: dict[str, int] = {}
    vocab: dict[str, int] = {}  # without the added tokens
    for name, token_id in data["model"]["vocab"].items():
        if name in special:
            added[name] = token_id
        else:
            vocab[name] = token_id

    ranks = {printable_to_bytes(token): i for token, i in vocab.items()}
    _check_byte_pairs(ranks, ids=[*vocab.values(), *added.values()])

    pattern = word_pattern(data["pre_tokenizer"])
    is_whole = all(bytes([byte]) in ranks for byte in range(256))
    is_plain = pattern in PATTERNS.values() and all(special.values()) and not data.get("normalizer")
    if (
        is_plain
        and is_whole
        and [tuple(pair) for pair in data["model"]["merges"]] == merges_by_id(vocab)
    ):
        encoding = tiktoken.Encoding(
            "bpe", pat_str=str(pattern), mergeable_ranks=ranks, special_tokens=added
        )
        return BytePairTokenizer(encoding)

    tokens = {i: token for token, i in ranks.items()}
    for name, token_id in added.items():
        tokens[token_id] = b"" if special[name] else name.encode()
    return LibraryTokenizer(data, tokens)


def _check_byte_pairs(ranks: dict[bytes, int], ids: list[int]) -> None:
    """Refuse tokens that cannot spell a plain English text, and ids that are not 0, 1, 2, ..., each
    once."""
    if len(set(ids)) != len(ids):
        raise ValueError("two tokens share an id")
    if any(character.encode() not in ranks for character in _PLAIN_TEXT):
        raise ValueError("it lacks some single bytes")
    if max(ids) >= len(ids):
        raise ValueError("some ids have no token")
