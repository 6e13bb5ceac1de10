"""What `minigpt evaluate` does from start to end: how well a model predicts a text of any size."""

import dataclasses
import itertools
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from .. import UserError
from ..config import EvaluationConfig
from ..data.corpus import Corpus, chunks, find_files
from ..runs import find_model
from ..tokenizer import Tokenizer, encode_in_pieces
from .evaluation import Evaluation, evaluate_windows, sliding_windows
from .processes import joined


@dataclass(frozen=True)
class Measurement(Evaluation):
    """The cross-entropy of a text under a model, and the windows that it was read in."""

    context_length: int  # tokens in a window
    stride: int  # from one to the next


def evaluate(run: str | Path, *files: str | Path, **settings: Any) -> Measurement:
    """How well a model predicts every token of a text but the first, in constant memory.

    Processes that torchrun has started do it together, with the same result to the last bit.

    Args:
        run: anything that :func:`minigpt.load` takes.
        files: text files, folders or patterns; documents follow each other as in training.
        settings: fields of :class:`~minigpt.EvaluationConfig`, such as ``stride=64``.

    Returns:
        Its loss, bits per byte and perplexity, and of how many tokens and bytes.

    Raises:
        UserError: if the model or the text cannot be read, the text holds fewer than two tokens
            or something that the tokenizer does not know, or the stride is above the context
            length.
    """
    config = EvaluationConfig(**settings)
    corpus = Corpus(find_files(tuple(map(str, files))), config.text_field)
    found = find_model(run)
    context_length = found.model.config.context_length
    stride = context_length if config.stride is None else config.stride
    if stride > context_length:
        raise UserError(
            f"stride must be at most {context_length}, the context length of {run}, got {stride}"
        )
    windows = sliding_windows(_ids(found.tokenizer, corpus), context_length, stride)
    if (first := next(windows, None)) is None:
        names = ", ".join(map(str, files))
        raise UserError(f"{names}: too short to evaluate on, at least 2 tokens are needed")
    with joined() as processes:
        result = evaluate_windows(
            found.model.to(processes.device(config.device)),
            itertools.chain([first], windows),
            torch.tensor(found.tokenizer.byte_lengths()),
            batch_size=config.batch_size,
            processes=processes,
        )
    if not math.isfinite(result.loss):
        raise UserError(f"{run} is damaged: its loss is {result.loss}")
    return Measurement(**dataclasses.asdict(result), context_length=context_length, stride=stride)


def print_evaluation(
    run: str, files: tuple[str, ...], settings: dict[str, Any], as_json: bool
) -> None:
    """Evaluate, and print one line, or one JSON record, to standard output.

    Args:
        run: as for :func:`evaluate`.
        files: as there.
        settings: as there.
        as_json: whether to print a record.

    Raises:
        UserError: as there.
    """
    result = evaluate(run, *files, **settings)
    if as_json:
        figures = {**dataclasses.asdict(result), "perplexity": result.perplexity}
        print(json.dumps({"run": run, "files": files, **figures}), flush=True)
        return
    print(
        f"{run}: {result.loss:.4f} nats/token, {result.bits_per_byte:.4f} bits/byte, perplexity "
        f"{result.perplexity:.2f} ({result.tokens:,} tokens, context {result.context_length}, "
        f"stride {result.stride})",
        flush=True,
    )


def _ids(tokenizer: Tokenizer, corpus: Corpus) -> Iterator[NDArray[np.uint32]]:
    """The tokens of a corpus as they are encoded, with a bar."""
    with tqdm(
        unit="char", unit_scale=True, desc="evaluating", delay=1, leave=False, disable=None,
        file=sys.stderr,
    ) as bar:  # fmt: skip
        for characters, ids in encode_in_pieces(tokenizer, chunks(corpus.documents())):
            yield ids
            bar.update(characters)
