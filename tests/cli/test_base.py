"""The base by its name, and in the place of a run before there is one."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import minigpt
from minigpt.recipe.beginning import model_to_begin_with
from minigpt.runs.find import find_model
from minigpt.runs.folder import CONFIG, GENERATION, WEIGHTS

from ..conftest import train_tiny
from .conftest import Type, assert_refused

NO_RUN = "no run yet: this is the base; minigpt train my.txt makes it yours"
AS_BEFORE = "error: no run in runs/ yet; train one first: minigpt train my.txt"


# By its name


def test_every_command_finds_the_base_by_its_name(
    tiny_base: Path, workplace: Path, type_: Type
) -> None:
    assert "writing with base (" in type_("generate the --run base --max-new-tokens 1")[2]
    assert type_("evaluate base my.txt")[1].startswith("base: ")
    assert type_("page base")[1].startswith("page.html: ")  # and not in the package
    assert type_("export base")[1] == "exports/base-hf\n"
    assert type_("export base --to gguf")[1] == "exports/base-gguf\n"

    assert {file.name for file in tiny_base.iterdir()} == {
        CONFIG,
        GENERATION,
        WEIGHTS,
        "tokenizer.json",
    }
    assert not Path("base").exists() and not Path("runs").exists()


def test_python_finds_it_too(tiny_base: Path, workplace: Path) -> None:
    by_name, by_folder = minigpt.load("base"), minigpt.load(tiny_base)
    assert by_name.generate("the", seed=1) == by_folder.generate("the", seed=1)
    start = model_to_begin_with("base")
    assert start.folder == tiny_base

    model = minigpt.GPT(start.glass.config)
    again = minigpt.load("base", "cpu", model=model)
    assert again.generate("the", temperature=0) == by_name.generate("the", temperature=0)


def test_serve_calls_it_base(
    tiny_base: Path, workplace: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = pytest.importorskip("minigpt.serve.app")
    served: list[Any] = []
    monkeypatch.setattr(app, "serve", lambda found, name, config: served.append((found, name)))
    assert type_("serve base")[0] == type_("serve")[0] == 0
    assert [(found.folder, name) for found, name in served] == [(tiny_base, "base")] * 2


def test_without_a_run_the_page_and_an_explanation_are_those_of_the_base(
    tiny_base: Path, workplace: Path, type_: Type
) -> None:
    status, out, err = type_("page")
    assert (status, err) == (0, f"{NO_RUN}\n") and out.startswith("page.html: ")
    status, _, err = type_("explain", "--", "the fox asked")
    assert status == 0 and NO_RUN in err and "explaining with base" in err


def test_a_folder_of_that_name_wins_and_then_a_run(
    tiny_base: Path, tiny_run: Path, workplace: Path
) -> None:
    Path("base").mkdir()
    Path("base/a.txt").write_text("a text, and no model")
    assert find_model("base").folder == tiny_base

    shutil.copytree(tiny_run, "runs/base")
    assert find_model("base").folder == Path("runs/base")
    shutil.copytree(tiny_run, "base", dirs_exist_ok=True)
    assert find_model("base").folder == Path("base")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("runs --delete base --yes", "the base comes with minigpt and is not yours to delete"),
        ("train --resume --out base", "cannot be continued; --init base trains it on your text"),
        ("evaluate base", "name a text to predict, as in minigpt evaluate base my.txt"),
        ("evaluate base --copied", "the texts that the base learned from are not on this machine"),
        ("generate the --run bse", "did you mean base?"),
    ],
)
def test_what_the_base_cannot_do_is_refused(
    tiny_base: Path, workplace: Path, type_: Type, command: str, words: str
) -> None:
    before = {file: file.read_bytes() for file in tiny_base.iterdir()}
    assert_refused(type_(command), words)
    assert {file: file.read_bytes() for file in tiny_base.iterdir()} == before


def test_a_run_called_base_is_deleted_and_the_base_is_not(
    tiny_base: Path, tiny_run: Path, workplace: Path, type_: Type
) -> None:
    shutil.copytree(tiny_run, "runs/base")
    assert type_("runs --delete base --yes")[1].startswith("deleted: runs/base")
    assert not Path("runs/base").exists() and find_model("base").folder == tiny_base
    assert_refused(type_("runs --delete base --yes"), "not yours to delete")


def test_the_base_is_not_deleted_by_its_path_either(
    tiny_base: Path, workplace: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file: file.read_bytes() for file in tiny_base.iterdir()}
    assert_refused(type_("runs", "--delete", tiny_base, "--yes"), "the base", "is not deleted")
    monkeypatch.chdir(tiny_base.parent)
    assert_refused(type_("runs --delete base --yes"), "the base", "is not deleted")
    assert {file: file.read_bytes() for file in tiny_base.iterdir()} == before


def test_a_damaged_base_is_refused_by_its_name(
    tiny_base: Path, workplace: Path, type_: Type
) -> None:
    (tiny_base / WEIGHTS).write_bytes(b"damaged")
    for command in ("generate the --run base", "evaluate base my.txt", "export base"):
        assert_refused(type_(command), "base", "is damaged; install minigpt again")


# Before there is a run


@pytest.mark.parametrize(
    "command",
    [
        "generate the --max-new-tokens 3",
        "generate the --json",
        "generate the --interactive",
        "page",
        "export",
        "evaluate my.txt",
    ],
)
def test_before_the_first_run_every_command_takes_the_base_and_says_so(
    tiny_base: Path, tiny_run: Path, workplace: Path, type_: Type, command: str
) -> None:
    status, out, err = type_(command)
    assert (status, err.splitlines()[0]) == (0, NO_RUN) and err.count("no run") == 1
    assert out

    shutil.copytree(tiny_run, "runs/my")
    assert "no run" not in type_(command)[2]


def test_before_the_first_run_a_folder_called_base_comes_first_too(
    tiny_base: Path, tiny_run: Path, workplace: Path, type_: Type
) -> None:
    shutil.copytree(tiny_run, "base")
    err = type_("generate the --max-new-tokens 3")[2]
    assert err.startswith("no run yet: this is the model in the folder base; minigpt train")


def test_the_hint_names_train_as_the_program_was_started(
    tiny_base: Path, workplace: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["generate.py"])
    err = type_("generate the --max-new-tokens 3")[2]
    assert "python train.py my.txt makes it yours" in err.splitlines()[0]


def test_what_a_run_copies_is_asked_of_a_run(tiny_base: Path, workplace: Path, type_: Type) -> None:
    assert type_("evaluate --copied") == (2, "", f"{AS_BEFORE}\n")


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"damaged")])
@pytest.mark.parametrize("command", ["generate the", "page", "export", "evaluate my.txt"])
def test_without_a_run_and_without_a_whole_base_one_line_says_what_to_do(
    tiny_base: Path, workplace: Path, type_: Type, damage: Any, command: str
) -> None:
    damage(tiny_base / WEIGHTS)
    assert type_(command) == (2, "", f"{AS_BEFORE}\n")


def test_the_base_that_comes_with_minigpt_writes_english(
    real_base: Path, workplace: Path, type_: Type
) -> None:
    status, out, _ = type_(
        "generate", "Once upon a time", "--temperature", "0", "--max-new-tokens", "60"
    )
    assert status == 0 and out.startswith("Once upon a time")
    assert {"the", "and", "was"} & set(out.split())


# What a run began with


@pytest.mark.long
def test_the_list_the_page_and_the_card_say_what_a_run_began_with(
    tiny_base: Path, workplace: Path, type_: Type
) -> None:
    short = {"steps": 1, "num_evals": 1, "device": "cpu"}
    place = workplace / "a private place"
    minigpt.train("my.txt", init="base", out=place / "first", **short)
    minigpt.train("my.txt", init=str(place / "first"), out="runs/second", **short)
    new = train_tiny(steps=1, num_evals=1)

    listed = {run: type_("runs", run.parent)[1] for run in (place / "first", new)}
    assert ", begun with base, " in listed[place / "first"]
    lines = listed[new].splitlines()
    assert "begun with" not in lines[0] and f", begun with {place / 'first'}, " in lines[1]
    records = map(json.loads, type_("runs --json")[1].splitlines())
    assert [record["init"] for record in records] == [None, str(place / "first")]

    expected = {
        place / "first": ("the base of minigpt", "the base of minigpt"),
        Path("runs/second"): ("first", "`first`"),
        new: (None, None),
    }
    for run, (on_page, on_card) in expected.items():
        assert type_("page", run, "--out", "a.html")[0] == 0
        page = Path("a.html").read_text()
        assert f'"beginning":{json.dumps(on_page)}' in page and "private place" not in page

        type_("export", run, "--out", "exported")
        card = Path("exported/README.md").read_text()
        assert "private place" not in card
        assert (f"Begun with the weights of {on_card}." in card) == (on_card is not None)
        assert "Begun with" in card or on_card is None
        shutil.rmtree("exported")


@pytest.mark.parametrize("folder", ["runs/base", "base"])
def test_a_run_that_began_with_another_model_called_base_says_which(
    tiny_base: Path, tiny_run: Path, workplace: Path, type_: Type, folder: str
) -> None:
    shutil.copytree(tiny_run, folder)
    status, _, err = type_("train my.txt --init base --steps 1 --num-evals 1 --device cpu")
    assert status == 0 and "the base" not in err
    assert f", begun with {workplace / folder}, " in type_("runs")[1].splitlines()[0]


def test_of_a_run_that_began_with_the_base_what_is_copied_is_of_its_own_text(
    tiny_base: Path, workplace: Path, type_: Type
) -> None:
    Path("own.txt").write_text("a text that nobody else has ever seen or heard of at all\n" * 90)
    minigpt.train("own.txt", init="base", steps=1, num_evals=1, device="cpu")
    copied = type_("evaluate", "own", "my.txt", "--copied")[1]
    assert "0.0% of" in copied  # which the base has read
    assert "100.0% of" in type_("evaluate", "own", "own.txt", "--copied")[1]


# Which text is meant


def test_a_text_in_the_place_of_a_run_is_evaluated_by_the_newest(
    tiny_run: Path, workplace: Path, type_: Type
) -> None:
    run = Path("runs/my")
    shutil.copytree(tiny_run, run)
    given = ["my.txt", "--device", "cpu"]
    assert type_("evaluate", *given) == type_("evaluate", run, *given)
    record = json.loads(type_("evaluate", "my.txt", "my.txt", "--json")[1])
    assert (record["run"], record["files"]) == ("runs/my", ["my.txt", "my.txt"])
    assert type_("evaluate", *given, "--copied") == type_("evaluate", run, *given, "--copied")

    assert_refused(type_("evaluate"), "as in minigpt evaluate base my.txt, or ask for --copied")
    assert_refused(type_("evaluate runs/my"), "as in minigpt evaluate runs/my my.txt, or ask")
