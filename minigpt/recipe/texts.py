"""The text of a training: read, and made into tokens.

Python code may hand over documents, too; they are copied to a file.
"""

import contextlib
import itertools
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import UserError
from ..config import Settings, TextConfig, TrainConfig, check_fields
from ..data import token_cache
from ..data.batches import Dataset
from ..data.readers.document import STANDARD_INPUT, title
from ..data.source import Source, check_short_text
from ..data.temporary import LONGEST_NAME, spooled
from ..runs.begin import check_free
from ..runs.listing import free_name
from ..tokenizer import Tokenizer, TokenizerLike, as_tokenizer
from ..training import distributed
from ..training.messages import ToldBar, say
from .beginning import Beginning, beginning_of
from .reading import read_text
from .rules import vocabulary_of_words

_LONGEST_CONTEXT = 512  # tokens, that is planned
_CHARACTERS_IN_A_TOKEN = 5  # of English, or a little more than there are
_BESIDE_TRAINING = 2  # times what is trained on is copied: a part is to validate on
_FEWEST_CHARACTERS = 20_000_000  # which are quick to copy

Text = str | Path | Iterable[Any]  # a name, or documents


def prepare(*texts: Text, tokenizer: str | TokenizerLike = "bpe", **settings: Any) -> Dataset:
    """The tokens of a text, to train on with a :class:`minigpt.Trainer`.

    `texts` are names of files or documents, as :func:`minigpt.train` takes them. Files stay where
    they are; the tokens are kept in the user's cache folder, where the next call finds them.

    Args:
        texts: names of text files, folders or patterns, or documents; the plays if there are none.
        tokenizer: "bpe", learned from the text, "char", or one of tiktoken's such as "gpt2"; or a
            tokenizer: an object with ``encode(text)``, ``decode(ids)``, ``vocab_size`` and
            ``token_bytes(id)``.
        settings: further fields of :class:`minigpt.TextConfig`, such as ``vocab_size=400``.

    Raises:
        UserError: if a text cannot be read or is too short, or a setting is wrong.
    """
    own_tokenizer = None
    if isinstance(tokenizer, str):
        settings["tokenizer"] = tokenizer
    else:
        own_tokenizer = as_tokenizer(tokenizer)

    with named_texts(texts, settings, most_to_copy(settings)) as named:
        check_fields(TextConfig, named)
        beginning = beginning_of(Settings.given(named), tokenizer=own_tokenizer)
        source = read_source(beginning)
        config = beginning.settings.text
        if own_tokenizer is None and config.tokenizer == "bpe" and config.vocab_size is None:
            size = vocabulary_of_words(source.training.scan.text_bytes)
            config = replace(config, vocab_size=size)
        return tokens_of(source, config, beginning.tokenizer)


def read_source(beginning: Beginning, source: Source | None = None) -> Source:
    """The text of a run, read once unless it has been; what is too short is refused."""
    settings = beginning.settings
    config = settings.text
    if distributed.world_size() > 1 and STANDARD_INPUT in (*config.files, *config.validation):
        raise UserError("several processes cannot share standard input; write it to a file first")

    if source is None:
        return read_text(settings, beginning.tokenizer)
    check_short_text(source, config, settings.fixed("context_length"), beginning.tokenizer)
    return source


def tokens_of(
    source: Source,
    config: TextConfig,
    tokenizer: Tokenizer | None = None,
    tell_share: Callable[[float], None] = lambda share: None,
) -> Dataset:
    """The text as tokens; of several processes on a machine one makes them, the others wait.

    `tell_share` is told the share that is done, first of learning the tokenizer, then of the
    tokens; of neither if the tokens of the text are kept from an earlier time."""

    def progress(what: str, total: int) -> ToldBar:
        return ToldBar(what, total, tell_share)

    return token_cache.prepare_tokens(
        source, config, tokenizer=tokenizer, say=say, progress=progress
    )


@contextlib.contextmanager
def new_place(config: TextConfig, source: Source, out: str | Path | None) -> Iterator[Path]:
    """The folder of a new run: `out` or, if that is None, one in runs/ by the name of the text. A
    folder in runs/ is made at once, so that no other training takes it too. If the training fails
    and has left it empty, it is removed."""
    if out is not None:
        yield Path(out)
        return

    place = distributed.on_main(_make_place, config, source)
    try:
        yield place
    except BaseException:
        if distributed.is_main():
            for folder in (place, place.parent):
                with contextlib.suppress(OSError):  # not empty
                    folder.rmdir()
        raise


