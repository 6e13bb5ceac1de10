"""Byte-pair encoding: learned from a text, or one of tiktoken's encodings such as "gpt2"."""

import os
import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import Any

import tiktoken

from .. import UserError
from .base import END_OF_TEXT, Tokenizer
from .chunked_encoding import GPT2_PATTERN, places_to_cut


class BytePairTokenizer(Tokenizer):
    """Byte-level byte-pair encoding ("Neural Machine Translation of Rare Words with Subword
    Units", Sennrich et al. 2016, on bytes), done by tiktoken. Decoding gives back any text.

    `added` names the added tokens that are not special: wherever a text contains such a name, it
    becomes that token. With `nfc`, the rest of a text is first brought into Unicode's normal
    form C, which joins a letter and its accent.
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
        # The tokenizers library also looks for the longest name at each place, special ones too.
        longest_first = sorted(ids, key=len, reverse=True)
        self._names = re.compile("|".join(map(re.escape, longest_first)))

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        start = 0
        for match in self._names.finditer(text) if self._added else ():
            if match[0] in self._added:
                ids += self._encode_ordinary(text[start : match.start()])
                ids.append(self._added[match[0]])
                start = match.end()
        return ids + self._encode_ordinary(text[start:])

    def _encode_ordinary(self, text: str) -> list[int]:
        if self.nfc:
            text = unicodedata.normalize("NFC", text)
        try:
            return self.encoding.encode_ordinary(text)
        except BaseException as error:
            # tiktoken panics where a pattern would need too many steps. The patterns that we
            # know never do, but a tokenizer.json can hold any pattern.
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
        import tokenizers

        ranks = self.encoding._mergeable_ranks
        vocab = {bytes_to_printable(token): rank for token, rank in ranks.items()}
        merges = [(bytes_to_printable(a), bytes_to_printable(b)) for a, b in _merges(ranks)]
        # Unused ids get a name, and all names go into the vocabulary: the library would give a
        # name that is not there the next free id.
        used = {*ranks.values(), *self.encoding._special_tokens.values()}
        unused = {f"<|unused_{i}|>": i for i in range(self.vocab_size) if i not in used}
        names = self.encoding._special_tokens | unused
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab | names, merges))
        _set_byte_level(tokenizer, self.encoding._pat_str)
        if self.nfc:
            tokenizer.normalizer = tokenizers.normalizers.NFC()
        specials = names.keys() - self._added.keys()
        tokenizer.add_special_tokens(sorted(specials, key=lambda name: names[name]))
        tokenizer.add_tokens(
            [tokenizers.AddedToken(name, normalized=False) for name in self._added]
        )
        return tokenizer.to_str()


def train_bpe(texts: Iterable[str], vocab_size: int) -> BytePairTokenizer:
    """Byte-level BPE with at most `vocab_size` tokens, learned from `texts`."""
    import tokenizers

    if vocab_size < 257:
        raise UserError(
            f"vocab_size must be at least 257 for bpe (256 bytes and {END_OF_TEXT}), "
            f"got {vocab_size}"
        )
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    _set_byte_level(tokenizer, GPT2_PATTERN)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size - 1,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    ranks = {printable_to_bytes(token): rank for token, rank in tokenizer.get_vocab().items()}
    specials = {END_OF_TEXT: len(ranks)}
    return BytePairTokenizer(
        tiktoken.Encoding(
            "bpe", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens=specials
        )
    )


def tiktoken_tokenizer(name: str) -> BytePairTokenizer:
    """One of tiktoken's encodings, from its cache or, with a network, downloaded into it."""
    names = tiktoken.list_encoding_names()
    if name not in names:
        raise UserError(f"no tokenizer {name!r}; there are: char, bpe, {', '.join(names)}")
    try:
        return BytePairTokenizer(tiktoken.get_encoding(name))
    except (OSError, ValueError):  # no network; or something else came in place of the file
        cache = os.environ.get("TIKTOKEN_CACHE_DIR", "unset")
        raise UserError(
            f"tokenizer {name!r} is not on this machine and could not be downloaded; set "
            f"TIKTOKEN_CACHE_DIR (now {cache}) to a folder that holds it, or use "
            "--tokenizer bpe or --tokenizer char, which need no download"
        ) from None


def _set_byte_level(tokenizer: Any, pattern: str) -> None:
    """Cut texts into words by `pattern`, and write their bytes as printable characters."""
    from tokenizers import Regex, decoders, pre_tokenizers

    words = pre_tokenizers.Split(Regex(pattern), "isolated")
    characters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, characters])
    tokenizer.decoder = decoders.ByteLevel()


def _merges(ranks: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """Every pair of tokens that together form a token, in the order of that token's rank.

    tiktoken merges any two neighbours that together form a token; with all such pairs listed, the
    Hugging Face format does the same.
    """
    return [
        (token[:i], token[i:])
        for token in sorted(ranks, key=lambda token: ranks[token])
        for i in range(1, len(token))
        if token[:i] in ranks and token[i:] in ranks
    ]


# The Hugging Face format writes each byte as a printable character, as GPT-2 did: bytes that are
# printable in Latin-1 as themselves, the 68 others as the characters from U+0100 on.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_UNPRINTABLE = [byte for byte in range(256) if byte not in _PRINTABLE]
_CHARACTERS = {byte: chr(byte) for byte in _PRINTABLE} | {
    byte: chr(0x100 + i) for i, byte in enumerate(_UNPRINTABLE)
}
_BYTES = {character: byte for byte, character in _CHARACTERS.items()}


def bytes_to_printable(token: bytes) -> str:
    """A token's bytes as the Hugging Face format writes them."""
    return "".join(_CHARACTERS[byte] for byte in token)


def printable_to_bytes(text: str) -> bytes:
    """The opposite of :func:`bytes_to_printable`; KeyError if a character stands for no byte."""
    return bytes(_BYTES[character] for character in text)
