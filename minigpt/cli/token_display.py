"""What --show prints: each token, how likely it was and what it could have been; then the text."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..generation.results import Step, Token, visible
from .terminal import write

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

ALTERNATIVES = 4  # to ask for: one of them may be the token itself
_WIDTH = 16  # of a token, in characters


def show(prompt: str, steps: Iterable[Step], tokenizer: "Tokenizer") -> None:
    """Print a line for each token of a sample as it is drawn, then the text."""
    write(f"{'probability':>11}  {'token':<{_WIDTH}}  it could have been")
    text = prompt
    try:
        for step in steps:
            if step.log_probability is not None:
                written = tokenizer.token_bytes(step.token_id)
                token = Token(step.token_id, written, step.log_probability)
                write(token_line(token, step.alternatives, tokenizer.end_of_text))
            text += step.text
    finally:  # also after Ctrl-C
        write(f"\n{text}\n")


def token_line(token: Token, alternatives: Iterable[Token], end_of_text: int) -> str:
    """A token with its probability, and the likeliest others."""

    def name(token: Token) -> str:
        return visible(token.bytes) or ("(end)" if token.id == end_of_text else f"({token.id})")

    others = [other for other in alternatives if other.id != token.id][: ALTERNATIVES - 1]
    listed = "  ".join(f"{name(other)} {percent(other.probability)}" for other in others)
    return f"{percent(token.probability):>11}  {name(token):<{_WIDTH}}  {listed}"


def percent(probability: float) -> str:
    """A probability in two digits or so: 83%, 2.4%, <0.1%."""
    if probability < 0.001:
        return "<0.1%"
    return f"{probability:.{0 if probability >= 0.0995 else 1}%}"