def _make_place(config: TextConfig, source: Source) -> Path:
    """Make a folder in runs/, by the name of the text, where none is yet."""
    named = Path(config.files[0])
    first = source.training.files[0]
    name = named.resolve().name if named.is_dir() else Path(title(first)).name.split(".")[0]
    while True:
        place = free_name(name)
        check_free(place)
        try:
            place.mkdir(parents=True)
            return place
        except FileExistsError:  # another training has made it since
            continue


# Texts that Python code hands over


@contextlib.contextmanager
def named_texts(
    texts: Iterable[Text], settings: Mapping[str, Any], most_characters: int | None = None
) -> Iterator[dict[str, Any]]:
    """Fields of a :class:`minigpt.TextConfig` with the names of these texts as its `files`, and of
    its `validation`. Documents are copied to temporary files, which last as long as the context;
    of documents with more than `most_characters`, only the first are copied."""
    if "files" in settings:
        raise UserError("texts come first, without a name: minigpt.train('my.txt', ...)")
    named = dict(settings)
    field = settings.get("text_field", TextConfig.text_field)
    validation = named.pop("validation", None)

    with contextlib.ExitStack() as copies:
        names = [name for text in texts for name in _names(text, field, copies, most_characters)]
        if names:
            named["files"] = tuple(names)
        # A table's column cannot be compared with ().
        is_usual = isinstance(validation, tuple) and len(validation) == 0
        if validation is not None and not is_usual:
            named["validation"] = _names(validation, field, copies, most_characters)
        yield named


def most_to_copy(settings: Mapping[str, Any]) -> int | None:
    """How many characters of documents a training with these settings can use, so that a stream
    without an end can be trained on; None if that is not known before the machine is measured."""
    names = ("max_characters", "steps", "batch_size", "context_length")
    given = {name: settings[name] for name in names if isinstance(settings.get(name), int)}
    if "max_characters" in given:
        return _BESIDE_TRAINING * given["max_characters"]
    if "steps" not in given:
        return None

    batch_size = given.get("batch_size", TrainConfig.batch_size)
    context_length = given.get("context_length", _LONGEST_CONTEXT)
    tokens = given["steps"] * batch_size * context_length
    return max(_BESIDE_TRAINING * _CHARACTERS_IN_A_TOKEN * tokens, _FEWEST_CHARACTERS)


def _names(
    text: Text, field: str, copies: contextlib.ExitStack, most_characters: int | None
) -> tuple[str, ...]:
    """The names of text files: those given, or that of a temporary copy of the documents."""
    if isinstance(text, str) and _cannot_be_a_name(text):
        raise UserError(
            f"{text[:20]!r}... is not the name of a file; put the text itself into a list"
        )
    if isinstance(text, str | Path):
        return (str(text),)

    is_table = isinstance(text, Mapping) or hasattr(text, "iterrows")  # of pandas
    if is_table or isinstance(text, bytes) or not isinstance(text, Iterable):
        shown = textwrap.shorten(repr(text), 40, placeholder="...")
        hint = "; give one of its columns or parts" if is_table else ""
        raise UserError(f"this is neither the name of a text nor documents: {shown}{hint}")

    documents = iter(text)
    first = list(itertools.islice(documents, 1))
    if first and isinstance(first[0], Path):
        return tuple(str(name) for name in (*first, *documents))
    wanted = _first(itertools.chain(first, documents), field, most_characters)
    copy = copies.enter_context(spooled(wanted, field))
    return (str(copy),)


def _cannot_be_a_name(text: str) -> bool:
    """Whether somebody has given a text itself: it has lines, or more letters between two slashes
    than a name may have."""
    return "\n" in text or max(map(len, re.split(r"[/\\]", text))) > LONGEST_NAME


def _first(documents: Iterator[Any], field: str, most_characters: int | None) -> Iterator[Any]:
    """Documents until they have so many characters."""
    characters = 0
    for document in documents:
        yield document
        text = document.get(field, document) if isinstance(document, Mapping) else document
        characters += len(text if isinstance(text, str) else repr(text))
        if most_characters is not None and characters >= most_characters:
            say(f"of these documents the first {characters:,} characters are read")
            return
