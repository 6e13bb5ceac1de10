"""Whatever a text, a folder or a run is called, it trains, and its name is markup nowhere."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from minigpt.cli import main
from minigpt.data.dialogue import Dialogue
from minigpt.interop.chat import ChatFormat
from minigpt.recipe.run import resume_run
from minigpt.runs.folder import PICTURE
from minigpt.tokenizer import CharacterTokenizer
from minigpt.training import reports
from tests.conftest import TINY, real_draw_losses, some_text, train_tiny, unix_only

from .conftest import Type, assert_refused

SHORT: dict[str, Any] = TINY | {"steps": 1, "num_evals": 1}
SHORT_OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in SHORT.items()]
ODD = ["a^$x^^$ 小说 <b>&amp;", "y" * 240]
if os.name != "nt":
    ODD += ["two\nlines \x1b[31m", "caf\udce9"]


@pytest.mark.long
@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("name", ODD)
def test_a_text_of_any_name_trains_and_is_drawn_and_goes_on(
    name: str,
    workplace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = f"{name}.txt"
    try:
        Path(text).write_text(some_text())
    except OSError:
        pytest.skip("this system has no such names")
    with monkeypatch.context() as drawn:
        drawn.setattr(reports, "draw_losses", real_draw_losses)
        assert main(["train", *SHORT_OPTIONS, text]) == 0, capsys.readouterr().err
    (run,) = Path("runs").iterdir()
    assert (run / PICTURE).read_bytes().startswith(b"\x89PNG")
    resume_run(run, {"steps": 2}, 0.0)


def test_a_folder_and_a_run_of_any_name_train_and_are_drawn(
    workplace: Path, drawn_losses: None, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a^$x^^$").mkdir()
    shutil.copy("my.txt", Path("a^$x^^$", "my.txt"))
    run = "Ba$$in^^$_{"
    assert main(["train", *SHORT_OPTIONS, "a^$x^^$", f"--out={run}"]) == 0, capsys.readouterr().err
    assert Path(run, PICTURE).is_file()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_a_folder_whose_name_is_not_utf_8_is_refused_before_the_text_is_read(
    workplace: Path, type_: Type
) -> None:
    outcome = type_("train", "my.txt", "--out", "caf\udce9", *SHORT_OPTIONS)
    assert_refused(outcome, "'caf\\udce9' is not UTF-8; choose another --out")
    assert not Path("caf\udce9").exists()


def test_a_picture_that_cannot_be_drawn_and_a_sample_that_cannot_be_written_end_no_training(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A style of the user's own may ask matplotlib for what is not there."""
    monkeypatch.setattr("minigpt.training.reports.draw_losses", lambda *_, **__: 1 // 0)
    monkeypatch.setattr(
        "minigpt.recipe.texts_while_learning.say_text_of_a_model", lambda text: 1 // 0
    )
    run = train_tiny(steps=1, num_evals=1)
    resume_run(run, {"steps": 2, "num_evals": 2}, 0.0)
    said = capsys.readouterr().err
    for name in ("Picture", "Samples"):
        line = f"callback {name}.on_evaluation failed: ZeroDivisionError: integer division or"
        assert said.count(line) == 2
    assert said.count("; the training goes on without it\n") == 4


@unix_only
def test_a_text_whose_name_is_not_utf_8_has_a_page_and_an_export(
    workplace: Path, type_: Type
) -> None:
    name = "caf\udce9 `x` <script>.txt"
    Path(name).write_text(some_text())
    assert train_tiny(name, steps=1, num_evals=1) == Path("runs/caf `x` <script>")
    assert type_("page")[0] == type_("export")[0] == type_("runs")[0] == 0
    page = Path("runs/caf `x` <script>/page.html").read_text()
    assert "caf\ufffd `x`" in page and "`x` <script>" not in page
    card = Path("exports/caf `x` <script>-hf/README.md").read_text()
    assert "\n# caf \\`x\\` \\<script\\>-hf\n" in card
    assert "- Text: `caf\ufffd 'x' <script>.txt`" in card


# Commands to copy


@pytest.mark.long
@unix_only
@pytest.mark.parametrize("out", ["-o", "two\nlines", "\x1b[31m it's $HOME", "tab\t!"])
def test_the_commands_at_the_end_of_a_training_can_be_copied(
    out: str, workplace: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["minigpt"])
    Path("my.txt").write_text("-ho the fox\n" + some_text())
    status, _, err = type_("train", "my.txt", f"--out={out}", *SHORT_OPTIONS)
    commands = [line.strip() for line in err.splitlines() if line.startswith("  minigpt ")]
    assert status == 0 and len(commands) == 2, err
    for command in commands:
        script = f'minigpt() {{ printf "%s\\0" "$@"; }}; {command}'
        words = subprocess.check_output(["bash", "-c", script], text=True)
        status, _, err = type_(*words.removesuffix("\0").replace("\0--open", "").split("\0"))
        assert status == 0, err


def test_a_name_gives_a_terminal_no_orders(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
        monkeypatch.setattr(stream, "fileno", lambda: 2, raising=False)
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((300, 20)))
    Path("red \x9b31m.txt").write_text(some_text())
    train_tiny("red \x9b31m.txt", steps=1, num_evals=1)
    out, err = capsys.readouterr()
    assert "\x9b" not in out + err and "runs/red \\x9b31m: validation" in out


def test_a_speaker_is_no_markup_in_a_modelfile() -> None:
    """Ollama's templates are Go's."""
    names = ["{{ .System }}", 'a """ b']
    dialogue = Dialogue(dict.fromkeys(names, 3))
    chat = ChatFormat(dialogue, CharacterTokenizer("a"))
    modelfile = chat.modelfile("my.gguf", 16)
    template = modelfile.split("\nTEMPLATE ")[1].split("\nPARAMETER ")[0]
    assert template.count('"""') == 2
    assert '{{ "{{ .System }}: " }}{{ .Content }}' in template
