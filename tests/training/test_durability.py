"""A run is never lost: killed at any moment, interrupted, out of disk, started twice, unheard.

Every fault is a real one: a signal to a real process, a write that the system refuses. What must
survive is compared bit by bit with a training nothing happened to. Most processes are forks of one
that has loaded torch; those whose end is that of a whole interpreter are started anew, one for each
signal. Run by `make test-kill`.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from minigpt.runs.folder import CHECKPOINT, METRICS, WEIGHTS, read_metrics
from minigpt.runs.read_model import load_run
from minigpt.training.checkpoint import LAST, PREVIOUS, _read, read_state
from tests.forks import Forks
from tests.patience import PATIENCE

pty = pytest.importorskip("pty", reason="Windows has other terminals and signals")
pytestmark = pytest.mark.kill

ROOT = Path(__file__).parent.parent.parent
TEXT = "".join(
    f"Line {i}: the fox asked the crow, and the crow said {i * i}.\n" for i in range(400)
)
TINY = (
    "my.txt --out run --emb-dim 16 --num-layers 1 --num-heads 1 --context-length 16 --batch-size 4 "
    "--vocab-size 300 --compile off --precision float32 --dropout 0.1 --num-evals 4"
).split()
STEPS = ("--steps", "100")
EVALUATED = [25, 50, 75, 100]
RESUME = ("--resume", "--out", "run")
MAIN = """
import sys
from minigpt.cli import main
from minigpt.recipe import run
from minigpt.training import reports
reports.draw_losses = run.say_copied = lambda *a, **k: None  # the end is not what is tried
sys.exit(main(["train", *sys.argv[1:]]))
"""
# At the end of these steps it says so with a file, and waits for another one.
HELD = """
import pathlib, time
from minigpt.training.weights import WeightAverage
update, here = WeightAverage.update, pathlib.Path.cwd()
def held(self, step):
    update(self, step)
    if step + 1 in (30, 60):
        (here / f"held at {step + 1}").touch()
        while not (here / f"go on at {step + 1}").exists():
            time.sleep(0.01)
