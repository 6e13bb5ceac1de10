"""The journal of a run: what other programs read of a training, and how they end it."""

import io
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import minigpt
from minigpt import UserError
from minigpt.cli import main
from minigpt.recipe import texts_while_learning as samples
from minigpt.runs import journal as journal_module
from minigpt.runs.begin import locked
from minigpt.runs.delete import runs_to_delete
from minigpt.runs.folder import COPIED, JOURNAL, SAMPLES, STATE, STEPS, STOP, WEIGHTS
from minigpt.runs.journal import Journal
from minigpt.runs.state import (
    facts_of,
    is_training,
    keep_copied,
    read_texts,
    state_of,
)
from minigpt.system.atomic import unfinished_name, write_text
from minigpt.system.platforms import seconds_asleep
from minigpt.training.checkpoint import save_checkpoint
from minigpt.training.folder import RunFolder
from minigpt.training.interruption import Interrupted
from tests.conftest import TINY, some_text, train_tiny
from tests.forks import Forks
from tests.hostile import NO_ROOM
from tests.patience import PATIENCE
from tests.training.runs import after_step, contents, interrupted, resume

OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at every second is looked at all the time."""
    monkeypatch.setattr(journal_module, "SECONDS", 0.01)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """All that trainings in this process say: what has changed, one after the other."""
    changes: list[dict[str, Any]] = []
    tell = Journal.tell

    def note(journal: Journal, phase: str | None = None, **more: Any) -> None:
        is_new = phase is not None and phase != journal._state["phase"]
        changes.append({**more, "phase": phase} if is_new else more)
        tell(journal, phase, **more)

    monkeypatch.setattr(Journal, "tell", note)
    return changes


def said(run: Path) -> dict[str, Any]:
    return facts_of(run).said


def test_a_training_tells_its_phases_and_how_it_ended(
    workplace: Path, told: list[dict[str, Any]]
) -> None:
    run = train_tiny()
    names = [change.get("how") or change["phase"] for change in told if "phase" in change]
    assert names[-6:] == ["evaluating", "saving", "training", "evaluating", "saving", "finished"]
    end = said(run)
    assert (end["phase"], end["how"], end["step"]) == ("ended", "finished", 8)
    assert end["val_bits_per_byte"] == facts_of(run).evaluation["val_bits_per_byte"]
    assert end["best_bits_per_byte"] == facts_of(run).bits_per_byte
    assert end["writes"] == read_texts(run)[-1]["text"]
    assert state_of(run).state == "done" and not is_training(run)

    parts = Path("runs/parts")
    interrupted(parts, step=3)
    assert (state_of(parts).state, said(parts)["how"]) == ("stopped", "interrupted")
    resume(parts)
    assert state_of(parts).state == "done"


def test_how_long_each_phase_takes_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("minigpt.runs.journal.time.monotonic", lambda: now)
    with Journal(tmp_path) as journal:
        for phase, seconds in (
            ("reading", 0.4),
            ("planning", 2.0),
            ("training", 1.0),
            ("evaluating", 0.5),
            ("training", 3.0),
        ):
            journal.tell(phase)
            journal.tell(phase, share=0.5)
            now += seconds
        journal.tell("saving")
        took = said(tmp_path)["took"]
    assert took == {"reading": 0.4, "planning": 2.0, "training": 4.0, "evaluating": 0.5}


def test_a_training_holds_the_lock_of_its_run_and_waits_a_second_for_who_looks(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    run = Path("runs/my")
    after_step(monkeypatch, lambda step: step == 3, lambda: seen.append(state_of(run).state))
    train_tiny(out=run)
    assert seen == ["learning"]
    with (
        locked(run),
        pytest.raises(UserError, match="another process is training"),
        Journal(run),
    ):
        pass
    assert state_of(run).state == "done"  # whoever came too late has said nothing


def test_what_goes_on_keeps_what_it_said_until_its_first_new_step(
    workplace: Path, told: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path("runs/my")
    interrupted(run, step=3)
    before = facts_of(run)
    at_start: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "minigpt.recipe.texts_while_learning.Samples.on_start",
        lambda *_: at_start.append(said(run)),
    )
    resume(run)
    (now,) = at_start
    assert (now["phase"], now["goes_on_from"]) == ("training", before.saved["seconds"])
    assert (now["step"], now["writes"]) == (3, before.said["writes"])
    assert said(run)["goes_on_from"] is None


def test_the_state_is_written_once_a_second_and_when_another_phase_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "SECONDS", 3600.0)
    with Journal(tmp_path) as journal:
        journal.tell("reading", share=0.0)
        assert said(tmp_path)["phase"] == "reading"
        for number in range(25):
            journal.tell("reading", share=number / 100)
        assert said(tmp_path)["share"] == 0.0
        journal._write()  # as each second
        assert said(tmp_path)["share"] == 0.24
        journal.tell("planning")
        assert (said(tmp_path)["phase"], said(tmp_path)["share"]) == ("planning", None)


def test_the_state_is_always_whole(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.tell("reading")
        for number in range(300):
            journal.tell(("reading", "planning")[number % 2], writes="x" * number)
            assert json.loads((tmp_path / JOURNAL / STATE).read_text())["phase"]
    assert os.listdir(tmp_path / JOURNAL) == [STATE]


@pytest.mark.long
def test_texts_begin_before_the_first_step_and_go_on_where_a_resumed_training_does(
    workplace: Path, usual_texts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.recipe.texts_while_learning._SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr("minigpt.recipe.texts_while_learning._TIMES_THE_COST", 0)
    monkeypatch.setattr("minigpt.recipe.texts_while_learning._SHARE_BETWEEN", 0)
    whole, parts = train_tiny(), Path("runs/parts")
    interrupted(parts, step=3)
    with Journal(parts) as journal:  # of steps that were lost, since the computer crashed
        journal.add_text({"step": 7, "text": "lost"})
    resume(parts)

    texts = read_texts(whole)
    steps = [(row["step"], row["is_evaluation"]) for row in texts]
    evaluated = [(4, True), (8, True)]
    assert [step for step in steps if step not in evaluated] == [
        (step, False) for step in (0, 1, 2, 3, 4, 5, 6, 7, 8, 8)
    ]
    assert [step for step in steps if step in evaluated] == evaluated
    assert [row["text"] for row in texts if row["step"] != 3] == [
        row["text"] for row in read_texts(parts) if row["step"] != 3
    ]
    assert all(row["text"].startswith(row["beginning"]) for row in texts)
    assert texts[-1]["text"] == minigpt.load(whole).generate(
        texts[-1]["beginning"], max_new_tokens=60, seed=0
    )


def test_a_new_run_keeps_no_text_of_an_attempt_that_failed(
    workplace: Path, usual_texts: None
) -> None:
    run = Path("runs/my")
    (run / JOURNAL).mkdir(parents=True)
    (run / JOURNAL / "job.json").write_text("{}")  # which keeps the journal where it is
    with Journal(run) as journal:
        journal.add_text({"step": 0, "text": "of the attempt"})
    train_tiny(out=run)
    texts = [row["text"] for row in read_texts(run)]
    assert texts and "of the attempt" not in texts


@pytest.mark.long
def test_a_fiftieth_of_the_time_goes_into_texts(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step takes ten seconds here and a text one, after which there is none for fifty."""
    now = [0.0]

    def pass_by(seconds: float) -> None:
        now[0] += seconds

    writer_of = samples.writer_of

    def slow_writer(*given: Any) -> Any:
        pass_by(1.0)
        return writer_of(*given)

    monkeypatch.setattr(samples, "writer_of", slow_writer)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    after_step(monkeypatch, lambda step: True, lambda: pass_by(10.0))
    rows = read_texts(train_tiny(steps=30, num_evals=1))
    steps = [row["step"] for row in rows if not row["is_evaluation"]]
    assert steps == [0, 5, 10, 15, 20, 25, 30, 30]


