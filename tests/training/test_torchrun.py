"""Real processes, started by torchrun: they learn what one learns, and no fault of one is lost.

Run by `make test-distributed`. Everything is on the CPU, in float32, through gloo. What one process
and several compute differs in the order of its sums only: losses, near 5.6, agree to 1e-4 at every
step, and weights, of up to 1 in size, to 1e-3 at the end.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import minigpt
from minigpt.cli import main
from minigpt.training.checkpoint import LAST, LAST_SHARDS, PREVIOUS_SHARDS, read_state
from tests.conftest import TINY, move_into

pytestmark = pytest.mark.distributed

ROOT = Path(__file__).parent.parent.parent
SETTINGS = TINY | {
    "dropout": 0.0,  # which is drawn by each process for itself
    "batch_size": 8, "num_layers": 2, "num_evals": 8, "learning_rate": 5e-3, "optimizer": "adamw"
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "ddp adamw": {},
    "ddp muon": {"optimizer": "muon"},
    "sharded adamw": {"shard": True},
    "sharded muon": {"shard": True, "optimizer": "muon"},
    "ddp in parts": {"micro_batch_size": 3},
    "sharded in parts": {"micro_batch_size": 3, "shard": True, "optimizer": "muon"},
}

# What each process does first: leave out what takes long and is nothing to the point, and have ways
# to make a process fail.
PRELUDE = """
import json, os, signal, sys
import minigpt, minigpt.training_run, minigpt.training.report
from minigpt.cli import main
from minigpt.training.interruption import Interrupted
from minigpt.training.report import Report

minigpt.training_run._SAMPLE_TOKENS = 1
minigpt.training.report.draw = lambda *a: None
RANK, ATTEMPT = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
plain_step = Report.step

def at_step(step, action, rank=1):
    def watched(self, state, *a):
        plain_step(self, state, *a)
        if RANK == rank and state.step == step:
            action()
    Report.step = watched

def cut(**settings):
    at_step(4, lambda: os.kill(os.getpid(), signal.SIGTERM))
    try:
        minigpt.train("my.txt", **settings)
    except Interrupted:
        pass
    Report.step = plain_step
"""


def launch(
    folder: Path, processes: int, code: str, *arguments: str, options: str = ""
) -> tuple[int, str]:
    """Run code in processes that torchrun starts; its exit status and what they said."""
    script = folder / "script.py"
    script.write_text(PRELUDE + code)
    torchrun = [sys.executable, "-m", "torch.distributed.run", *options.split()]
    done = subprocess.run(
        [*torchrun, "--nproc-per-node", str(processes), str(script), *arguments],
        cwd=folder,
        env=os.environ
        | {"MINIGPT_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def options(settings: dict[str, Any]) -> list[str]:
    """Settings as a user types them."""
    named = {name.replace("_", "-"): str(value) for name, value in settings.items()}
    return [part for name, value in named.items() for part in (f"--{name}", value)]


def trainings(processes: int, kinds: list[str]) -> str:
    """Code that trains one run after the other, in a folder named after processes and kind."""
    runs = [SETTINGS | KINDS[kind] | {"out": f"{processes} {kind}"} for kind in kinds]
    return (
        f"for settings in json.loads({json.dumps(runs)!r}): minigpt.train('my.txt', **settings)\n"
    )


def cut_at_step_4(out: str) -> str:
    """Code that trains a sharded run, Muon's, until one of its processes is told to stop."""
    return f"cut(**json.loads({json.dumps(SETTINGS | KINDS['sharded muon'])!r}), out={out!r})\n"


def resumed(out: str, *arguments: str) -> str:
    return f"assert main({['train', '--resume', '--out', out, *arguments]!r}) == 0\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs trained by one process, two and four; some of them were interrupted."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        folder = move_into(tmp_path_factory.mktemp("processes"), monkeypatch)
        monkeypatch.setattr("minigpt.training.training_run._SAMPLE_TOKENS", 1)
        monkeypatch.setattr("minigpt.training.report.draw", lambda *a: None)
        for kind in ("adamw", "muon"):
            minigpt.train("my.txt", **(SETTINGS | {"optimizer": kind}), out=f"1 {kind}")
        status, said = launch(folder, 2, trainings(2, list(KINDS)) + cut_at_step_4("cut by 2"))
        assert status == 0, said
        for copy in ("cut by 2, resumed by 4", "shards"):
            shutil.copytree("cut by 2", copy)
        code = trainings(4, ["ddp adamw", "sharded muon"]) + cut_at_step_4("cut by 4")
        status, said = launch(folder, 4, code + resumed("cut by 2, resumed by 4"))
        assert status == 0, said
        shutil.copytree("cut by 4", "cut by 4, resumed by 2")
        yield folder


