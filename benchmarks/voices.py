"""Whether a run with voices knows one author from another: pieces that it has not read have their
lowest loss under their own author's voice.

python benchmarks/voices.py A.txt B.txt C.txt D.txt            the default training, from the base
python benchmarks/voices.py A.txt B.txt ... --init none --steps 600 --without-mark 0 0.1

The last fifth of each file is not trained on; ten pieces from all over it are judged. Printed are,
for each share of windows without a mark: how many pieces of each author have their lowest loss
under their own voice, and the mean loss of all pieces under their own voice, under the best other
one, and without a voice, in bits per byte.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

import minigpt
from minigpt.data import batches
from minigpt.generation.writer import Writer

PIECES = 10  # of each author
SIZE = 1_500  # characters of a piece


def main() -> None:
    """Train for each share, judge all pieces, print a table."""
    given = arguments()
    settings = {"init": given.init, "steps": given.steps, "minutes": given.minutes}
    settings = {name: value for name, value in settings.items() if value is not None}
    if given.steps is not None:
        settings["num_evals"] = 2

    rows = []
    with tempfile.TemporaryDirectory() as place:
        texts, held_out = split_files(given.files, Path(place))
        for share in given.without_mark:
            batches.WITHOUT_MARK = share
            out = Path(place) / f"run-{share:g}"
            run = minigpt.train(*texts, voices=True, out=out, seed=given.seed, **settings)
            rows.append(row(share, judged(minigpt.load(run), held_out)))

    names = " | ".join(path.stem for path in given.files)
    print(f"\n| windows without a mark | {names} | own voice | best other | no voice |")
    print("|---" * (len(given.files) + 4) + "|")
    print("\n".join(rows))


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, help="a text of each author")
    parser.add_argument("--init", help="as for train")
    parser.add_argument("--minutes", type=float, help="as for train")
    parser.add_argument("--steps", type=int, help="as for train")
    parser.add_argument("--seed", type=int, default=0, help="as for train")
    parser.add_argument("--without-mark", nargs="+", type=float, default=[batches.WITHOUT_MARK])
    return parser.parse_args()


def split_files(files: list[Path], place: Path) -> tuple[list[Path], dict[str, list[str]]]:
    """The beginnings of files, written to a folder, and pieces of their ends by author."""
    texts = []
    held_out = {}
    for file in files:
        text = file.read_text(encoding="utf-8")
        cut = len(text) * 4 // 5
        beginning = place / file.name
        beginning.write_text(text[:cut], encoding="utf-8")
        texts.append(beginning)

        end = text[cut:].replace("<|endoftext|>", "")
        starts = [i * (len(end) - SIZE) // (PIECES - 1) for i in range(PIECES)]
        held_out[file.stem] = [end[start : start + SIZE] for start in starts]
    return texts, held_out


def judged(writer: Writer, held_out: dict[str, list[str]]) -> dict[str, list[dict[str, float]]]:
    """For each piece of each author its bits per byte in every voice, and in none (the name "")."""
    writers = {"": writer} | {name: writer.in_voice(name) for name in writer.voices}
    return {
        author: [
            {name: one.score(piece).bits_per_byte for name, one in writers.items()}
            for piece in pieces
        ]
        for author, pieces in held_out.items()
    }


def row(share: float, losses: dict[str, list[dict[str, float]]]) -> str:
    """A line of the table."""
    right = []
    own, other, none = [], [], []
    for author, pieces in losses.items():
        others = [
            min(value for name, value in bits.items() if name not in ("", author))
            for bits in pieces
        ]
        right.append(sum(bits[author] < best for bits, best in zip(pieces, others, strict=True)))
        own += [bits[author] for bits in pieces]
        other += others
        none += [bits[""] for bits in pieces]

    counts = " | ".join(f"{count} of {PIECES}" for count in right)
    means = " | ".join(f"{statistics.mean(values):.3f}" for values in (own, other, none))
    return f"| {share:.0%} | {counts} | {means} |"


if __name__ == "__main__":
    main()
