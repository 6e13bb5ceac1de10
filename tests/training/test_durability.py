"""A run is never lost: killed at any moment, interrupted, out of disk, started twice, unheard.

Every fault is a real one: a signal to a real process, a write that the system refuses. What must
survive is compared bit by bit with a training nothing happened to. Run by `make test-kill`.
"""

import os
import random
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
from minigpt.runs.found import load_run
from minigpt.training.checkpoint import LAST, PREVIOUS, _read, read_state

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
RESUME = ("--resume", "--out", "run")
MAIN = """
import sys
from minigpt.cli import main
sys.exit(main(["train", *sys.argv[1:]]))
"""


SLOWLY = """
import time
from minigpt.training.progress import Progress
step = Progress.on_step
Progress.on_step = lambda *a: (step(*a), time.sleep(0.01))
"""


def start(folder: Path, *arguments: str, code: str = "", **streams: Any) -> subprocess.Popen[str]:
    """train.py in a process of its own, `code` run first in it."""
    folder.mkdir(exist_ok=True)
    (folder / "my.txt").write_text(TEXT)
    return subprocess.Popen(
        [sys.executable, "-c", code + MAIN, *arguments],
        cwd=folder,
        env=os.environ
        | {"MINIGPT_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        text=True,
        **({"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE} | streams),
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit status and what it said."""
    _, err = process.communicate(timeout=900)  # on a busy machine, too
    return process.returncode, err


def run(folder: Path, *arguments: str, code: str = "", status: int = 0) -> str:
    """What train.py says."""
    returned, err = finish(start(folder, *arguments, code=code))
    assert returned == status and "Traceback" not in err, err
    return err


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, finish(process)[1]
        time.sleep(0.01)


def last_of(folder: Path) -> Path:
    return folder / "run" / CHECKPOINT / LAST


def assert_same_files(folder: Path, other: Path) -> None:
    """Best weights and last state are equal bit for bit."""
    files = [(place / "run" / WEIGHTS, last_of(place)) for place in (folder, other)]
    for one, same in zip(*files, strict=True):
        tensors, others = load_file(one), load_file(same)
        assert tensors.keys() == others.keys()
        assert all(torch.equal(tensors[name], others[name]) for name in tensors)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training of 300 steps that nothing happens to."""
    folder = tmp_path_factory.mktemp("whole")
    run(folder, *TINY, "--steps", "300")
    return folder


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_a_resumed_run_ends_as_if_nothing_had_happened(
    number: signal.Signals, status: int, whole: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut"
    process = start(cut, *TINY, "--steps", "300", code=SLOWLY)
    wait_until((cut / "run" / METRICS).exists, process)
    process.send_signal(number)
    returned, err = finish(process)
    assert returned == status and "--resume" in err and "Traceback" not in err, err
    assert 0 < read_state(cut / "run").step < 300
    load_run(cut / "run")
    run(cut, *RESUME)
    assert_same_files(cut, whole)
    assert [row["step"] for row in read_metrics(cut / "run" / METRICS)] == [75, 150, 225, 300]


def test_the_reader_of_all_output_dies_and_ctrl_c_saves_and_stops(
    whole: Path, tmp_path: Path
) -> None:
    """As in `train.py my.txt 2>&1 | tee log`, where Ctrl-C ends tee first."""
    cut, (reader, writer) = tmp_path / "cut", os.pipe()
    process = start(cut, *TINY, "--steps", "300", code=SLOWLY, stdout=writer, stderr=writer)
    os.close(writer)
    wait_until(last_of(cut).exists, process)
    os.close(reader)
    wait_until((cut / "run" / METRICS).exists, process)  # it has had something to say
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert 75 <= read_state(cut / "run").step < 300
    run(cut, *RESUME)
    assert_same_files(cut, whole)


@pytest.mark.parametrize("gone", ["pipe", "terminal", "closed", "result"])
def test_a_training_that_nobody_hears_goes_on_to_its_end(
    gone: str, whole: Path, tmp_path: Path
) -> None:
    """Standard error is a pipe without a reader, a terminal that is gone, or was never open; or
    standard output has no reader, which the exit status tells when the run is whole."""
    cut = tmp_path / "cut"
    reader, writer = pty.openpty() if gone == "terminal" else os.pipe()
    streams = {"stdout" if gone == "result" else "stderr": writer}
    close = "import os, sys; os.close(2); sys.stderr = None\n"
    process = start(
        cut, *TINY, "--steps", "300", code=SLOWLY + close * (gone == "closed"), **streams
    )
    os.close(writer)
    wait_until(last_of(cut).exists, process)
    os.close(reader)
    assert process.wait(timeout=60) == (141 if gone == "result" else 0)
    assert_same_files(cut, whole)
    assert [row["step"] for row in read_metrics(cut / "run" / METRICS)] == [75, 150, 225, 300]


def test_a_program_ended_while_it_hands_over_documents_leaves_no_copy_of_them(
    tmp_path: Path,
) -> None:
    code = f"""
import os, tempfile, time
tempfile.tempdir = {str(tmp_path)!r}
import minigpt
def documents():
    yield "the fox"
    open("begun", "w").close()
    time.sleep(100)
minigpt.train(documents())
"""
    process = start(tmp_path, code=code)
    wait_until((tmp_path / "begun").exists, process)
    assert list(tmp_path.glob("minigpt-documents-*"))
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 143
    assert not list(tmp_path.glob("minigpt-documents-*"))


def test_out_of_memory_after_300_steps_keeps_what_was_learned(tmp_path: Path) -> None:
    """The machine has no more to give, before the first evaluation of a long run."""
    code = """
import torch
from minigpt.training.average import WeightAverage
update = WeightAverage.update
def watched(self, step):
    update(self, step)
    if step == 300:
        torch.empty(1 << 60)
WeightAverage.update = watched
"""
    often = ("--checkpoint-seconds", "0.01")
    process = start(tmp_path, *TINY, "--steps", "9000", *often, code=code)
    assert finish(process)[0] != 0
    assert read_state(tmp_path / "run").step > 100
    run(tmp_path, *RESUME, "--steps", "310")
    load_run(tmp_path / "run")


@pytest.mark.parametrize(("room", "status"), [(100_000, 0), (40_000, 2)])
def test_a_full_disk_leaves_the_earlier_checkpoint_as_it_was(
    room: int, status: int, tmp_path: Path
) -> None:
    """The system refuses files above a size. The first has room for the weights, the second has
    not, which the exit status tells; with more room the run can be continued."""
    full = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))"
    run(tmp_path, *TINY, "--steps", "40")
    before = last_of(tmp_path).read_bytes()
    err = run(tmp_path, *RESUME, "--steps", "80", code=full, status=status)
    assert "could not write the checkpoint" in err and last_of(tmp_path).read_bytes() == before
    assert ("error: the best weights could not be written to run/" in err) == (status == 2)
    assert not list((tmp_path / "run").rglob(".new-*"))
    load_run(tmp_path / "run")
    run(tmp_path, *RESUME)
    assert read_state(tmp_path / "run").step == 80


def test_a_second_process_is_kept_out_until_the_first_is_gone(tmp_path: Path) -> None:
    process = start(tmp_path, *TINY, "--steps", "1000000")
    wait_until(last_of(tmp_path).exists, process)
    assert "another process is training in run" in run(tmp_path, *RESUME, status=2)
    process.kill()
    finish(process)
    run(tmp_path, *RESUME, "--steps", str(read_state(tmp_path / "run").step + 10))


def written(file: Path) -> float:
    """When a file was written; 0 if it is not there, as between two renames."""
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def test_killed_at_twenty_random_moments_a_run_ends_as_if_nothing_had_happened(
    tmp_path: Path,
) -> None:
    """Each time what is there loads, and no earlier state than before. Every other sitting is
    killed after a second save. Until the last sitting a step takes 30 ms at least, so that also a
    fast machine is not done before the last kill."""
    steps = 800
    whole, cut, moments = tmp_path / "whole", tmp_path / "cut", random.Random(4)
    run(whole, *TINY, "--steps", str(steps))
    arguments = [*TINY, "--steps", str(steps), "--checkpoint-seconds", "0.05"]
    step = -1
    last = last_of(cut)
    for sitting in range(20):
        process = start(cut, *arguments, code=SLOWLY.replace("0.01", "0.03"))
        arguments = [*RESUME]
        before = written(last)
        wait_until(lambda before=before: written(last) not in (0.0, before), process)
        if sitting % 2 == 1:
            first = written(last)
            wait_until(lambda first=first: written(last) not in (0.0, first), process)
        time.sleep(moments.uniform(0.0, 0.4))
        process.send_signal(signal.SIGKILL)
        assert finish(process)[0] == -signal.SIGKILL

        found = _read(last if last.exists() else last.with_name(PREVIOUS)).state  # whole
        assert found.step >= step
        step = found.step
        load_run(cut / "run")
    run(cut, *RESUME)
    assert_same_files(cut, whole)


@pytest.mark.parametrize("moment", ["written", "synced", "set aside", "renamed"])
@pytest.mark.parametrize("save", [2, 4])
def test_killed_inside_a_save_nothing_is_lost(
    moment: str, save: int, whole: Path, tmp_path: Path
) -> None:
    """SIGKILL at each step of a save: the new file written, synced, the old one set aside, ..."""
    cut = tmp_path / "cut"
    code = f"""
import os, signal, pathlib
from minigpt.interop import safetensors_files
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
    run(cut, *TINY, "--steps", "300", code=code, status=-signal.SIGKILL)
    read_state(cut / "run")  # raises if nothing there is whole
    run(cut, *RESUME)
    assert_same_files(cut, whole)
