"""Text to token ids and back. One `Tokenizer`, three origins: the characters of a text, byte-pair
encoding trained on a text, and tiktoken's own encodings by name.

A tokenizer is saved as one `tokenizer.json` in the Hugging Face format, which other programs
read too. Loading it needs no network and runs no code.
"""

import json
import os
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import tiktoken

from .config import UserError

_GAP = re.compile(r"[ \n]")
END_OF_TEXT = "<|endoftext|>"
# How GPT-2 cuts text into words before merging bytes; the pattern tiktoken ships for it.
GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"


class Tokenizer(ABC):
    """What every tokenizer does. Ids run from 0 to vocab_size - 1.

    Attributes:
        vocab_size: number of ids, special tokens included.
        end_of_text: the id that stands between two documents.
    """

    vocab_size: int
    end_of_text: int

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Token ids of `text`. Special tokens written out in it are ordinary text.

        Raises:
            UserError: if a character cannot be encoded, naming it and its position.
        """

    @abstractmethod
    def token_bytes(self, token_id: int) -> bytes:
        """The UTF-8 bytes that a token stands for; none for a special token."""

    @abstractmethod
    def to_json(self) -> str:
        """The tokenizer in the Hugging Face `tokenizer.json` format."""

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def byte_lengths(self) -> list[int]:
        """For each id, how many bytes of text it stands for."""
        return [len(self.token_bytes(i)) for i in range(self.vocab_size)]


class CharacterTokenizer(Tokenizer):
    """One token for each character it knows.

    Args:
        characters: the characters, in the order of their ids.
    """

    def __init__(self, characters: Iterable[str]):
        self.characters = list(characters)
        self.ids = {character: i for i, character in enumerate(self.characters)}
        self.end_of_text = len(self.characters)
        self.vocab_size = self.end_of_text + 1

    def encode(self, text: str) -> list[int]:
        try:
            return [self.ids[character] for character in text]
        except KeyError:
            position = next(i for i, character in enumerate(text) if character not in self.ids)
            raise UserError(
                f"character {text[position]!r} at position {position} is not in the vocabulary "
                f"of this character tokenizer ({len(self.characters)} characters)"
            ) from None

    def token_bytes(self, token_id: int) -> bytes:
        if token_id == self.end_of_text:
            return b""
        return self.characters[token_id].encode()

    def to_json(self) -> str:
        from tokenizers import Regex, decoders, models, pre_tokenizers
        from tokenizers import Tokenizer as HuggingFaceTokenizer

        vocab = {**self.ids, END_OF_TEXT: self.end_of_text}
        tokenizer = HuggingFaceTokenizer(models.WordLevel(vocab, unk_token=END_OF_TEXT))
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        tokenizer.decoder = decoders.Fuse()
        tokenizer.add_special_tokens([END_OF_TEXT])
        return tokenizer.to_str()


class BytePairTokenizer(Tokenizer):
    """Byte-level byte-pair encoding ("Neural Machine Translation of Rare Words with Subword
    Units", Sennrich et al. 2016, on bytes): lossless on any text. tiktoken does the work.

    Args:
        encoding: ranks of the byte sequences, pattern, special and added tokens.
        added: those tokens that are no special ones: each stands for its name, wherever a text
            has it.
        nfc: whether the text between them is brought into Unicode's normal form C first, which
            unites a letter and its accent; decoding gives back that form.
    """

    def __init__(
        self, encoding: tiktoken.Encoding, *, added: Collection[str] = (), nfc: bool = False
    ):
        self.encoding = encoding
        self.vocab_size = encoding.n_vocab
        self.end_of_text = encoding.eot_token
        self.nfc = nfc
        ids = encoding._special_tokens
        self._added = {name: ids[name] for name in added}
        self._special_ids = {ids[name] for name in ids.keys() - self._added.keys()}
        # As the tokenizers library finds them: the longest at each place, special ones as well.
        longest_first = sorted(ids, key=len, reverse=True)
        self._names = re.compile("|".join(map(re.escape, longest_first)))

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        start = 0
        for match in self._names.finditer(text) if self._added else ():
            if match[0] in self._added:
                ids += self._ordinary(text[start : match.start()])
                ids.append(self._added[match[0]])
                start = match.end()
        return ids + self._ordinary(text[start:])

    def _ordinary(self, text: str) -> list[int]:
        if self.nfc:
            text = unicodedata.normalize("NFC", text)
        try:
            return self.encoding.encode_ordinary(text)
        except BaseException as error:
            # How tiktoken's engine gives up on a pattern that would take it for ever; only a
            # tokenizer from elsewhere can have one.
            if type(error).__name__ != "PanicException":
                raise
            raise UserError("the tokenizer's pattern cannot cut this text into words") from None

    def token_bytes(self, token_id: int) -> bytes:
        if token_id in self._special_ids:
            return b""
        try:
            return self.encoding.decode_single_token_bytes(token_id)
        except KeyError:  # some encodings of tiktoken leave ids unused
            return b""

    def to_json(self) -> str:
        from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
        from tokenizers import Tokenizer as HuggingFaceTokenizer

        ranks = self.encoding._mergeable_ranks
        vocab = {to_printable(token): rank for token, rank in ranks.items()}
        merges = [(to_printable(left), to_printable(right)) for left, right in _merges(ranks)]
        # Special and added tokens are in the vocabulary too: one that is not gets the next free
        # id, which is another than its own where ids are left unused.
        names = self.encoding._special_tokens | self._unused()
        tokenizer = HuggingFaceTokenizer(models.BPE(vocab=vocab | names, merges=merges))
        _set_byte_level(tokenizer, Regex(self.encoding._pat_str), pre_tokenizers, decoders)
        if self.nfc:
            tokenizer.normalizer = normalizers.NFC()
        specials = names.keys() - self._added.keys()
        tokenizer.add_special_tokens(sorted(specials, key=lambda name: names[name]))
        tokenizer.add_tokens([AddedToken(name, normalized=False) for name in self._added])
        return tokenizer.to_str()

    def _unused(self) -> dict[str, int]:
        """A name for each id that stands for nothing."""
        encoding = self.encoding
        used = {*encoding._mergeable_ranks.values(), *encoding._special_tokens.values()}
        return {f"<|unused_{i}|>": i for i in range(self.vocab_size) if i not in used}


def make_tokenizer(kind: str, vocab_size: int | None, texts: Iterable[str]) -> Tokenizer:
    """The tokenizer named `kind`: "char", "bpe" or one of tiktoken's, such as "gpt2".

    Args:
        kind: the name.
        vocab_size: size of a BPE vocabulary to train, END_OF_TEXT included.
        texts: the training text, in pieces; not read for tiktoken's encodings.

    Raises:
        UserError: if there is no such tokenizer, or it cannot be had offline.
    """
    if kind == "char":
        characters: set[str] = set()
        for text in texts:
            characters.update(text)
        return CharacterTokenizer(sorted(characters))
    if kind == "bpe":
        return train_bpe(texts, vocab_size or 1024)
    return tiktoken_tokenizer(kind)


def train_bpe(texts: Iterable[str], vocab_size: int) -> BytePairTokenizer:
    """Byte-level BPE with at most `vocab_size` tokens, learned from `texts`.

    Raises:
        UserError: if vocab_size leaves no room for the 256 bytes and END_OF_TEXT.
    """
    from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
    from tokenizers import Tokenizer as HuggingFaceTokenizer

    if vocab_size < 257:
        raise UserError(
            f"vocab_size must be at least 257 for bpe (256 bytes and {END_OF_TEXT}), "
            f"got {vocab_size}"
        )
    tokenizer = HuggingFaceTokenizer(models.BPE())
    _set_byte_level(tokenizer, Regex(GPT2_PATTERN), pre_tokenizers, decoders)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    ranks = {_raw(token): rank for token, rank in tokenizer.get_vocab().items()}
    return BytePairTokenizer(_encoding("bpe", GPT2_PATTERN, ranks, {END_OF_TEXT: len(ranks)}))


def tiktoken_tokenizer(name: str) -> BytePairTokenizer:
    """One of tiktoken's encodings, from its cache or, with a network, downloaded into it.

    Raises:
        UserError: if there is none of that name, or it is not cached and cannot be downloaded.
    """
    names = tiktoken.list_encoding_names()
    if name not in names:
        raise UserError(f"no tokenizer {name!r}; there are: char, bpe, {', '.join(names)}")
    try:
        return BytePairTokenizer(tiktoken.get_encoding(name))
    except (OSError, ValueError):  # requests' errors are OSErrors; ValueError: not what it was
        cache = os.environ.get("TIKTOKEN_CACHE_DIR", "unset")
        raise UserError(
            f"tokenizer {name!r} is not on this machine and could not be downloaded; set "
            f"TIKTOKEN_CACHE_DIR (now {cache}) to a folder that holds it, or use "
            "--tokenizer bpe or --tokenizer char, which need no download"
        ) from None


def load_tokenizer(path: str | Path) -> Tokenizer:
    """A tokenizer from the `tokenizer.json` that `to_json` made.

    Raises:
        UserError: if the file is missing, damaged or of another kind.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UserError(f"{path} is damaged: it is not JSON") from None
    try:
        return tokenizer_from_data(data)
    except KeyError as error:
        raise UserError(f"{path} is damaged or no tokenizer of ours: it has no {error}") from None
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise UserError(f"{path} is damaged or no tokenizer of ours ({error})") from None


def encode_in_pieces(
    tokenizer: Tokenizer, texts: Iterable[str], size: int = 1 << 16
) -> Iterator[tuple[int, list[int]]]:
    """Encode a long text piece by piece, to the same ids as the text encoded whole.

    Pieces are cut between a letter and a space or new line that precedes another letter: no
    pattern of ours or tiktoken's joins anything across such a place. Text without one stays uncut.

    Args:
        tokenizer: encodes.
        texts: the text, cut anywhere.
        size: aim at pieces of this many characters.

    Yields:
        The number of characters of a piece, and its ids.
    """
    rest, searched = "", 0
    for text in texts:
        rest += text
        while len(rest) >= size:
            cut = _safe_cut(rest, max(size, searched))
            if cut is None:
                searched = len(rest) - 2
                break
            yield cut, tokenizer.encode(rest[:cut])
            rest, searched = rest[cut:], 0
    if rest:
        yield len(rest), tokenizer.encode(rest)


def _safe_cut(text: str, start: int) -> int | None:
    """The first place at or after `start` where `text` may be cut, or None."""
    for gap in _GAP.finditer(text, max(start, 1)):
        place = gap.start()
        if place + 1 < len(text) and text[place - 1].isalpha() and text[place + 1].isalpha():
            return place
    return None


def tokenizer_from_data(data: dict[str, Any]) -> Tokenizer:
    """A tokenizer from the content of a `tokenizer.json` that `to_json` made.

    Raises:
        KeyError, TypeError, ValueError, IndexError, AttributeError: if it is something else.
    """
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
        characters = sorted((c for c in vocab if c not in specials), key=lambda c: vocab[c])
        if [vocab[c] for c in characters] != list(range(len(characters))):
            raise ValueError("its ids are not 0, 1, 2, ...")
        "".join(characters).encode()  # half a surrogate pair is no character
        if any(len(c) != 1 for c in characters) or specials != {END_OF_TEXT: len(characters)}:
            raise ValueError("its tokens are not characters")
        return CharacterTokenizer(characters)
    if data["model"]["type"] != "BPE":
        raise ValueError(f"its type is {data['model']['type']!r}")
    pattern = data["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
    ranks = {_raw(token): i for token, i in vocab.items() if token not in specials}
    if len(set(ranks.values()) | set(specials.values())) != len(ranks) + len(specials):
        raise ValueError("two tokens share an id")
    if any(bytes([b]) not in ranks for b in range(256)):
        raise ValueError("it lacks some single bytes")
    ids, top = (*ranks.values(), *specials.values()), max(ranks.values())
    if sum(i < top for i in ids) != top or max(ids) > 2 * len(ids):
        raise ValueError("some ids have no token")  # only special ones may leave a gap
    added = [token["content"] for token in data["added_tokens"] if not token["special"]]
    if added and any(name.split() != [name] for name in specials):
        raise ValueError("white space in an added token is not supported")  # pieces would cut it
    encoding = _encoding("bpe", pattern, ranks, specials)
    return BytePairTokenizer(encoding, added=added, nfc=normalizer is not None)


def _encoding(
    name: str, pattern: str, ranks: dict[bytes, int], specials: dict[str, int]
) -> tiktoken.Encoding:
    return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)


def _set_byte_level(tokenizer: Any, pattern: Any, pre_tokenizers: Any, decoders: Any) -> None:
    """Cut by `pattern`, then write bytes as printable characters; decode the other way round."""
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(pattern, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()


def _merges(ranks: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """Every pair of tokens that together form a token, in the order of that token's rank.

    tiktoken merges any two neighbours whose union is a token; a list with all such pairs makes
    the Hugging Face format do the same.
    """
    merges = []
    for token in sorted(ranks, key=lambda token: ranks[token]):
        for i in range(1, len(token)):
            if token[:i] in ranks and token[i:] in ranks:
                merges.append((token[:i], token[i:]))
    return merges


def _byte_alphabet() -> dict[int, str]:
    """GPT-2's way to write each byte as a printable character (Radford et al. 2019)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {
        byte: chr(0x100 + i) for i, byte in enumerate(others)
    }


_TO_PRINTABLE = _byte_alphabet()
_TO_BYTE = {character: byte for byte, character in _TO_PRINTABLE.items()}


def to_printable(token: bytes) -> str:
    """Bytes as the Hugging Face format writes them: a printable character for each."""
    return "".join(_TO_PRINTABLE[byte] for byte in token)


def _raw(token: str) -> bytes:
    return bytes(_TO_BYTE[character] for character in token)
