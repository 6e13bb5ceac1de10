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


def keep_compiled_code() -> None:
    """Have torch keep the code it compiles in the cache folder, unless $TORCHINDUCTOR_CACHE_DIR
    says where.

    Torch itself would choose a temporary folder, which is often emptied when the machine starts,
    and does so as soon as it is loaded; so this comes before. Where the cache folder cannot be
    written to, torch chooses.
    """
    if os.environ.get(_VARIABLE):
        return
    folder = cache_folder() / "compiled"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            os.environ[_VARIABLE] = str(folder)
