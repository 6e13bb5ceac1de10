"""Every figure of README and docs: measure it, and put it wherever it is quoted.

python benchmarks/results.py                          write docs/results.md and the pages again
python benchmarks/results.py --measure tales writing  measure these first
python benchmarks/results.py --measure all --shakespeare FILE --nanogpt FOLDER

docs/results.json keeps what was measured: for each section a command, machine, date and figures. A
page quotes a figure by a link to its section, [1.21](docs/results.md#two-minutes-on-the-tales), and
shows output of commands between two comments. When a section is measured again, all pages are
renewed; a test compares them with docs/results.json. Measure on an idle machine: `all` takes about
half an hour on two cores.
"""

import argparse
import datetime
import json
import math
import os
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from minigpt.runs.folder import METRICS, read_metrics

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "docs/results.json"
PAGE = ROOT / "docs/results.md"
QUOTING = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MADE = ROOT / "benchmarks/results"  # where the other benchmarks leave their figures
LINK = re.compile(r"\[([^\]]+)\]\(((?:docs/)?results\.md)#([\w-]+)\)")
OUTPUT = re.compile(r"(<!-- results: ([\w-]+) -->\n).*?(<!-- end -->)", re.S)


@dataclass(frozen=True)
class Section:
    """What one command showed."""

    title: str  # the heading in docs/results.md, from which links are made
    command: str
    figures: dict[str, str]  # what was measured -> the figure, as pages quote it
    output: str = ""  # the lines of the command that pages show
    note: str = ""
    machine: str = ""
    date: str = ""

    @property
    def anchor(self) -> str:
        """The address of the heading within docs/results.md."""
        return re.sub(r"[^\w -]", "", self.title.lower()).replace(" ", "-")


def main() -> None:
    """Measure what is asked for; write all pages."""
    given = arguments()
    sections = read()
    for name in names_to_measure(given):
        print(f"measuring: {name}", flush=True)
        for section in MEASUREMENTS[name](given):
            sections = store(sections, section)
    write_pages(sections)


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measure", nargs="+", choices=["all", *MEASUREMENTS], default=[])
    parser.add_argument("--shakespeare", type=Path, metavar="FILE", help="tinyshakespeare")
    parser.add_argument("--nanogpt", type=Path, metavar="FOLDER", help="a checkout of nanoGPT")
    return parser.parse_args()


def names_to_measure(given: argparse.Namespace) -> list[str]:
    """The measurements in order, and an error if a file for one is missing."""
    names = [name for name in MEASUREMENTS if name in given.measure or "all" in given.measure]
    if not given.shakespeare and {"shakespeare", "nanogpt"} & set(names):
        raise SystemExit("name the file of Shakespeare's plays with --shakespeare")
    if not given.nanogpt and "nanogpt" in names:
        raise SystemExit("name a checkout of nanoGPT with --nanogpt")
    return names


# What is stored


def read() -> list[Section]:
    """The sections in the order of docs/results.md."""
    rows = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else []
    return [Section(**row) for row in rows]


def store(sections: list[Section], new: Section) -> list[Section]:
    """Put a section in the place of the one of that title, and its figures in all pages."""
    old = next((section for section in sections if section.title == new.title), None)
    if old is None:
        sections = [*sections, new]
    else:
        renew_quotations(old, new)
        sections = [new if section is old else section for section in sections]

    rows = [asdict(section) for section in sections]
    STORED.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return sections


def renew_quotations(old: Section, new: Section) -> None:
    """Where a page quotes a figure of the old section, let it quote the same one of the new. A
    quotation that can mean two, or one that was not measured again, stays, and is said."""

    def renewed(link: re.Match[str]) -> str:
        quoted, page, anchor = link.groups()
        if anchor != old.anchor:
            return link[0]
        meant = {new.figures.get(name) for name, figure in old.figures.items() if figure == quoted}
        if len(meant) != 1 or None in meant:
            print(f"write by hand what is quoted now: {link[0]}")
            return link[0]
        return f"[{meant.pop()}]({page}#{anchor})"

    for page in QUOTING:
        text = page.read_text(encoding="utf-8")
        page.write_text(LINK.sub(renewed, text), encoding="utf-8")


# The pages


def write_pages(sections: list[Section]) -> None:
    """docs/results.md, and the outputs of commands that other pages show."""
    PAGE.write_text(results_page(sections), encoding="utf-8")
    for page in QUOTING:
        if page != PAGE:
            text = page.read_text(encoding="utf-8")
            page.write_text(with_outputs(text, sections), encoding="utf-8")


def results_page(sections: list[Section]) -> str:
    """docs/results.md."""
    parts = [
        "# Results",
        "Every loss and speed that README and docs quote, with its command, machine and date.\n"
        "`benchmarks/results.py` measures them and writes this page. Losses are of text that the\n"
        "model never learned from. Times are of whole commands, with nothing prepared before. A\n"
        "figure with a range is a median with the lowest and the highest round.",
    ]
    for section in sections:
        parts.append(f"## {section.title}")
        parts.append(f"```sh\n{section.command}\n```")
        if section.figures:
            rows = [f"| {name} | {figure} |" for name, figure in section.figures.items()]
            parts.append("\n".join(["| measured | |", "|---|---|", *rows]))
        if section.output:
            parts.append(section.output)
        if section.note:
            parts.append(section.note)
        parts.append(f"{section.machine}, {section.date}.")
    return "\n\n".join(parts) + "\n"


