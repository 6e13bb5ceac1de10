"""The table of SOURCES.md: what is read, where it comes from, and whether its clone is there."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from minigpt import UserError

COLUMNS = "name author title repository files format commit licence stated most best".split()
KINDS = ("books", "modern", "dialogue")
ABOUT = re.compile(r"(LICEN[CS]E|CHANGELOG|CODE_OF_CONDUCT|CONTRIBUTING|SECURITY)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Source:
    """A row of the table."""

    kind: str  # one of KINDS: the heading above the row
    name: str
    author: str
    title: str
    repository: str  # OWNER/NAME on GitHub
    files: str  # patterns, separated by ", "; "!" takes out file names
    format: str  # a key of readers.READERS
    commit: str  # the first characters of its hash
    licence: str
    stated: str  # the file that states the licence
    most: float  # megabytes
    best: bool  # carefully edited prose

    def fetch(self, clones: Path) -> str:
        """The command that makes the clone."""
        folder = shlex.quote(str(clones / self.repository))
        clone = f"git clone https://github.com/{self.repository} {folder}"
        return f"{clone} && git -C {folder} checkout {self.commit}"

    def paths(self, clones: Path) -> list[Path]:
        """The files of the clone that are read, sorted; none of those about the repository."""
        patterns = self.files.split(", ")
        taken_out = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
        root = clones / self.repository

        found: set[Path] = set()
        for pattern in patterns:
            if not pattern.startswith("!"):
                found.update(path for path in root.glob(pattern) if path.is_file())

        def is_text(path: Path) -> bool:
            hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
            out = any(fnmatch(path.name, pattern) for pattern in taken_out)
            return not (hidden or out or ABOUT.match(path.name))

        return sorted(filter(is_text, found))


def read_sources(table: Path) -> list[Source]:
    """All rows of SOURCES.md. UserError: a row that cannot be read, a name that occurs twice."""
    sources = list(rows(table))
    names = [source.name for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{table}: two rows have the name {name}")
    return sources


def rows(table: Path) -> Iterator[Source]:
    """The rows in their order. A heading that begins with a kind opens that kind's table."""
    kind = ""
    for number, line in enumerate(table.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("## "):
            word = line.split()[1].lower()
            kind = word if word in KINDS else ""
            continue
        cells = [cell.strip() for cell in line.split(" | ")]
        if not kind or len(cells) < 2 or cells[0] in ("name", "---"):
            continue

        if len(cells) != len(COLUMNS):
            raise UserError(f"{table}, line {number}: {len(cells)} columns, not {len(COLUMNS)}")
        yield source_of(kind, cells, f"{table}, line {number}")


def source_of(kind: str, cells: list[str], place: str) -> Source:
    """A row from its cells."""
    cell = dict(zip(COLUMNS, cells, strict=True))
    if not re.fullmatch(r"[0-9a-f]{7,40}", cell["commit"]):
        raise UserError(f"{place}: {cell['commit']!r} is not a commit")

    most = cell.pop("most")
    try:
        limit = float(most)
    except ValueError:
        raise UserError(f"{place}: {most!r} is not a number of megabytes") from None

    best = cell.pop("best")
    if best not in ("yes", "no"):
        raise UserError(f"{place}: the last column is yes or no, not {best!r}")
    return Source(kind=kind, most=limit, best=best == "yes", **cell)


def missing(sources: list[Source], clones: Path) -> list[str]:
    """A line for each repository that is not there, or is not at its commit."""
    wanted = {source.repository: source for source in sources}
    problems = []
    for source in wanted.values():
        folder = clones / source.repository
        commit = head(folder)
        if commit is None:
            problems.append(f"no clone of {source.repository}: {source.fetch(clones)}")
        elif not commit.startswith(source.commit):
            checkout = f"git -C {shlex.quote(str(folder))} checkout {source.commit}"
            problems.append(f"{source.repository} is at {commit[:10]}: {checkout}")
    return problems


def head(clone: Path) -> str | None:
    """The hash of the commit that is checked out; None where there is no clone."""
    if not (clone / ".git").exists():
        return None
    command = ["git", "-C", str(clone), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None
