"""What the styles of a document say: their names, and whether they hide what has them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass
class Style:
    """The format of paragraphs or of characters."""

    name: str = ""  # in lower case
    base: str = ""  # the id of the style on which it is based
    is_hidden: bool | None = None  # None if it does not say


def is_hidden_by(style: str, styles: Mapping[str, Style]) -> bool | None:
    """Whether a style hides what has it; None if neither it nor what it is based on says."""
    seen = set()
    while style in styles and style not in seen:
        seen.add(style)
        found = styles[style]
        if found.is_hidden is not None:
            return found.is_hidden
        style = found.base
    return None