def test_a_text_with_any_line_separator_is_one_row(tmp_path: Path) -> None:
    row = {"step": 1, "text": "a\u2028b\x85c\x0cd\r\n"}
    with Journal(tmp_path) as journal:
        journal.add_text(row)
    assert read_texts(tmp_path) == [row]


@pytest.mark.long
def test_words_of_a_text_are_looked_up_and_a_head_looks_at_all_of_the_beginning(
    workplace: Path, usual_texts: None
) -> None:
    row = read_texts(train_tiny(tokenizer="char", steps=40, context_length=32))[-1]
    words = set(some_text().split())
    written = row["text"][len(row["beginning"]) :].split()
    assert row["words"] == len(written)
    assert row["known"] == sum(word in words for word in written)
    assert set(row["unknown"]) == set(written) - words
    looks = row["looks"]  # (layers, heads, tokens)
    assert "".join(row["tokens"]).replace("␣", " ") == row["beginning"]
    assert [len(head) for layer in looks for head in layer] == [len(row["tokens"])] * 2
    heads = [head for layer in looks for head in layer]
    assert all(sum(head) == pytest.approx(1, abs=0.02) for head in heads)
    assert all(len(str(share)) <= 5 for head in heads for share in head)  # as 0.123


def test_the_file_stop_ends_a_training_as_ctrl_c_does(
    workplace: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path("runs/my")
    is_heard = threading.Event()
    write = Journal._write

    def looked(journal: Journal) -> None:
        write(journal)
        if journal.is_stop_asked:
            is_heard.set()

    def ask() -> None:
        (run / JOURNAL / STOP).touch()
        assert is_heard.wait(PATIENCE)

    with monkeypatch.context() as patched, pytest.raises(Interrupted) as stopped:
        patched.setattr(Journal, "_write", looked)
        after_step(patched, lambda at: at == 3, ask)
        train_tiny(out=run)
    assert stopped.value.exit_status == 0
    assert said(run)["how"] == "stopped"

    resume(run)  # which removes the file
    whole = train_tiny(out="runs/whole")
    assert (run / WEIGHTS).read_bytes() == (whole / WEIGHTS).read_bytes()


# The text is read until the journal has seen the file.
_WAITING = """
import sys
from minigpt.cli import main
from minigpt.runs import journal

journal.SECONDS = 0.02
tell = journal.Journal.tell
def tell_and_wait(self, phase=None, **more):
    tell(self, phase, **more)
    while phase == "reading" and "share" in more and WAITS and not self.is_stop_asked:
        self._is_closing.wait(0.01)
journal.Journal.tell = tell_and_wait
sys.exit(main(sys.argv[1:]))
"""


def start(forks: Forks, out: Path, *, waits_in_reading: bool = False) -> "subprocess.Popen[bytes]":
    """The command, which trains until it is stopped; its journal is there before."""
    (out / JOURNAL).mkdir(parents=True)
    (out / JOURNAL / "job.json").write_text("{}")
    options = [option for option in OPTIONS if "--steps" not in option]
    command = ["train", "my.txt", "--out", str(out), *options, "--steps=1000000", "--num-evals=1"]
    return forks.start(["-c", _WAITING.replace("WAITS", str(waits_in_reading)), *command])


def wait_for(run: Path, phase: str) -> None:
    wait_until(lambda: said(run).get("phase") == phase)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.kill
@pytest.mark.parametrize(("phase", "how"), [("reading", "stopped"), ("training", "stopped")])
def test_a_program_that_made_the_journal_is_told_from_the_beginning_and_ends_the_command(
    workplace: Path, forks: Forks, phase: str, how: str
) -> None:
    run = Path("runs/my")
    training = start(forks, run, waits_in_reading=phase == "reading")
    wait_for(run, phase)
    if phase == "training":
        wait_until(lambda: (said(run)["step"] or 0) > 0)
    assert is_training(run)
    (run / JOURNAL / STOP).touch()
    assert training.wait(PATIENCE) == 0
    assert said(run)["how"] == how
    assert not is_training(run)
    assert (run / "checkpoint").exists() == (phase == "training")


@pytest.mark.kill
def test_stop_with_now_leaves_at_once(workplace: Path, forks: Forks) -> None:
    run = Path("runs/my")
    training = start(forks, run)
    wait_for(run, "training")
    write_text("now\n", run / JOURNAL / STOP)  # whole: an empty file means something else
    assert training.wait(PATIENCE) == 1
    assert said(run)["how"] == "stopped"


def test_what_went_wrong_is_told_to_who_made_the_journal_and_stays_there(workplace: Path) -> None:
    Path("short.txt").write_text("hm")
    (Path("runs/my") / JOURNAL).mkdir(parents=True)
    (Path("runs/my") / JOURNAL / "job.json").write_text("{}")
    assert main(["train", "short.txt", "--out", "runs/my", *OPTIONS]) == 2
    state = state_of(Path("runs/my"))
    assert (state.state, said(Path("runs/my"))["phase"]) == ("failed", "failed")
    assert state.problem is not None
    assert state.problem["kind"] == "too_short" and "short" in state.problem["message"]
    assert train_tiny(out="runs/my")  # the place is free


def test_what_goes_wrong_before_a_run_is_continued_is_told(workplace: Path) -> None:
    run = train_tiny(out="runs/my")
    assert main(["train", "--resume", "--out", "runs/my"]) == 2
    state = state_of(run)
    assert state.state == "done"
    assert (state.problem or {})["kind"] == "finished"

    with pytest.raises(SystemExit), Journal(run) as journal:  # stopped while it reads
        journal.tell("reading")
        raise SystemExit
    state = state_of(run)
    assert (state.state, state.problem) == ("done", None)

    parts = Path("runs/parts")
    interrupted(parts, step=3)
    Path("my.txt").unlink()
    assert main(["train", "--resume", "--out", "runs/parts"]) == 2
    state = state_of(parts)
    assert state.state == "stopped"
    assert (state.problem or {})["kind"] in ("text_gone", "not_found")


def test_how_far_reading_and_tokens_are_is_told_while_they_go_on(
    workplace: Path, told: list[dict[str, Any]]
) -> None:
    Path("texts").mkdir()
    for seed in range(4):
        (Path("texts") / f"{seed}.txt").write_text(some_text(seed=seed))
    run = Path("runs/my")
    (run / JOURNAL).mkdir(parents=True)
    assert main(["train", "texts", "--out", "runs/my", *OPTIONS]) == 0

    shares: dict[str, list[float]] = {}
    phase = ""
    for change in told:
        phase = change.get("phase", phase)
        if "share" in change:
            shares.setdefault(phase, []).append(change["share"])
    reading = sorted(set(shares["reading"]))
    assert reading == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0], abs=0.02)
    falls = [later < earlier for earlier, later in pairwise(shares["tokens"])]
    assert sum(falls) == 1 and shares["tokens"][falls.index(True)] == 1.0  # of the tokenizer
    assert shares["tokens"][-1] == 1.0


