"""The process of a training that the studio has started.

`python -m minigpt.studio.runs.training_process runs/NAME train ...` does what `minigpt train ...`
does, and holds a lock meanwhile. The system frees it however the process ends, so that the studio
can tell whether it is still there.
"""

import runpy
import sys
from pathlib import Path

from filelock import FileLock, Timeout

from ...runs.journal import HELD, JOURNAL

_PATIENCE = 10.0  # seconds: the studio holds the lock for a moment when it looks


def run(folder: Path, arguments: list[str]) -> int:
    """Run a command as a terminal does, which ends this process; 1 if another one trains the run
    already."""
    try:
        with FileLock(folder / JOURNAL / HELD, timeout=_PATIENCE):
            sys.argv[1:] = arguments
            runpy.run_module("minigpt", run_name="__main__", alter_sys=True)
    except Timeout:
        print(f"error: another process is training in {folder}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