def with_outputs(text: str, sections: list[Section]) -> str:
    """The text of a page with the stored outputs between its comments."""
    outputs = {section.anchor: section.output for section in sections}
    return OUTPUT.sub(lambda found: f"{found[1]}{outputs[found[2]]}\n{found[3]}", text)


# Measuring


def machine() -> str:
    """The machine in words."""
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cpu = platform.processor() or platform.machine()
    known = Path("/proc/cpuinfo")
    if known.exists() and (found := re.search(r"model name\s*: (.*)", known.read_text())):
        cpu = found[1].strip()
    bfloat16 = "with" if known.exists() and "bf16" in known.read_text() else "without"
    torch_version = torch.__version__.partition("+")[0]
    return f"{cores} cores of {cpu}, shared, {bfloat16} bfloat16; torch {torch_version}"


def measured(title: str, command: str, figures: dict[str, str], **more: str) -> Section:
    """A section that was measured here and today."""
    today = datetime.date.today().isoformat()
    return Section(title, command, figures, machine=machine(), date=today, **more)


@dataclass(frozen=True)
class Ran:
    """What a command printed."""

    out: str
    err: str


def run(command: str, folder: Path) -> Ran:
    """Run a command of minigpt as a user types it, in a folder of its own with an empty cache."""
    words = shlex.split(command)
    if words[0] == "python":
        words = [sys.executable, str(ROOT / words[1]), *words[2:]]
    else:
        words = [sys.executable, "-m", "minigpt", *words[1:]]
    changed = {"MINIGPT_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **changed},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stderr}")
    return Ran(done.stdout, done.stderr)


def workplace() -> tempfile.TemporaryDirectory[str]:
    """An empty folder for runs, with the texts of this repository in data/."""
    folder = tempfile.TemporaryDirectory()
    os.symlink(ROOT / "data", Path(folder.name, "data"))
    return folder


def losses(run_folder: Path) -> dict[str, str]:
    """The figures of a finished run."""
    best = best_evaluation(run_folder)
    last = read_metrics(run_folder / METRICS)[-1]
    return {
        "bits per byte": f"{best['val_bits_per_byte']:.2f}",
        "nats a token": f"{best['val_loss']:.3f}",
        "steps": f"{last['step']:,}",
    }


def best_evaluation(run_folder: Path) -> dict[str, Any]:
    """The evaluation of a run with the lowest validation loss."""
    rows = read_metrics(run_folder / METRICS)
    return min(rows, key=lambda row: row["val_bits_per_byte"])


def counting(report: str) -> dict[str, str]:
    """What counting gives, as the last lines of a training say it."""
    found = re.search(r"counting .* gives ([\d.]+) bits/byte .* saves (\d+%)", report)
    if not found:
        return {}
    return {"counting, bits per byte": f"{float(found[1]):.2f}", "attention saves": found[2]}


def tales(given: argparse.Namespace) -> Iterator[Section]:
    """The two commands of the README, and how much the run copies."""
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

        # benchmarks/pictures.py takes its pictures of this run.
        shutil.copytree(Path(folder, "runs/tales"), MADE / "tales", dirs_exist_ok=True)


def shown_lines(ran: Ran) -> str:
    """The lines of a training's report that tell most: the plan, two evaluations, the result."""
    lines = ran.err.replace("\r", "\n").splitlines()
    plan = [line for line in lines if re.match(r"  (text|tokens|model) ", line)]
    steps = [line for line in lines if line.startswith("step ")]
    done = [line for line in lines if line.startswith("done in")]
    counted = [line for line in lines if line.startswith("counting ")]
    return "\n".join([*plan, steps[0], steps[-1], *done, ran.out.strip(), *counted])


def quoted(text: str) -> str:
    """The beginning of a text as a quotation of about 70 words."""
    words_left = 70
    paragraphs: list[str] = []
    for paragraph in text.strip().splitlines():
        words = paragraph.split()
        if not words:
            continue
        is_cut = len(words) > words_left
        shown = " ".join(words[:words_left])
        if is_cut:
            shown += " ..."
        lines = textwrap.wrap(shown, 100, initial_indent="> ", subsequent_indent="> ")
        paragraphs.append("\n".join(lines))
        words_left -= len(words)
        if words_left <= 0:
            break
    return "\n>\n".join(paragraphs)


def shakespeare(given: argparse.Namespace) -> Iterator[Section]:
    """Three minutes on tinyshakespeare, its last tenth set aside, as nanoGPT does."""
    with workplace() as folder:
        os.symlink(given.shakespeare.resolve(), Path(folder, "shakespeare.txt"))
        train = "python train.py shakespeare.txt --split end --minutes 3"
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


def sources(given: argparse.Namespace) -> Iterator[Section]:
    """Two minutes on the Python sources of this machine."""
    from ablation import python_sources

    with workplace() as folder:
        Path(folder, "sources.txt").write_text(python_sources(), encoding="utf-8")
        train = "python train.py sources.txt --minutes 2"
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


def benchmark(name: str, *options: str) -> Any:
    """Run another benchmark, and read the figures that it leaves."""
    program = [sys.executable, str(ROOT / f"benchmarks/{name}.py"), *options]
    subprocess.run(program, check=True)
    return json.loads((MADE / f"{name}.json").read_text(encoding="utf-8"))


MEASUREMENTS: dict[str, Callable[[argparse.Namespace], Iterator[Section]]] = {
    "tales": tales,
    "shakespeare": shakespeare,
    "sources": sources,
    "nanogpt": nanogpt,
    "writing": writing,
    "serving": serving,
    "page": page,
}

if __name__ == "__main__":
    main()
