"""Which voice of a run a text is nearest to: the one under which it has the lowest loss.

Of a long text a sample from all over it is read, once for each voice and once without.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .. import UserError
from ..config import EvaluationConfig
from ..data.corpus import Corpus, Part, encode_by_voice
from ..data.files import find_files
from ..data.source import check_text_field, read_again, read_corpus
from ..data.voices import mark_ids, voiced
from ..runs.find import find_model
from ..runs.found import FoundModel
from ..training import distributed
from ..training.evaluation import Evaluation, evaluate_windows, spread_windows
from ..training.messages import say
from .evaluate import computing

NO_VOICE = ""  # the name of the loss without a mark
_CHARACTERS = 100_000  # of a text
_TOKENS = 32_768  # of these, at most

Losses = dict[str, Evaluation]  # by the voice under which they are measured, NO_VOICE for none


def voices_of_text(run: str | Path, *files: str | Path, **settings: Any) -> Losses:
    """How well a model predicts a text in each of its voices, and in none.

    Args:
        run: anything that :func:`minigpt.load` takes, trained with voices.
        files: text files, folders or patterns.
        settings: fields of :class:`minigpt.EvaluationConfig`.

    Raises:
        UserError: as :func:`minigpt.evaluate`, or if the model has no voices.
    """
    config = EvaluationConfig(**settings)
    found = _with_voices(run)
    names = tuple(map(str, files))
    paths = find_files(names, reading=config.reading())
    check_text_field(paths, config.reading())
    text = read_corpus(Corpus(paths, config.reading()), names, say)

    lengths = text.scan.lengths
    part = Part(sum(lengths), text, cuts=lengths)
    (tokens,) = _tokens_by_voice(found, part).values()
    if len(tokens) < 2:
        raise UserError(f"{', '.join(names)}: too short, at least 2 tokens are needed")
    return _losses(found, tokens, config)


def voices_of_run(run: str | Path, **settings: Any) -> Mapping[str, Losses]:
    """How well a model predicts the validation text of each voice, in each of its voices.

    Arguments and errors as of :func:`voices_of_text`; UserError also if the text cannot be read
    again.
    """
    config = EvaluationConfig(**settings)
    found = _with_voices(run)
    assert found.config is not None
    _, validation = read_again(found.config.text, found.config.origin.fingerprint)
    texts = _tokens_by_voice(found, validation)
    return {
        name: _losses(found, texts[name], config)
        for name in _voices(found)
        if name in texts and len(texts[name]) >= 2
    }


def _with_voices(run: str | Path) -> FoundModel:
    found = find_model(run)
    if not _voices(found):
        raise UserError(f"{run} has no voices: it was trained without --voices")
    return found


def _voices(found: FoundModel) -> tuple[str, ...]:
    return () if found.config is None else found.config.origin.voices


def _tokens_by_voice(found: FoundModel, part: Part) -> dict[str, NDArray[np.integer[Any]]]:
    """A sample of a text as tokens, apart for each voice that it has."""
    count = max(len(set(part.corpus.voices)), 1)
    pieces: dict[str, list[NDArray[np.integer[Any]]]] = defaultdict(list)
    for voice, (_, ids) in encode_by_voice(found.tokenizer, part.at_most(count * _CHARACTERS)):
        pieces[voice].append(ids)
    return {voice: np.concatenate(own) for voice, own in pieces.items()}


def _losses(found: FoundModel, tokens: Any, config: EvaluationConfig) -> Losses:
    """The losses of some tokens behind each mark, and behind none."""
    marks = {name: mark_ids(found.tokenizer, name) for name in _voices(found)}
    marks[NO_VOICE] = []
    context_length = found.glass.config.context_length
    # The same windows for all, so that the marks alone make the difference.
    reach = context_length - max(map(len, marks.values()))
    device = distributed.device_of_rank(config.device)
    model = found.model.to(device)
    lengths = torch.tensor(found.tokenizer.byte_lengths())

    losses = {}
    with computing(config, device):
        for name, mark in marks.items():
            losses[name] = evaluate_windows(
                model,
                voiced(spread_windows(tokens, reach, _TOKENS), mark),
                lengths,
                context_length=context_length,
                at_once=config.batch_size,
            )
    return losses


def nearest(losses: Losses) -> str:
    """The voice with the lowest loss."""
    voices = [name for name in losses if name != NO_VOICE]
    return min(voices, key=lambda name: losses[name].bits_per_byte)
