"""Every figure of README and docs: measure it, and put it wherever it is quoted.

python benchmarks/results.py                          write docs/results.md and the pages again
python benchmarks/results.py --measure plays writing  measure these first
python benchmarks/results.py --take FILE              take over what another machine has measured
python benchmarks/results.py --measure all --shakespeare FILE --nanogpt FOLDER

results_pages.py keeps what was measured, and renews the pages. Measure on an idle machine: `all`
takes about half an hour on two cores, and needs the program zpaq. What is measured of the base
needs texts that are no part of this repository, and is left out of `all`:

python benchmarks/results.py --measure tuning voice --judge FOLDER [--rows prose-100] [--seeds 1]
python benchmarks/results.py --measure names copied kinds --corpus FILE --validation FILE
python benchmarks/results.py --measure sampling --judge FOLDER --chat FILE --teacher FOLDER

So is what is measured on a GPU, which results_of_gpu.py describes: `make bench-gpu TEXTS=FOLDER`
or, where neither make nor minigpt is installed:

PYTHONPATH=$PWD python3 benchmarks/results.py --measure gpu --texts FOLDER --copy FOLDER
"""

import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lesson import lesson
from measuring import (
    MADE,
    benchmark,
    best_evaluation,
    losses,
    measured,
    quoted,
    run,
    shown_lines,
    workplace,
)
from results_of_base import OF_THE_BASE
from results_of_gpu import BESIDE_A_GPU, ON_A_GPU, add_options
from results_pages import STORED, Section, read, store, write_pages


def main() -> None:
    """Measure what is asked for; write all pages."""
    given = arguments()
    sections = read()
    if given.take is not None:
        for row in json.loads(given.take.read_text(encoding="utf-8")):
            section = Section(**row)
            known = [one for one in sections if one.title == section.title]
            if section not in known and all(one.date <= section.date for one in known):
                sections = store(sections, section)

    measurements = MEASUREMENTS | OF_THE_BASE | BESIDE_A_GPU | ON_A_GPU
    for name in names_to_measure(given):
        print(f"measuring: {name}", flush=True)
        try:
            for section in measurements[name](given):
                sections = kept(section, sections, given)
        except (Exception, SystemExit) as problem:
            if name not in ON_A_GPU:  # where time is short, so that the others are measured
                raise
            print(f"not measured: {name}: {type(problem).__name__}: {problem}", flush=True)
    if not given.tiny:
        write_pages(sections)


def kept(section: Section, sections: list[Section], given: argparse.Namespace) -> list[Section]:
    """The sections with one that was measured just now, in docs/results.json too."""
    if given.tiny:
        print(json.dumps(asdict(section), indent=2), flush=True)
        return sections
    sections = store(sections, section)
    if given.copy is not None:
        shutil.copy(STORED, given.copy)
    return sections


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*MEASUREMENTS, *OF_THE_BASE, *BESIDE_A_GPU, *ON_A_GPU]
    parser.add_argument("--measure", nargs="+", choices=["all", "gpu", *names], default=[])
    parser.add_argument(
        "--take", type=Path, metavar="FILE", help="a results.json of another machine: its figures"
    )
    parser.add_argument("--nanogpt", type=Path, metavar="FOLDER", help="a checkout of nanoGPT")
    parser.add_argument("--shakespeare", type=Path, metavar="FILE", help="tinyshakespeare")

    base = parser.add_argument_group("of the base; benchmarks/judging.py describes the texts")
    base.add_argument("--judge", type=Path, metavar="FOLDER", help="the judging texts")
    base.add_argument("--german", type=Path, metavar="FILE", help="a text in German")
    base.add_argument("--russian", type=Path, metavar="FILE", help="a text in Russian")
    base.add_argument("--corpus", type=Path, metavar="FILE", help="what the base has read")
    base.add_argument("--validation", type=Path, metavar="FILE", help="and was validated on")
    base.add_argument("--chat", type=Path, metavar="FILE", help="a chat, as a text")
    base.add_argument("--teacher", type=Path, metavar="FOLDER", help="a larger GPT of English")
    base.add_argument("--runs", type=Path, metavar="FOLDER", help="runs of sampling.py, if there")
    base.add_argument("--rows", nargs="+", help="of tuning.py")
    base.add_argument("--seeds", help="of tuning.py")
    add_options(parser)
    return parser.parse_args()