@pytest.mark.long
def test_what_a_window_shows_from_the_start_is_in_the_folder(
    workplace: Path, known_kind: None, told: list[dict[str, Any]]
) -> None:
    """docs/runs.md says where."""
    Path("my.txt").write_text(some_text().replace("a", "ä"))
    run = train_tiny(tokenizer="char", steps=None, minutes=0.05, num_evals=1)
    config = json.loads((run / "config.json").read_text())
    plan = json.loads((run / "plan.json").read_text())
    text = Path("my.txt").read_text()
    share = len(text.encode()) / len(text)
    assert plan["text"]["bytes_per_character"] == pytest.approx(share, abs=1e-3) and share > 1.02
    assert plan["text"]["predictability"]["counting"] > 0
    assert plan["bits_per_byte"] > 0 and plan["seconds"] > 0
    assert config["training"]["minutes"] == 0.05 and config["training"]["num_evals"] == 1
    assert config["origin"]["text"]["tokenizer"] == "char"
    begun = next(change for change in told if "seconds_left" in change)
    assert 0 < begun["seconds_left"] <= 60 * 0.05
    assert begun["expected_bits_per_byte"] == plan["bits_per_byte"]

    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert 0.1 < rows[-1]["val_right"] < 1


def test_what_was_learned_after_the_last_checkpoint_is_said_to_be_lost(workplace: Path) -> None:
    """As where somebody stops it at once."""
    run = Path("runs/my")
    interrupted(run, step=3)
    assert state_of(run).problem is None
    with pytest.raises(SystemExit), Journal(run) as journal:
        assert (journal._state["step"], said(run)["step"]) == (3, 3)
        journal.tell("training", step=5, seconds=99.0, goes_on_from=None)
        raise SystemExit
    state = state_of(run)
    assert state.state == "stopped"
    assert state.problem == {"kind": "lost", "message": "Its last 2 steps were not saved."}

    with pytest.raises(SystemExit), Journal(run) as journal:
        journal.tell("reading")
        assert said(run)["goes_on_from"] == facts_of(run).saved["seconds"] < 99.0
        raise SystemExit
    assert state_of(run).problem is None


