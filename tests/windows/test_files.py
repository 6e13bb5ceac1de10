"""Everything that minigpt does with files, where an open file is neither replaced nor removed."""

import contextlib
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import minigpt
from minigpt.cli import main
from minigpt.runs.folder import BEST, CHECKPOINT, LOCK, WEIGHTS
from minigpt.runs.weights import read_best
from minigpt.system import platforms as system
from minigpt.training.checkpoint import TrainingState
from minigpt.training.folder import RunFolder

from ..conftest import TINY, train_tiny
from ..patience import PATIENCE
from ..training.runs import after_step, interrupted
from .emulation import WindowsFiles, windows

pytestmark = [
    pytest.mark.systems,
    pytest.mark.skipif(sys.platform != "linux", reason="which files are open, /proc says"),
]

FILES = WindowsFiles()
OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]


@pytest.fixture
def place(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, on Windows."""
    monkeypatch.setattr(system, "_PATIENCE", 0.1)
    with windows(FILES, workplace):
        yield workplace


@contextlib.contextmanager
def held(file: Path) -> Iterator[None]:
    """Inside, another process has a file mapped."""
    code = (
        "import mmap, sys\n"
        "file = open(sys.argv[1], 'rb')\n"
        "mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)\n"
        "print('mapped', flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-I", "-S", "-c", code, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"mapped\n"
        yield
        process.communicate(timeout=PATIENCE)


def test_the_emulation_refuses_what_windows_refuses(place: Path) -> None:
    Path("new").write_text("new")
    with held(Path("my.txt")):
        for refused in (
            lambda: Path("new").replace("my.txt"),
            lambda: Path("my.txt").rename("other.txt"),
            lambda: Path("my.txt").unlink(),
            lambda: Path("my.txt").write_text("new"),
            lambda: Path("aux.txt").write_text("new"),
            lambda: Path("my.txt").with_name("a:b").mkdir(),
        ):
            with pytest.raises(OSError):
                refused()
    Path("new").replace("my.txt")


def test_all_commands_work_while_a_writer_is_open(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a notebook: what is loaded stays loaded, and training goes on beside it."""
    assert main(["train", "my.txt", "--keep", "3", *OPTIONS]) == 0
    run = Path("runs/my")
    first = (run / WEIGHTS).read_bytes()
    writer = minigpt.load(run)
    before = writer.generate("the", seed=1, max_new_tokens=5)
    assert writer.model is not None

    assert main(["train", "--resume", "--out", "runs/my", "--steps", "12"]) == 0
    assert (run / WEIGHTS).read_bytes() != first
    assert writer.generate("the", seed=1, max_new_tokens=5) == before
    for command in (
        "train my.txt --init runs/my --steps 2 --num-evals 1 --device cpu --out runs/tuned",
        "generate the --run my --max-new-tokens 3",
        "generate the --run my@0 --max-new-tokens 3",
        "evaluate my my.txt",
        "explain my the",
        "page my",
        "export my",
        "export my --to gguf",
        "runs",
    ):
        assert main(command.split()) == 0, (command, capsys.readouterr().err)
    gc.collect()  # what this process has trained on is not open any more, as after its end
    for name in ("tuned", "my"):
        assert main(["runs", "--delete", name, "--yes"]) == 0
    assert list((place / "cache/tokens").glob("*")) == list((place / "cache/tokens").glob("*.lock"))
    assert not run.exists() and not Path("runs/tuned").exists()
    assert FILES.refused == [], capsys.readouterr().err


def test_best_weights_that_another_program_holds_for_a_while_are_written_at_the_next_save(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = train_tiny(out="whole", num_evals=4)
    interrupted("run", step=3, num_evals=4)
    with contextlib.ExitStack() as holder:
        holder.enter_context(held(Path("run", WEIGHTS)))
        after_step(monkeypatch, lambda step: step == 5, holder.close)
        assert main("train --resume --out run".split()) == 0
    assert "could not write the best weights to run: " in capsys.readouterr().err
    assert (Path("run", WEIGHTS)).read_bytes() == (whole / WEIGHTS).read_bytes()


def test_what_is_tried_again_are_the_weights_of_then(place: Path) -> None:
    """And not those that training has reached meanwhile."""
    run = train_tiny(out="run")
    model = minigpt.load(run).model
    kept = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    folder, state = RunFolder(run), TrainingState(step=9)
    with held(run / WEIGHTS):
        folder.keep_best(model, state, 1.5, 0.5)
        assert not folder.write_best_again(model, state)
        assert state.best_loss == 1.5
    with torch.no_grad():
        model.final_norm.weight.zero_()
    assert folder.write_best_again(model, state)

    assert not model.final_norm.weight.any()
    assert read_best(run / WEIGHTS) == {"val_loss": 1.5, "val_bits_per_byte": 0.5, "step": 9}
    written = load_file(run / WEIGHTS)
    assert all(torch.equal(written[name], kept[name]) for name in written)


def test_best_weights_that_cannot_take_their_place_are_put_aside_and_the_status_tells(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train_tiny(out="run", steps=2, num_evals=1)
    resume = "train --resume --out run --steps 8 --num-evals 4".split()
    with held(Path("run", WEIGHTS)):
        assert main(resume) == 2
        last_line = capsys.readouterr().err.splitlines()[-1]
        assert main(resume) == 2
    assert last_line.startswith(f"error: the best weights could not be written to run/{WEIGHTS}; ")
    assert "end the programs that have it open" in last_line
    assert last_line.endswith("continue with --resume --out run")

    aside = Path("run", CHECKPOINT, BEST)
    best, written = read_best(aside), aside.read_bytes()
    assert best is not None and best["step"] > 2
    assert "could not be moved from" in capsys.readouterr().err.splitlines()[-1]
    assert main(resume) == 0
    assert Path("run", WEIGHTS).read_bytes() == written and not aside.exists()


def test_a_training_that_fails_early_leaves_nothing_and_one_that_was_killed_makes_room(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock is removed too, but not while it is open."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ZeroDivisionError):
        after_step(patch, lambda step: True, lambda: 1 // 0)
        train_tiny(out="run")
    assert not Path("run").exists()

    with pytest.MonkeyPatch.context() as patch, pytest.raises(ZeroDivisionError):
        after_step(patch, lambda step: True, lambda: 1 // 0)
        patch.setattr("minigpt.training.folder.remove_untrained", lambda folder, is_locked: None)
        train_tiny(out="run")
    assert Path("run", LOCK).exists()
    assert read_best(train_tiny(out="run") / WEIGHTS) is not None
    assert FILES.refused == []


def test_texts_that_are_read_once_leave_no_copy(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = place / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    documents = (place / "my.txt").read_text(encoding="utf-8").split("\n")
    run = minigpt.train(iter(documents), **TINY)
    assert list(temporary.iterdir()) == [] and FILES.refused == []
    assert run == Path("runs/documents")


def test_a_file_or_a_folder_that_is_read_for_a_moment_is_renamed_after_it(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a virus scanner reads each new file."""
    Path("folder").mkdir()
    for path, inside in ((Path("my.txt"), Path("my.txt")), (Path("folder"), Path("folder/file"))):
        inside.write_text("text")
        with contextlib.ExitStack() as holder:
            holder.enter_context(held(inside))
            monkeypatch.setattr("time.sleep", lambda seconds, release=holder.close: release())
            system.rename(path, Path(f"{path}-2"))
        assert Path(f"{path}-2").exists() and not path.exists()


def test_a_run_that_another_program_has_open_is_deleted_when_that_has_ended(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train_tiny(out="runs/my", keep=3)
    with held(Path("runs/my", WEIGHTS)):
        assert main("runs --delete my --yes".split()) == 2
        last_line = capsys.readouterr().err.splitlines()[-1]
        assert last_line.startswith("error: runs/my/") or str(place) in last_line
        assert last_line.endswith("perhaps another program has it open")
    gc.collect()
    assert main("runs --delete my --yes".split()) == 0
    assert not Path("runs/my").exists()
