"""What a training holds out is named, and a text that a run has learned from is known."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from minigpt.cli import main
from minigpt.recipe import run as recipe_run
from minigpt.runs.folder import PLAN
from tests.conftest import some_text, train_tiny


@pytest.fixture
def letters(workplace: Path) -> Path:
    Path("letters").mkdir()
    for number in range(10):
        Path(f"letters/{number}.txt").write_text(some_text(80, seed=number))
    return workplace


def held_out(run: Path) -> list[str]:
    names: list[str] = json.loads((run / PLAN).read_text())["held_out"]
    return names


@pytest.mark.long
def test_a_training_names_what_it_holds_out(
    letters: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(json.dumps({"text": some_text(80, seed=n)}) + "\n" for n in range(20))
    Path("rows.jsonl").write_text(rows)
    options = ["--emb-dim=16", "--num-layers=1", "--steps=1"]
    expected = {
        ("my.txt",): "the end of my.txt",
        ("letters",): "letters/4.txt",
        ("letters", "--split=end"): "the end of letters/9.txt",
        ("rows.jsonl",): "rows.jsonl, of its 20 documents number 5, 15",
        ("my.txt", "--validation=letters/1.txt"): "letters/1.txt",
    }
    for arguments, name in expected.items():
        assert main(["train", "--plan", *arguments, *options]) == 0
        assert f"held out, to validate on: {name}\n" in capsys.readouterr().out

    Path("rows.jsonl").write_text(rows * 30)
    assert main(["train", "--plan", "rows.jsonl", *options]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "held out" in line]
    assert line.endswith(" ...") and len(line) < 130
    assert held_out(train_tiny("letters", steps=1)) == ["letters/4.txt"]


def test_a_text_that_a_run_has_learned_from_is_no_test_of_it(
    letters: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(train_tiny("letters", steps=1))
    shutil.copytree("letters", "copy")
    Path("new.txt").write_text(some_text(seed=99))
    (aside,) = held_out(Path(run))
    said = f"{run} has learned from "

    def is_said(command: str, *files: str) -> bool:
        capsys.readouterr()
        names = [run, run] if command == "compare" else [run]
        assert main([command, *names, *files]) == 0
        out, err = capsys.readouterr()
        return said in out + err

    for command in ("evaluate", "compare"):
        for files in (["letters/1.txt"], ["new.txt", "letters/1.txt"], ["copy"]):
            assert is_said(command, *files)
        for file in (aside, "new.txt"):
            assert not is_said(command, file)


def test_two_trainings_of_one_text_that_start_together_get_two_folders(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_trainer = recipe_run.make_trainer
    others: list[Path] = []

    def slow(*arguments: Any, **keywords: Any) -> Any:
        if not others:
            others.append(Path("none"))
            others[0] = train_tiny(steps=1)
        return make_trainer(*arguments, **keywords)

    monkeypatch.setattr(recipe_run, "make_trainer", slow)
    assert {train_tiny(steps=1), *others} == {Path("runs/my"), Path("runs/my-2")}


def test_a_training_that_does_not_begin_leaves_no_folder(workplace: Path) -> None:
    with pytest.raises(ZeroDivisionError), pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipe_run, "make_trainer", lambda *_, **__: 1 // 0)
        train_tiny()
    assert not Path("runs").exists()