def alone(place: Path, kind: str) -> Path:
    """The run of one process that a run of several has to equal."""
    return place / f"1 {KINDS[kind].get('optimizer', 'adamw')}"


def rows(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").open()]


def assert_same_losses(run: Path, other: Path) -> None:
    """Of training and validation, at every step."""
    assert [row["step"] for row in rows(run)] == [row["step"] for row in rows(other)]
    for name in ("train_loss", "train_bits_per_byte", "val_loss"):
        losses = [[row[name] for row in rows(folder)] for folder in (run, other)]
        assert losses[0] == pytest.approx(losses[1], rel=0, abs=1e-4)


def assert_same_weights(run: Path, other: Path) -> None:
    tensors = [load_file(folder / "model.safetensors") for folder in (run, other)]
    torch.testing.assert_close(tensors[0], tensors[1], rtol=0, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_learn_what_one_learns_step_for_step(kind: str, place: Path) -> None:
    assert_same_losses(place / f"2 {kind}", alone(place, kind))
    assert_same_weights(place / f"2 {kind}", alone(place, kind))


@pytest.mark.parametrize("kind", ["ddp adamw", "sharded muon"])
def test_so_do_four(kind: str, place: Path) -> None:
    assert_same_losses(place / f"4 {kind}", alone(place, kind))


def test_there_is_something_to_learn(place: Path) -> None:
    """Or the losses would agree whatever the optimizer did."""
    for kind in ("adamw", "muon"):
        losses = [row["val_loss"] for row in rows(place / f"1 {kind}")]
        assert losses[-1] < losses[0] - 0.3
    assert rows(place / "1 adamw")[-1] != rows(place / "1 muon")[-1]


def test_the_weights_of_a_sharded_run_are_an_ordinary_file(place: Path) -> None:
    one, two = minigpt.load(place / "1 muon"), minigpt.load(place / "2 sharded muon")
    text = {"max_new_tokens": 20, "temperature": 0.0}
    assert two.generate("the fox", **text) == one.generate("the fox", **text)


@pytest.mark.parametrize("processes", [2, 4])
def test_a_signal_to_one_process_stops_all_and_one_process_goes_on(
    processes: int, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("MINIGPT_CACHE", str(place / "cache"))
    folder = place / f"cut by {processes}"
    assert (folder / "checkpoint" / LAST_SHARDS).is_dir()
    assert read_state(folder).step == 4
    assert main(["train", "--resume", "--out", str(folder)]) == 0
    assert (folder / "checkpoint" / LAST).is_file()
    assert_same_losses(folder, place / "1 muon")
    assert_same_weights(folder, place / "1 muon")


def test_what_two_processes_saved_four_go_on_with(place: Path) -> None:
    assert_same_losses(place / "cut by 2, resumed by 4", place / "1 muon")
    assert_same_weights(place / "cut by 2, resumed by 4", place / "1 muon")


@pytest.mark.parametrize("damage", ["is missing", "is damaged, its checksum does not match"])
def test_a_shard_that_is_not_as_it_was_is_named_and_the_checkpoint_before_it_used(
    damage: str,
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("MINIGPT_CACHE", str(place / "cache"))
    folder = Path(shutil.copytree(place / "shards", tmp_path / "run"))
    resume = ["--resume", "--out", str(folder)]
    for checkpoint, status in ((LAST_SHARDS, 0), (PREVIOUS_SHARDS, 2)):
        if status == 2:  # none is left
            shutil.rmtree(folder)
            shutil.copytree(place / "shards", folder)
            spoil(folder / "checkpoint" / LAST_SHARDS, damage)
        name = spoil(folder / "checkpoint" / checkpoint, damage)
        assert main(["train", *resume]) == status
        said = capsys.readouterr().err
        assert f"{checkpoint}: {name} {damage}" in said
        if status == 0:
            assert "going back to the one before it" in said
            assert_same_losses(folder, place / "1 muon")
        else:
            assert said.count("error:") == 1 and "Traceback" not in said


def spoil(checkpoint: Path, damage: str) -> str:
    """Remove one of the shards, or change a bit of it; its name."""
    file = max(checkpoint.glob("*.safetensors"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.unlink()
    if damage != "is missing":
        file.write_bytes(data)
    return file.name


def test_a_killed_process_ends_the_others_and_the_run_is_resumed(place: Path) -> None:
    """The checkpoint is that of step 5; before, these two go on with what four have saved."""
    other = place / "cut by 4, resumed by 2"
    dies = "at_step(6, lambda: os.kill(os.getpid(), signal.SIGKILL))\n"
    code = resumed(str(other)) + dies + "sys.exit(main(['train', *sys.argv[1:]]))"
    given = options(SETTINGS | {"optimizer": "muon", "out": "killed"})
    status, said = launch(place, 2, code, "my.txt", "--shard", *given)
    assert_same_losses(other, place / "1 muon")
    assert status != 0
    assert said.count("error: process 0 of 2 has lost contact with another") == 1
    assert "--resume" in said and 'minigpt/training/loop.py"' not in said
    assert read_state(place / "killed").step == 5
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(place)
        monkeypatch.setenv("MINIGPT_CACHE", str(place / "cache"))
        assert main(["train", "--resume", "--out", "killed"]) == 0
    assert_same_losses(place / "killed", place / "1 muon")


def test_torchrun_starts_lost_processes_again_and_they_resume_by_themselves(place: Path) -> None:
    dies = "if ATTEMPT == 0: at_step(6, lambda: os.kill(os.getpid(), signal.SIGKILL), rank=0)\n"
    given = options(SETTINGS | {"out": "restarted"})
    code = dies + "sys.exit(main(['train', *sys.argv[1:]]))"
    status, said = launch(place, 2, code, "my.txt", *given, options="--max-restarts 1")
    assert status == 0, said
    assert "continuing restarted" in said
    assert_same_losses(place / "restarted", place / "1 adamw")


def test_what_a_user_can_put_right_is_one_line_and_ends_all_with_status_2(place: Path) -> None:
    given = options(SETTINGS)
    (place / "other").mkdir()
    (place / "other" / "my.txt").write_text("another text, word for word\n" * 100)
    code = f"""
import resource
status = dict()
def case(name, *arguments):
    if RANK == 0:
        print("case:", name, file=sys.stderr, flush=True)
    status[name] = main(["train", *arguments])

given = {given!r}
case("batch", "my.txt", *given, "--batch-size", "7", "--out", "batch")
case("stdin", "-", *given, "--out", "stdin")
case("twice", "my.txt", *given, "--out", "1 adamw")
os.chdir("other" if RANK == 1 else ".")
case("text", "my.txt", *given, "--out", "text")
os.chdir({str(place)!r})
full = 2000 if RANK == 1 else resource.RLIM_INFINITY
resource.setrlimit(resource.RLIMIT_FSIZE, (full, resource.RLIM_INFINITY))
case("checkpoint", "my.txt", *given, "--shard", "--out", "checkpoint")
full = 2000 if RANK == 0 else resource.RLIM_INFINITY
resource.setrlimit(resource.RLIMIT_FSIZE, (full, resource.RLIM_INFINITY))
case("weights", "my.txt", *given, "--out", "weights")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
with open(f"status of {{RANK}}", "w") as file:
    file.write(json.dumps(status))
os._exit(0)  # torch does not always survive the end of a process that had six groups
"""
    returned, said = launch(place, 2, code)
    assert returned == 0, said
    assert "Traceback" not in said
    cases = dict(part.split("\n", 1) for part in said.split("case: ")[1:])
    errors = {
        "batch": "a multiple of the 2 processes, got 7; use --batch-size 6 or 8",
        "stdin": "several processes cannot share standard input",
        "twice": "1 adamw already holds a run",
        "text": "process 1 sees another text or model than process 0",
        "weights": "File too large",
    }
    for name, error in errors.items():
        lines = [line for line in cases[name].splitlines() if "error:" in line]
        assert len(lines) == 1 and error in lines[0], cases[name]
    assert "could not write the checkpoint" in cases["checkpoint"]
    assert not list((place / "checkpoint/checkpoint").iterdir())  # neither whole nor in part
    minigpt.load(place / "checkpoint")  # training went on
    for rank in (0, 1):
        status = json.loads((place / f"status of {rank}").read_text())
        assert status == dict.fromkeys(errors, 2) | {"checkpoint": 0}


def test_an_evaluation_is_the_same_to_the_last_bit_on_any_number_of_processes(place: Path) -> None:
    code = """
result = minigpt.evaluate("1 adamw", "my.txt", stride=5, device="cpu", batch_size=7)
if RANK == 0:
    with open(sys.argv[1], "w") as file:
        file.write(repr(result))
"""
    for processes in (1, 3):
        status, said = launch(place, processes, code, f"figures of {processes}")
        assert status == 0, said
    one, three = ((place / f"figures of {n}").read_text() for n in (1, 3))
    assert one == three and "tokens=" in one
