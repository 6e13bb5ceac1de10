"""Where the text of a run comes from: the files that it names, and what is set aside of them.

A `Source` is the text to train on and, if that is separate, the text to validate on. `split` makes
two parts of it. corpus.py reads them.
"""

import contextlib
import hashlib
import json
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from .. import UserError
from ..config import ReadingConfig, TextConfig
from .corpus import CHANGED, Corpus, Part, ShareRead, TellShare
from .dialogue.dialogue import Dialogue
from .dialogue.rows import is_conversation
from .documents.summary import problems
from .file_version import version_of
from .files import Say, each_once, find_files, identity
from .origin import Origin
from .readers import STANDARD_INPUT, has_fields, title, value_in
from .temporary import temporary_copy

_TO_VALIDATE = 1 << 20  # characters, if they are a sample; evaluations read fewer
_MAYBE_NAMES = 100  # documents that are checked for being the names of files
_ENOUGH_DOCUMENTS = 10  # to learn from them how one begins
_MOST_NUMBERS = 100  # of documents of a file that are held out
LONGEST_NAME = 255  # characters, of a file or a folder


@dataclass(frozen=True)
class Source:
    """The text of a run: what to train on, and what to validate on if that is separate."""

    training: Corpus  # and to validate on, if there is no other
    validation: Corpus | None

    @property
    def fingerprint(self) -> str:
        """A hash of all of it."""
        training = self.training.scan.fingerprint
        validation = self.validation.scan.fingerprint if self.validation else None
        return hashlib.sha256(json.dumps([training, validation]).encode()).hexdigest()

    @property
    def text_bytes(self) -> int:
        """Bytes of all of it, in UTF-8."""
        training = self.training.scan.text_bytes
        validation = self.validation.scan.text_bytes if self.validation else 0
        return training + validation

    @property
    def dialogue(self) -> Dialogue | None:
        """Who speaks in it, if most of the text is conversations."""
        talk = self.training.scan.talk
        if talk is None or talk.characters < sum(self.training.scan.lengths) / 2:
            return None
        return Dialogue(talk.speakers, talk.layout)

    @property
    def has_turns(self) -> bool:
        """Whether all of its documents are conversations that were made into turns."""
        return all(
            corpus.scan.talk is not None
            and corpus.scan.talk.conversations == len(corpus.scan.lengths)
            for corpus in filter(None, (self.training, self.validation))
        )

    def origin(self, config: TextConfig) -> Origin:
        """What a dataset of this text remembers of it."""
        scan = self.training.scan
        # A model that is trained further knows bytes from before, which this text may not have.
        alphabet = bytes(sorted(scan.alphabet)).hex() if config.init is None else ""
        return Origin(
            text=config,
            fingerprint=self.fingerprint,
            knows_documents=len(scan.lengths) >= _ENOUGH_DOCUMENTS,
            alphabet=alphabet,
            dialogue=self.dialogue,
        )

    def check_unchanged(self) -> None:
        """Refuse files that were written to after they were scanned."""
        for corpus in filter(None, (self.training, self.validation)):
            for file, version in zip(corpus.files, corpus.scan.versions, strict=True):
                if version_of(file) != version:
                    raise UserError(f"{title(file)} {CHANGED}", kind="text_changed")


# Which files


def find_source(
    config: TextConfig,
    say: Say = lambda line: None,
    tell_share: TellShare = lambda share: None,
) -> Source:
    """The files of the text that `config` names. A file to validate on is not trained on. Where
    whole documents are set aside, each file is read once: no document is on both sides.

    `tell_share` is told which share of the text to train on has been read."""
    names = [*config.files, *config.validation]
    if names.count(STANDARD_INPUT) > 1:
        raise UserError("standard input can be read once only; write it to a file first")

    reading = config.reading()
    files = find_files(config.files, say, reading)
    to_validate = find_files(config.validation, say, reading) if config.validation else ()
    check_text_field((*files, *to_validate), reading)
    if config.split == "end" and to_validate:
        say("--split end does nothing beside --validation")

    files = _without(files, to_validate)
    if not files:
        raise UserError(f"{' '.join(config.files)} is validation text too; train on another text")
    if config.split == "documents":
        files = each_once(files)

    training = read_corpus(Corpus(files, reading), config.files, say, tell_share)
    source = Source(training, validation=None)
    if to_validate:
        talk = training.scan.talk
        speakers = () if talk is None else talk.files_speakers
        validation = Corpus(to_validate, reading, known_speakers=speakers)
        source = Source(training, read_corpus(validation, config.validation, say))
    _check_speakers(source, config)
    return source


