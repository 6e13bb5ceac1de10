"""Where the text of a run comes from: the files that it names, and what is set aside of them.

A `Source` is the text to train on and, if that is separate, the text to validate on. `split` makes
two parts of it, which corpus.py reads, and three checks refuse a text that is too short. No torch
is needed.
"""

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from .. import UserError
from ..config import SMALLEST_VOCABULARY, ReadingConfig, TextConfig
from ..system.shown import plural
from ..tokenizer import Tokenizer, make_tokenizer
from .corpus import CHANGED, Corpus, Part, TellShare, encode
from .dialogue import Dialogue
from .files import Say, each_once, find_files, identity
from .origin import Origin
from .readers.content import version_of
from .readers.document import STANDARD_INPUT, problems, title
from .readers.kinds import has_fields

_TO_VALIDATE = 1 << 20  # characters, if they are a sample; evaluations read fewer
_ENOUGH_DOCUMENTS = 10  # to learn from them how one begins
_NOBODY_SPEAKS = "is for chats, interviews and plays; none was recognised"
_MOST_NUMBERS = 100  # of documents of a file that are held out
# Characters. A shorter text is planned with the smallest vocabulary, so its tokens can be known
# at once; a longer one has enough of them.
_SHORT = 1 << 15


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
    tell_share: TellShare = lambda file, share: None,
) -> Source:
    """The files of the text that `config` names. A file to validate on is not trained on. Where
    whole documents are set aside, each file is read once: no document is on both sides.

    `tell_share` is told which share of the text to train on has been read, and which file is."""
    names = [*config.files, *config.validation]
    if names.count(STANDARD_INPUT) > 1:
        raise UserError("standard input can be read once only; write it to a file first")

    reading = config.reading()
    files = find_files(config.files, say, reading)
    to_validate = find_files(config.validation, say, reading) if config.validation else ()
    check_text_field((*files, *to_validate), reading)
    if config.split == "end" and to_validate:
        say("--split end does nothing beside --validation")

    left_out = {identity(file) for file in to_validate}  # even where these have other names
    files = tuple(file for file in files if identity(file) not in left_out)
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
    check_names(source.training)
    talk = source.training.scan.talk
    if talk is None and config.only:
        raise UserError(f"--only {_NOBODY_SPEAKS}", kind="setting")
    if talk is not None and config.only is not None:
        Dialogue(talk.speakers).find(config.only)


def check_names(corpus: Corpus) -> None:
    """Refuse to give speakers other names if nobody speaks, or if one of them does not."""
    talk = corpus.scan.talk
    for name in ("rename", "anonymous"):
        if talk is None and getattr(corpus.reading, name):
            raise UserError(f"--{name} {_NOBODY_SPEAKS}", kind="setting")

    if talk is not None and talk.not_found:
        said = Dialogue(talk.speakers).listed()
        missing = f"there is no speaker {talk.not_found[0]!r}; there are {said}"
        raise UserError(f"--rename: {missing}", kind="setting")


def read_corpus(
    corpus: Corpus,
    names: tuple[str, ...],
    say: Say,
    tell_share: TellShare = lambda file, share: None,
) -> Corpus:
    """The files that can be read, scanned. `say` is told which files cannot, and what else a person
    should know of a file. UserError if there is no text, or the only file cannot be read; `names`
    are what was typed."""
    corpus, reports = corpus.readable(tell_share)
    for line in problems(reports):
        say(line)

    if len(corpus.scan.lengths) == 0:
        raise UserError(f"there is no text in {' '.join(map(title, names))}", kind="empty")
    return corpus


def check_text_field(files: Iterable[Path], reading: ReadingConfig) -> None:
    """Refuse a `text_field` other than the default if no file has fields: it would be ignored."""
    is_usual = reading.text_field == ReadingConfig.text_field
    if not is_usual and not any(has_fields(file, reading) for file in files):
        kinds = "for files with rows (.jsonl, .csv, .tsv, .parquet), and there is none"
        raise UserError(f"--text-field {reading.text_field} is {kinds}", kind="setting")


def find_again(config: TextConfig, fingerprint: str, say: Say = lambda line: None) -> Source:
    """The text that a run learned from; UserError if it cannot be read again or has changed."""
    check_is_in_files(config)
    source = find_source(config, say)
    if source.fingerprint != fingerprint:
        files = " ".join(config.files)
        raise UserError(f"{files} has changed since the run learned from it", kind="text_changed")
    return source


def check_is_in_files(config: TextConfig) -> None:
    """Refuse to read a text again that was never in files of the user's."""
    names = [*config.files, *config.validation]
    if any(title(name) != name for name in names):  # of a temporary copy
        given = "standard input or from documents given in Python, which cannot be read again"
        raise UserError(f"the run learned from {given}", kind="text_gone")


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
    if most is None:
        return training, validation
    # An eighth as much to validate on, or more if that is too little for an evaluation.
    most_to_validate = min(most, max(most // 8, _TO_VALIDATE))
    return training.at_most(most), validation.at_most(most_to_validate)


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


# Whether it is long enough


def check_short_text(
    source: Source,
    config: TextConfig,
    context_length: int | None = None,
    tokenizer: Tokenizer | None = None,
) -> None:
    """Refuse a short text that would not pass :func:`check_counts` or :func:`check_context`.

    It never refuses a text that would pass; a long one passes here whatever its tokens are.
    `context_length` is None where it is planned; a `tokenizer` replaces the one of `config`.
    """
    training, validation = split(source, config)
    is_short = training.size <= _SHORT
    if not is_short and validation.size > _SHORT:
        return

    if tokenizer is None and (is_short or config.tokenizer not in ("bpe", "char")):
        learned_from = [training, validation] if config.tokenizer == "char" else [training]
        vocab_size = config.vocab_size or SMALLEST_VOCABULARY
        texts = (piece.text for part in learned_from for piece in part.pieces())
        tokenizer = make_tokenizer(config.tokenizer, vocab_size, texts, has_turns=source.has_turns)

    tokens = _count(training, tokenizer) if is_short else training.size
    others = _count(validation, tokenizer) if validation.size <= _SHORT else validation.size
    check_counts(tokens, others, config)
    if is_short and context_length is not None:
        check_context(tokens, context_length)


def check_counts(training: int, validation: int, config: TextConfig) -> None:
    """Refuse a text with fewer than two tokens to train on, or to validate on."""
    if min(training, validation) >= 2:
        return

    remedy = "use a longer text"
    if config.validation and training >= 2:
        remedy = "use a longer --validation text"
    elif config.max_characters is not None:
        remedy = "use a larger --max-characters"
    raise UserError(
        f"the text is too short: it has {plural(training, 'token')} to train on and "
        f"{validation:,} to validate on, but at least 2 of each are needed; {remedy}",
        kind="too_short",
    )


def check_context(training: int, context_length: int) -> None:
    """Refuse a training text of so few tokens that they do not fill a window and its next token."""
    if training <= context_length:
        raise UserError(
            f"the training text has {plural(training, 'token')}, too few for context_length "
            f"{context_length:,}; use a longer text or --context-length {training - 1}",
            kind="setting",
        )


def _count(part: Part, tokenizer: Tokenizer | None) -> int:
    """How many tokens a text gives; at most its bytes, if the tokenizer is not known yet."""
    if tokenizer is None:
        return sum(len(piece.text.encode()) for piece in part.pieces())
    return sum(len(ids) for _, ids in encode(tokenizer, part))
