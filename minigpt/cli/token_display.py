"""What --show prints: each token with its probability and what it could have been, then the text in
colours; plain if colours are not wanted, with the same figures.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..generation.results import Step, Token, visible
from .terminal import shown

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

ALTERNATIVES = 4  # to ask for: one of them may be the token itself
_WIDTH = 16  # of a token, in characters
# From each probability on, the colours of text and background, numbers of xterm's 256. Less likely
# tokens are darker. Both are set, so that dark and light terminals look the same.
_SHADES = ((0.5, 16, 230), (0.2, 16, 222), (0.05, 16, 215), (0.01, 231, 160), (0.0, 231, 89))


@dataclass(frozen=True)
class TokenDisplay:
    """Shows tokens, with their probabilities."""

    tokenizer: "Tokenizer"
    colours: bool

    def show(self, prompt: str, steps: Iterable[Step]) -> None:
        """Print a line for each token of a sample as it is drawn, then the text."""
        print(f"{'probability':>11}  {'token':<{_WIDTH}}  it could have been", flush=True)
        text, least = shown(prompt), 1.0
        try:
            for step in steps:
                if step.log_probability is not None:
                    written = self.tokenizer.token_bytes(step.token_id)
                    token = Token(step.token_id, written, step.log_probability)
                    print(self.line(token, step.alternatives), flush=True)
                    least = min(least, token.probability)
                if step.text:  # of several tokens, if they make one character
                    piece = shown(step.text)
                    text += painted(piece, least) if self.colours else piece
                    least = 1.0
        finally:  # also after Ctrl-C
            print(f"\n{text}\n", flush=True)
            if self.colours:
                print(f"probability: {legend()}\n", flush=True)

    def line(self, token: Token, alternatives: Iterable[Token]) -> str:
        """A token with its probability, and the likeliest others."""
        name = self._name(token)
        padding = " " * max(_WIDTH - len(name), 0)
        if self.colours:
            name = painted(name, token.probability)
        others = [other for other in alternatives if other.id != token.id][: ALTERNATIVES - 1]
        listed = "  ".join(f"{self._name(o)} {percent(o.probability)}" for o in others)
        return f"{percent(token.probability):>11}  {name}{padding}  {listed}"

    def _name(self, token: Token) -> str:
        if token.id == self.tokenizer.end_of_text:
            return "(end)"
        return visible(token.bytes) or f"({token.id})"


def painted(text: str, probability: float) -> str:
    """`text` in the colours of its probability; line ends are marked and keep no colour."""
    shades = ((ink, paper) for least, ink, paper in _SHADES if probability >= least)
    ink, paper = next(shades, _SHADES[-1][1:])
    lines = text.replace("\n", "↵\n").split("\n")
    return "\n".join(line and f"\x1b[38;5;{ink};48;5;{paper}m{line}\x1b[0m" for line in lines)


def legend() -> str:
    """What the colours mean."""
    names = [f" {least:.0%} or more " for least, *_ in _SHADES[:-1]] + [" less "]
    return " ".join(painted(n, least) for n, (least, *_) in zip(names, _SHADES, strict=True))


def percent(probability: float) -> str:
    """A probability in two digits or so: 83%, 2.4%, <0.1%."""
    if probability < 0.001:
        return "<0.1%"
    return f"{probability:.{0 if probability >= 0.0995 else 1}%}"
