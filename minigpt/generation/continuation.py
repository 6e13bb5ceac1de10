"""A text while it is written: what may be shown of it, in whole characters and without a stop
string, and where it ends."""

import codecs

from ..config import SampleConfig
from ..data.dialogue import Dialogue
from ..tokenizer import Tokenizer
from .results import StopReason
from .sentences import SentenceEnd
from .stops import StopStrings, TurnEnd

_LONGEST_SENTENCE = 200  # tokens beyond max_new_tokens, to end with a whole sentence or turn


class Continuation:
    """What is written after a prompt, token by token. The first bytes of a character are held back
    until the character is whole. `dialogue` is of a model that learned from conversations."""

    def __init__(
        self, config: SampleConfig, tokenizer: Tokenizer, dialogue: Dialogue | None = None
    ):
        self.stop_reason: StopReason | None = None  # why it has ended; nothing may be added then
        self._config = config
        self._tokenizer = tokenizer
        self._count = 0  # of its tokens
        self._most = config.max_new_tokens
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

        # Both hold back an end of the text until it is decided.
        self._stops = StopStrings(config.stop) if config.stop else None
        self._end: SentenceEnd | TurnEnd | None = None
        if config.whole_sentences:
            self._most += _LONGEST_SENTENCE
            self._end = SentenceEnd() if dialogue is None else TurnEnd(dialogue.stops)

    def add(self, token_id: int, *, is_last: bool = False) -> str:
        """What can be shown after another token; nothing is held back after the last, which ends
        the text if nothing else does."""
        self._count += 1
        if token_id == self._tokenizer.end_of_text:
            self.stop_reason = "end_of_text"
        elif is_last or self._count == self._most:
            self.stop_reason = "length"
        is_last = self.stop_reason is not None
        text = self._decoder.decode(self._tokenizer.token_bytes(token_id), is_last)

        if self._stops is not None:
            text = self._stops.add(text, last=is_last)
            if self._stops.reached:
                self.stop_reason = "stop"
                is_last = True

        if self._end is not None:
            is_long_enough = self._count >= self._config.max_new_tokens
            text = self._end.add(text, is_long_enough=is_long_enough, last=is_last)
            if self._end.reached:
                self.stop_reason = "length"
        return text
