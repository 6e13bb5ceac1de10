"""A process that is forked from one that has loaded torch is as one that Python starts."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from .conftest import unix_only
from .forks import Forks
from .patience import PATIENCE

pytestmark = [pytest.mark.long, unix_only]  # loads torch anew
PIPE = subprocess.PIPE


def test_it_has_arguments_streams_a_folder_an_environment_and_a_status_of_its_own(
    forks: Forks, tmp_path: Path
) -> None:
    code = """
import os, signal, sys
found = [sys.argv, os.getcwd(), dict(os.environ), sys.stdin.read(), __name__, os.getpid()]
print(__import__("json").dumps(found))
print("said", file=sys.stderr)
sys.exit(7)
"""
    options = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE, "text": True}
    process = forks.start(["-c", code, "a", "ü"], cwd=tmp_path, env={"A": "b"}, **options)
    out, err = process.communicate("typed", PATIENCE)
    expected = [["-c", "a", "ü"], str(tmp_path), {"A": "b"}, "typed", "__main__", process.pid]
    assert json.loads(out) == expected
    assert (err, process.returncode) == ("said\n", 7)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_signals_reach_it_and_its_end_is_told(forks: Forks, number: signal.Signals) -> None:
    code = "import time; print('begun', flush=True); time.sleep(1000)"
    with forks.start(["-c", code], stdout=PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.send_signal(number)
        assert process.wait(PATIENCE) == process.poll() == -number


def test_an_error_and_a_stream_without_a_reader_end_it_as_they_end_an_interpreter(
    forks: Forks,
) -> None:
    process = forks.start(["-c", "1 // 0"], stderr=PIPE, text=True)
    assert "ZeroDivisionError" in process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 1
    reader, writer = os.pipe()
    os.close(reader)
    process = forks.start(["-c", "print('lost')"], stdout=writer, stderr=subprocess.DEVNULL)
    os.close(writer)
    assert process.wait(PATIENCE) == 120


def test_a_module_and_a_file_are_run_too(forks: Forks, tmp_path: Path) -> None:
    process = forks.start(["-m", "minigpt", "--version"], stdout=PIPE, text=True)
    assert process.communicate(timeout=PATIENCE)[0].startswith("minigpt ")
    (tmp_path / "file.py").write_text("import sys; print(sys.argv, __name__)")
    process = forks.start(["file.py", "a"], cwd=tmp_path, stdout=PIPE, text=True)
    assert process.communicate(timeout=PATIENCE)[0] == "['file.py', 'a'] __main__\n"