WeightAverage.update = held
"""


class Trainings:
    """Starts train.py in processes of its own."""

    def __init__(self, forks: Forks) -> None:
        self._forks = forks

    def start(
        self, folder: Path, *arguments: str, code: str = "", is_new: bool = False, **streams: Any
    ) -> subprocess.Popen[str]:
        """One process, `code` run first in it; a new interpreter or a fork."""
        folder.mkdir(exist_ok=True)
        (folder / "my.txt").write_text(TEXT)
        environment = {"MINIGPT_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
        options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        options |= {"cwd": folder, "env": os.environ | environment, "text": True} | streams
        command = ["-c", code + MAIN, *arguments]
        if is_new:
            return subprocess.Popen([sys.executable, *command], **options)
        return self._forks.start(command, **options)

    def run(self, folder: Path, *arguments: str, code: str = "", status: int = 0) -> str:
        """What train.py says."""
        returned, err = finish(self.start(folder, *arguments, code=code))
        assert returned == status and "Traceback" not in err, err
        return err


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit status and what it said."""
    _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, err


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, finish(process)[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_until_held(folder: Path, step: int, process: subprocess.Popen[str]) -> None:
    wait_until((folder / f"held at {step}").exists, process)


def go_on(folder: Path, step: int) -> None:
    (folder / f"go on at {step}").touch()


def last_of(folder: Path) -> Path:
    return folder / "run" / CHECKPOINT / LAST


def assert_same_files(folder: Path, other: Path) -> None:
    """Best weights and last state are equal bit for bit."""
    files = [(place / "run" / WEIGHTS, last_of(place)) for place in (folder, other)]
    for one, same in zip(*files, strict=True):
        tensors, others = load_file(one), load_file(same)
        assert tensors.keys() == others.keys()
        assert all(torch.equal(tensors[name], others[name]) for name in tensors)


def evaluated(folder: Path) -> list[float]:
    return [row["step"] for row in read_metrics(folder / "run" / METRICS)]


@pytest.fixture(scope="module")
def train(forks: Forks) -> Trainings:
    return Trainings(forks)


@pytest.fixture(scope="module")
def whole(train: Trainings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that nothing happens to."""
    folder = tmp_path_factory.mktemp("whole")
    train.run(folder, *TINY, *STEPS)
    return folder


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_a_resumed_run_ends_as_if_nothing_had_happened(
    number: signal.Signals, status: int, train: Trainings, whole: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut"
    process = train.start(cut, *TINY, *STEPS, code=HELD, is_new=True)
    wait_until_held(cut, 30, process)
    process.send_signal(number)
    go_on(cut, 30)
    returned, err = finish(process)
    assert returned == status and "--resume" in err and "Traceback" not in err, err
    assert read_state(cut / "run").step == 30
    load_run(cut / "run")
    train.run(cut, *RESUME)
    assert_same_files(cut, whole)
    assert evaluated(cut) == EVALUATED


def test_the_reader_of_all_output_dies_and_ctrl_c_saves_and_stops(
    train: Trainings, whole: Path, tmp_path: Path
) -> None:
    """As in `train.py my.txt 2>&1 | tee log`, where Ctrl-C ends tee first."""
    cut, (reader, writer) = tmp_path / "cut", os.pipe()
    process = train.start(cut, *TINY, *STEPS, code=HELD, stdout=writer, stderr=writer)
    os.close(writer)
    wait_until_held(cut, 30, process)
    os.close(reader)
    go_on(cut, 30)
    wait_until_held(cut, 60, process)  # it has had something to say
    process.send_signal(signal.SIGINT)
    go_on(cut, 60)
    assert process.wait(timeout=PATIENCE) == 130
    assert read_state(cut / "run").step == 60
    train.run(cut, *RESUME)
    assert_same_files(cut, whole)


@pytest.mark.parametrize("gone", ["pipe", "terminal", "closed", "result"])
def test_a_training_that_nobody_hears_goes_on_to_its_end(
    gone: str, train: Trainings, whole: Path, tmp_path: Path
) -> None:
    """Standard error is a pipe without a reader, a terminal that is gone, or was never open; or
    standard output has no reader, which the exit status tells when the run is whole."""
    cut = tmp_path / "cut"
    reader, writer = pty.openpty() if gone == "terminal" else os.pipe()
    streams = {"stdout" if gone == "result" else "stderr": writer}
    close = "import os, sys; os.close(2); sys.stderr = None\n"
    code = HELD + close * (gone == "closed")
    process = train.start(cut, *TINY, *STEPS, code=code, **streams)
    os.close(writer)
    wait_until_held(cut, 30, process)
    os.close(reader)
    go_on(cut, 30)
    go_on(cut, 60)
    assert process.wait(timeout=PATIENCE) == (141 if gone == "result" else 0)
    assert_same_files(cut, whole)
    assert evaluated(cut) == EVALUATED


def test_a_program_ended_while_it_hands_over_documents_leaves_no_copy_of_them(
    train: Trainings, tmp_path: Path
) -> None:
    code = f"""
import os, tempfile, time
tempfile.tempdir = {str(tmp_path)!r}
import minigpt
def documents():
    yield "the fox"
    open("begun", "w").close()
    time.sleep(1000)
minigpt.train(documents())
"""
    process = train.start(tmp_path, code=code)
    wait_until((tmp_path / "begun").exists, process)
    assert list(tmp_path.glob("minigpt-documents-*"))
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 143
    assert not list(tmp_path.glob("minigpt-documents-*"))


def test_out_of_memory_before_the_first_evaluation_keeps_what_was_learned(
    train: Trainings, tmp_path: Path
) -> None:
    """The machine has no more to give in a long run, of which each step is saved here."""
    code = """
import torch
from minigpt.training import folder
from minigpt.training.weights import WeightAverage
folder._SAVING_SHARE = 1e9
update = WeightAverage.update
def watched(self, step):
    update(self, step)
    if step == 40:
        torch.empty(1 << 60)
WeightAverage.update = watched
"""
    often = ("--checkpoint-seconds", "1e-9")
    process = train.start(tmp_path, *TINY, "--steps", "9000", *often, code=code)
    assert finish(process)[0] != 0
    assert read_state(tmp_path / "run").step == 40
    train.run(tmp_path, *RESUME, "--steps", "50")
    load_run(tmp_path / "run")


@pytest.fixture(scope="module")
def begun(train: Trainings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training of 40 steps, which whoever goes on with it copies."""
    folder = tmp_path_factory.mktemp("begun")
    train.run(folder, *TINY, "--steps", "40")
    return folder


@pytest.mark.parametrize(("room", "status"), [(100_000, 0), (40_000, 2)])
def test_a_full_disk_leaves_the_earlier_checkpoint_as_it_was(
    room: int, status: int, train: Trainings, begun: Path, tmp_path: Path
) -> None:
    """The system refuses files above a size. The first has room for the weights, the second has
    not, which the exit status tells; with more room the run can be continued."""
    full = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))"
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    before = last_of(tmp_path).read_bytes()
    err = train.run(tmp_path, *RESUME, "--steps", "80", code=full, status=status)
    assert "could not write the checkpoint" in err and last_of(tmp_path).read_bytes() == before
    assert ("error: the best weights could not be written to run/" in err) == (status == 2)
    assert not list((tmp_path / "run").rglob(".new-*"))
    load_run(tmp_path / "run")
    train.run(tmp_path, *RESUME)
    assert read_state(tmp_path / "run").step == 80


