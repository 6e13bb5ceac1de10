"""Two models beside one another: how well they predict the same text, and where they differ."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import UserError
from ..config import EvaluationConfig, TextConfig
from ..data.corpus import Corpus, Part
from ..data.files import each_once, find_files
from ..data.readers.document import title
from ..data.source import check_names, check_text_field, read_again, read_corpus
from ..runs.base import NO_TEXTS, is_base
from ..runs.find import check_is_name, find_model
from ..runs.read_model import FoundModel
from ..training import distributed
from ..training.messages import say
from .common_pieces import common_pieces
from .comparison import Comparison, Place, Side
from .contenders import Contender, CountingContender, ModelContender
from .counting import counting_model, means_counting
from .evaluate import Progress, computing
from .learned import files_learned_from
from .places import Found, Places

# Settings by which two runs that learned from the same text have the same validation text.
_SET_ASIDE = ("split", "validation_fraction", "max_characters")


@dataclass(frozen=True)
class _Text:
    """What the two are compared on."""

    title: str
    text: Corpus | Part
    read_by: tuple[bool | None, bool | None]  # whether each learned from it, if that is known

    @property
    def characters(self) -> int:
        if isinstance(self.text, Part):
            return self.text.size
        return sum(self.text.scan.lengths)


@dataclass
class _Sums:
    """What is added up over the pieces."""

    bytes: int = 0
    pieces: int = 0
    first: float = 0.0  # bits
    second: float = 0.0
    first_likelier: int = 0  # pieces
    second_likelier: int = 0


def compare(
    first: str | Path,
    second: str | Path,
    *files: str | Path,
    progress: Progress = lambda characters: None,
    **settings: Any,
) -> Comparison:
    """Compare two models on the same text, piece by piece, in constant memory.

    A piece is the shortest stretch of text at whose ends both models have a boundary between two
    tokens: with the same tokenizer a token. Each token is predicted as :func:`minigpt.evaluate`
    predicts it, so that loss and bits per byte are those that it returns; the bits of a piece are
    the sum over its tokens. That loss leaves out the first token, which nothing predicts. With two
    tokenizers the first tokens may differ in length: ``Comparison.bits`` is the sum over the pieces
    that both had to predict.

    Args:
        first: anything that :func:`minigpt.load` takes; or "counting", which counts which token
            follows which four in the text that the other one learned from, and uses its tokenizer.
        second: likewise; only one of the two may be "counting".
        files: text files, folders or patterns. If there are none, the text is the one that the runs
            were validated on: of two runs it must be the same.
        progress: called with the number of characters whenever some have been read, by either.
        settings: fields of :class:`minigpt.EvaluationConfig`, such as ``device="cpu"``.

    Returns:
        Figures of both, and the twenty places where the two differ most with what each expected
        there.

    Raises:
        UserError: if a model or the text cannot be read, there is no text that both were validated
            on and none is named, the text is too short, it holds something that a tokenizer does
            not know, or the tokenizers do not give back the same text.
    """
    config = EvaluationConfig(**settings)
    for name in (first, second):
        check_is_name(name)
    names = (str(first), str(second))
    if all(map(means_counting, names)):
        raise UserError("counting can be only one of the two; name a run beside it")

    device = distributed.device_of_rank(config.device)
    found = [None if means_counting(name) else find_model(name) for name in names]
    text = _find_text(names, found, files, config)
    models = [
        None if model is None else ModelContender(name, model, config, device)
        for name, model in zip(names, found, strict=True)
    ]

    with computing(config, device):
        return _compare(_contenders(models), text, progress)


def _contenders(models: list[ModelContender | None]) -> tuple[Contender, Contender]:
    """The two contenders. None in `models` stands for counting in the text of the other model."""
    first, second = models
    if first is not None and second is not None:
        return first, second
    model = first or second
    assert model is not None

    if is_base(model.found.folder):
        raise UserError(f"{NO_TEXTS}: nothing can be counted in them")
    try:
        counting = CountingContender(model, counting_model(model.found))
    except UserError as error:
        raise UserError(f"counting needs the text of {model.name}: {error}") from None
    return (model, counting) if second is None else (counting, model)


# Which text


def _find_text(
    names: tuple[str, str],
    found: list[FoundModel | None],
    files: tuple[str | Path, ...],
    config: EvaluationConfig,
) -> _Text:
    """The text that is named, or the one that the runs were validated on."""
    if files:
        return _named_text(found, files, config)

    runs = {
        name: model.config.text
        for name, model in zip(names, found, strict=True)
        if model is not None and model.config is not None and model.config.origin.text is not None
    }
    if not runs:
        raise UserError("neither has a validation text on this machine: name a text as well")
    if len(runs) == 2 and not _share_validation(found):
        raise UserError(
            f"{' and '.join(names)} were not validated on the same text: name a text as well, best "
            "one that neither has learned from"
        )

    owner = next(iter(runs))
    model = found[names.index(owner)]
    assert model is not None and model.config is not None
    try:
        _, validation = read_again(model.config.text, model.config.origin.fingerprint)
    except UserError as error:
        raise UserError(f"{owner}: {error}; name a text as well") from None
    read = [
        False if name in runs or model is None else None
        for name, model in zip(names, found, strict=True)
    ]
    return _Text(f"the validation text of {' and '.join(runs)}", validation, (read[0], read[1]))


def _share_validation(found: list[FoundModel | None]) -> bool:
    """Whether two runs were validated on the same text."""
    configs = [model.config for model in found if model is not None and model.config is not None]
    aside = {
        (config.origin.fingerprint, *(_said(config.text, name) for name in _SET_ASIDE))
        for config in configs
    }
    return len(aside) == 1


def _said(text: TextConfig, name: str) -> Any:
    """A setting that decides what is set aside; with a separate text to validate on, none does."""
    return None if text.validation else getattr(text, name)


def _named_text(
    found: list[FoundModel | None], files: tuple[str | Path, ...], config: EvaluationConfig
) -> _Text:
    names = tuple(map(str, files))
    reading = config.reading()
    paths = each_once(find_files(names, reading=reading))
    check_text_field(paths, reading)
    corpus = read_corpus(Corpus(paths, reading), names, say)
    check_names(corpus)

    models = [model or other for model, other in zip(found, reversed(found), strict=True)]
    # Counting has learned from the text of the other.
    read = [True if files_learned_from(model, corpus) else None for model in models]
    return _Text(" ".join(map(title, names)), corpus, (read[0], read[1]))


# What is found


def _compare(pair: tuple[Contender, Contender], text: _Text, progress: Progress) -> Comparison:
    sums = _Sums()
    places = Places(text.characters)
    first, second = (contender.predict(text.text, progress) for contender in pair)
    for piece in common_pieces(first, second):
        bits = piece.bits
        if bits is not None:
            sums.bytes += piece.size
            sums.pieces += 1
            sums.first += bits[0]
            sums.second += bits[1]
            sums.first_likelier += bits[1] - bits[0] >= 1.0
            sums.second_likelier += bits[0] - bits[1] >= 1.0
        places.add(piece, bits)

    if sums.bytes == 0:
        raise UserError(f"{text.title}: too short to compare on, a few words are needed")
    sides = [_side(*of_side) for of_side in zip(pair, text.read_by, strict=True)]
    return Comparison(
        text=text.title,
        characters=text.characters,
        sides=(sides[0], sides[1]),
        bytes=sums.bytes,
        bits=(sums.first, sums.second),
        pieces=sums.pieces,
        likelier=(sums.first_likelier, sums.second_likelier),
        places=tuple(_place(pair, found) for found in places.largest()),
    )


def _side(contender: Contender, has_read_it: bool | None) -> Side:
    result = contender.evaluation()
    return Side(
        name=contender.name,
        parameters=contender.parameters,
        context_length=result.context_length,
        tokens=result.tokens,
        bytes=result.bytes,
        loss=result.loss,
        bits_per_byte=result.bits_per_byte,
        has_read_it=has_read_it,
    )


def _place(pair: tuple[Contender, Contender], found: Found) -> Place:
    first, second = (
        contender.instead(context, found.piece.text)
        for contender, context in zip(pair, found.contexts, strict=True)
    )
    return Place(
        start=found.piece.start,
        before=found.before,
        text=found.piece.text,
        after=found.after,
        bits=found.bits,
        instead=(first, second),
    )
