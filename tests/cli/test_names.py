"""By which names a run is found: `my` is runs/my, unless there is a run in a folder my."""

import shutil
from pathlib import Path

import pytest

import minigpt
from minigpt import UserError
from minigpt.recipe.beginning import model_to_begin_with
from minigpt.runs.find import find_model, full_name

from .conftest import Type, assert_refused


@pytest.fixture
def place(tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a run in runs/fables."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_run, "runs/fables")
    return tmp_path


def test_a_run_is_found_by_its_name_alone(place: Path) -> None:
    assert find_model("fables").folder == Path("runs/fables")
    assert model_to_begin_with("fables").folder == Path("runs/fables")
    short, full = minigpt.load("fables"), minigpt.load("runs/fables")
    assert short.generate("the", seed=1) == full.generate("the", seed=1)


def test_every_command_finds_it(place: Path, type_: Type, tiny_run: Path) -> None:
    text = str(tiny_run.parent.parent / "my.txt")
    assert "writing with runs/fables" in type_("generate the --run fables --max-new-tokens 1")[2]
    assert type_("page fables")[1].startswith("runs/fables/page.html: ")
    assert type_("export fables")[1] == "exports/fables-hf\n"
    assert type_("evaluate", "fables", text)[1].startswith("runs/fables: ")
    assert "runs/fables is finished" in type_("train --resume --out fables")[2]


def test_the_option_run_means_the_same_to_every_command(
    place: Path, type_: Type, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = str(tiny_run.parent.parent / "my.txt")
    assert type_("page --run fables")[1].startswith("runs/fables/page.html: ")
    assert type_("export --run fables")[1] == "exports/fables-hf\n"
    assert type_("evaluate", "--run", "fables", text)[1].startswith("runs/fables: ")
    assert type_("evaluate", text, "--run", "fables")[1].startswith("runs/fables: ")
    Path("texts").mkdir()
    shutil.copy(text, "texts")
    assert type_("evaluate", "texts", "--run", "fables")[1].startswith("runs/fables: ")
    assert "explaining with runs/fables" in type_("explain", "the fox", "--run", "fables")[2]
    app = pytest.importorskip("minigpt.serve.app")
    served: list[str] = []
    monkeypatch.setattr(app, "serve", lambda found, name, config: served.append(name))
    assert type_("serve --run fables")[0] == 0 and served == ["fables"]
    for command in ("page", "export", "serve"):
        assert_refused(type_(f"{command} base --run fables"), "name one model: base, or --run")


def test_a_folder_without_a_model_does_not_hide_a_run_of_its_name(place: Path) -> None:
    Path("fables").mkdir()
    Path("fables/a.txt").write_text("the text of the run")
    assert full_name("fables") == Path("runs/fables")


def test_of_two_runs_of_a_name_the_one_here_is_meant_and_that_is_said(
    place: Path, type_: Type
) -> None:
    shutil.copytree("runs/fables", "fables")
    assert find_model("fables").folder == Path("fables")
    line = f"fables means the folder {place / 'fables'}, not runs/fables"
    assert line in type_("generate the --run fables --max-new-tokens 1")[2].splitlines()
    assert "means" not in type_("generate the --run runs/fables --max-new-tokens 1")[2]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fabels", "no such run: fabels or runs/fabels (did you mean runs/fables?)"),
        ("runs/fable", "no such run: runs/fable (did you mean runs/fables?)"),
        ("gpt2", "no such run: gpt2 or runs/gpt2 (newest runs: runs/fables; a model of the hub"),
        ("../fables", "no such run: ../fables (did"),
        ("empty", "empty is not a run, and there is no runs/empty (newest runs: runs/fables;"),
        ("..", ".. is not a run: it has no config.json"),
    ],
)
def test_a_name_of_no_run_is_refused_with_the_one_that_may_be_meant(
    place: Path, name: str, words: str
) -> None:
    Path("empty").mkdir()
    with pytest.raises(UserError) as refused:
        find_model(name)
    assert str(refused.value).startswith(words)
    assert refused.value.kind == ("damaged_run" if name == ".." else "not_found")


def test_what_is_no_name_is_refused_as_such(place: Path) -> None:
    writer = minigpt.load("fables")
    Path("a.txt").write_text("the fox asked")
    for call in (
        lambda: minigpt.load(None),  # type: ignore[arg-type]
        lambda: minigpt.evaluate(writer, "a.txt"),  # type: ignore[arg-type]
        lambda: minigpt.compare("fables", writer),  # type: ignore[arg-type]
    ):
        with pytest.raises(UserError, match=r"^a model is named by a text or a Path, such as"):
            call()
    with pytest.raises(UserError, match=r"^the name of the model is empty"):
        minigpt.load("")
    with pytest.raises(UserError, match=r"^model must be a torch\.nn\.Module, got int$"):
        minigpt.load("fables", model=7)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"^name a text to predict"):
        minigpt.evaluate("fables")
