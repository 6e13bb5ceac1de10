"""The commands as messages name them: in the way in which the user started this program."""

import shutil
import sys
import sysconfig
from pathlib import Path

from .platforms import quote

MODULE = "python -m minigpt"
_SCRIPTS = ("train.py", "generate.py")  # of a checkout; an installed package has neither


def started_as() -> str | None:
    """How this program was started: "python -m minigpt", "minigpt", or one of the scripts of a
    checkout, "train.py" or "generate.py"; None if it is somebody's own program."""
    started = Path(sys.argv[0])
    if started.parts[-2:] == ("minigpt", "__main__.py"):
        return MODULE
    if started.name in _SCRIPTS:
        return started.name
    return "minigpt" if started.stem == "minigpt" else None


def command(name: str) -> str:
    """How the user calls the command `name`, such as "minigpt train", to be copied and run."""
    started = started_as()
    if started in _SCRIPTS and f"{name}.py" in _SCRIPTS:
        return f"{program('python')} {name}.py"
    if started == MODULE:
        return f"{program('python')} -m minigpt {name}"
    return f"{program('minigpt')} {name}"


def program(name: str) -> str:
    """A program of this environment, with its path if it is not the one that a shell finds: the
    environment may not be activated."""
    ending = sysconfig.get_config_var("EXE") or ""  # .exe on Windows
    own = Path(sys.executable).with_name(name + ending)
    found = shutil.which(name)
    if not own.exists() or (found is not None and Path(found).absolute() == own):
        return name
    return quote(str(own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own))
