"""How much somebody may ask of this computer: its owner, and a pupil of a class."""

from dataclasses import dataclass

_GIGABYTE = 10**9
_WEEK = 60.0 * 24 * 7  # minutes


@dataclass(frozen=True)
class Allowance:
    """How much may be in a folder with texts and runs."""

    bytes: int = 2 * _GIGABYTE  # of a file, and of all files of a text together
    files: int = 2_000  # of a text
    free: int = _GIGABYTE // 2  # bytes that stay free on the disk
    minutes: float = _WEEK  # of a training
    runs: int | None = None  # None: any number


OF_OWNER = Allowance()
OF_PUPIL = Allowance(bytes=5_000_000, files=20, minutes=5.0, runs=3)
