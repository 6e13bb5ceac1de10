"""What can go wrong with a training, as kinds: the window has a sentence for each of them."""

OTHER = "other"  # its message is shown as it is
# A kind of problem, and words by which its messages are known. The first kind that fits counts.
_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("disk_full", ("no space left", "disk quota", "make room", "could be written nowhere")),
    ("memory", ("out of memory",)),
    ("too_short", ("too short",)),
    ("text_changed", ("has changed since", "changed while")),
    ("text_gone", ("no such file", "cannot be read again")),
    ("no_permission", ("no permission", "permission denied", "read-only")),
    ("busy", ("another process is training",)),
    ("finished", ("is finished",)),
)


def kind_of_problem(message: str) -> str:
    """The kind of a problem, from the line in which a command has told it."""
    said = message.casefold()
    for kind, words in _WORDS:
        if any(word in said for word in words):
            return kind
    return OTHER


def problem(message: str, kind: str | None = None) -> dict[str, str]:
    """A problem as the window gets it."""
    return {"kind": kind or kind_of_problem(message), "message": message}
