"""`runs --delete`: what goes, what stays, and when it is refused."""

import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

import minigpt
from minigpt.data.temporary import left_copies, temporary_copy
from minigpt.data.token_files import remove_prepared
from minigpt.runs.begin import locked
from minigpt.runs.folder import CONFIG
from minigpt.runs.listing import Run
from minigpt.runs.state import is_training, keep_copied
from minigpt.studio.trainings.asking import TrainingJob, write_job
from minigpt.system.atomic import unfinished_name

from ..conftest import some_text, train_tiny
from ..training.runs import contents
from .conftest import Type, assert_refused

OF_OLDER_VERSIONS = (".torchrun", "samples.txt")  # files in a run, which this one does not write


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with runs/my and the cache that its training has made, to be copied."""
    from ..conftest import move_into

    with pytest.MonkeyPatch.context() as monkeypatch:
        place = move_into(tmp_path_factory.mktemp("trained"), monkeypatch)
        train_tiny(steps=2, num_evals=1)
        return place


@pytest.fixture
def place(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, a copy of it; temporary files have a folder there, too."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path


def prepared() -> list[Path]:
    """What the cache holds of texts."""
    return [folder for folder in Path("cache/tokens").iterdir() if folder.is_dir()]


def answer(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input is a terminal, at which this is typed."""

    class Keyboard(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Keyboard(text))


def test_a_run_goes_with_all_that_the_cache_holds_of_its_text(place: Path, type_: Type) -> None:
    minigpt.prepare("my.txt", tokenizer="char")
    Path("other.txt").write_text(some_text(seed=1))
    minigpt.prepare("other.txt", tokenizer="char")
    assert len(prepared()) == 3
    assert type_("page my")[0] == 0
    Path("runs/my/events.out.tfevents.1").touch()  # of TensorBoard
    for name in OF_OLDER_VERSIONS:
        (Path("runs/my") / name).touch()

    status, out, err = type_("runs --delete my --yes")
    assert (status, out) == (0, "deleted: runs/my, 2 prepared texts\n")
    assert "the run runs/my, " in err and "page.html" in err and err.count("in the cache") == 2
    assert not Path("runs/my").exists() and Path("my.txt").read_text() == some_text()
    assert len(prepared()) == 1
    assert type_("runs")[1] == ""


@pytest.mark.long
def test_of_all_files_that_a_run_can_have_none_is_left(place: Path, type_: Type) -> None:
    run = Path("runs/my")
    shutil.rmtree(run)
    train_tiny(steps=2, num_evals=1, keep=2)
    last = run / "checkpoint/last.safetensors"
    shutil.copy(last, last.with_name("previous.safetensors"))
    last.write_bytes(b"damaged")
    assert type_(f"train --resume --out {run} --steps 3")[0] == 0
    shutil.copy(run / "model.safetensors", run / "checkpoint/best.safetensors")  # as put aside
    assert type_("page my")[0] == 0 and type_("page my@0")[0] == 0
    keep_copied(run, {"share": 0.5})
    write_job(run, TrainingJob(asked=1.0, is_waiting=False, text={"beginning": "Once"}))
    for name in ("log.txt", "stop"):
        (run / "journal" / name).touch()
    (run / "events.out.tfevents.1").touch()  # of --log tensorboard
    (run / "wandb/offline-run-1/files").mkdir(parents=True)  # of --log wandb
    (run / "wandb/offline-run-1/files/output.log").write_text("what the model wrote")
    (run / "wandb/latest-run").symlink_to("offline-run-1")
    made = {file.relative_to(run).as_posix() for file in run.rglob("*") if file.is_file()}
    assert {"checkpoint/damaged.safetensors", "journal/copied.json", "kept/0.html"} <= made
    for name in made - {".lock"}:  # as of processes that were killed
        file = run / name
        file.with_name(unfinished_name(file.name)).touch()
        file.with_name(f".new-{file.name}").touch()  # as older versions called them

    status, _, err = type_("runs --delete my --yes")
    assert status == 0 and "not touched" not in err and "still there" not in err
    assert not run.exists() and [*Path("runs").iterdir()] == []


def test_what_a_training_has_left_that_never_made_a_run_goes_too(place: Path, type_: Type) -> None:
    run = Path("runs/asked")
    run.mkdir(parents=True)
    write_job(run, TrainingJob(asked=1.0, is_waiting=False, text={"beginning": "Once"}))
    Path("short.txt").write_text("hm")
    assert type_("train short.txt --out runs/asked")[0] == 2
    assert (run / "journal/state.json").exists()
    assert type_("runs --delete asked --yes")[0] == 0
    assert not run.exists()