def names_to_measure(given: argparse.Namespace) -> list[str]:
    """The measurements in order, and an error if a file for one is missing."""
    names = [name for name in MEASUREMENTS if name in given.measure or "all" in given.measure]
    names += [name for name in OF_THE_BASE | BESIDE_A_GPU if name in given.measure]
    names += [name for name in ON_A_GPU if name in given.measure or "gpu" in given.measure]
    for name in names:
        for option in NEEDS.get(name, ()):
            if getattr(given, option) is None:
                raise SystemExit(f"--measure {name} needs --{option}; --help says what that is")
    return names


# Measuring


def counting(report: str) -> dict[str, str]:
    """What counting gives, as the last lines of a training say it."""
    found = re.search(r"counting .* gives ([\d.]+) bits/byte .* needs (\d+%) fewer", report)
    if not found:
        return {}
    given = f"{float(found[1]):.2f}"
    return {"counting, bits per byte": given, "fewer bits than counting": found[2]}


OPENING = """TORELLO.
I love you, lady.

VERIDIANA.
Prove it, sir.

TORELLO.
"""  # of the scene that README shows


def plays(given: argparse.Namespace) -> Iterator[Section]:
    """The two commands of the README."""
    with workplace() as folder:
        train = "python train.py data/plays.txt --minutes 2.5"
        ran = run(train, Path(folder))
        figures = losses(Path(folder, "runs/plays")) | counting(ran.err)
        shown = f"```\n{shown_lines(ran)}\n```"
        yield measured("A few minutes on the plays", train, figures, output=shown)

        how = "--plain --whole-sentences --max-new-tokens 160 --seed 1"
        write = f'python generate.py {how} "{OPENING}"'
        text = run(write, Path(folder)).out
        yield measured("A scene", write, {}, output=f"```\n{text.strip()}\n```")

        # benchmarks/pictures.py takes its pictures of this run.
        shutil.copytree(Path(folder, "runs/plays"), MADE / "plays", dirs_exist_ok=True)


def tales(given: argparse.Namespace) -> Iterator[Section]:
    """Two minutes on the tales, a text, and how much the run copies."""
    with workplace() as folder:
        train = "python train.py data/tales.txt --minutes 2"
        ran = run(train, Path(folder))
        figures = losses(Path(folder, "runs/tales")) | counting(ran.err)
        shown = f"```\n{shown_lines(ran)}\n```"
        yield measured("Two minutes on the tales", train, figures, output=shown)

        write = 'python generate.py "The old" --temperature 0.7 --seed 7'
        text = run(write, Path(folder)).out
        yield measured("A text", write, {}, output=quoted(text))

        look = "minigpt evaluate tales --copied"
        copied = textwrap.fill(run(look, Path(folder)).out, 100)
        yield measured("Copied", look, {}, output=f"```\n{copied}\n```")

        # --measure names looks at this run.
        shutil.copytree(Path(folder, "runs/tales"), MADE / "tales", dirs_exist_ok=True)


def shakespeare(given: argparse.Namespace) -> Iterator[Section]:
    """Three minutes on tinyshakespeare, its last tenth set aside, as nanoGPT does."""
    with workplace() as folder:
        os.symlink(given.shakespeare.resolve(), Path(folder, "shakespeare.txt"))
        train = "python train.py shakespeare.txt --init none --split end --minutes 3"
        report = run(train, Path(folder)).err
        figures = losses(Path(folder, "runs/shakespeare"))
        bits = best_evaluation(Path(folder, "runs/shakespeare"))["val_bits_per_byte"]
        figures["nats a character"] = f"{bits * math.log(2):.2f}"  # its last tenth is ASCII
        figures["nanoGPT, published, nats a character"] = "1.47"
        note = (
            "nanoGPT's README says 1.4697 for three minutes of an A100 GPU on the same split,\n"
            "with a model of 10.65 M parameters."
        )
        yield measured("Three minutes on Shakespeare", train, figures | counting(report), note=note)


def zpaq(given: argparse.Namespace) -> Iterator[Section]:
    """What a compression program makes of tinyshakespeare's last tenth: the compressed whole minus
    the compressed rest."""
    text = given.shakespeare.read_bytes()
    end = int(len(text) * 0.9)
    with workplace() as folder:
        sizes = []
        for name, part in (("whole", text), ("training", text[:end])):
            Path(folder, f"{name}.txt").write_bytes(part)
            command = ["zpaq", "add", f"{name}.zpaq", f"{name}.txt", "-method", "5"]
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
            sizes.append(Path(folder, f"{name}.zpaq").stat().st_size)

    whole, training = sizes
    bits = 8 * (whole - training) / (len(text) - end)
    note = (
        "whole.txt is tinyshakespeare, and training.txt the same without its last tenth. For each\n"
        "byte of that tenth whole.zpaq is so many bits longer than training.zpaq."
    )
    commands = (
        "zpaq add whole.zpaq whole.txt -method 5\nzpaq add training.zpaq training.txt -method 5"
    )
    figures = {"bits per byte": f"{bits:.3f}"}
    yield measured("A compression program on Shakespeare", commands, figures, note=note)


