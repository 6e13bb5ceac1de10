"""A text while it is written: what `generate` and its interactive mode have in common."""

import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..config import SampleConfig, counted
from ..generation.results import Step
from .terminal import Wrapper, write

if TYPE_CHECKING:
    from ..generation.processors import Processor
    from ..generation.writer import Writer


@dataclass(frozen=True)
class Task:
    """What is to be written."""

    writer: "Writer"
    prompt: str
    config: SampleConfig
    processors: "list[Processor]"
    opening: str | None = None  # what is shown before what is written; the prompt if unset

    @property
    def shown(self) -> str:
        """What is shown before what is written."""
        return self.prompt if self.opening is None else self.opening

    def steps(self, *, alternatives: int = 0) -> Iterator[Step]:
        """Token after token; with alternatives, so many of them, also how likely each was."""
        return self.writer.steps(
            self.prompt,
            self.config,
            log_probabilities=alternatives > 0,
            alternatives=alternatives,
            processors=self.processors,
        )


def new_seed() -> int:
    """A seed for a text that none was given for."""
    return random.randrange(2**31)


def write_steps(beginning: str, steps: Iterable[Step], width: int | None) -> None:
    """Write a text as it comes, its lines broken if there is a width. It ends with its line also
    where it is interrupted."""
    wrapper = Wrapper(width) if width else None
    try:
        for text in itertools.chain([beginning], (step.text for step in steps)):
            write(wrapper.add(text) if wrapper else text, end="")
    finally:
        write(wrapper.end() if wrapper else "")


def how_it_ended(samples: list[list[Step]], more: str, *, is_answer: bool = False) -> str:
    """Why the samples end where they do; `more` if one of them could go on."""
    reasons = {sample[-1].stop_reason for sample in samples if sample}
    if not reasons or reasons & {None, "length"}:
        return more
    if is_answer:
        return "the turn is over"
    if "stop" in reasons:
        return "it came to a text that ends it (stop)"
    return "it ended by itself"


def speed_of(tokens: int, seconds: float) -> str:
    """How many tokens were written, and how fast."""
    return f"{counted(tokens, 'token')} at {tokens / seconds:,.0f} a second"
