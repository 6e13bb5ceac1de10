"""A run is never lost: killed, interrupted, out of disk, diverged, started twice.

Every fault is a real one: a signal to a real process, a write that the system refuses, a learning
rate that blows up. What must survive is compared bit by bit with a training nothing happened to.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from minigpt.cli import main
from minigpt.runs import load_run
from minigpt.training.checkpoint import LAST, PREVIOUS, _read, read_state
from minigpt.training.compilation import Loss

ROOT = Path(__file__).parent.parent.parent
TEXT = "".join(
    f"Line {i}: the fox asked the crow, and the crow said {i * i}.\n" for i in range(400)
)
TINY = (
    "my.txt --out run --emb-dim 16 --num-layers 1 --num-heads 1 --context-length 16 --batch-size 4 "
    "--vocab-size 300 --compile off --precision float32 --dropout 0.1 --num-evals 4"
).split()


# The system refuses files above 40 KB: room for the weights, but not for a checkpoint.
FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))"


def start(folder: Path, *arguments: str, code: str = "") -> subprocess.Popen[str]:
    """train.py in a process of its own, `code` run first in it."""
    folder.mkdir(exist_ok=True)
    (folder / "my.txt").write_text(TEXT)
    code += "\nimport sys\nfrom minigpt.cli import main\nsys.exit(main(['train', *sys.argv[1:]]))"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=os.environ
        | {"MINIGPT_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit status and what it said."""
    _, err = process.communicate(timeout=300)
    return process.returncode, err


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, finish(process)[1]
        time.sleep(0.01)


def checkpoint(folder: Path) -> Path:
    return folder / "run" / "checkpoint" / LAST


def assert_same_run(folder: Path, other: Path) -> None:
    """Best weights and last state are equal bit for bit."""
    best = "run/model.safetensors"
    assert (folder / best).read_bytes() == (other / best).read_bytes()
    states = [load_file(checkpoint(f)) for f in (folder, other)]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def uninterrupted(folder: Path, steps: int) -> Path:
    status, err = finish(start(folder, *TINY, "--steps", str(steps)))
    assert status == 0, err
    return folder


