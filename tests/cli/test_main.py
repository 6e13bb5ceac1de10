"""The commands: what they print and where, their exit status, and `train` as a user types it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from minigpt.cli import main
from minigpt.runs.begin import locked
from minigpt.runs.folder import read_config
from minigpt.runs.state import texts_of_evaluations

from ..conftest import TINY, some_text, train_tiny, unix_only
from ..forks import Forks
from ..patience import PATIENCE
from ..training.runs import interrupted
from .conftest import Type, assert_refused

ROOT = Path(__file__).parent.parent.parent
MAIN = "import sys; from minigpt.cli import main; sys.exit(main(sys.argv[1:]))"
TINY_OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]


def start(folder: Path, *arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


# What train prints


@pytest.mark.long
def test_train_says_what_it_does_and_prints_the_result_alone(workplace: Path) -> None:
    process = start(workplace, ROOT / "train.py", "my.txt", *TINY_OPTIONS)
    out, err = (text.decode() for text in process.communicate())
    assert process.returncode == 0, err
    assert out.startswith("runs/my: validation ") and out.count("\n") == 1
    for words in ("reading my.txt", "1 layer of width 16", "8 steps", "python generate.py"):
        assert words in err
    rows = [json.loads(line) for line in (workplace / "runs/my/metrics.jsonl").open()]
    assert rows[-1]["step"] == 8


@pytest.mark.long  # reads all of them
def test_the_plays_are_found_from_any_folder(workplace: Path, type_: Type) -> None:
    status, out, err = type_("train", *TINY_OPTIONS, "--steps=1", "--max-characters=9999")
    assert status == 0 and out.startswith("runs/plays: "), err
    assert "reading data/plays.txt, because no text was named" in err


@pytest.mark.long
def test_a_lesson_without_a_text_reads_the_tales(workplace: Path, type_: Type) -> None:
    status, _, err = type_("train --lesson --plan --minutes 0.1 --max-characters 99999")
    assert status == 0 and "reading data/tales.txt, because no text was named" in err, err


def test_standard_input_is_a_text_too(
    workplace: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open("my.txt") as text:
        monkeypatch.setattr("sys.stdin", text)
        status, out, err = type_("train", "-", *TINY_OPTIONS, "--steps", "1")
    assert status == 0 and out.startswith("runs/stdin: ") and "minigpt-stdin" not in err, err
    assert ", stdin, " in type_("runs")[1]
    assert_refused(type_("train --resume --steps 9"), "standard input")


@pytest.mark.long
def test_an_unfinished_run_on_the_same_text_is_named_with_the_command_that_continues_it(
    workplace: Path, type_: Type
) -> None:
    def hint(*arguments: str) -> list[str]:
        status, _, err = type_("train", *arguments, *TINY_OPTIONS, "--steps=1", "--num-evals=1")
        assert status == 0, err
        lines = err.splitlines()
        at = [i for i, line in enumerate(lines) if "is an unfinished run on this text" in line]
        return [lines[i].split()[0] + lines[i + 1] for i in at]

    Path("other.txt").write_text(some_text(seed=1))
    interrupted("runs/cut")
    assert hint("other.txt") == []
    assert hint("./my.txt") == ["runs/cut  minigpt train --resume --out runs/cut"]
    with locked(Path("runs/cut")):  # another process is training it
        assert hint("my.txt") == []
    text = Path("my.txt").read_text()
    Path("my.txt").write_text(text + "more")  # it could not be continued
    assert hint("my.txt") == []
    Path("my.txt").write_text(text)
    assert type_("train --resume --out runs/cut")[0] == 0
    assert hint("my.txt") == []


def test_from_python_too_an_unfinished_run_on_the_same_text_is_named(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [some_text(40, seed) for seed in range(9)]
    interrupted("runs/documents", texts=(texts,))
    interrupted("runs/my cut")
    capsys.readouterr()
    train_tiny(texts, steps=1, num_evals=1)
    assert "unfinished" not in capsys.readouterr().err  # documents cannot be read again
    train_tiny(steps=1, num_evals=1)
    assert "\n  minigpt train --resume --out 'runs/my cut'\n" in capsys.readouterr().err


# Which text is meant


def test_validation_does_not_swallow_the_text(workplace: Path, type_: Type) -> None:
    text = Path("my.txt").read_text()
    for name in ("held.txt", "other.txt", "a.txt"):
        Path(name).write_text(text)
    validation = ["--validation", "held.txt", "--validation", "other.txt"]
    status, _, err = type_("train", *TINY_OPTIONS, "--steps=1", *validation, "my.txt", "a.txt")
    assert status == 0, err
    config = read_config(Path("runs/my")).text
    assert config.files == ("my.txt", "a.txt")
    assert config.validation == ("held.txt", "other.txt")


def test_the_options_that_a_plan_prints_give_the_same_plan(workplace: Path, type_: Type) -> None:
    options = type_("train my.txt --plan --minutes 1")[1].splitlines()[-1]
    assert options.startswith("--init none --vocab-size")
    again = type_(f"train my.txt --plan --minutes 1 {options}")[1].splitlines()[-1]
    assert again == options
    options = type_("train my.txt --plan --steps 9")[1].splitlines()[-1]
    assert type_(f"train my.txt --plan --steps 9 {options}")[1].splitlines()[-1] == options
    assert not (workplace / "runs").exists()


@pytest.mark.parametrize("command", ["train", "train --plan"])
@pytest.mark.parametrize("option", ["--validation my.txt", "--init runs/my"])
def test_an_option_about_a_text_without_a_text_is_refused(
    command: str, option: str, workplace: Path, type_: Type
) -> None:
    """It would be trained on the plays."""
    assert_refused(type_(f"{command} {option} --minutes 0.01"), option.split(maxsplit=1)[0], "name")
    assert not (workplace / "runs").exists()


TEXTS = {
    "one line": " ".join(some_text().split()),
    "digits": str(3**7000),
    "windows": some_text().replace("\n", "\r\n"),
    "emoji": "😀🦊 🎉\n" * 300,
    "300 bytes": some_text(60)[:300],
    "ten languages": "fox лиса 狐 ثعلب 여우 αλεπού לילה लोमड़ी renard 🦊\n" * 60,
}


@pytest.mark.parametrize("kind", TEXTS)
def test_any_kind_of_text_is_learned_from_and_samples_hold_nothing_else(
    kind: str, workplace: Path, type_: Type
) -> None:
    Path("my.txt").write_bytes(TEXTS[kind].encode())
    status, _, err = type_("train", "my.txt", *TINY_OPTIONS, "--steps=1", "--context-length=4")
    assert status == 0, err
    assert ("by heart" in err) == (kind == "300 bytes")
    texts = texts_of_evaluations(Path("runs/my")).values()
    written = "".join(texts).replace("\ufffd", "")
    assert written and {*written.encode()} <= {*TEXTS[kind].replace("\r", "").encode()}


def test_runs_are_listed_newest_first(workplace: Path, type_: Type) -> None:
    assert type_("runs")[1:] == (
        "",
        "no run in runs/ yet; train one first: minigpt train my.txt\n",
    )
    for name in ("old", "new"):
        train_tiny(out=f"runs/{name}", steps=1)
    lines = type_("runs")[1].splitlines()
    assert [line.split(":")[0] for line in lines] == ["runs/new", "runs/old"]
    records = [json.loads(line) for line in type_("runs --json")[1].splitlines()]
    assert [(r["name"], r["text"], r["finished"]) for r in records] == [
        ("runs/new", "my.txt", True), ("runs/old", "my.txt", True)
    ]  # fmt: skip
    Path("runs/old/config.json").write_text("{")
    assert "damaged" in type_("runs")[1].splitlines()[1]


# What is refused


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("tarin my.txt", "'tarin'"),
        ("train nowhere.txt", "no such file: nowhere.txt"),
        ("train ym.txt", "did you mean my.txt?"),
        ("train my.txt --emb-dim -3", "emb_dim must be between"),
        ("train my.txt --context-length 9999", "--context-length"),
        ("train --minutes soon", "--minutes: invalid float value: 'soon' (see minigpt train"),
        ("train --minutes 0", "minutes must be above 0"),
        ("train --minuts 3", "--minuts (did you mean --minutes?)"),
        ("train my.txt --seed 1 ym.txt", "no such file: ym.txt"),
        ("train my.txt --num-heads 3 --emb-dim 128", "emb_dim must be a multiple of num_heads"),
        ("train my.txt --tokenizer words", "no tokenizer 'words'"),
        ("train my.txt --device abacus", "no device 'abacus'"),
        ("train --resume", "no run in runs/"),
        ("train --resume --out runs/nowhere", "no such run: runs/nowhere (newest runs: none yet"),
        ("train --resume --dropout 0.1", "--resume takes its text and model from the run"),
        ("train my.txt --out .", "--out"),
        ("train my.txt --resume --plan", "--plan is for a new run"),
        ("train my.txt --max-epochs 2 --steps 9", "--max-epochs does nothing beside --steps 9;"),
        ("train my.txt --minutes 2 --steps 9", "--minutes does nothing beside --steps 9;"),
        ("train --resume --minutes 2 --steps 9", "--minutes does nothing beside --steps 9;"),
        ("evaluate runs/my --copied --stride 3", "--stride does nothing beside --copied;"),
        ("evaluate runs/my --copied --text-field body", "--text-field is for a text that is named"),
        ("train my.txt --text-field body", "--text-field body is for files with rows"),
        ("serve --chat-template user:Q", "--chat-template must be ROLE=WORDS"),
    ],
)
def test_what_cannot_be_done_is_refused(
    workplace: Path, type_: Type, command: str, words: str
) -> None:
    assert_refused(type_(command), words)
    assert [file.name for file in workplace.iterdir() if file.name != "cache"] == ["my.txt"]


def test_of_several_processes_the_first_says_what_is_wrong(
    type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("RANK", "1")
    assert type_("train --minutes 0") == (2, "", "")
    monkeypatch.setenv("RANK", "0")
    assert_refused(type_("train --minutes 0"), "minutes")


# Processes


@pytest.mark.long
@unix_only
@pytest.mark.parametrize(
    ("command", "name", "status"),
    [
        ("train", "SIGINT", 130),
        ("train", "SIGTERM", 143),
        ("train", "SIGHUP", 129),
        ("evaluate", "SIGTERM", 143),
    ],
)
def test_a_command_that_is_ended_while_it_reads_leaves_no_copy_of_what_was_piped_in(
    command: str,
    name: str,
    status: int,
    forks: Forks,
    tiny_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    arguments = ["-"] if command == "train" else [tiny_run, "--copied", "-"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = forks.start(["-c", MAIN, command, *map(str, arguments)], cwd=tmp_path, **pipes)
    assert process.stdin is not None and process.stderr is not None
    process.stdin.write(b"the fox " * 10_000)
    process.stdin.flush()
    while [f.stat().st_size for f in tmp_path.glob("minigpt-stdin-*/stdin.txt")] != [80_000]:
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.01)
    process.send_signal(signal.Signals[name])
    assert process.wait(PATIENCE) == status
    assert b"Traceback" not in process.stderr.read()
    assert list(tmp_path.iterdir()) == []


@unix_only
def test_a_reader_that_leaves_early_causes_no_traceback(tiny_run: Path, tmp_path: Path) -> None:
    options = ["the", "--run", tiny_run, "--max-new-tokens", "400"]
    process = start(tmp_path, ROOT / "generate.py", *options)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.read(1) == b"t"
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    assert process.wait(PATIENCE) == 141


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no /dev/full")
def test_a_full_disk_is_said_in_one_line(
    tiny_run: Path, type_: Type, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        assert main(["generate", "the", "--run", str(tiny_run)]) == 2
        full.close()
    assert capsys.readouterr().err.endswith("error: writing: No space left on device\n")