@pytest.mark.parametrize("name", ["job.json", "state.json"])
def test_a_folder_with_a_damaged_journal_goes_if_it_holds_only_files_of_a_run(
    place: Path, type_: Type, name: str
) -> None:
    """As a computer leaves it that lost its power."""
    for run in ("runs/damaged", "runs/mine"):
        Path(run, "journal").mkdir(parents=True)
        Path(run, "journal", name).touch()
        Path(run, "config.json").touch()
    Path("runs/mine/notes.txt").write_text("mine")
    assert type_("runs --delete damaged --yes")[0] == 0
    assert_refused(type_("runs --delete mine --yes"), "mine is not a run")
    assert not Path("runs/damaged").exists() and Path("runs/mine/notes.txt").exists()


@pytest.mark.parametrize(
    ("typed", "is_deleted"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_it_asks_first(
    place: Path, type_: Type, monkeypatch: pytest.MonkeyPatch, typed: str, is_deleted: bool
) -> None:
    answer(typed, monkeypatch)
    status, _, err = type_("runs --delete my")
    assert status == 0 and "delete this? [y/N]" in err
    assert Path("runs/my").exists() != is_deleted and bool(prepared()) != is_deleted
    assert ("nothing was deleted" in err) != is_deleted
    if not is_deleted:
        assert minigpt.load("my").generate("the", seed=1, max_new_tokens=2)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("runs --delete my", "--delete asks first, and there is no terminal to answer; add --yes"),
        ("runs --delete mine --yes", "no such run: mine or runs/mine ("),
        ("runs --delete my --json --yes", "--json does nothing beside --delete my;"),
        ("runs --yes", "--yes is for --delete NAME"),
        ("runs --delete project --yes", "project is not a run"),
        ("runs --delete exported --yes", "exported is an exported model and not a run"),
        ("runs --delete link --yes", "runs/link is a link; name the folder itself: "),
        ("runs --delete hf:gpt2 --yes", "hf:gpt2 is not a run"),
        ("runs --delete two --yes", "two can mean "),
        ("runs --delete locked --yes", "runs/locked/.lock is a link; remove it first"),
    ],
)
def test_what_is_no_run_and_what_was_not_asked_for_stays(
    place: Path, type_: Type, command: str, words: str
) -> None:
    Path("project").mkdir()
    Path("project/config.json").write_text('{"model": "of another program", "training": {}}')
    Path("exported").mkdir()
    Path("exported/config.json").write_text('{"model_type": "qwen3", "model": 1, "training": 1}')
    Path("runs/link").symlink_to(Path("runs/my").absolute())
    for copy in ("two", "runs/two", "runs/locked"):
        shutil.copytree("runs/my", copy)
    Path("runs/locked/.lock").unlink(missing_ok=True)
    Path("runs/locked/.lock").symlink_to(place / "my.txt")
    before = sorted(place.rglob("*"))
    assert_refused(type_(command), words)
    assert sorted(place.rglob("*")) == before