def _check_speakers(source: Source, config: TextConfig) -> None:
    """Refuse settings of conversations if there are none, or if they name nobody who speaks."""
    talk = source.training.scan.talk
    for name in ("rename", "anonymous", "only"):
        if talk is None and getattr(config, name):
            raise UserError(
                f"--{name} is for chats, interviews and plays; none was recognised", kind="setting"
            )

    if talk is not None and talk.not_found:
        said = Dialogue(talk.speakers).listed()
        missing = f"there is no speaker {talk.not_found[0]!r}; there are {said}"
        raise UserError(f"--rename: {missing}", kind="setting")
    if talk is not None and config.only is not None:
        Dialogue(talk.speakers).find(config.only)


def read_corpus(
    corpus: Corpus,
    names: tuple[str, ...],
    say: Say,
    tell_share: TellShare = lambda share: None,
) -> Corpus:
    """The files that can be read, scanned. `say` is told which files cannot, and what else a person
    should know of a file. UserError if there is no text, or the only file cannot be read; `names`
    are what was typed."""
    corpus, reports = corpus.readable(ShareRead(corpus.files, tell_share))
    for line in problems(reports):
        say(line)

    if len(corpus.scan.lengths) == 0:
        raise UserError(f"there is no text in {' '.join(map(title, names))}", kind="empty")
    return corpus


def _without(files: tuple[Path, ...], others: tuple[Path, ...]) -> tuple[Path, ...]:
    """The `files` without the `others`, even where these have other names."""
    left_out = {identity(file) for file in others}
    return tuple(file for file in files if identity(file) not in left_out)


def check_text_field(files: Iterable[Path], reading: ReadingConfig) -> None:
    """Refuse a `text_field` other than the default if no file has fields: it would be ignored."""
    is_usual = reading.text_field == ReadingConfig.text_field
    if not is_usual and not any(has_fields(file, reading) for file in files):
        kinds = "for files with rows (.jsonl, .csv, .tsv, .parquet), and there is none"
        raise UserError(f"--text-field {reading.text_field} is {kinds}", kind="setting")


def find_again(config: TextConfig, fingerprint: str, say: Say = lambda line: None) -> Source:
    """The text that a run learned from; UserError if it cannot be read again or has changed."""
    names = [*config.files, *config.validation]
    if any(title(name) != name for name in names):  # of a temporary copy
        given = "standard input or from documents given in Python, which cannot be read again"
        raise UserError(f"the run learned from {given}", kind="text_gone")

    source = find_source(config, say)
    if source.fingerprint != fingerprint:
        files = " ".join(config.files)
        raise UserError(f"{files} has changed since the run learned from it", kind="text_changed")
    return source


def read_again(config: TextConfig, fingerprint: str) -> tuple[Part, Part]:
    """What a run was trained and validated on, as :func:`split` returns it; errors as of
    :func:`find_again`."""
    return split(find_again(config, fingerprint), config)


# What is set aside


def split(source: Source, config: TextConfig) -> tuple[Part, Part]:
    """What to train on, and what to validate on."""
    corpus = source.training
    lengths = corpus.scan.lengths
    most = config.max_characters

    if source.validation is not None:  # both texts are used whole: cut at their ends
        training = Part(sum(lengths), corpus, cuts=lengths)
        others = source.validation.scan.lengths
        validation = Part(sum(others), source.validation, cuts=others)
        return training.at_most(most), validation

    cuts = array("Q", _cuts(lengths, config))
    training = Part(sum(cuts), corpus, cuts)
    validation = Part(sum(lengths) - sum(cuts), corpus, cuts, after_cut=True)
    return training.at_most(most), validation.at_most(_most_to_validate(most))


