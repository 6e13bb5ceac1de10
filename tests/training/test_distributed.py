"""Several processes, started by torchrun, learn what one learns, and no error of one is lost.

All but the first tests run with `make test-distributed`, on the CPU, in float32, through gloo. One
process and several add up the same numbers in another order: losses, near 5.6, agree to 1e-4 at
every evaluation, and weights, of up to 1 in size, to 1e-3 at the end.

torchrun starts the processes where it has something to do: end those that are left, or start all
again. Elsewhere they are forks in the environment that torchrun gives.
"""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.distributed import TCPStore

import minigpt
from data.base.pack import write_base
from minigpt import UserError
from minigpt.recipe.run import resume_run
from minigpt.runs import base
from minigpt.runs.folder import read_config, read_metrics
from minigpt.training import distributed
from minigpt.training.checkpoint import read_state
from minigpt.training.setup import check_batch
from tests.conftest import TINY, move_into
from tests.data.chats.made import some_chat
from tests.forks import Forks
from tests.patience import PATIENCE
from tests.training.runs import interrupted

several = pytest.mark.distributed

ROOT = Path(__file__).parent.parent.parent
SETTINGS = TINY | {
    "embedding_init": "random",  # which leaves more to learn
    "dropout": 0.0,  # each process draws its own
    "batch_size": 8, "num_layers": 2, "num_evals": 4, "learning_rate": 5e-3, "optimizer": "muon"
}  # fmt: skip
TUNED = {"steps": 4, "num_evals": 4, "batch_size": 8, "device": "cpu", "precision": "float32"}
KINDS: dict[str, dict[str, Any]] = {
    "adamw": {"optimizer": "adamw"},
    "muon": {},
    "in parts": {"micro_batch_size": 3},
}

# What each process does first: leave out the pictures, and have ways to make a process fail.
PRELUDE = f"""
import atexit, json, os, pathlib, signal, sys, time
@atexit.register
def no_thread_is_left():  # it could end Python with SIGABRT
    if any("gloo" in name.read_text() for name in pathlib.Path("/proc/self").glob("task/*/comm")):
        os._exit(3)
import minigpt, minigpt.training.reports
from minigpt import UserError
from minigpt.cli import main
from minigpt.training.interruption import Interrupted
from minigpt.training.weights import WeightAverage
from minigpt.recipe.run import resume_run

minigpt.training.reports.draw_losses = minigpt.recipe.run.say_copied = lambda *a, **k: None
RANK, SETTINGS, plain_update = int(os.environ["RANK"]), {SETTINGS!r}, WeightAverage.update

def at_step(number, action):
    def watched(self, step):
        plain_update(self, step)
        if RANK == 1 and step + 1 == number:
            action()
    WeightAverage.update = watched

def command_line(**settings):
    return [p for k, v in settings.items() for p in ("--" + k.replace("_", "-"), str(v))]
"""


def launch(forks: Forks, folder: Path, processes: int, code: str, *options: str) -> tuple[int, str]:
    """Run code in processes that torchrun starts; its exit status and what they print."""
    (folder / "script.py").write_text(PRELUDE + code)
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
    how: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    how |= {"cwd": folder, "env": environment(folder)}
    process = forks.start([*torchrun, *options, "script.py"], **how)
    said, _ = process.communicate(timeout=3 * PATIENCE)  # each of them loads torch
    return process.returncode, said


def together(forks: Forks, folder: Path, processes: int, code: str) -> tuple[list[int], str]:
    """Run code in processes as torchrun would start them; their statuses and what they print."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    script = PRELUDE + code
    env = environment(folder) | {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    with tempfile.TemporaryFile("w+") as said:
        ranks = [
            forks.start(
                ["-c", script],
                cwd=folder,
                env=env | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdout=said,
                stderr=said,
            )
            for rank in range(processes)
        ]
        try:
            statuses = [rank.wait(PATIENCE) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        said.seek(0)
        return statuses, said.read()


def environment(folder: Path) -> dict[str, str]:
    own = {"MINIGPT_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return os.environ | own


@pytest.fixture(scope="module")
def place(forks: Forks, tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs trained by one process, by two, and by one, two and four in turn."""
    folder = tmp_path_factory.mktemp("processes")
    with pytest.MonkeyPatch.context() as monkeypatch:
        move_into(folder, monkeypatch)
        (folder / "chat.txt").write_text(some_chat(200))
        for kind in ("adamw", "muon"):
            minigpt.train("my.txt", **(SETTINGS | {"optimizer": kind}), out=f"one {kind}")
        minigpt.train("chat.txt", only="otto", out="one of a speaker", **SETTINGS)
        write_base(tiny_run, folder / base.BASE)
        monkeypatch.setattr(base, "base_folder", lambda: folder / base.BASE)
        minigpt.train("my.txt", out="one with the base", **TUNED)
        interrupted("by 1, 2 and 4", 2, **SETTINGS)
        shutil.copytree("by 1, 2 and 4", "restarted")
    code = f"""
minigpt.runs.base.base_folder = lambda: pathlib.Path({base.BASE!r}).resolve()
minigpt.train("my.txt", out="two with the base", **{TUNED!r})
minigpt.train("chat.txt", only="otto", out="two of a speaker", **SETTINGS)
for kind, changes in {KINDS!r}.items():
    minigpt.train("my.txt", **SETTINGS | changes, out=kind)
at_step(5, lambda: os.kill(os.getpid(), signal.SIGTERM))
try:
    resume_run("by 1, 2 and 4", dict(), time.monotonic())
except Interrupted:
    open(f"interrupted by {{RANK}}", "w").close()
"""
    statuses, said = together(forks, folder, 2, code)
    assert statuses == [0, 0] and len(list(folder.glob("interrupted by *"))) == 2, said
    assert said.count("  begins     with the base") == 1, said
    assert read_state(folder / "by 1, 2 and 4").step == 5
    resumed = "resume_run('by 1, 2 and 4', {}, time.monotonic())"
    statuses, said = together(forks, folder, 4, resumed)
    assert statuses == [0, 0, 0, 0], said
    return folder


