"""What can be compared: a model, or counting in the text that a model learned from. Both say how
well they predict every token of a text, and which tokens they find likely instead."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
import torch

from .. import UserError
from ..config import EvaluationConfig
from ..data.batches import Window, windows_of_stream
from ..data.corpus import Corpus, Part
from ..data.counting import ORDER, CountingModel
from ..generation.sampler import likeliest
from ..generation.torch_gpt import TorchGPT
from ..generation.window import Array, TokenIds
from ..runs.read_model import FoundModel
from ..system.shown import visible
from ..tokenizer import UnknownCharacter
from ..training.evaluation import Evaluation, Predictions, Totals, evaluation_of, predictions
from .common_pieces import PredictedToken
from .comparison import Guess
from .counting import COUNTING
from .evaluate import Progress, counting_length, ids_of, stride_of

_GUESSES = 3  # to show


class Contender(ABC):
    """A model, or counting, that is compared with another."""

    def __init__(self, name: str, parameters: int, found: FoundModel, stride: int, length: int):
        """`found` is the model or, for counting, the model whose text and tokenizer counting uses.
        Windows of `length` tokens begin `stride` tokens after one another."""
        self.name = name
        self.parameters = parameters
        self.found = found
        self.stride = stride
        self._length = length
        self._byte_lengths = torch.tensor(found.tokenizer.byte_lengths())  # (vocab_size,)
        self._totals: list[Totals] = []

    @abstractmethod
    def _predictions(self, windows: Iterator[Window]) -> Iterator[Predictions]:
        """The losses of all windows, some at a time."""

    @abstractmethod
    def _logits_after(self, context: TokenIds) -> Array:
        """The logits of the token that follows some tokens ``(T,)``: ``(vocab_size,)``."""

    def predict(self, text: Corpus | Part, progress: Progress) -> Iterator[PredictedToken]:
        """Every token of the text, in the windows in which `evaluate` reads it.

        Raises:
            UserError: if the tokenizer does not know a character, or a loss is not a number.
        """
        tokenizer = self.found.tokenizer
        token_bytes = [tokenizer.token_bytes(i) for i in range(tokenizer.vocab_size)]

        def token(token_id: int, nats: float | None, context: TokenIds) -> PredictedToken:
            is_end = token_id == tokenizer.end_of_text
            return PredictedToken(token_bytes[token_id], is_end, nats, context)

        ids = ids_of(tokenizer, text, progress)
        windows = windows_of_stream(ids, self._length, self.stride)
        is_first = True
        try:
            for group in self._predictions(windows):
                totals = group.totals(self._byte_lengths)
                if not math.isfinite(totals.nats):
                    raise UserError(f"{self.name} is damaged: its loss is {totals.nats}")
                self._totals.append(totals)

                rows = group.inputs.numpy()  # (b, T)
                if is_first:  # nothing predicts the first token
                    is_first = False
                    yield token(int(rows[0, 0]), None, rows[0, :0])
                is_counted = group.targets >= 0  # (b, T)
                places = is_counted.nonzero().tolist()  # of each target: its row, its place in it
                targets = group.targets[is_counted].tolist()
                losses = group.nats[is_counted].tolist()
                for (row, place), target, nats in zip(places, targets, losses, strict=True):
                    yield token(target, nats, rows[row, : place + 1])
        except UnknownCharacter as unknown:
            raise UserError(f"{self.name}: {unknown}") from None

    def evaluation(self) -> Evaluation:
        """What `evaluate` returns for the text, once all of it is predicted."""
        context_length = self.found.glass.config.context_length
        return evaluation_of(self._totals, context_length=context_length, stride=self.stride)

    def instead(self, context: TokenIds, text: str) -> tuple[Guess, ...]:
        """What it finds likeliest after some tokens ``(T,)``, other than how `text` begins; where
        there is no text, a document ends."""
        logits = self._logits_after(context)
        ((ids, nats),) = likeliest(logits[None], 2 * _GUESSES)

        guesses = []
        for token_id, log_probability in zip(ids, nats, strict=True):
            token = self.found.tokenizer.token_bytes(token_id)
            is_end = token_id == self.found.tokenizer.end_of_text
            is_it = text.encode().startswith(token) if token else is_end and not text
            if not is_it:
                name = visible(token) or ("(end)" if is_end else f"({token_id})")
                guesses.append(Guess(name, math.exp(log_probability)))
        return tuple(guesses[:_GUESSES])


class ModelContender(Contender):
    """A model: a run, the base, or one of another program."""

    def __init__(
        self, name: str, found: FoundModel, config: EvaluationConfig, device: torch.device
    ):
        self._model = found.model.to(device)
        stride = stride_of(found, config)
        length = found.glass.config.context_length
        super().__init__(name, found.glass.num_parameters, found, stride, length)
        self._at_once = config.batch_size

    def _predictions(self, windows: Iterator[Window]) -> Iterator[Predictions]:
        return predictions(self._model, windows, at_once=self._at_once)

    def _logits_after(self, context: TokenIds) -> Array:
        return TorchGPT(self._model)(context[None])[0, -1]


class CountingContender(Contender):
    """Counting which token follows which four in the text that a model learned from."""

    def __init__(self, model: Contender, counting: CountingModel):
        context_length = model.found.glass.config.context_length
        length = counting_length(context_length, stride=model.stride)
        super().__init__(COUNTING, 0, model.found, stride=length, length=length)
        self._counting = counting

    def _predictions(self, windows: Iterator[Window]) -> Iterator[Predictions]:
        for found in self._counting.predictions(windows):
            yield Predictions(*map(torch.from_numpy, found))

    def _logits_after(self, context: TokenIds) -> Array:
        candidates = np.arange(self._counting.vocab_size)[:, None]  # (vocab_size, 1)
        seen = np.tile(context[1 - ORDER :], (len(candidates), 1))  # (vocab_size, 4 at most)
        continued = np.concatenate((seen, candidates), axis=1)
        return self._counting.log_probabilities(continued)[:, -1]
