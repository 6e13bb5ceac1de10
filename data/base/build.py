"""Makes the corpus of the base: python data/base/build.py CLONES --out corpus/

CLONES/OWNER/NAME is a clone of each repository of SOURCES.md, at the commit named there. Two files
are written, train.jsonl and val.jsonl, a document a line: {"text", "source", "kind", "best"}. For
each source a line is printed: what was kept, what was dropped and why. The same clones always make
the same files.
"""

import argparse
import json
import os
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from corpus.heldout import OUR_OWN, HeldOut, refuse_authors
from corpus.pipeline import Corpus, Text
from corpus.sources import Source, missing, read_sources

from minigpt import UserError

HERE = Path(__file__).parent


def main() -> None:
    given = arguments()
    try:
        build(given)
    except (UserError, OSError) as error:
        sys.exit(f"error: {error}")


def arguments() -> argparse.Namespace:
    """The folder of the clones, where to write, what else is held out."""
    parser = argparse.ArgumentParser(description="Make the corpus of the base.")
    parser.add_argument("clones", type=Path, help="a folder with clones: OWNER/NAME")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="read these sources only")
    parser.add_argument(
        "--held-out",
        type=Path,
        nargs="+",
        metavar="FILE",
        default=[],
        help="more texts whose sentences must not be in the corpus; tales.txt and fables.txt are",
    )
    parser.add_argument("--sources", type=Path, default=HERE / "SOURCES.md", help="the table")
    return parser.parse_args()


def build(given: argparse.Namespace) -> None:
    """Read all sources and write the two files."""
    sources = chosen(read_sources(given.sources), given.only)
    refuse_authors(sources)
    problems = missing(sources, given.clones)
    if problems:
        raise UserError("\n".join(problems))

    own = [HERE.parent / name for name in OUR_OWN]
    corpus = Corpus(HeldOut([*own, *given.held_out]))
    for source in sources:
        print(corpus.add(source, given.clones), flush=True)

    given.out.mkdir(parents=True, exist_ok=True)
    train, validation = corpus.split()
    write(given.out / "train.jsonl", train)
    write(given.out / "val.jsonl", validation)


def chosen(sources: list[Source], names: list[str] | None) -> list[Source]:
    """The sources with these names, or all. UserError: a name that none has."""
    if names is None:
        return sources
    known = {source.name for source in sources}
    for name in names:
        if name not in known:
            raise UserError(f"no source has the name {name}")
    return [source for source in sources if source.name in names]


def write(file: Path, texts: list[Text]) -> None:
    """Write the file as a whole, and say what is in it."""
    part = file.with_suffix(".part")
    with part.open("w", encoding="utf-8", newline="\n") as lines:
        for text in texts:
            lines.write(json.dumps(asdict(text), ensure_ascii=False) + "\n")
    os.replace(part, file)

    sizes: Counter[str] = Counter()
    for text in texts:
        sizes[text.kind] += len(text.text.encode())
    kinds = ", ".join(f"{kind} {size / 1e6:.2f} MB" for kind, size in sizes.items())
    print(f"{file}: {len(texts):,} documents: {kinds}")


if __name__ == "__main__":
    main()