# What cannot be written


def test_a_full_disk_is_told_when_it_is_full_and_when_there_is_room(
    workplace: Path, told: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_full = [True]

    def write(*arguments: Any, **named: Any) -> None:
        if is_full.pop() if is_full else False:
            raise NO_ROOM
        save_checkpoint(*arguments, **named)

    monkeypatch.setattr("minigpt.training.folder.save_checkpoint", write)
    run = train_tiny()
    problem, solved = [change["problem"] for change in told if "problem" in change]
    assert (problem["kind"], solved) == ("disk_full", None)
    assert problem["message"].startswith("could not write the checkpoint to runs/my: No space left")
    assert said(run)["problem"] is None


def test_of_files_that_cannot_be_written_one_that_still_cannot_is_told(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        raise NO_ROOM

    folder = RunFolder(tmp_path)
    with folder.held():
        folder.write("the checkpoint", fail)
        folder.write("loss.png", fail)
        folder.write("the checkpoint", lambda path: None)
        assert folder.journal is not None
        assert "could not write loss.png" in folder.journal._state["problem"]["message"]
        folder.write("loss.png", lambda path: None)
        assert folder.journal._state["problem"] is None


def test_only_figures_renew_the_time_from_which_a_clock_counts(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.tell("training", seconds=3.0, seconds_left=60.0)
        before = journal._state["time"]
        journal.tell("saving")
        journal.tell(share=0.5)
        assert journal._state["time"] == before
        journal.tell(seconds=4.0)
        assert journal._state["time"] > before


class FullDisk(io.FileIO):
    """A file with room for twelve bytes more, and then for none."""

    left = 12

    def write(self, data: Any) -> int:
        if not self.left:
            raise NO_ROOM
        written = super().write(data[: self.left])
        FullDisk.left -= written
        return written


def test_rows_that_found_no_room_follow_when_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the rest of one that was cut in two."""
    with Journal(tmp_path) as journal:
        with monkeypatch.context() as patched:
            full = partial(FullDisk, mode="ab")
            patched.setattr(
                journal_module, "open", lambda path, *_, **__: full(path), raising=False
            )
            journal.add_text({"step": 0, "text": "first"})
            journal.add_text({"step": 1, "text": "second"})
            assert not read_texts(tmp_path)
        journal.add_text({"step": 2, "text": "third"})
    assert [row["text"] for row in read_texts(tmp_path)] == ["first", "second", "third"]


def test_a_state_that_found_no_room_is_written_when_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise NO_ROOM

    with Journal(tmp_path) as journal:
        with monkeypatch.context() as patched:
            patched.setattr(journal_module, "write_text", refuse)
            journal.tell("reading")
            assert not said(tmp_path)
        journal._write()  # as each second
        assert said(tmp_path)["phase"] == "reading"


def test_a_training_whose_folder_is_gone_ends_with_one_line(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for move in (lambda: shutil.rmtree("runs/my"), lambda: Path("runs/my").rename("elsewhere")):
        with monkeypatch.context() as patched:
            after_step(patched, lambda at: at == 3, move)
            assert main(["train", "my.txt", "--out", "runs/my", *OPTIONS]) == 2
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.startswith("error: runs/my is gone: somebody has moved or deleted it")
        assert not Path("runs/my").exists()


def test_a_training_that_failed_before_its_first_checkpoint_leaves_nothing(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    after_step(monkeypatch, lambda at: at == 1, fail)
    with pytest.raises(RuntimeError, match="broken"):
        train_tiny()
    assert not list(Path("runs").glob("[!.]*"))


def test_losses_of_steps_are_written_while_it_trains(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.training.reports.SECONDS", 0.0)
    seen: list[int] = []
    path = Path("runs/my") / STEPS
    after_step(
        monkeypatch,
        lambda at: at > 2,
        lambda: seen.append(len(path.read_text().splitlines())),
    )
    train_tiny(out="runs/my", num_evals=1)
    assert seen == [2, 3, 4, 5, 6, 7]


def test_a_journal_that_cannot_be_written_stops_no_training(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(journal_module, "open", refuse, raising=False)
    monkeypatch.setattr(journal_module, "write_text", refuse)
    run = train_tiny()
    assert not said(run) and not read_texts(run)
    assert (run / WEIGHTS).exists()


def test_that_the_computer_has_slept_is_told(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing else by which a time of day goes on, such as a clock that is set."""
    journal = Journal(tmp_path)
    wait = journal._is_closing.wait
    gone = [0.0]  # an hour, from the first wait between two looks on

    def sleep(seconds: float) -> bool:
        gone[0] = 3600.0
        return wait(seconds)

    monkeypatch.setattr(journal._is_closing, "wait", sleep)
    monkeypatch.setattr(journal_module, "seconds_asleep", lambda: gone[0])
    with journal:
        wait_until(lambda: bool(said(tmp_path).get("slept")))
    assert said(tmp_path)["slept"] == 3600.0
    assert abs(seconds_asleep() - seconds_asleep()) < 0.1


def test_a_deleted_run_leaves_no_journal_but_what_others_have_put_there(workplace: Path) -> None:
    run = train_tiny()
    shutil.copytree(run, "runs/other")
    keep_copied(run, {"share": 0.0})  # and what a process leaves that is killed while it writes
    for name in (SAMPLES, COPIED):
        (run / JOURNAL / unfinished_name(name)).touch()
    with runs_to_delete([run]) as (remains,):
        assert remains.others == []
        remains.delete()
    assert not run.exists()

    run = Path("runs/other")
    (run / JOURNAL / "notes.json").write_text(json.dumps({"minutes": 1}))
    with runs_to_delete([run]) as (remains,):
        assert remains.others == [run / JOURNAL / "notes.json"]
        remains.delete()
    assert contents(run) == {f"{JOURNAL}{os.sep}notes.json": b'{"minutes": 1}'}


def test_a_name_that_is_not_utf_8_does_not_keep_a_journal_from_its_end(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"), Journal(tmp_path) as journal:
        journal.tell("reading", writes="caf\udce9 \u00fc")
        raise UserError("no such file: caf\udce9.txt")
    end = said(tmp_path)
    assert end["writes"] == "caf\udce9 \u00fc" and end["phase"] == "failed"
    assert end["problem"]["message"] == "no such file: caf\udce9.txt"
