"""How files are read: what `train`, `read` and `evaluate` have in common."""

import codecs
import dataclasses
from dataclasses import dataclass

from .checked import Checked, Factor, require, setting


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
        1.0, "read files that are so many times larger inside than is allowed (docs/documents.md)"
    )

    def _check(self) -> None:
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
