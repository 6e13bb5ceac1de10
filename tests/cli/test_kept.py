"""A single step of a run, `my@2`: found by every command, and told from the run and from folders
whose name has an @.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigpt
from minigpt import UserError
from minigpt.runs.find import check_is_whole, find_model, full_name
from minigpt.runs.folder import KEPT

from ..conftest import move_into, some_text, train_tiny
from .conftest import Type, assert_refused


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with runs/my, which has kept the weights of steps 0, 2 and 8."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        place = move_into(tmp_path_factory.mktemp("kept"), monkeypatch)
        train_tiny(keep=3)
        return place


@pytest.fixture
def place(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, a copy of it."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_every_command_finds_a_step_by_its_name(place: Path, type_: Type) -> None:
    (place / "other.txt").write_text(some_text(seed=1))
    assert type_("page my@2")[1].startswith("runs/my/kept/2.html: ")
    assert type_("export my@2")[1] == "exports/my-step2-hf\n"
    assert type_("export my@2 --to gguf")[1] == "exports/my-step2-gguf\n"
    assert "writing with runs/my@0" in type_("generate the --run my@0 --max-new-tokens 1")[2]
    assert "explaining with runs/my@2" in type_("explain", "my@2", "the fox said")[2]

    losses = [
        json.loads(type_("evaluate", f"my@{step}", "other.txt", "--json")[1])["bits_per_byte"]
        for step in (0, 2, 8)
    ]
    assert losses == sorted(losses, reverse=True) and losses[0] > losses[2]


def test_a_server_of_a_step_writes_as_the_step_does(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("uvicorn", reason="make installs what this test needs")
    from minigpt.serve import app
    from minigpt.serve.settings import ServeConfig

    served = []

    class Ended:
        """A server that ends at once."""

        def __init__(self, writing: Any, _: Any):
            served.append(writing.writer)

        def run(self, sockets: list[Any]) -> None:
            for opened in sockets:
                opened.close()

    monkeypatch.setattr(app, "make_api_server", Ended)
    monkeypatch.setattr("sys.setswitchinterval", lambda seconds: None)
    app.serve(find_model("runs/my@0"), "my@0", ServeConfig(port=0))
    (writer,) = served
    written = writer.generate("the", seed=1)
    assert written == minigpt.load("my@0").generate("the", seed=1)
    assert written != minigpt.load("my").generate("the", seed=1)


def test_a_card_names_the_step_and_gives_no_figures_of_other_steps(
    place: Path, type_: Type
) -> None:
    type_("export my@2")
    card = Path("exports/my-step2-hf/README.md").read_text()
    assert "These are its weights after step 2 of this training" in card
    assert "How good it is" not in card  # this step was not evaluated
    type_("export my@8")
    assert "How good it is" in Path("exports/my-step8-hf/README.md").read_text()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("my@3", "runs/my has no weights of step 3; it has those of 0, 2, 8"),
        ("my@last", "runs/my has no weights of step 'last'; it has those of 0, 2, 8"),
        ("my@", "runs/my has no weights of step ''"),
        ("my@02", "runs/my has no weights of step 02"),
        ("my@99999999999999999999", "runs/my has no weights of step 99999999999999999999"),
        ("yours@3", "no such run: yours or runs/yours"),
        ("runs/yours@3", "no such run: runs/yours"),
        ("plain@3", "runs/plain has kept no weights of single steps; train with --keep 12"),
    ],
)
def test_a_step_that_is_not_there_is_refused_with_those_that_are(
    place: Path, type_: Type, name: str, words: str
) -> None:
    shutil.copytree("runs/my", "runs/plain", ignore=shutil.ignore_patterns(KEPT))
    assert_refused(type_("generate", "the", "--run", name), words)


def test_a_folder_whose_name_has_an_at_sign_is_meant_before_a_step(place: Path) -> None:
    for named in ("runs/my@2", "a@b"):
        shutil.copytree("runs/my", named, ignore=shutil.ignore_patterns(KEPT))
    for name, folder in {"my@2": "runs/my@2", "runs/my@2": "runs/my@2", "a@b": "a@b"}.items():
        assert full_name(name) == Path(folder)
        assert find_model(name).step is None


def test_the_name_of_a_whole_run_may_have_an_at_sign(tmp_path: Path) -> None:
    (tmp_path / "a@2").mkdir()
    for name in (tmp_path / "a@2", "hf:gpt2@main", "my"):
        check_is_whole(name)
    with pytest.raises(UserError, match=r"runs/a@2 is one step of a run; name .* runs/a$"):
        check_is_whole("runs/a@2")


def test_what_is_about_a_whole_run_refuses_a_step(place: Path, type_: Type) -> None:
    words = "runs/my@2 is one step of a run; name the whole run: runs/my"
    assert_refused(type_("runs --delete my@2 --yes"), words)
    assert_refused(type_("train --resume --out my@2 --steps 20"), words)


def test_the_list_of_runs_says_how_many_are_kept_and_python_names_them(
    place: Path, type_: Type
) -> None:
    assert "weights of 3 steps kept" in type_("runs")[1]
    assert json.loads(type_("runs --json")[1])["kept"] == [0, 2, 8]

    run = minigpt.Run("runs/my")
    assert run.kept() == [0, 2, 8]
    first, last = (minigpt.load(f"{run}@{step}") for step in (0, 8))
    best = minigpt.load(run)
    ids = np.array([best.tokenizer.encode("the fox")])  # (1, T)
    assert (last.glass(ids) == best.glass(ids)).all()
    assert (first.glass(ids) != best.glass(ids)).any()


def test_a_network_of_ones_own_is_filled_with_a_step(place: Path) -> None:
    model = minigpt.GPT(find_model("my").glass.config)
    writer = minigpt.load("my@2", model=model)
    assert writer.generate("the", seed=1) == minigpt.load("my@2").generate("the", seed=1)


def test_deleting_a_run_deletes_what_it_has_kept_and_leaves_the_files_of_others(
    place: Path, type_: Type
) -> None:
    Path("runs/my/kept/.new-5.safetensors").write_bytes(b"half")
    Path("runs/my/kept/2.html").write_text("a page")
    Path("runs/my/kept/notes.txt").write_text("mine")
    _, _, err = type_("runs --delete my --yes")
    assert "not of the run: runs/my/kept/notes.txt" in err
    assert [file.name for file in Path("runs/my").rglob("*.*")] == ["notes.txt"]
