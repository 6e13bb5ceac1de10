"""Which of some files a model has learned from: a loss on these is no test of it."""

import contextlib
from pathlib import Path

from .. import UserError
from ..config import TextConfig
from ..data.corpus import Corpus
from ..data.files import find_files, identity
from ..data.readers.document import title
from ..data.source import Source
from ..runs.folder import read_plan
from ..runs.read_model import FoundModel


def files_learned_from(found: FoundModel | None, corpus: Corpus) -> list[str]:
    """The files of a scanned corpus that a run was trained on, whole or in part; files that it only
    validated on are left out. All files if the run read the same text, whatever its files are
    called now; no file if nothing is known of the model's text."""
    origin = None if found is None or found.config is None else found.config.origin
    if found is None or origin is None or origin.text is None:
        return []
    if Source(corpus, validation=None).fingerprint == origin.fingerprint:
        return [title(file) for file in corpus.files]

    held_out = read_plan(found.folder).get("held_out")
    names = held_out if isinstance(held_out, list) else []
    aside = {identity(Path(str(name))) for name in names}
    learned = {identity(file) for file in _training_files(origin.text)} - aside
    return [title(file) for file in corpus.files if identity(file) in learned]


def _training_files(text: TextConfig) -> list[Path]:
    """The files that a text to train on means now; those that are gone are left out."""
    files: list[Path] = []
    for name in text.files:
        if title(name) == name:  # no temporary copy
            with contextlib.suppress(UserError):
                files += find_files((name,), reading=text.reading())
    with contextlib.suppress(UserError):
        aside = {identity(file) for file in find_files(text.validation, reading=text.reading())}
        files = [file for file in files if identity(file) not in aside]
    return files
