"""The commands as a user types them: what they print, where, their exit status, what they leave.

Every command runs in an empty folder, and in a process of its own, unless only what it says
matters.
"""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from minigpt.cli import main as cli

ROOT = Path(__file__).parent.parent
TEXT = "The fox asked the crow for bread. The crow said no, and flew to the mill.\n" * 40
TINY = (
    "--emb-dim 16 --num-layers 1 --num-heads 1 --context-length 16 --batch-size 4 --vocab-size 300 "
    "--compile off --precision float32"
).split()


Attempt = Callable[..., tuple[int, str, str]]


def start(folder: Path, script: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"MINIGPT_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, str(ROOT / script), *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def call(folder: Path, script: str, *arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    process = start(folder, script, *arguments)
    out, err = process.communicate(stdin, timeout=120)
    return process.returncode, out.decode(), err.decode()


@pytest.fixture
def attempt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Attempt:
    """The same in this process."""

    def attempt(folder: Path, script: str, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("MINIGPT_CACHE", str(folder / "cache"))
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        main = cli.train_main if script == "train.py" else cli.generate_main
        try:
            status = main(arguments)
        except SystemExit as exit_:
            status = int(str(exit_.code))
        return status, *capsys.readouterr()

    return attempt


def train_tiny(folder: Path, *arguments: str) -> tuple[int, str, str]:
    (folder / "my.txt").write_text(TEXT)
    return call(folder, "train.py", "my.txt", *TINY, "--steps", "20", *arguments)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `train.py my.txt` has run."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "my.txt").write_text(TEXT)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("MINIGPT_CACHE", str(folder / "cache"))
        assert cli.train_main(["my.txt", *TINY, "--steps", "20"]) == 0
    return folder


def assert_refused(status: int, out: str, err: str, *words: str) -> None:
    """One line on standard error, status 2, no traceback."""
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    assert status == 2
    assert len(lines) == 1 and err.splitlines()[-1] == lines[0]
    assert "Traceback" not in err and out == ""
    for word in words:
        assert word in lines[0]


def test_training_says_what_it_will_do_and_what_to_do_next(tmp_path: Path) -> None:
    status, out, err = train_tiny(tmp_path)
    assert status == 0
    for word in ("training on my.txt", "tokenizer", "1 layers of width 16", "20 steps"):
        assert word in err
    assert out.startswith("runs/my: validation ") and "bits/byte" in out
    assert "generate.py 'The fox asked' --run runs/my" in err.splitlines()[-1]
    rows = [json.loads(line) for line in (tmp_path / "runs/my/metrics.jsonl").open()]
    assert [row["step"] for row in rows][-1] == 20


def test_a_second_run_leaves_the_first_alone(trained: Path, attempt: Attempt) -> None:
    before = (trained / "runs/my/model.safetensors").read_bytes()
    status, out, _ = attempt(trained, "train.py", "my.txt", *TINY, "--steps", "20", "--seed", "1")
    assert status == 0 and out.startswith("runs/my-2: ")
    assert (trained / "runs/my/model.safetensors").read_bytes() == before


def test_out_that_holds_a_run_is_refused(trained: Path) -> None:
    before = (trained / "runs/my/model.safetensors").read_bytes()
    assert_refused(*train_tiny(trained, "--out", "runs/my"), "runs/my", "--resume")
    assert (trained / "runs/my/model.safetensors").read_bytes() == before


def test_generating_prints_the_text_alone_on_standard_output(trained: Path) -> None:
    arguments = ("The fox", "--run", "runs/my", "--seed", "3", "--max-new-tokens", "20")
    status, out, err = call(trained, "generate.py", *arguments)
    assert status == 0 and out.startswith("The fox") and len(out) > 20
    assert "runs/my" in err and "--seed 3" in err
    assert call(trained, "generate.py", *arguments)[1] == out


def test_samples_are_printed_one_after_another(trained: Path, attempt: Attempt) -> None:
    arguments = ["The fox", "--seed", "3", "--stop", r"\n", "--banned", "crow", "--top-p", "0.9"]
    status, one, err = attempt(trained, "generate.py", *arguments)
    assert status == 0 and one.startswith("The fox") and one.count("\n") == 1, err
    status, three, err = attempt(trained, "generate.py", *arguments, "--samples", "3")
    assert status == 0, err
    lines = three.removesuffix("\n").split("\n")
    assert lines[0] + "\n" == one and lines[1::2] == ["--- sample 2 ---", "--- sample 3 ---"]
    assert all(line.startswith("The fox") and "crow" not in line for line in lines[::2])


def test_the_seed_that_was_drawn_is_told_and_writes_the_same_text(
    trained: Path, attempt: Attempt
) -> None:
    _, out, err = attempt(trained, "generate.py", "The", "--run", "runs/my")
    seed = err.split("--seed ")[1].split()[0]
    again = attempt(trained, "generate.py", "The", "--run", "runs/my", "--seed", seed)
    assert again[1] == out


def test_without_a_run_the_newest_one_is_used(trained: Path, attempt: Attempt) -> None:
    status, _, err = attempt(trained, "generate.py", "The", "--max-new-tokens", "1")
    assert status == 0 and "runs/my" in err


@pytest.mark.kill
def test_ctrl_c_keeps_the_state_and_resume_continues(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text(TEXT)
    process = start(tmp_path, "train.py", "my.txt", *TINY, "--steps", "1000000")
    last = tmp_path / "runs/my/checkpoint/last.safetensors"
    deadline = time.monotonic() + 60
    while not last.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"interrupted" in err and b"Traceback" not in err
    assert call(tmp_path, "generate.py", "The", "--max-new-tokens", "2")[0] == 0
    status, out, err_text = call(tmp_path, "train.py", "--resume", "--steps", "2000")
    assert status == 0 and out.startswith("runs/my: "), err_text
    assert_refused(*call(tmp_path, "train.py", "--resume"), "has had its time", "--minutes")
    assert_refused(*call(tmp_path, "train.py", "my.txt", "--resume"), "has had its time")
    assert_refused(*call(tmp_path, "train.py", "other.txt", "--resume"), "trained on other.txt")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("binary.txt", b"\x7fELF\0\0\0", ["binary.txt", "binary", "offset 4"]),
        ("latin1.txt", "caf\xe9 au lait".encode("latin1"), ["latin1.txt", "UTF-8", "offset 3"]),
        ("empty.txt", b"", ["empty.txt", "no text"]),
        ("short.txt", b"Hello, world! ", ["too few", "context_length 64", "--context-length"]),
        ("cut.txt.gz", gzip.compress(TEXT.encode(), mtime=0)[:60], ["cut.txt.gz", "cannot read"]),
        ("bad.jsonl", b'{"body": "hi"}\n', ["bad.jsonl, line 1", "--text-field"]),
    ],
)
def test_text_that_cannot_be_used_is_refused_in_one_line(
    attempt: Attempt, tmp_path: Path, name: str, content: bytes, words: list[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    assert_refused(*attempt(tmp_path, "train.py", name, "--context-length", "64"), *words)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.txt"], ["no such file", "nowhere.txt"]),
        (["--minutes", "soon"], ["--minutes", "soon"]),
        (["--minutes", "0"], ["minutes", "above 0"]),
        (["--minuts", "3"], ["--minuts"]),
        (["--dropout", "1.5"], ["dropout", "1.5"]),
        (["--num-heads", "3", "--emb-dim", "128"], ["emb_dim", "multiple of num_heads (3)"]),
        (["--tokenizer", "words"], ["no tokenizer 'words'", "bpe"]),
        (["--device", "abacus"], ["no device 'abacus'"]),
        (["--resume"], ["no run in runs/"]),
    ],
)
def test_arguments_that_cannot_be_used_are_refused_in_one_line(
    attempt: Attempt, tmp_path: Path, arguments: list[str], words: list[str]
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/fables.txt").write_text(TEXT)
    assert_refused(*attempt(tmp_path, "train.py", *arguments), *words)
    assert not (tmp_path / "runs").exists()


def test_generating_refuses_in_one_line(attempt: Attempt, trained: Path, tmp_path: Path) -> None:
    assert_refused(*call(tmp_path, "generate.py", "Hello"), "no run in runs/", "train.py")
    assert_refused(*attempt(trained, "generate.py", "--run", "cache"), "cache", "not a run")
    assert_refused(*attempt(trained, "generate.py", "--run", "runs/no"), "no such run: runs/no")
    assert_refused(*attempt(trained, "generate.py", "--temperature", "-1"), "temperature", "-1")
    assert_refused(*attempt(trained, "generate.py", "--top-k", "0"), "top_k", "at least 1")
    assert_refused(*attempt(trained, "generate.py", "--logit-bias", "fox"), "TEXT=X, got 'fox'")
    assert_refused(
        *attempt(trained, "generate.py", "--logit-bias", "Zebra=1"), "'Zebra'", "not one token"
    )


def test_a_prompt_outside_a_character_vocabulary_is_named(attempt: Attempt, tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text(TEXT)
    arguments = ("my.txt", *TINY, "--steps", "2", "--tokenizer", "char")
    status, _, err = attempt(tmp_path, "train.py", *arguments)
    assert status == 0, err
    assert_refused(*attempt(tmp_path, "generate.py", "The €"), "'€'", "position 4")


def test_standard_input_is_a_text_too(attempt: Attempt, tmp_path: Path) -> None:
    status, out, err = call(tmp_path, "train.py", "-", *TINY, "--steps", "3", stdin=TEXT.encode())
    assert status == 0, err
    assert out.startswith("runs/stdin: ")
    assert_refused(*attempt(tmp_path, "train.py", "--resume", "--steps", "9"), "standard input")


def test_no_time_to_train_is_said(attempt: Attempt, tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text(TEXT)
    status, out, err = attempt(tmp_path, "train.py", "my.txt", *TINY, "--minutes", "0.001")
    assert_refused(status, out, err, "no time was left to train", "--minutes")


def test_the_fables_are_found_from_any_folder(attempt: Attempt, tmp_path: Path) -> None:
    status, out, err = attempt(tmp_path, "train.py", *TINY, "--steps", "2")
    assert status == 0 and out.startswith("runs/fables: "), err


def test_the_commands_answer_without_loading_torch() -> None:
    code = (
        "import sys; from minigpt.cli import main as cli\n"
        "for main in (cli.train_main, cli.generate_main, cli.main):\n"
        "    try: main(['--help'])\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_importing_attention_loads_nothing_but_torch() -> None:
    code = (
        "import sys, torch; before = set(sys.modules); import minigpt.attention\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "assert new == {'minigpt'}, new\n"
        "assert not {'minigpt.model', 'minigpt.tokenizer'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_a_reader_that_leaves_early_causes_no_traceback(trained: Path) -> None:
    process = start(trained, "generate.py", "The", "--run", "runs/my", "--max-new-tokens", "400")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.wait(timeout=60)