def held_out(source: Source, config: TextConfig) -> tuple[str, ...]:
    """What is validated on, in words for each file that has a part in it: the whole file, its end,
    or documents of the file by their numbers."""
    if source.validation is not None:
        return tuple(map(title, source.validation.files))

    corpus = source.training
    lengths = iter(corpus.scan.lengths)
    cuts = _cuts(corpus.scan.lengths, config)
    names = []
    for report in corpus.scan.reports:
        parts = list(zip(islice(lengths, report.documents), cuts, strict=False))
        aside = [n for n, (length, cut) in enumerate(parts, start=1) if cut < length]
        name = title(report.file)
        if aside and len(parts) > 1:
            shown = ", ".join(map(str, aside[:_MOST_NUMBERS]))
            more = ", ..." if len(aside) > _MOST_NUMBERS else ""
            names.append(f"{name}, of its {len(parts):,} documents number {shown}{more}")
        elif aside:
            ((_, cut),) = parts
            names.append(name if cut == 0 else f"the end of {name}")
    return tuple(names)


def _most_to_validate(most: int | None) -> int | None:
    """How many characters to validate on if at most `most` are trained on: an eighth, or more if
    that is too little for an evaluation."""
    if most is None:
        return None
    return min(most, max(most // 8, _TO_VALIDATE))


def _cuts(lengths: Sequence[int], config: TextConfig) -> Iterator[int]:
    """Where each document is cut: the characters before the cut are trained on."""
    if config.split == "documents" and len(lengths) > 1:
        chosen = set_aside(lengths, config.validation_fraction)
        for length, is_aside in zip(lengths, chosen, strict=True):
            yield 0 if is_aside else length
        return

    left = int(sum(lengths) * (1 - config.validation_fraction))  # characters before the cut
    for length in lengths:
        cut = min(length, left)
        left -= cut
        yield cut


def set_aside(lengths: Sequence[int], fraction: float) -> bytearray:
    """For each document, 1 if it is set aside, else 0.

    One after the other, a document is set aside if that brings the share so far nearer to
    `fraction`. At least one is set aside, and at least one is not.
    """
    chosen = bytearray()
    owed = 0.0  # characters that should have been set aside by now, less those that were
    for length in lengths:
        owed += fraction * length
        is_aside = owed > length / 2
        chosen.append(is_aside)
        if is_aside:
            owed -= length

    # If all are on one side, the document that fits best goes to the other.
    if not any(chosen):
        best = _nearest(lengths, sum(lengths) * fraction)
        chosen[best] = 1
    elif all(chosen):
        best = _nearest(lengths, sum(lengths) * (1 - fraction))
        chosen[best] = 0
    return chosen


def _nearest(lengths: Sequence[int], wanted: float) -> int:
    """The number of the document whose length is nearest to `wanted`; of equals, the last."""
    last_first = reversed(range(len(lengths)))
    return min(last_first, key=lambda number: abs(lengths[number] - wanted))


# Documents that are in no file


@contextlib.contextmanager
def spooled(documents: Iterable[Any], text_field: str) -> Iterator[Path]:
    """A temporary .jsonl file of documents: texts, or rows of a dataset that hold one or are
    conversations. Its reader says which have no text."""
    with temporary_copy("documents") as file:
        with open(file, "wb") as copy:
            for number, document in enumerate(documents, start=1):
                if isinstance(document, str) and number <= _MAYBE_NAMES:
                    _refuse_name(document, number)
                copy.write(_line_of(_row_of(document, text_field)))
        yield file


def _row_of(document: Any, text_field: str) -> dict[str, Any]:
    """A document as a row: its text, or all of a conversation. Of a row without either only the
    names of its fields are left."""
    if isinstance(document, Mapping) and text_field not in document:
        return dict(document if is_conversation(document) else dict.fromkeys(document))
    text = document if isinstance(document, str) else value_in(document, text_field)
    return {text_field: text if isinstance(text, str) else None}


def _line_of(row: dict[str, Any]) -> bytes:
    """A row as a line in JSON; what JSON does not have is null."""
    try:
        line = json.dumps(row, ensure_ascii=False, default=lambda value: None).encode()
    except UnicodeEncodeError:  # half a surrogate pair
        line = json.dumps(row, default=lambda value: None).encode()
    return line + b"\n"


def _refuse_name(document: str, number: int) -> None:
    """Refuse a document that is the name of a file: a list of names would else be the text."""
    may_be_a_name = 0 < len(document) <= LONGEST_NAME and "\0" not in document
    if may_be_a_name and os.path.isfile(document):
        remedy = "give its name itself, or several as Paths"
        raise UserError(f"document {number} is {document!r}, the name of a file; {remedy}")
