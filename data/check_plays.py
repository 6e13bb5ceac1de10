"""Figures of plays.txt, and what is wrong with it: python data/check_plays.py [FOLDER ...]

Exit status 1 if a rule is broken: the layout, plain ASCII, short lines, the length of a play, a
speaker of two plays or one who hardly speaks, eight words in a row that stand twice, or that stand
in a text of these folders: files .txt, and .jsonl.gz with a "text" in each row.
"""

import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

PLAYS = Path(__file__).parent / "plays.txt"
BETWEEN = "\n\n<|endoftext|>\n\n"  # two plays
NUMBER = 12
LEAST_BYTES = 42_000  # of a play
LONGEST_LINE = 64
FEWEST_SPEECHES = 3
IN_A_ROW = 8  # words that no two places share

KIND = re.compile(r"A (?:Comedy|Tragedy)")
HEADING = re.compile(r"ACT [IVX]+\. SCENE [IVX]+\. [A-Z].{1,45}\.")
DIRECTION = re.compile(r"\[[A-Z][^\[\]]*[.!]\]")
SPEAKER = re.compile(r"[A-Z][A-Z' -]*[A-Z]\.")
Sequence = tuple[str, ...]


def main(file: Path, folders: Iterable[Path] = ()) -> int:
    """Print the figures of plays; the exit status."""
    plays = file.read_text(encoding="utf-8").strip().split(BETWEEN)
    problems = [] if len(plays) == NUMBER else [f"{len(plays)} plays, not {NUMBER}"]
    speakers: Counter[str] = Counter()
    sequences: Counter[Sequence] = Counter()
    for play in plays:
        title = play.partition("\n")[0]
        speeches = speeches_of(play)
        print(
            f"{title}: {len(play):,} bytes, {len(words_of(play)):,} words, "
            f"{sum(speeches.values())} speeches of {len(speeches)}"
        )
        problems += [f"{title}: {problem}" for problem in wrong(play, speeches)]
        speakers.update(list(speeches))
        sequences.update(sequences_of(play))

    problems += [f"{name} speaks in {n} plays" for name, n in speakers.items() if n > 1]
    problems += [f"twice: {' '.join(words)}" for words, n in sequences.items() if n > 1]
    for other in files_in(folders):
        found = {words for text in texts_of(other) for words in sequences_of(text)}
        problems += [
            f"in {other} too: {' '.join(words)}" for words in sorted(found & set(sequences))
        ]
    print("\n".join(problems) or "nothing is wrong")
    return 1 if problems else 0


def wrong(play: str, speeches: Counter[str]) -> Iterable[str]:
    """What is wrong with a single play."""
    if len(play) < LEAST_BYTES:
        yield f"fewer than {LEAST_BYTES:,} bytes"
    if not play.isascii() or "\t" in play or '"' in play:
        yield "more than plain ASCII without quotation marks"
    for line in play.split("\n"):
        if len(line) > LONGEST_LINE or line != line.strip():
            yield f"a line is too long, or begins or ends with a space: {line!r}"

    title, *paragraphs = play.split("\n\n")
    if not KIND.fullmatch(title.partition("\n")[2]):
        yield f"no comedy and no tragedy: {title!r}"
    for paragraph in paragraphs:
        if not (HEADING.fullmatch(paragraph) or DIRECTION.fullmatch(paragraph)):
            name, *lines = paragraph.split("\n")
            if not SPEAKER.fullmatch(name) or not lines or any(map(SPEAKER.fullmatch, lines)):
                yield f"no heading, direction or speech: {paragraph[:60]!r}"
    for name, count in speeches.items():
        if count < FEWEST_SPEECHES:
            yield f"{name} speaks {count} times"


def speeches_of(play: str) -> Counter[str]:
    """How often each person speaks."""
    firsts = (paragraph.partition("\n")[0] for paragraph in play.split("\n\n"))
    return Counter(line[:-1] for line in firsts if SPEAKER.fullmatch(line))


def words_of(text: str) -> list[str]:
    """The words in small letters: "don't" is one."""
    return re.findall(r"[a-z]+(?:'[a-z]+)*", text.lower())


def sequences_of(text: str) -> Iterator[Sequence]:
    """The words in a row that no two places may share."""
    words = words_of(text)
    return zip(*(words[start:] for start in range(IN_A_ROW)), strict=False)


def files_in(folders: Iterable[Path]) -> Iterator[Path]:
    """The texts in these folders, and the files among them themselves."""
    for folder in folders:
        found = sorted(folder.rglob("*")) if folder.is_dir() else [folder]
        yield from (file for file in found if file.name.endswith((".txt", ".jsonl.gz")))


def texts_of(file: Path) -> Iterator[str]:
    """The texts in a file."""
    if file.suffix == ".txt":
        yield file.read_text(encoding="utf-8", errors="replace")
        return
    with gzip.open(file, "rt", encoding="utf-8") as rows:
        for row in rows:
            yield json.loads(row)["text"]


if __name__ == "__main__":
    sys.exit(main(PLAYS, [Path(folder) for folder in sys.argv[1:]]))
