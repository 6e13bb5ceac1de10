"""From sources to documents: read, clean, refuse, cut, write."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from minigpt import UserError

from . import prose, speech
from .document import Document
from .habits import written
from .heldout import HeldOut
from .readers import READERS
from .repeats import Repeats, fingerprint
from .sources import Source

ONE_OF = 145  # documents is for validation


@dataclass(frozen=True)
class Text:
    """A line of the corpus."""

    text: str
    source: str
    kind: str
    best: bool

    @property
    def number(self) -> int:
        """It decides where the document comes and whether it is for validation."""
        return fingerprint(self.source + self.text)


@dataclass
class Report:
    """What became of a source."""

    source: str
    documents: int = 0
    size: int = 0  # bytes
    dropped: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        line = f"{self.source}: {self.documents:,} documents, {self.size / 1e6:.2f} MB"
        reasons = ", ".join(
            f"{reason} {count:,}" for reason, count in (+self.dropped).most_common()
        )
        return f"{line}; dropped: {reasons}" if reasons else line


class Corpus:
    """Collects documents; it remembers them, to leave out what comes again."""

    def __init__(self, held_out: HeldOut) -> None:
        self.held_out = held_out
        self.repeats = Repeats()
        self.texts: list[Text] = []

    def add(self, source: Source, clones: Path) -> Report:
        """Read a source. UserError: its files are not there, or one of them cannot be read."""
        report = Report(source.name)
        paths = source.paths(clones)
        if not paths:
            raise UserError(
                f"{source.name}: no file {source.files} in {clones / source.repository}"
            )

        kept = []
        for path in paths:
            for document in documents(source, path):
                new = self.accepted(document, source.kind, report.dropped)
                if new:
                    kept.append(new)
        for document in at_most(kept, source.most * 1e6, report.dropped):
            text = Text(written(document), source.name, source.kind, source.best)
            report.documents += 1
            report.size += len(text.text.encode())
            self.texts.append(text)
        return report

    def accepted(self, document: Document, kind: str, dropped: Counter[str]) -> Document | None:
        """The document as it goes into the corpus; None, and a reason, if it does not."""
        if self.held_out.shares(document):
            dropped["document: sentences of a held-out text"] += 1
            return None
        allowed = [text for text in document.paragraphs if not self.held_out.resembles(text)]
        dropped["like a held-out text"] += len(document.paragraphs) - len(allowed)
        document = Document(allowed, document.dialogue)

        if document.dialogue:
            cleaned = speech.clean(document, dropped)
        else:
            cleaned = prose.clean(document, kind, dropped)
        return self.new(cleaned, dropped) if cleaned else None

    def new(self, document: Document, dropped: Counter[str]) -> Document | None:
        """What was not in an earlier document; None if hardly anything is left."""
        if self.repeats.known(document):
            dropped["document: nearly the same as another"] += 1
            return None
        if document.dialogue:
            return document

        fresh = self.repeats.fresh(document)
        dropped["was there before"] += len(document.paragraphs) - len(fresh)
        if sum(map(len, fresh)) < prose.LEAST:
            dropped["document: too short"] += 1
            return None
        return Document(fresh)

    def split(self) -> tuple[list[Text], list[Text]]:
        """The documents to train on and those to validate on, both in an order made by a hash."""
        ordered = sorted(self.texts, key=lambda text: text.number)
        train = [text for text in ordered if text.number % ONE_OF]
        validation = [text for text in ordered if text.number % ONE_OF == 0]
        return train, validation


def documents(source: Source, path: Path) -> list[Document]:
    """What the source's reader finds in a file; long documents in parts."""
    if source.format not in READERS:
        raise UserError(f"{source.name}: no reader has the name {source.format!r}")
    try:
        return [part for whole in READERS[source.format](path) for part in whole.parts()]
    except (OSError, KeyError, StopIteration, SyntaxError, ValueError) as error:
        raise UserError(f"{source.name}: {path} cannot be read: {error}") from error


def at_most(kept: list[Document], size: float, dropped: Counter[str]) -> list[Document]:
    """Whole documents of `size` bytes in all, chosen by a hash; their order stays."""
    chosen: set[int] = set()
    total = 0
    by_hash = sorted(range(len(kept)), key=lambda i: fingerprint("\n".join(kept[i].paragraphs)))
    for i in by_hash:
        length = sum(len(paragraph.encode()) for paragraph in kept[i].paragraphs)
        if total + length <= size:
            chosen.add(i)
            total += length
        else:
            dropped["document: more than the source's share"] += 1
    return [kept[i] for i in sorted(chosen)]
