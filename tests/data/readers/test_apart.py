"""The process that reads PDF and parquet: what it reads comes back, and whatever it does, it costs
one line."""

import contextlib
import os
import select
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from minigpt import UserError

from ...patience import PATIENCE
from ..texts import documents, refusal, write
from .made import parquet, pdf, pdf_of, zstandard

LINE = "This is a line of a paragraph that is about as long as the others, and then"


@pytest.mark.long
def test_a_pdf_and_a_parquet_file_are_read_in_a_process_of_their_own(tmp_path: Path) -> None:
    assert documents(write(tmp_path / "a.pdf", pdf([LINE, "it ends."]))) == [f"{LINE} it ends."]
    file = write(tmp_path / "a.parquet", parquet({"id": [1, 2], "body": ["naïve", None]}))
    assert documents(file, text_field="body") == ["naïve"]
    assert refusal(file) == (f"{file} has no column 'text'; name one with --text-field: id, body")


LOOPS = {
    "a page tree that holds itself": ["<< /Type /Catalog /Pages 2 0 R >>",
                                      "<< /Type /Pages /Kids [2 0 R] /Count 1 >>"],
    "a catalog that is its own pages": ["<< /Type /Catalog /Pages 1 0 R /Kids [1 0 R] >>"],
    "a reference to itself": ["<< /Type /Catalog /Pages 2 0 R >>", "2 0 R"],
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("kind", LOOPS)
def test_a_pdf_that_loops_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.data.readers.apart.MOST_SECONDS", 1)
    file = write(tmp_path / "a.pdf", pdf_of(LOOPS[kind]))
    assert str(file) in refusal(file)


@pytest.mark.long
@pytest.mark.parametrize("share", [0.02, 0.5, 0.8])
def test_a_truncated_pdf_is_refused(share: float, tmp_path: Path) -> None:
    """Its end says where its parts are."""
    whole = pdf([LINE] * 5, [LINE] * 5)
    file = write(tmp_path / "a.pdf", whole[: int(share * len(whole))])
    assert refusal(file).startswith(f"cannot read {file}: it is damaged (")


@pytest.mark.long
def test_a_reader_that_never_ends_or_crashes_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "a.pdf", pdf([LINE]))
    program = tmp_path / "python"
    for script, message in (
        ("exec sleep 60", "takes more than 1 seconds a page"),
        ("kill -9 $$", "needs too much memory, or crashed"),
        ("printf '[]\\n{\"te'", "its reader crashed"),
    ):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(sys, "executable", str(program))
        monkeypatch.setattr("minigpt.data.readers.apart.MOST_SECONDS", 1)
        assert message in refusal(file)


# What takes the place of Python: a process that never ends, and tells its number.
NEVER = """#!/bin/sh
exec {python} -c '
import os
from minigpt.data.readers.apart import answer

def values():
    yield os.getpid()
    while True:
        pass

answer(values())' "$@"
"""
READER = """
import sys
from pathlib import Path
from minigpt.config import ReadingConfig
from minigpt.data.readers.apart import read_apart
from minigpt.data.readers.content import Content

sys.executable = sys.argv[1]
values = read_apart("pdf_pages", Content.of_file(Path(sys.argv[2]), ReadingConfig()))
print(next(values), flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="nothing to wait with")
def test_the_process_ends_with_the_one_that_reads_what_it_prints(tmp_path: Path) -> None:
    file = write(tmp_path / "a.pdf", pdf([LINE]))
    program = write(tmp_path / "python", NEVER.format(python=sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    command = [sys.executable, "-c", READER, str(program), str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        process = os.pidfd_open(int(reader.stdout.readline()))
        reader.kill()
    try:
        assert select.select([process], [], [], PATIENCE)[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)
        os.close(process)


@pytest.mark.long
def test_too_much_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minigpt.data.readers.apart.MOST_MEMORY", 40 << 20)
    file = write(tmp_path / "a.pdf", pdf([LINE] * 20_000))
    if sys.platform == "linux":
        message = refusal(file)
        assert "too much memory" in message or "damaged" in message


@pytest.mark.parametrize(
    ("library", "extra", "kind", "data"),
    [
        ("PDF (pdfminer.six)", "documents", "no_reader", b"%PDF-1.4\n"),
        ("parquet (pyarrow)", "parquet", "no_parquet", b"PAR1"),
        ("zstandard", "documents", "no_reader", zstandard(b"text")),
    ],
)
def test_a_missing_library_is_named(
    library: str,
    extra: str,
    kind: str,
    data: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for package in ("backports", "compression"):
        monkeypatch.setitem(sys.modules, package, None)

    file = write(tmp_path / "a.txt", data)
    with pytest.raises(UserError) as refused:
        documents(file)
    install = f'pip install "minigpt-text[{extra}]"'
    assert str(refused.value) == f"{file} needs a reader of {library}: {install}"
    assert refused.value.kind == kind


@pytest.mark.long
def test_a_truncated_parquet_file_is_refused(tmp_path: Path) -> None:
    whole = parquet({"text": ["a", "b"]})
    for kept in (4, len(whole) - 3):
        file = write(tmp_path / "a.parquet", whole[:kept])
        assert refusal(file).startswith(f"cannot read {file}: it is damaged (")
