"""Whether the same command plans the same model again: how many of N starts agree.

python benchmarks/plan_repeats.py [TEXT ...] [--help]. Each start is `train.py TEXT --plan` in a new
process. The texts take turns, so that a busy minute of the machine is shared by all of them.
Compared are the settings that it prints, on which steps and seconds have no influence. Beside the
texts that are named, four are made of the Python sources on this machine, of 20 KB to
20 MB. Run it on an idle machine; ten starts of eight texts take some seven minutes.
"""

import argparse
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
TRAIN = HERE.parent / "train.py"
TALES, FABLES = HERE.parent / "data/tales.txt", HERE.parent / "data/fables.txt"
SIZES = {"20KB": 20_000, "200KB": 200_000, "2MB": 2_000_000, "20MB": 20_000_000}  # characters


def main() -> None:
    """Start everything, then print the table."""
    given = arguments()
    with tempfile.TemporaryDirectory() as folder:
        texts = [*given.texts, *sources(Path(folder))]
        plans: dict[Path, list[str]] = {text: [] for text in texts}
        for start in range(given.starts):
            for text in texts:
                print(f"start {start + 1} of {given.starts}: {text.name}", file=sys.stderr)
                plans[text].append(settings(text, given.minutes))

    print(f"{'text':<24}{'minutes':>8}{'agree':>10}  plans")
    for text, found in plans.items():
        agreed, *others = Counter(found).most_common()
        agreement = f"{agreed[1]} of {len(found)}"
        print(f"{text.name:<24}{given.minutes:>8g}{agreement:>10}  {agreed[0]}")
        for plan, count in others:
            print(f"{'':<42}  {count} x: {difference(agreed[0], plan)}")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", nargs="*", type=Path, default=[TALES, FABLES], metavar="TEXT")
    parser.add_argument("--starts", type=int, default=10, help="of each text (default: 10)")
    parser.add_argument("--minutes", type=float, default=2.0, help="to plan for (default: 2)")
    return parser.parse_args()


def sources(folder: Path) -> Iterator[Path]:
    """Texts of these sizes, of the Python sources on this machine."""
    places = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platlib")]
    for name, size in SIZES.items():
        text = folder / f"python-{name}.txt"
        read = ""
        for file in (file for place in places for file in sorted(place.rglob("*.py"))):
            read += file.read_text(encoding="utf-8", errors="ignore").replace("\0", "")
            if len(read) >= size:
                break
        text.write_text(read[:size], encoding="utf-8")
        yield text


def settings(text: Path, minutes: float) -> str:
    """What one start plans, as options: the last line that it prints."""
    command = [sys.executable, str(TRAIN), str(text), "--minutes", f"{minutes:g}", "--plan"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout.splitlines()[-1]


def difference(usual: str, plan: str) -> str:
    """The options of a plan that differ from the usual one's."""
    return " ".join(new for new in plan.split(" --") if new not in usual.split(" --"))


if __name__ == "__main__":
    main()
