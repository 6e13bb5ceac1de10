"""How files are read: what `train`, `read` and `evaluate` have in common."""

import codecs
import dataclasses
from dataclasses import dataclass

from .. import UserError
from .checked import Checked, Factor, Positive, require, setting


@dataclass(frozen=True, kw_only=True)
class ReadingConfig(Checked):
    """How files become text."""

    text_field: str = setting(
        "text", "the field of .jsonl files, or the column of tables, that holds the text"
    )
    encoding: str | None = setting(
        None, "encoding of plain files, such as latin1 (default: UTF-8, UTF-16 or Windows-1252)"
    )
    raise_limits: Factor = setting(
        1.0, "multiply by this what a file may hold and how long it may take (docs/documents.md)"
    )

    plain: bool = setting(False, "read chats, interviews and plays as the text that they are")
    silence: Positive = setting(
        8.0, "hours without a message after which another conversation of a chat begins"
    )
    rename: tuple[str, ...] = setting(
        (), "'+49 170 1234567=Anna': what a speaker is called in the text; repeatable", "NAME=NAME"
    )
    anonymous: bool = setting(False, "call the speakers A, B, C; names inside messages stay")

    def _check(self) -> None:
        for words in self.rename:
            old, _, new = words.partition("=")
            if not old.strip() or not new.strip():
                raise UserError(
                    f"--rename must be NAME=NAME, such as '+49 170=Anna', got {words!r}",
                    kind="setting",
                )
        is_known = self.encoding is None or _is_text_encoding(self.encoding)
        require(self, "encoding", is_known, "an encoding that Python knows, such as latin1")

    def reading(self) -> "ReadingConfig":
        """These settings alone, of a config that has more."""
        names = [field.name for field in dataclasses.fields(ReadingConfig)]
        return ReadingConfig(**{name: getattr(self, name) for name in names})


def _is_text_encoding(name: str) -> bool:
    """Whether Python can decode bytes to text by this name."""
    try:
        codecs.getincrementaldecoder(name)
        return isinstance(b"aa==".decode(name, "replace"), str)
    except (LookupError, ValueError, TypeError):
        return False