@pytest.mark.kill
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_a_resumed_run_ends_as_if_nothing_had_happened(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    whole = uninterrupted(tmp_path / "whole", 600)
    cut = tmp_path / "cut"
    slowly = "import time; from minigpt.training.report import Report; step = Report.step\n"
    slowly += "Report.step = lambda *a: (step(*a), time.sleep(0.005))"
    process = start(cut, *TINY, "--steps", "600", code=slowly)
    wait_until((cut / "run/metrics.jsonl").exists, process)
    process.send_signal(number)
    returned, err = finish(process)
    assert returned == status, err
    assert "--resume" in err and "Traceback" not in err
    assert 0 < read_state(cut / "run").step < 600
    load_run(cut / "run")
    returned, err = finish(start(cut, "--resume", "--out", "run"))
    assert returned == 0, err
    assert_same_run(cut, whole)
    rows = [json.loads(line) for line in (cut / "run/metrics.jsonl").open()]
    assert [row["step"] for row in rows] == [150, 300, 450, 600]


@pytest.mark.kill
def test_a_second_signal_leaves_at_once_and_harms_nothing(tmp_path: Path) -> None:
    stuck = "import time; from minigpt.training import loop\n"
    stuck += "loop.smoothed = lambda *a: time.sleep(60) if a[2] == 30 else 0.0"
    process = start(tmp_path, *TINY, "--steps", "100000", code=stuck)
    wait_until(lambda: checkpoint(tmp_path).exists(), process)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None  # the first one waits for the end of the step
    process.send_signal(signal.SIGINT)
    status, err = finish(process)
    assert status == 130 and "Traceback" not in err
    _read(checkpoint(tmp_path))
    load_run(tmp_path / "run")


@pytest.mark.kill
def test_a_write_that_fails_is_said_and_training_goes_on(tmp_path: Path) -> None:

    uninterrupted(tmp_path, 8)  # fills the token cache
    shutil.rmtree(tmp_path / "run")
    status, err = finish(start(tmp_path, *TINY, "--steps", "100", code=FULL))
    assert status == 0, err
    assert "could not write the checkpoint" in err and "Traceback" not in err
    assert (tmp_path / "run/model.safetensors").stat().st_size < 40_000
    assert not list((tmp_path / "run").rglob(".new-*"))
    load_run(tmp_path / "run")


@pytest.mark.kill
def test_a_full_disk_leaves_the_earlier_checkpoint_as_it_was(tmp_path: Path) -> None:
    uninterrupted(tmp_path, 40)
    before = checkpoint(tmp_path).read_bytes()
    resumed = ("--resume", "--out", "run", "--steps", "80")
    status, err = finish(start(tmp_path, *resumed, code=FULL))
    assert status == 0 and "could not write the checkpoint" in err
    assert checkpoint(tmp_path).read_bytes() == before


@pytest.mark.kill
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(tmp_path: Path) -> None:
    whole = uninterrupted(tmp_path / "whole", 200)
    shutil.copytree(whole, tmp_path / "cut")
    last = checkpoint(tmp_path / "cut")
    data = bytearray(last.read_bytes())
    data[-100] ^= 1  # one bit of a tensor
    last.write_bytes(data)
    process = start(tmp_path / "cut", "--resume", "--out", "run", "--steps", "200")
    status, err = finish(process)
    assert status == 0, err
    assert LAST in err and "checksum" in err and "going back to the one before it" in err
    assert_same_run(tmp_path / "cut", whole)


@pytest.mark.kill
def test_when_no_checkpoint_is_whole_the_run_is_refused_and_untouched(tmp_path: Path) -> None:
    uninterrupted(tmp_path, 40)
    for name in (LAST, PREVIOUS):
        os.truncate(tmp_path / "run/checkpoint" / name, 1000)
    before = {f: f.read_bytes() for f in (tmp_path / "run").rglob("*") if f.is_file()}
    status, err = finish(start(tmp_path, "--resume", "--out", "run", "--steps", "80"))
    assert status == 2 and LAST in err and PREVIOUS in err and "Traceback" not in err
    assert before == {f: f.read_bytes() for f in before}


@pytest.fixture
def train_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """train.py in this process: exit status and what it said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    Path("my.txt").write_text(TEXT)
    return lambda *arguments: (main(["train", *arguments]), capsys.readouterr().err)


def test_a_learning_rate_that_blows_up_is_halved_twice_and_then_said(
    train_here: Callable[..., tuple[int, str]],
) -> None:
    status, err = train_here(*TINY, "--steps", "400", "--learning-rate", "9999")
    assert status == 2 and "Traceback" not in err
    assert err.count(": back to step ") == 2
    assert "train again with --learning-rate" in err.splitlines()[-1]
    weights = load_file("run/model.safetensors")
    assert all(torch.isfinite(w).all() for w in weights.values())


def test_one_bad_step_sets_training_back_and_it_ends_well(
    train_here: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gradient overflows once, at step 20, before there is any checkpoint but the first."""
    sound, seen = Loss.forward, []

    def once_bad(self: Loss, inputs: Tensor, targets: Tensor) -> Tensor:
        seen.append(0)
        return sound(self, inputs, targets) * (torch.inf if len(seen) == 20 else 1)

    monkeypatch.setattr(Loss, "forward", once_bad)
    status, err = train_here(*TINY, "--steps", "100")
    assert status == 0, err
    assert err.count(": back to step ") == 1 and "the loss became inf" in err
    state = read_state(Path("run"))
    assert state.step == 100 and state.num_retries == 1
    assert state.eval_tokens == 131_072  # as planned, also after going back to the very start
    weights = load_file("run/model.safetensors")
    assert all(torch.isfinite(w).all() for w in weights.values())


@pytest.mark.kill
def test_a_second_process_is_kept_out_until_the_first_is_gone(tmp_path: Path) -> None:
    process = start(tmp_path, *TINY, "--steps", "1000000")
    wait_until(lambda: checkpoint(tmp_path).exists(), process)
    status, err = finish(start(tmp_path, "--resume", "--out", "run"))
    assert status == 2 and "another process is training in run" in err
    process.kill()
    finish(process)
    status, err = finish(start(tmp_path, "--resume", "--out", "run", "--steps", "5000"))
    assert status in (0, 2) and "another process" not in err


def test_a_cut_off_run_is_offered_to_whoever_starts_the_same_again(tmp_path: Path) -> None:
    arguments = [a for a in TINY if a not in ("--out", "run")]
    process = start(tmp_path, *arguments, "--steps", "1000000")
    last = tmp_path / "runs/my/checkpoint" / LAST
    wait_until(last.exists, process)
    process.kill()
    finish(process)
    status, err = finish(start(tmp_path, *arguments, "--steps", "5"))
    assert status == 0 and "runs/my was cut off" in err and "--resume --out runs/my" in err


@pytest.mark.kill
def test_killed_at_twenty_random_moments_a_run_ends_as_if_nothing_had_happened(
    tmp_path: Path,
) -> None:
    """At least 20 SIGKILLs; each time what is there loads, and no earlier state than before."""
    steps, interval = 12_000, 0.05
    whole = uninterrupted(tmp_path / "whole", steps)
    cut, moments = tmp_path / "cut", random.Random(4)
    kills, step = 0, -1
    arguments = [*TINY, "--steps", str(steps), "--checkpoint-seconds", str(interval)]
    while True:
        process = start(cut, *arguments)
        arguments = ["--resume", "--out", "run"]
        seen = checkpoint(cut).stat().st_mtime if checkpoint(cut).exists() else 0.0
        while process.poll() is None and (
            not checkpoint(cut).exists() or checkpoint(cut).stat().st_mtime == seen
        ):
            time.sleep(0.005)
        time.sleep(moments.uniform(0.0, 0.6))
        if kills >= 20 or process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        killed = time.time()
        assert finish(process)[0] == -signal.SIGKILL
        kills += 1
        last = checkpoint(cut)
        found = _read(last if last.exists() else last.with_name(PREVIOUS))[0]  # whole
        assert found.step >= step
        assert not last.exists() or killed - last.stat().st_mtime < interval + 1.0
        step = found.step
        load_run(cut / "run")
    status, err = finish(process)
    assert status == 0, err
    assert kills >= 20, f"finished after {kills} kills, at step {step}"
    assert_same_run(cut, whole)


@pytest.mark.kill
@pytest.mark.parametrize("moment", ["written", "synced", "set aside", "renamed"])
@pytest.mark.parametrize("save", [2, 4])
def test_killed_inside_a_save_nothing_is_lost(moment: str, save: int, tmp_path: Path) -> None:
    """SIGKILL at each step of a save: the new file written, synced, the old one set aside, ..."""
    whole = uninterrupted(tmp_path / "whole", 300)
    code = f"""
import os, signal, pathlib
from minigpt import runs as run_folder
from minigpt.training import checkpoint
moment, save, seen = {moment!r}, {save}, [0]
def kill():
    os.kill(os.getpid(), signal.SIGKILL)
write, sync, rename = checkpoint.save_file, os.fsync, pathlib.Path.replace
def counted_write(*a):
    write(*a); seen[0] += 1
    if moment == "written" and seen[0] == save: kill()
def counted_sync(*a):
    sync(*a)
    if moment == "synced" and seen[0] == save: kill()
def counted_rename(self, target):
    result = rename(self, target)
    aside = str(target).endswith({PREVIOUS!r})
    if seen[0] == save and moment == ("set aside" if aside else "renamed"): kill()
    return result
checkpoint.save_file, os.fsync, pathlib.Path.replace = counted_write, counted_sync, counted_rename
"""
    cut = tmp_path / "cut"
    status, err = finish(start(cut, *TINY, "--steps", "300", code=code))
    assert status == -signal.SIGKILL, err
    read_state(cut / "run")  # raises if nothing there is whole
    status, err = finish(start(cut, "--resume", "--out", "run"))
    assert status == 0, err
    assert_same_run(cut, whole)
