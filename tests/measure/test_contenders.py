"""What a model or counting is asked when it is compared with another."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from minigpt.data.batches import Window
from minigpt.generation.window import Array, TokenIds
from minigpt.measure.contenders import Contender
from minigpt.tokenizer import make_tokenizer
from minigpt.training.evaluation import Predictions

TOKENIZER = make_tokenizer("bpe", 300, ["Anna: hi\n\n" * 9], has_turns=True)


class Wishing(Contender):
    """Finds some tokens likely, whatever it sees, each twice as likely as the next."""

    def __init__(self, ids: list[Any]):
        found: Any = SimpleNamespace(tokenizer=TOKENIZER)
        super().__init__("wishing", 0, found, stride=1, length=1)
        self.logits = np.full(TOKENIZER.vocab_size, -99.0, np.float32)
        self.logits[ids] = -np.log(2) * np.arange(len(ids))

    def _predictions(self, windows: Iterator[Window]) -> Iterator[Predictions]:
        raise NotImplementedError

    def _logits_after(self, context: TokenIds) -> Array:
        return self.logits


def test_only_the_end_of_a_document_is_called_end() -> None:
    letter = TOKENIZER.encode("z")[-1]  # after the mark of a turn
    contender = Wishing([TOKENIZER.speaker, TOKENIZER.end_of_text, letter])
    mark = f"({TOKENIZER.speaker})"
    nowhere = np.zeros(0, np.int64)
    after = [guess.text for guess in contender.instead(nowhere, "Anna")]
    at_end = [guess.text for guess in contender.instead(nowhere, "")]
    assert after == [mark, "(end)", "z"]
    assert at_end[:2] == [mark, "z"] and "(end)" not in at_end
