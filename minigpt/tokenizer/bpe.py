"""The tokenizers: the characters of a text, byte-pair encoding trained on a text, and tiktoken's
own encodings by name.

A tokenizer is saved as one `tokenizer.json` in the Hugging Face format, which other programs
read too. Loading it needs no network and runs no code.
"""

import os
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Any

import tiktoken

from .. import UserError
from .byte_alphabet import to_printable, to_raw
from .patterns import ANYWHERE, GPT2_PATTERN, places_to_cut

END_OF_TEXT = "<|endoftext|>"


class Tokenizer(ABC):
    """What every tokenizer does. Ids run from 0 to vocab_size - 1.

    Attributes:
        vocab_size: number of ids, special tokens included.
        end_of_text: the id that stands between two documents.
        cut: matches where a text may be cut without changing its ids.
    """

    vocab_size: int
    end_of_text: int
    cut: re.Pattern[str]

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
        self.cut = ANYWHERE

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
        self.cut = places_to_cut(encoding._pat_str, has_added=bool(added))
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
    ranks = {to_raw(token): rank for token, rank in tokenizer.get_vocab().items()}
    specials = {END_OF_TEXT: len(ranks)}
    return BytePairTokenizer(
        tiktoken.Encoding(
            "bpe", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens=specials
        )
    )


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
