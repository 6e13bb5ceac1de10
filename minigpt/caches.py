"""What is kept between commands to save time: token files, and code that torch has compiled."""

import contextlib
import os
from pathlib import Path

_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


def cache_folder() -> Path:
    """Where token files are kept: $MINIGPT_CACHE, or minigpt in the user's cache folder."""
    if chosen := os.environ.get("MINIGPT_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "minigpt"


def compiled_code() -> Path:
    """Where torch is to keep compiled code: $TORCHINDUCTOR_CACHE_DIR, or beside the token files.

    Torch itself would choose a temporary folder, which may be emptied when the machine starts. It
    learns of ours by that variable, so this has to be called before it compiles; where ours cannot
    be written to, torch keeps its own.
    """
    if chosen := os.environ.get(_VARIABLE):
        return Path(chosen)
    folder = cache_folder() / "compiled"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        os.environ[_VARIABLE] = str(folder)
    return folder
