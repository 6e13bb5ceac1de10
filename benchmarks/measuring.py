"""What measurements share: a command as a user types it, another benchmark, the machine."""

import datetime
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from results_pages import ROOT, Section

from minigpt.runs.folder import METRICS, read_metrics

MADE = ROOT / "benchmarks/results"  # where the other benchmarks leave their figures


def machine() -> str:
    """The machine in words."""
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cpu = platform.processor() or platform.machine()
    known = Path("/proc/cpuinfo")
    if known.exists() and (
        found := re.search(r"model name\s*: (.*)", known.read_text(encoding="utf-8"))
    ):
        cpu = found[1].strip()
    bfloat16 = (
        "with" if known.exists() and "bf16" in known.read_text(encoding="utf-8") else "without"
    )
    torch_version = torch.__version__.partition("+")[0]
    return f"{cores} cores of {cpu}, shared, {bfloat16} bfloat16; torch {torch_version}"


def chromium_place() -> str | None:
    """Where Chromium is: as readers have it, if that is here, or its shell without a screen."""
    return shutil.which("chromium") or shutil.which("chromium-headless-shell")


def measured(title: str, command: str, figures: dict[str, str], **more: str) -> Section:
    """A section that was measured here and today."""
    today = datetime.date.today().isoformat()
    return Section(title, command, figures, machine=machine(), date=today, **more)


@dataclass(frozen=True)
class Ran:
    """What a command printed."""

    out: str
    err: str


def run(command: str, folder: Path, timeout: float | None = None) -> Ran:
    """Run a command of minigpt as a user types it, in a folder of its own with an empty cache, for
    `timeout` seconds at most."""
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
        timeout=timeout,
    )
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stderr}")
    return Ran(done.stdout, done.stderr)


def workplace() -> tempfile.TemporaryDirectory[str]:
    """An empty folder for runs, with the texts of this repository in data/."""
    folder = tempfile.TemporaryDirectory()
    os.symlink(ROOT / "data", Path(folder.name, "data"))
    return folder


def best_evaluation(run_folder: Path) -> dict[str, Any]:
    """The evaluation of a run with the lowest validation loss."""
    rows = read_metrics(run_folder / METRICS)
    return min(rows, key=lambda row: row["val_bits_per_byte"])


def losses(run_folder: Path) -> dict[str, str]:
    """The figures of a finished run."""
    best = best_evaluation(run_folder)
    last = read_metrics(run_folder / METRICS)[-1]
    return {
        "bits per byte": f"{best['val_bits_per_byte']:.2f}",
        "nats a token": f"{best['val_loss']:.3f}",
        "steps": f"{last['step']:,}",
    }


def shown_lines(ran: Ran) -> str:
    """The lines of a training's report that tell most: the plan, two evaluations, the result."""
    lines = ran.err.replace("\r", "\n").splitlines()
    plan = [line for line in lines if re.match(r"  (text|begins|model|training) ", line)]
    steps = [line for line in lines if line.startswith("step ")]
    done = [line for line in lines if line.startswith("done in")]
    counted = [line for line in lines if line.startswith("counting ")]
    return "\n".join([*plan, steps[0], steps[-1], *done, ran.out.strip(), *counted])


def benchmark(
    name: str, *options: str, leaves: str | None = None, timeout: float | None = None
) -> Any:
    """Run another benchmark, for `timeout` seconds at most, and read the figures that it leaves in
    a file of its name, or of another."""
    program = [sys.executable, str(ROOT / f"benchmarks/{name}.py"), *options]
    subprocess.run(program, check=True, timeout=timeout)
    return json.loads((MADE / f"{leaves or name}.json").read_text(encoding="utf-8"))


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