def test_a_run_is_not_taken_for_a_training_one_while_it_asks(
    place: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def look_and_answer() -> str:
        seen.append(is_training(Path("runs/my")))
        return "y\n"

    answer("", monkeypatch)
    monkeypatch.setattr(sys.stdin, "readline", look_and_answer)
    assert type_("runs --delete my")[0] == 0
    assert seen == [False] and not Path("runs/my").exists()


def test_a_run_that_is_deleted_while_runs_are_listed_is_told(
    place: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    def about(run: Run) -> None:
        raise FileNotFoundError(2, "No such file or directory", str(run))

    monkeypatch.setattr(Run, "about", about)
    status, out, err = type_("runs --json")
    assert (status, out) == (0, "") and "No such file" in err


def test_an_empty_name_does_not_mean_the_run_in_the_current_folder(
    place: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("runs/my")
    assert_refused(type_("runs", "--delete", "", "--yes"), "--delete needs the name of a run")
    assert minigpt.load(place / "runs/my")


def test_a_prepared_text_goes_also_where_a_killed_process_was_making_it_again(place: Path) -> None:
    (folder,) = prepared()
    folder.with_suffix(".tmp").mkdir()
    (folder.with_suffix(".tmp") / "train.bin").write_text("half of one")
    remove_prepared(folder)
    assert prepared() == []


def test_a_run_that_is_being_trained_is_refused(place: Path, type_: Type) -> None:
    with locked(Path("runs/my")):
        assert_refused(type_("runs --delete my --yes"), "runs/my is being trained; stop that first")
    assert minigpt.load("runs/my") and prepared()


def test_files_of_somebody_else_links_and_exports_stay_and_are_named(
    place: Path, type_: Type
) -> None:
    Path("elsewhere").mkdir()
    Path("elsewhere/last.safetensors").write_text("mine")
    Path("elsewhere/plan.json").write_text("mine")
    shutil.rmtree("runs/my/checkpoint")
    Path("runs/my/checkpoint").symlink_to(Path("elsewhere").absolute())
    Path("runs/my/plan.json").unlink(missing_ok=True)
    Path("runs/my/plan.json").symlink_to(Path("elsewhere/plan.json").absolute())
    Path("runs/my/notes.txt").write_text("mine")
    Path("runs/my/.new-model.safetensors").write_text("half of one")
    type_("export my")

    status, _, err = type_("runs --delete my --yes")
    assert status == 0 and "runs/my/ itself is still there" in err
    assert {file.name for file in Path("runs/my").iterdir()} == {
        "checkpoint",
        "plan.json",
        "notes.txt",
    }
    for kept in ("notes.txt", "checkpoint", "plan.json"):
        assert f"not touched, since it is not of the run: runs/my/{kept}\n" in err
    assert "not touched, since it is an export: exports/my-hf\n" in err
    assert [file.read_text() for file in Path("elsewhere").iterdir()] == ["mine", "mine"]


def test_links_in_the_cache_are_not_followed(place: Path, type_: Type) -> None:
    (folder,) = prepared()
    folder.rename("tokens-elsewhere")
    folder.symlink_to(Path("tokens-elsewhere").absolute())
    assert type_("runs --delete my --yes")[0] == 0
    assert folder.is_symlink() and len(list(Path("tokens-elsewhere").iterdir())) == 4


def test_what_a_killed_training_left_of_its_text_goes_and_what_is_in_use_stays(
    place: Path, type_: Type
) -> None:
    config = json.loads(Path("runs/my/config.json").read_text())
    config["origin"]["text"]["files"] = ["-"]
    Path("runs/my/config.json").write_text(json.dumps(config))

    left, other = Path("tmp/minigpt-stdin-abc"), Path("tmp/minigpt-stdin-def")
    for folder, text in ((left, some_text()), (other, some_text(seed=1))):
        folder.mkdir()
        (folder / "stdin.txt").write_text(text)
    with temporary_copy("stdin") as used:
        used.write_text(some_text())
        out = type_("runs --delete my --yes")[1]
        assert used.exists()
    assert out == "deleted: runs/my, 1 prepared text, 1 copied text\n"
    assert not left.exists() and other.exists() and not used.exists()


def test_to_look_for_copies_reads_nothing_from_standard_input(
    place: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a run that learned from documents and was validated on standard input."""
    config = json.loads(Path("runs/my/config.json").read_text())
    config["origin"]["text"]["files"] = ["/tmp/minigpt-documents-gone/documents.jsonl"]
    config["origin"]["text"]["validation"] = ["-"]
    Path("runs/my/config.json").write_text(json.dumps(config))
    Path("tmp/minigpt-documents-a").mkdir()
    Path("tmp/minigpt-documents-a/documents.jsonl").write_text('{"text": "of another run"}\n')

    answer("", monkeypatch)
    read = io.BytesIO(b"for the next command")
    monkeypatch.setattr(sys.stdin, "buffer", read, raising=False)
    assert type_("runs --delete my --yes")[1] == "deleted: runs/my, 1 prepared text\n"
    assert read.tell() == 0 and Path("tmp/minigpt-documents-a").exists()


def test_only_a_copy_of_ours_is_taken_for_one(place: Path) -> None:
    for name in ("minigpt-stdin-a", "minigpt-documents-a", "minigpt-stdin-b", "minigpt-stdin"):
        Path("tmp", name).mkdir()
        Path("tmp", name, "stdin.txt").write_text("text")
    Path("tmp/minigpt-stdin-b/notes.txt").write_text("mine")
    Path("tmp/minigpt-stdin-c").symlink_to(place / "tmp/minigpt-stdin-a")
    shutil.copytree("tmp/minigpt-stdin-a", "tmp/minigpt-stdin-d")
    Path("tmp/minigpt-stdin-d/.lock").symlink_to(place / "nowhere")
    before = sorted(Path("tmp").rglob("*"))
    assert left_copies() == [place / "tmp/minigpt-stdin-a/stdin.txt"]
    assert sorted(Path("tmp").rglob("*")) == before


def test_a_copy_of_another_user_is_not_taken(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("tmp/minigpt-stdin-a").mkdir()
    Path("tmp/minigpt-stdin-a/stdin.txt").write_text("text")
    monkeypatch.setattr(os, "getuid", lambda: -1, raising=False)
    assert left_copies() == []


@pytest.fixture
def classes(place: Path) -> Path:
    """What older versions of the studio have kept of a class: the folders of two people, who have
    learned from one text."""
    for one in ("classes/6b/Ada", "classes/6b/Bob"):
        shutil.copytree("runs/my", f"{one}/runs/mine")
        Path(one, "texts/0123456789ab/files").mkdir(parents=True)
        Path(one, "texts/0123456789ab/files/mine.txt").write_text("secret")
        Path(one, "runs/mine/journal").mkdir(exist_ok=True)
        Path(one, "runs/mine/journal/job.json").write_text("{}")
    shutil.move("classes/6b/Bob/runs/mine", "classes/6b/Bob/runs/.bin/mine")
    Path("classes/6b/Bob/runs/waits/journal").mkdir(parents=True)
    Path("classes/6b/Bob/runs/waits/journal/job.json").write_text("{}")
    shutil.rmtree("runs/my")
    return place / "classes"


def test_what_a_class_of_an_older_version_has_left_goes_with_what_the_cache_holds_of_it(
    classes: Path, type_: Type
) -> None:
    status, out, err = type_("runs --delete classes --yes")
    assert (status, out) == (0, "deleted: classes, 1 prepared text\n")
    assert "the run classes/6b/Ada/runs/mine, " in err
    assert "the run classes/6b/Bob/runs/.bin/mine, " in err
    assert "all that classes/6b/Bob/texts holds, " in err and "not touched" not in err
    assert not classes.exists() and prepared() == []


@pytest.mark.long
def test_a_class_is_asked_for_and_what_is_not_of_it_stays(
    classes: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(classes.rglob("*"))
    answer("n\n", monkeypatch)
    assert "nothing was deleted" in type_("runs --delete classes")[2]
    with locked(Path("classes/6b/Ada/runs/mine")):
        assert_refused(type_("runs --delete classes --yes"), "mine is being trained")
    assert sorted(classes.rglob("*")) == before

    Path("elsewhere/runs").mkdir(parents=True)
    Path("classes/6b/Eve").symlink_to(Path("elsewhere").absolute())
    Path("classes/notes.txt").write_text("mine")
    Path("classes/6b/Ada/essay.txt").write_text("mine")
    assert type_("runs --delete classes --yes")[2].endswith("classes/ itself is still there\n")
    left = sorted(path.name for path in classes.rglob("*"))
    assert left == ["6b", "Ada", "Eve", "essay.txt", "notes.txt"]
    assert Path("elsewhere/runs").is_dir()


def test_a_folder_of_somebody_else_is_not_that_of_a_class(place: Path, type_: Type) -> None:
    Path("classes/Main").mkdir(parents=True)
    Path("classes/Main/runs.txt").write_text("mine")
    assert_refused(type_("runs --delete classes --yes"), "classes is not a run")
    assert Path("classes/Main/runs.txt").exists()


@pytest.mark.parametrize("content", ["{", json.dumps({"format": 1, "model": {}, "training": {}})])
def test_a_damaged_run_and_one_of_another_version_can_be_deleted(
    place: Path, type_: Type, content: str
) -> None:
    Path("runs/my/config.json").write_text(content)
    status, out, err = type_("runs --delete my --yes")
    assert (status, out) == (0, "deleted: runs/my\n")
    assert "which text it learned from is not known" in err
    assert not Path("runs/my").exists() and len(prepared()) == 1


def test_a_folder_that_cannot_be_written_to_is_said_in_one_line(
    place: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        status, out, err = type_("runs --delete my --yes")
    assert (status, out) == (2, "") and err.splitlines()[-1].endswith("Permission denied")
    assert minigpt.load("runs/my")


# Runs of an older version


@pytest.fixture
def older(place: Path) -> Path:
    """A run of format 8: with fields, files and a class that this version does not know."""
    run = Path("runs/my")
    config = json.loads((run / CONFIG).read_text(encoding="utf-8"))
    config["format"] = 8
    config["origin"]["voices"] = ["tales", "letters"]
    config["origin"]["text"]["voices"] = True
    (run / CONFIG).write_text(json.dumps(config), encoding="utf-8")
    for name in OF_OLDER_VERSIONS:
        (run / name).write_text("--- step 2\nthe fox\n", encoding="utf-8")
    return run


@pytest.mark.parametrize(
    "command",
    [
        "generate the --run my",
        "generate the",
        "evaluate my my.txt",
        "explain my the",
        "compare my base",
        "export my",
        "page my",
        "serve my",
        "train --resume",
        "train my.txt --init my",
    ],
)
def test_a_run_of_an_older_version_is_refused_in_one_line_and_stays_as_it_is(
    older: Path, type_: Type, command: str
) -> None:
    before = contents(older)
    assert_refused(type_(command), "config.json", "another version of minigpt", "train again")
    assert contents(older) == before


def test_a_run_of_an_older_version_is_listed_and_deleted_whole(older: Path, type_: Type) -> None:
    status, out, _ = type_("runs")
    assert status == 0 and "runs/my" in out
    status, out, _ = type_("runs --delete my --yes")
    assert (status, out) == (0, "deleted: runs/my, 1 prepared text\n")
    assert not older.exists()
