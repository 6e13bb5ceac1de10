"""A trained model with its tokenizer, ready to write: `minigpt.load(run)`."""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from ..config import SampleConfig
from ..model import GPT
from ..tokenizer import Tokenizer
from .decode import decode
from .sampling import sample


@dataclass(frozen=True)
class Writer:
    """Generates text.

    Attributes:
        model: the GPT; called on ids ``(b, T)`` it gives logits ``(b, T, vocab_size)``.
        tokenizer: has encode(text), decode(ids) and vocab_size.
    """

    model: GPT
    tokenizer: Tokenizer

    def generate(self, prompt: str = "", **settings: int | float | None) -> str:
        """`prompt` and a continuation of it.

        Args:
            prompt: the beginning; if empty, the model begins by itself.
            settings: fields of :class:`~minigpt.SampleConfig`.

        Raises:
            UserError: if a setting is out of range or the prompt cannot be encoded.
        """
        return "".join(self.stream(prompt, **settings))

    def stream(self, prompt: str = "", **settings: int | float | None) -> Iterator[str]:
        """The same, piece by piece as it is written, the prompt first.

        A character whose bytes span several tokens is yielded when it is whole.
        """
        config = SampleConfig(**settings)  # type: ignore[arg-type]
        ids = self.tokenizer.encode(prompt) or [self._first_token()]
        return self._stream(prompt, ids, config)

    def _stream(self, prompt: str, ids: list[int], config: SampleConfig) -> Iterator[str]:
        if prompt:
            yield prompt
        generator = torch.Generator()
        if config.seed is None:
            generator.seed()
        else:
            generator.manual_seed(config.seed)

        def choose(logits: Tensor) -> Tensor:
            return sample(
                logits.cpu(),
                temperature=config.temperature,
                top_k=config.top_k,
                generator=generator,
            )

        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        for token in islice(decode(self.model, ids, choose), config.max_new_tokens):
            if token == self.tokenizer.end_of_text:
                break
            if piece := decoder.decode(self.tokenizer.token_bytes(token)):
                yield piece
        if rest := decoder.decode(b"", final=True):
            yield rest

    def _first_token(self) -> int:
        """What an empty prompt is continued from: a new line, where the tokenizer knows it."""
        try:
            return self.tokenizer.encode("\n")[0]
        except ValueError:
            return self.tokenizer.end_of_text
