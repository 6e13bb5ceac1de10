"""What is told of a file that is read."""

from pathlib import Path
from typing import Any

from minigpt.config import ReadingConfig
from minigpt.data.readers.document import Report
from minigpt.data.readers.kinds import read_file


def report_of(file: Path, **reading: Any) -> Report:
    """The report of a file, all of which is read."""
    report = Report(file)
    for _ in read_file(file, ReadingConfig(**reading), report):
        pass
    return report


def left_out(file: Path, **reading: Any) -> dict[str, int]:
    """How many of what are left out of a file."""
    return dict(report_of(file, **reading).left_out)
