"""Words on Windows: commands to copy, and names that files cannot have."""

import errno
import subprocess
from pathlib import Path

import pytest

from minigpt import UserError
from minigpt.cli import COMMANDS, main
from minigpt.runs.begin import check_free
from minigpt.runs.listing import free_name
from minigpt.system import commands
from minigpt.system import platforms as system
from minigpt.system.atomic import write_text


@pytest.fixture(autouse=True)
def on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "_NAME", "nt")


def words_of(command: str) -> list[str]:
    """The words of a command by the rules of the C library, with which every program of Windows
    takes its command line apart (Microsoft, "Parsing C command-line arguments")."""
    words, word, is_quoted, i = list[str](), "", False, 0
    while i < len(command):
        backslashes = len(command[i:]) - len(command[i:].lstrip("\\"))
        i += backslashes
        if command[i : i + 1] != '"':
            word += "\\" * backslashes
            if i < len(command):
                if command[i] == " " and not is_quoted:
                    words.append(word)
                    word = ""
                else:
                    word += command[i]
                i += 1
            continue
        word += "\\" * (backslashes // 2)
        if backslashes % 2 == 1:
            word += '"'
        elif is_quoted and command[i + 1 : i + 2] == '"':
            word += '"'
            i += 1
        else:
            is_quoted = not is_quoted
        i += 1
    return [*words, word]


@pytest.mark.parametrize(
    "word",
    [
        "runs/my@120",
        r"C:\Users\Anna Karenina\runs\my",
        "C:\\my runs\\",
        'she said "no" and left',
        "it's",
        "Где кот?",
        "a,b",
        "@home",
        "(x) & y | z > w; v",
        "",
    ],
)
def test_a_quoted_word_is_the_same_word_for_a_program(word: str) -> None:
    quoted = system.quote(word)
    assert words_of(f"minigpt {quoted} end") == ["minigpt", word, "end"]
    assert "'" not in quoted.replace(word, "")
    # In quotes there is nothing that cmd.exe or PowerShell would take for a command.
    assert quoted.startswith('"') or not set(quoted) & set(" '&|<>^(){};,`$%!\"")


def test_the_rules_of_the_library_are_those_by_which_python_writes_command_lines() -> None:
    words = ["minigpt", "a b", 'say "no"', "C:\\my runs\\", "C:\\plain\\"]
    assert words_of(subprocess.list2cmdline(words)) == words


def test_messages_quote_for_the_shells_of_windows(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", "the", "fox"]) == 2
    assert capsys.readouterr().err == 'error: put quotes around the prompt: "the fox"\n'
    Path("my.txt").rename("a text.txt")
    assert main(["train", "a txt.txt"]) == 2
    assert capsys.readouterr().err.endswith('did you mean "a text.txt"?\n')


def test_programs_of_an_environment_that_is_not_activated_have_their_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = tmp_path / "my env"
    scripts.mkdir()
    (scripts / "minigpt.exe").touch(mode=0o755)
    monkeypatch.setattr("sys.executable", str(scripts / "python.exe"))
    monkeypatch.setattr("sysconfig.get_config_var", {"EXE": ".exe"}.get)
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(tmp_path)
    assert commands.program("minigpt") == '"my env/minigpt.exe"'


@pytest.mark.parametrize(
    "name", ["aux.txt", "CON", "nul", "COM1.de", "my.", "my ", "a:b", "why?", "a<b", "tab\t"]
)
def test_a_name_that_windows_refuses_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"Windows .*; choose another --out") as refused:
        check_free(tmp_path / "runs" / name / "my")
    assert "\n" not in str(refused.value)
    with pytest.raises(OSError, match="Windows"):
        write_text("text", tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    assert free_name(name, tmp_path) == tmp_path / "run"


@pytest.mark.parametrize(
    "path",
    ["runs/my@120", r"C:\runs\my", "c:runs", r"\\server\share\my", "../.hidden", "auxiliary"],
)
def test_other_names_are_taken(path: str) -> None:
    assert system.name_problem(path) is None


def test_a_path_that_is_too_long_is_said_to_be(tmp_path: Path) -> None:
    error = OSError(errno.ENOENT, "The system cannot find the path specified")
    long = tmp_path / "/".join(["a" * 60] * 5)
    assert "more than 259 characters" in system.why_not_written(error, long)
    assert system.why_not_written(error, tmp_path) == error.strerror


def test_ctrl_z_ends_what_is_typed() -> None:
    assert system.end_of_input() == "Ctrl-Z and Enter"


def test_a_torch_that_is_missing_or_lacks_a_library_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = OSError("[WinError 126] The specified module could not be found: c10.dll")
    lacking.winerror = 126  # type: ignore[attr-defined]  # of Windows alone
    for error, told in (
        (ModuleNotFoundError("No module named 'torch'", name="torch"), "pip install torch"),
        (lacking, "c10.dll; it needs the Visual C++ Redistributable of Microsoft"),
    ):

        def run(given: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setitem(COMMANDS, "runs", ("fail", lambda parser: None, run))
        assert main(["runs"]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1) and err.endswith(f"{told}\n")
