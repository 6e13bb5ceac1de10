"""The kinds of what can go wrong, so that a window says it in its own words and language: each
UserError has one, and an error of the system is given one here.
"""

import errno

from .. import UserError

KINDS = {
    # A file
    "no_text": "it is no text",
    "picture": "it is a picture, a sound or a film",
    "office": "it is a table, a presentation, or of an old office program",
    "scan": "it is a PDF whose pages are pictures, or do not tell their letters",
    "empty": "there is no text in it",
    "damaged": "it cannot be opened, or is damaged",
    "encoding": "it is in another encoding than was named, or in an unknown one",
    "locked": "it needs a password, or is protected against copying",
    "packed": "it is packed in a way that is not read",
    "too_large": "it holds more than is unpacked, or takes too much time or memory to read",
    "column": "it is a table, and which column holds the text is not known",
    "no_reader": "it needs a package that is not installed",
    "no_parquet": "it is parquet, whose package is not installed",
    "discord": "it is an export of Discord in a format that is not read",
    # The text
    "too_short": "there is too little to learn from",
    "text_gone": "a file is not there, or cannot be read again",
    "text_changed": "it is not what it was when it was read before",
    # The training
    "setting": "a setting has a wrong value, or does nothing beside the others",
    "too_few_minutes": "not a single step can be made in them",
    "diverged": "the numbers in the model became too large",
    "finished": "the run has used up its minutes or steps",
    # The computer
    "memory": "there is not enough of it",
    "disk_full": "the disk has no room",
    "no_permission": "a file or a folder may not be written",
    "not_written": "a file or a folder cannot be written, for another reason",
    # The folder of a run
    "not_found": "there is no run of this name",
    "folder_gone": "it was moved or deleted",
    "folder_taken": "it holds something else",
    "busy": "another process is training in it",
    "damaged_run": "one of its files is missing, or damaged",
    "other": "anything else",
}
_FULL = (errno.ENOSPC, errno.EDQUOT)


def kind_of_error(error: BaseException) -> str:
    """Which of KINDS an error is that ended a command."""
    if isinstance(error, UserError):
        return error.kind
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, OSError) and error.errno in _FULL:
        return "disk_full"
    if isinstance(error, PermissionError):
        return "no_permission"
    return "not_written" if isinstance(error, OSError) else "other"