def sources(given: argparse.Namespace) -> Iterator[Section]:
    """Two minutes on the Python sources of this machine."""
    from ablation import python_sources

    with workplace() as folder:
        Path(folder, "sources.txt").write_text(python_sources(), encoding="utf-8")
        train = "python train.py sources.txt --init none --minutes 2"
        report = run(train, Path(folder)).err
        figures = losses(Path(folder, "runs/sources")) | counting(report)
        note = (
            "The text: the first 20 MB of the .py files of Python and its packages on this machine."
        )
        yield measured("Two minutes on Python", train, figures, note=note)


def nanogpt(given: argparse.Namespace) -> Iterator[Section]:
    """nanoGPT's recipe for a CPU beside ours, and both programs with the same shape."""
    command = "python benchmarks/time_to_loss.py shakespeare.txt --minutes 1.5 --nanogpt nanoGPT"
    options = ["--minutes", "1.5", "--nanogpt", str(given.nanogpt)]
    rows = {row["name"]: row for row in benchmark("time_to_loss", str(given.shakespeare), *options)}
    ours = rows["minigpt, 1.5 minutes"]
    theirs = rows["nanoGPT's CPU recipe"]
    figures = {
        "minigpt, nats a character": f"{lowest(ours):.2f}",
        "minigpt, seconds": f"{ours['seconds']:.0f}",
        "nanoGPT, nats a character": f"{lowest(theirs):.2f}",
        "nanoGPT, seconds": f"{theirs['seconds']:.0f}",
        "minigpt, nanoGPT's shape, tokens/s": speed(rows["minigpt, nanoGPT's shape"]),
        "nanoGPT, tokens/s": speed(rows["nanoGPT with biases"]),
    }
    yield measured("Beside nanoGPT", command, figures)


def lowest(row: dict[str, Any]) -> float:
    """The lowest loss of a training, nats a character."""
    loss: float = min(loss for _, loss in row["curve"])
    return loss


def speed(row: dict[str, Any]) -> str:
    return f"{row['tokens_per_second']:,.0f}"


def writing(given: argparse.Namespace) -> Iterator[Section]:
    """Tokens a second and the time to the first token."""
    command = "python benchmarks/generation.py --sizes 1M 12M"
    figures = {}
    for row in benchmark("generation", "--sizes", "1M", "12M"):
        figures[f"{row['name']}, {row['unit']}"] = with_range(row["values"])
    yield measured("Writing", command, figures)


def with_range(values: list[float]) -> str:
    """The median of some rounds, with the lowest and the highest."""
    digits = 2 if max(values) < 10 else 0
    low, median, high = min(values), statistics.median(values), max(values)
    return f"{median:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


def serving(given: argparse.Namespace) -> Iterator[Section]:
    """A hundred texts at once, beside a plain server of transformers."""
    command = "python benchmarks/serving.py --sizes 1M"
    rows = [row for row in benchmark("serving", "--sizes", "1M") if "all_streams" in row]
    ours, plain = rows
    figures = {
        "100 texts at once, tokens/s": f"{ours['all_streams']:,.0f}",
        "one text at a time, tokens/s": f"{ours['one_stream']:,.0f}",
        "the last text begins after, s": f"{ours['first_token_last']:.2f}",
        "a plain server of transformers, tokens/s": f"{plain['all_streams']:,.0f}",
    }
    yield measured("Serving", command, figures)


def page(given: argparse.Namespace) -> Iterator[Section]:
    """The page in Chromium."""
    figures = benchmark("page")
    yield measured("The page in a browser", "python benchmarks/page.py", dict(figures))


MEASUREMENTS: dict[str, Callable[[argparse.Namespace], Iterator[Section]]] = {
    "plays": plays,
    "tales": tales,
    "shakespeare": shakespeare,
    "zpaq": zpaq,
    "sources": sources,
    "nanogpt": nanogpt,
    "writing": writing,
    "serving": serving,
    "page": page,
    "lesson": lesson,
}
NEEDS = {  # options without which something cannot be measured
    "shakespeare": ("shakespeare",),
    "zpaq": ("shakespeare",),
    "nanogpt": ("shakespeare", "nanogpt"),
    **dict.fromkeys(BESIDE_A_GPU | ON_A_GPU, ("texts",)),
    "voice": ("judge",),
    "copied": ("corpus", "validation"),
    "kinds": ("corpus", "validation"),
}

if __name__ == "__main__":
    main()
