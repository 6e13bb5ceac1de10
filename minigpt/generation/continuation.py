"""A text while it is written: what may be shown of it, and where it ends."""

from ..config import SampleConfig
from ..tokenizer import Tokenizer
from .results import StopReason
from .sentences import SentenceEnd
from .streaming import StreamDecoder

_LONGEST_SENTENCE = 200  # tokens beyond max_new_tokens, to end with a whole sentence


def most_tokens(config: SampleConfig) -> int:
    """How many tokens a continuation may have in the end."""
    if config.whole_sentences and config.max_new_tokens > 0:
        return config.max_new_tokens + _LONGEST_SENTENCE
    return config.max_new_tokens


class Continuation:
    """What is written after a prompt, token by token."""

    def __init__(self, config: SampleConfig, tokenizer: Tokenizer):
        self.stop_reason: StopReason | None = None  # why it has ended; nothing may be added then
        self._config = config
        self._tokenizer = tokenizer
        self._count = 0  # of its tokens
        self._most = most_tokens(config)
        self._characters = StreamDecoder(config.stop)
        self._sentences = SentenceEnd()

    def add(self, token_id: int) -> str:
        """What can be shown after another token."""
        self._count += 1
        if token_id == self._tokenizer.end_of_text:
            self.stop_reason = "end_of_text"
        elif self._count == self._most:
            self.stop_reason = "length"

        written = self._tokenizer.token_bytes(token_id)
        text = self._characters.add(written, last=self.stop_reason is not None)
        if self._characters.stopped:
            self.stop_reason = "stop"

        if self._config.whole_sentences:
            is_long_enough = self._count >= self._config.max_new_tokens
            is_last = self.stop_reason is not None
            text = self._sentences.add(text, is_long_enough=is_long_enough, last=is_last)
            if self._sentences.reached:
                self.stop_reason = "length"
        return text