def assert_same_run(run: Path, other: Path) -> None:
    """Losses of training and validation, and weights."""
    rows, others = read_metrics(run / "metrics.jsonl"), read_metrics(other / "metrics.jsonl")
    assert [row["step"] for row in rows] == [row["step"] for row in others]
    names = ["train_loss", "train_bits_per_byte", "val_loss"]
    if "counting_bits_per_byte" in others[0]:  # not if the loss counts only some tokens
        names.append("counting_bits_per_byte")
    for name in names:
        expected = [row[name] for row in others]
        assert [row[name] for row in rows] == pytest.approx(expected, rel=0, abs=1e-4)
    tensors = [load_file(folder / "model.safetensors") for folder in (run, other)]
    torch.testing.assert_close(tensors[0], tensors[1], rtol=0, atol=1e-3)


# Without torchrun


def test_a_batch_that_cannot_be_shared_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "world_size", lambda: 4)
    check_batch(8)
    with pytest.raises(UserError, match="a multiple of 4, the processes; got 10"):
        check_batch(10)


def test_a_single_process_needs_no_torchrun() -> None:
    with distributed.process_group():
        assert (distributed.rank(), distributed.world_size()) == (0, 1)
        assert distributed.on_main(lambda: 3) == distributed.on_all(lambda: 3) == 3
        assert distributed.highest(2.0, 5) == [2.0, 5]
        sums = torch.tensor([2.0, 5.0])
        distributed.add_up(sums)
        assert sums.tolist() == [2.0, 5.0]
        assert distributed.share(8) == slice(0, 8)
        for run in (distributed.on_main, distributed.on_all):
            with pytest.raises(ZeroDivisionError):
                run(lambda: 1 // 0)


# With torchrun


@several
@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_learn_what_one_learns(kind: str, place: Path) -> None:
    assert_same_run(place / kind, place / f"one {KINDS[kind].get('optimizer', 'muon')}")


@several
def test_the_first_process_measures_a_gpu_by_steps_while_the_others_wait(
    forks: Forks, workplace: Path
) -> None:
    """Of which the processor takes the place here, with a small model."""
    code = """
import torch
from minigpt.config import GPTConfig
from minigpt.recipe import speed
from minigpt.training import distributed

cpu = torch.device("cpu")
speed.SHAPE_ON_GPU = GPTConfig(300, context_length=8, emb_dim=16, num_layers=1, num_heads=1)
speed._PRODUCT, speed._MOST = 64, 1
speed._of_cpu = lambda precision, num_workers, clock: speed._of_gpu(cpu, precision, clock)
with distributed.process_group():
    found = distributed.on_main(speed.measure_speed, cpu, torch.float32)
    assert found.flops > 0 and distributed.world_size() == 2
    with distributed.alone():
        assert (distributed.rank(), distributed.world_size()) == (0, 1)
        assert distributed.started() == 2  # so that no step is recorded
"""
    statuses, said = together(forks, workplace, 2, code)
    assert statuses == [0, 0], said


@several
def test_there_is_something_to_learn(place: Path) -> None:
    """Or the losses would agree whatever the optimizer did."""
    for kind in ("adamw", "muon"):
        losses = [row["val_loss"] for row in read_metrics(place / f"one {kind}/metrics.jsonl")]
        assert losses[-1] < losses[0] - 0.2


@several
def test_any_number_of_processes_continues_a_checkpoint(place: Path) -> None:
    """Two what one began, and four what a signal to one of the two has stopped."""
    assert_same_run(place / "by 1, 2 and 4", place / "one muon")


@several
def test_two_processes_that_count_one_speaker_learn_what_one_learns(place: Path) -> None:
    """Of whose tokens each process has a share of another size."""
    assert_same_run(place / "two of a speaker", place / "one of a speaker")


@several
def test_the_first_process_chooses_the_base_for_all(place: Path) -> None:
    assert read_config(place / "one with the base").text.init == "base"
    assert_same_run(place / "two with the base", place / "one with the base")


@several
def test_a_killed_process_ends_the_others_and_only_resume_goes_on(
    forks: Forks, workplace: Path
) -> None:
    """Of the two that are left one says so. torchrun starts all again with the same command, which
    is refused, as its --out is taken."""
    code = """
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    at_step(5, lambda: os.kill(os.getpid(), signal.SIGKILL))
SETTINGS |= {"batch_size": 9}
sys.exit(main(["train", "my.txt", "--out", "killed", *command_line(**SETTINGS)]))
"""
    status, said = launch(forks, workplace, 3, code, "--max-restarts", "1")
    assert status != 0, said
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    ended = "error: a process has ended or cannot be reached; continue with --resume"
    assert len(errors) == 2 and errors[0] == ended, said
    assert "killed already holds a run" in errors[1]
    assert read_state(Path("killed")).step == 4  # when it was evaluated
    resume_run("killed", {}, 0.0)
    assert read_state(Path("killed")).step == 8


@several
def test_processes_that_torchrun_starts_again_go_on_with_a_run(place: Path, forks: Forks) -> None:
    code = """
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    at_step(5, lambda: os.kill(os.getpid(), signal.SIGKILL))
sys.exit(main(["train", "--out", "restarted", "--resume"]))
"""
    status, said = launch(forks, place, 2, code, "--max-restarts", "1")
    assert status == 0, said
    assert_same_run(place / "restarted", place / "one muon")


@several
def test_an_error_that_one_process_has_alone_ends_all_with_one_message(
    forks: Forks, workplace: Path
) -> None:
    code = """
def fail():
    raise UserError("out of memory")
at_step(3, fail)
status = main(["train", "my.txt", "--out", "lone", *command_line(**SETTINGS)])
with open(f"status {RANK}", "w") as file:
    file.write(str(status))
sys.exit(status)
"""
    status, said = launch(forks, workplace, 2, code)
    assert status != 0 and said.count("error: ") == 1, said
    assert (
        "error: rank 1 of 2: out of memory\n" in said and "Traceback" not in said.split("torch")[0]
    )
    assert Path("status 1").read_text() == "2"


@several
def test_what_a_user_can_put_right_is_one_line_and_every_process_returns_2(
    place: Path, forks: Forks
) -> None:
    (place / "other").mkdir()
    (place / "other" / "my.txt").write_text("another text, word for word\n" * 100)
    code = f"""
import resource
import torch.distributed as dist
status, given = dict(), command_line(**SETTINGS)
def case(name, *arguments):
    if RANK == 0:
        print("case:", name, file=sys.stderr, flush=True)
    status[name] = main(['train', *given, *arguments])

case("batch", "my.txt", "--out", "batch", "--micro-batch-size", "1", "--batch-size", "7")
case("stdin", "-", "--out", "stdin")
case("twice", "my.txt", "--out", "one adamw")
if RANK == 1:  # a machine of its own, with another text under the same name
    os.chdir("other")
    os.environ["MINIGPT_CACHE"] = "cache"
case("text", "my.txt", "--out", "text", "--validation-fraction", "0.2")
os.chdir({str(place)!r})
os.environ["MINIGPT_CACHE"] = {str(place / "cache")!r}
full = 2000 if RANK == 0 else resource.RLIM_INFINITY
resource.setrlimit(resource.RLIMIT_FSIZE, (full, resource.RLIM_INFINITY))
case("weights", "my.txt", "--out", "weights")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
patience = dist.group.WORLD._get_backend(dist.group.WORLD._device_types[0]).options._timeout
with open(f"status of {{RANK}}", "w") as file:
    file.write(json.dumps([status, patience.total_seconds()]))
"""
    returned, said = together(forks, place, 2, code)
    assert returned == [0, 0] and "Traceback" not in said, said
    cases = dict(part.split("\n", 1) for part in said.split("case: ")[1:])
    errors = {
        "batch": "a multiple of 2, the processes; got 7",
        "stdin": "several processes cannot share standard input",
        "twice": "one adamw already holds a run",
        "text": "changed while it was read",
        "weights": "File too large",
    }
    for name, error in errors.items():
        lines = [line for line in cases[name].splitlines() if "error:" in line]
        assert len(lines) == 1 and error in lines[0], cases[name]
    for rank in (0, 1):
        status, patience = json.loads((place / f"status of {rank}").read_text())
        assert status == dict.fromkeys(errors, 2)
        assert patience > 24 * 3600  # so long may rank 0 prepare a text