def test_a_second_process_is_kept_out_until_the_first_is_gone(
    train: Trainings, tmp_path: Path
) -> None:
    process = train.start(tmp_path, *TINY, "--steps", "1000000", code=HELD)
    wait_until_held(tmp_path, 30, process)
    assert "another process is training in run" in train.run(tmp_path, *RESUME, status=2)
    process.kill()
    finish(process)
    train.run(tmp_path, *RESUME, "--steps", str(read_state(tmp_path / "run").step + 10))


def written(file: Path) -> int:
    """When a file was written; 0 if it is not there, as between two renames."""
    try:
        return file.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def test_killed_at_eight_random_moments_a_run_ends_as_if_nothing_had_happened(
    train: Trainings, tmp_path: Path
) -> None:
    """Each time what is there loads, and no earlier state than before. Every other sitting is
    killed after a second save; each step is saved, and takes 30 ms at least, so that the last one
    is far away at the last kill. The first sitting is a new interpreter."""
    slowly = """
import time
from minigpt.training import folder
from minigpt.training.reports import Progress
folder._SAVING_SHARE = 1e9
step = Progress.on_step
Progress.on_step = lambda *a: (step(*a), time.sleep(0.03))
"""
    whole, cut, moments = tmp_path / "whole", tmp_path / "cut", random.Random(4)
    steps = ("--steps", "300")
    train.run(whole, *TINY, *steps)
    arguments = [*TINY, *steps, "--checkpoint-seconds", "1e-9"]
    step = -1
    last = last_of(cut)
    for sitting in range(8):
        before = written(last)
        process = train.start(cut, *arguments, code=slowly, is_new=sitting == 0)
        arguments = [*RESUME]
        wait_until(lambda before=before: written(last) not in (0, before), process)
        if sitting % 2 == 1:
            first = written(last)
            wait_until(lambda first=first: written(last) not in (0, first), process)
        time.sleep(moments.uniform(0.0, 0.4))  # any moment will do
        process.send_signal(signal.SIGKILL)
        assert finish(process)[0] == -signal.SIGKILL

        found = _read(last if last.exists() else last.with_name(PREVIOUS)).state  # whole
        assert found.step >= step
        step = found.step
        load_run(cut / "run")
    train.run(cut, *RESUME)
    assert_same_files(cut, whole)


@pytest.mark.parametrize(
    ("moment", "save"),
    [
        ("written", 2),
        ("synced", 4),
        *((moment, save) for moment in ("set aside", "renamed") for save in (2, 4)),
    ],
)
def test_killed_inside_a_save_nothing_is_lost(
    moment: str, save: int, train: Trainings, whole: Path, tmp_path: Path
) -> None:
    """SIGKILL at each step of a save: the new file written, synced, the old one set aside, which is
    the first to be so at the second save, ..."""
    cut = tmp_path / "cut"
    code = f"""
import os, signal, pathlib
from minigpt.system import safetensors_files
moment, save, seen = {moment!r}, {save}, [0]
def kill():
    os.kill(os.getpid(), signal.SIGKILL)
write, sync, rename = safetensors_files.write_tensors, os.fsync, pathlib.Path.replace
def counted_write(tensors, path, metadata):
    write(tensors, path, metadata)
    if path.name.endswith({LAST!r}):  # not the weights, which are written in the same way
        seen[0] += 1
        if moment == "written" and seen[0] == save: kill()
def counted_sync(*a):
    sync(*a)
    if moment == "synced" and seen[0] == save: kill()
def counted_rename(self, target):
    result = rename(self, target)
    aside = str(target).endswith({PREVIOUS!r})
    if seen[0] == save and moment == ("set aside" if aside else "renamed"): kill()
    return result
safetensors_files.write_tensors, os.fsync = counted_write, counted_sync
pathlib.Path.replace = counted_rename
"""
    train.run(cut, *TINY, *STEPS, code=code, status=-signal.SIGKILL)
    read_state(cut / "run")  # raises if nothing there is whole
    train.run(cut, *RESUME)
    assert_same_files(cut, whole)
