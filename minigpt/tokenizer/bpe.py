"""Byte-pair encoding: learned from a text, or one of tiktoken's encodings such as "gpt2"."""

import itertools
import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any, AnyStr

import tiktoken

from .. import UserError
from .base import BETWEEN_TURNS, END_OF_TEXT, END_OF_TURN, SPEAKER, Tokenizer, check_is_unicode
from .chunked_encoding import AFTER_TURN, GPT2_PATTERN, places_to_cut

_LONGEST_WORD = 128  # characters of a word; a longer one is learned from in parts


class BytePairTokenizer(Tokenizer):
    """Byte-level byte-pair encoding ("Neural Machine Translation of Rare Words with Subword
    Units", Sennrich et al. 2016, on bytes), done by tiktoken. Decoding gives back any text.

    If the encoding has the special tokens <|speaker|> and <|turn|>, an empty line is the end of a
    turn, and each turn begins with the first of them.
    """

    def __init__(self, encoding: tiktoken.Encoding):
        self.encoding = encoding
        self.vocab_size = encoding.n_vocab
        self.end_of_text = encoding.eot_token
        self.cut = places_to_cut(encoding._pat_str)
        special = encoding._special_tokens
        self._special_ids = set(special.values())
        if special.keys() >= {SPEAKER, END_OF_TURN}:
            self.speaker = special[SPEAKER]
            self.end_of_turn = special[END_OF_TURN]
            self.cut = AFTER_TURN

    def encode(self, text: str) -> list[int]:
        check_is_unicode(text)
        if self.speaker is None or self.end_of_turn is None:
            return self.encoding.encode_ordinary(text)

        ids: list[int] = []
        turns = text.split(BETWEEN_TURNS)
        for number, turn in enumerate(turns):
            if number > 0:
                ids.append(self.end_of_turn)
            if turn:
                ids += [self.speaker, *self.encoding.encode_ordinary(turn)]
        return ids

    def token_bytes(self, token_id: int) -> bytes:
        if token_id == self.end_of_turn:
            return BETWEEN_TURNS.encode()
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

        # Unused ids get a name, and all names go into the vocabulary: the library would give a
        # name that is not there the next free id.
        special = self.encoding._special_tokens
        used = {*ranks.values(), *special.values()}
        unused = {f"<|unused_{i}|>": i for i in range(self.vocab_size) if i not in used}
        names = special | unused

        model = tokenizers.models.BPE(vocab | names, merges_by_id(vocab))
        tokenizer = tokenizers.Tokenizer(model)
        _set_byte_level(tokenizer, tokenizers.Regex(self.encoding._pat_str))
        tokenizer.add_special_tokens(sorted(names, key=names.__getitem__))
        return tokenizer.to_str()


def train_bpe(
    texts: Iterable[str], vocab_size: int, *, has_turns: bool = False
) -> BytePairTokenizer:
    """Byte-level BPE with at most `vocab_size` tokens, learned from `texts`; if `has_turns`, also
    with tokens for the beginning and the end of a turn. UserError if `vocab_size` is too small for
    all bytes and the special tokens.

    Each merge goes through the whole of a word. So a long word, such as a line of DNA, is learned
    from in parts: otherwise the time would grow with the square of its length.
    """
    import tokenizers

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    parts = tokenizers.Regex(rf"[\s\S]{{1,{_LONGEST_WORD}}}")
    _set_byte_level(tokenizer, tokenizers.Regex(GPT2_PATTERN), parts)
    special = [END_OF_TEXT]
    if has_turns:
        special += [SPEAKER, END_OF_TURN]
        texts = itertools.chain.from_iterable(text.split(BETWEEN_TURNS) for text in texts)
    fewest = 256 + len(special)
    if vocab_size < fewest:
        of_what = "of conversations " if has_turns else ""
        raise UserError(
            f"vocab_size {of_what}must be at least {fewest}, got {vocab_size}: 256 bytes, and what "
            f"separates texts{' and turns' if has_turns else ''}",
            kind="setting",
        )
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size - len(special),
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    _learn(tokenizer, trainer, texts)

    vocab = tokenizer.get_vocab()
    ranks = {printable_to_bytes(token): rank for token, rank in vocab.items()}
    encoding = tiktoken.Encoding(
        "bpe",
        pat_str=GPT2_PATTERN,
        mergeable_ranks=ranks,
        special_tokens={name: i for i, name in enumerate(special, start=len(ranks))},
    )
    return BytePairTokenizer(encoding)


def _learn(tokenizer: Any, trainer: Any, texts: Iterable[str]) -> None:
    """Let the library learn, in a thread of its own, so that Ctrl-C is heard meanwhile: Python
    handles signals in its main thread, and only between two of Python's own instructions."""
    result: Future[None] = Future()
    is_over = threading.Event()
    is_interrupted = threading.Event()

    def read() -> Iterator[str]:
        for text in texts:
            if is_interrupted.is_set():
                return
            yield text

    def learn() -> None:
        try:
            tokenizer.train_from_iterator(read(), trainer)
            result.set_result(None)
        except BaseException as error:
            result.set_exception(error)
        finally:
            is_over.set()

    thread = threading.Thread(target=learn, name="learning a BPE", daemon=True)
    try:
        thread.start()
        while not is_over.wait(timeout=0.1):
            pass
    except BaseException:
        is_interrupted.set()
        is_over.wait(timeout=0.5)  # the thread had better end before Python, if it ends soon
        raise
    result.result()


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


def _set_byte_level(tokenizer: Any, *patterns: Any) -> None:
    """Cut texts into words by the first pattern and words into parts by the next one, if there is
    one, and write the bytes of each part as printable characters."""
    from tokenizers import decoders, pre_tokenizers

    cuts = [pre_tokenizers.Split(pattern, "isolated") for pattern in patterns]
    characters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*cuts, characters])
    tokenizer.decoder = decoders.ByteLevel()


def merges_by_id(vocab: dict[AnyStr, int]) -> list[tuple[AnyStr, AnyStr]]:
    """Every pair of tokens that together form a token, in the order of that token's id.

    tiktoken merges any two neighbours that together form a token; with all such pairs listed, the
    Hugging Face format does the same.
    """
    pairs = []
    for token in sorted(vocab, key=vocab.__getitem__):
        for i in range(1, len(token)):
            left = token[:i]
            right = token[i:]
            if left in vocab and right in vocab:
                pairs.append((left, right))
    return pairs


# The Hugging Face format writes each byte as a printable character, as GPT-2 did: bytes that are
# printable in Latin-1 as themselves, the 68 others as the characters from U+0100 on.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_UNPRINTABLE = [byte for byte in range(256) if byte not in _PRINTABLE]
_CHARACTERS = {byte: chr(byte) for byte in _PRINTABLE}
_CHARACTERS |= {byte: chr(0x100 + i) for i, byte in enumerate(_UNPRINTABLE)}
_BYTES = {character: byte for byte, character in _CHARACTERS.items()}


def bytes_to_printable(token: bytes) -> str:
    """A token's bytes as the Hugging Face format writes them."""
    return "".join(_CHARACTERS[byte] for byte in token)


def printable_to_bytes(text: str) -> bytes:
    """The opposite of :func:`bytes_to_printable`."""
    try:
        return bytes(_BYTES[character] for character in text)
    except KeyError:
        raise ValueError(f"its token {text!r} is not written in bytes") from None
