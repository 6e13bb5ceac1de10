"""What a dataset remembers of the text that its tokens come from; a run keeps it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..config import TextConfig

if TYPE_CHECKING:
    from .dialogue import Dialogue


@dataclass(frozen=True)
class Origin:
    """Where tokens come from. The defaults are for tokens whose text is not known."""

    text: TextConfig | None = None
    fingerprint: str = ""  # of the text, to notice when it has changed
    knows_documents: bool = False  # whether there were enough of them to learn how one begins
    alphabet: str = ""  # the bytes of the text, in hexadecimal; empty if they are not known
    dialogue: "Dialogue | None" = None  # who speaks in it, if it is conversations
