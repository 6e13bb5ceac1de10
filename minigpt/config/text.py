"""Which text is read, and how files become text: what `train`, `read` and `evaluate` are told."""

import codecs
import dataclasses
from dataclasses import dataclass
from typing import Literal

from .. import UserError
from .checked import Checked, Count, Factor, Fraction, Positive, VocabSize, require, setting

# Two texts come with minigpt. If no text is named, these are what is read.
PLAYS = "data/plays.txt"  # by a training
TALES = "data/tales.txt"  # by a lesson

_OF_HOSTS = ("idna", "punycode")  # encodings of the names of hosts, not of texts


@dataclass(frozen=True, kw_only=True)
class ReadingConfig(Checked):
    """How files become text."""

    text_field: str = setting(
        "text", "the field of .jsonl files, or the column of tables, that holds the text"
    )
    encoding: str | None = setting(
        None, "encoding of plain files, such as latin1 (default: UTF-8, UTF-16 or Windows-1252)"
    )
    raise_limits: Factor = setting(
        1.0, "multiply by this what a file may hold and how long it may take (docs/documents.md)"
    )

    plain: bool = setting(False, "read chats, interviews and plays as the text that they are")
    silence: Positive = setting(
        8.0, "hours without a message after which another conversation of a chat begins"
    )
    rename: tuple[str, ...] = setting(
        (), "'+49 170 1234567=Anna': what a speaker is called in the text; repeatable", "NAME=NAME"
    )
    anonymous: bool = setting(False, "call the speakers A, B, C; names inside messages stay")

    def _check(self) -> None:
        for words in self.rename:
            old, _, new = words.partition("=")
            if not old.strip() or not new.strip():
                raise UserError(
                    f"--rename must be NAME=NAME, such as '+49 170=Anna', got {words!r}",
                    kind="setting",
                )
        is_known = self.encoding is None or is_text_encoding(self.encoding)
        require(self, "encoding", is_known, "an encoding that Python knows, such as latin1")

    def reading(self) -> "ReadingConfig":
        """These settings alone, of a config that has more."""
        names = [field.name for field in dataclasses.fields(ReadingConfig)]
        return ReadingConfig(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class TextConfig(ReadingConfig):
    """Which text a model learns from, how it becomes tokens, and how their embeddings start."""

    files: tuple[str, ...] = setting(
        (PLAYS,),
        "files of text, Word, EPUB, PDF, HTML and more (docs/documents.md), folders, patterns "
        "('a/*.txt'), or - for standard input",
        "FILE",
    )
    validation: tuple[str, ...] = setting(
        (), "text to validate on, instead of a part of the text; repeatable", "FILE"
    )
    validation_fraction: Fraction = setting(
        0.1, "share of the text that is set aside to validate on"
    )
    split: Literal["documents", "end"] = setting(
        "documents", "set aside whole documents, or the end of the text"
    )
    max_characters: Count | None = setting(
        None, "use this many characters of a longer text, from all over it"
    )
    only: str | None = setting(
        None, "of conversations, learn to say what this speaker says; the others are only read"
    )
    tokenizer: str = setting(
        "bpe", "bpe (learned from the text), char, or one of tiktoken's, as gpt2"
    )
    vocab_size: VocabSize | None = setting(None, "number of tokens in the bpe vocabulary")
    embedding_init: Literal["text", "random"] = setting(
        "text", "start the token embeddings from counts of the text, or at random"
    )
    init: str | None = setting(
        None,
        "begin with this run, base, a model such as hf:gpt2, or none (default: base or none, "
        "whichever is expected to reach the lower loss)",
    )

    def _check(self) -> None:
        super()._check()
        require(self, "files", len(self.files) > 0, "at least one file")


@dataclass(frozen=True)
class EvaluationConfig(ReadingConfig):
    """How to measure how well a model predicts a text."""

    stride: Count | None = setting(
        None, "tokens from one sequence to the next; below the context length, they overlap"
    )
    batch_size: Count = setting(16, "sequences computed at once; fewer need less memory")
    device: str = setting("auto", "where to compute: auto, cpu, cuda, cuda:1 or mps")


def is_text_encoding(name: str) -> bool:
    """Whether Python can decode bytes to text by this name."""
    try:
        codecs.getincrementaldecoder(name)
        if codecs.lookup(name).name in _OF_HOSTS:
            return False
        return isinstance(b"aa==".decode(name, "replace"), str)
    except (LookupError, ValueError, TypeError):
        return False
