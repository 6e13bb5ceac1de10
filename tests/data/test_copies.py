"""What is copied is found, all of it and nothing else, and where the longest stretch stands."""

import dataclasses
import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigpt
from minigpt import UserError
from minigpt.cli import main
from minigpt.config import TextConfig
from minigpt.data.copies import LEAST, copies, find_copies
from minigpt.data.corpus import Piece, place_of
from minigpt.data.source import find_source, split
from minigpt.runs.folder import COPIED, JOURNAL
from tests.conftest import some_text, train_tiny

from .chats.made import some_chat
from .texts import json_lines, piece, whole, write

pytestmark = pytest.mark.long

pieces = st.lists(st.builds(piece, st.integers(0, 2), st.text("ab", max_size=150)), max_size=5)
cuts = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 90), st.text("ax", max_size=1)))


def by_hand(texts: Sequence[str], documents: list[str]) -> tuple[float, int]:
    """The same by looking for everything everywhere."""
    everything, count, longest = "|".join(documents), 0, LEAST - 1
    for text in texts:
        inside: set[int] = set()
        for i in range(len(text) - LEAST + 1):
            if text[i : i + LEAST] in everything:
                inside.update(range(i, i + LEAST))
            while len(part := text[i : i + longest + 1]) > longest and part in everything:
                longest += 1
        count += len(inside)
    return count / max(sum(map(len, texts)), 1), longest if longest >= LEAST else 0


@settings(max_examples=100, deadline=None)
@given(pieces, st.lists(cuts, max_size=3))
def test_it_is_what_a_search_for_every_stretch_finds(
    pieces: list[Piece], cuts: list[list[tuple[int, int, str]]]
) -> None:
    pieces.sort(key=lambda piece: piece.number)
    source = "".join(piece.text for piece in pieces)
    texts = ["".join(source[i : i + n] + other for i, n, other in cut) for cut in cuts]
    share, longest = find_copies(texts, pieces)
    assert (share, len(longest)) == by_hand(texts, whole(pieces))
    assert any(longest in text for text in (*texts, "")) and longest in source


@pytest.mark.parametrize("cut", [0, 10, 29, 30, 31, 60, 71, 99])
def test_a_stretch_goes_on_in_the_next_piece_of_its_document(cut: int) -> None:
    text = some_text(40)[:100]
    two = text[:cut], text[cut:]
    assert find_copies([text], [piece(0, part) for part in two]) == (1.0, text)
    apart = find_copies([text], [piece(i, part) for i, part in enumerate(two)])
    assert apart == (sum(len(t) for t in two if len(t) >= LEAST) / 100, max(two, key=len))


@pytest.mark.parametrize("line", ["-" * 79 + "\n", "a fox and a crow sat on a mill, "])
def test_repetitions_are_not_compared_one_with_each(line: str) -> None:
    share, longest = find_copies([line * 2_000], [piece(0, line * 3_000)])
    assert (share, longest) == (1.0, line * 2_000)


@pytest.mark.parametrize("name", ["my.txt", "my.jsonl", "my.txt.gz"])
def test_the_place_of_the_longest_is_its_line(name: str, tmp_path: Path) -> None:
    texts = [some_text(20_000), "one\n\na line that stands in no other document", some_text(seed=2)]
    text = "\n\n<|endoftext|>\n".join(texts)
    line = 1 + text[: text.index("a line that")].count("\n")
    content: str | bytes = json_lines(texts) if "jsonl" in name else text
    content = gzip.compress(text.encode()) if "gz" in name else content
    files = [str(write(tmp_path / n, c)) for n, c in ((name, content), ("other.txt", "a crow"))]
    config = TextConfig(files=(files[0],), validation=(files[1],))
    result = copies(["a line that stands in no other?"], *split(find_source(config), config))
    assert result.longest == "a line that stands in no other" and result.share == 30 / 31
    assert (result.usual_share, result.usual_longest) == (0, "")
    assert result.place == f"{tmp_path / name}, line {2 if 'jsonl' in name else line:,}"


def test_no_line_is_named_in_a_chat_whose_messages_have_none(tmp_path: Path) -> None:
    file = write(tmp_path / "chat.txt", some_chat(120))
    source = find_source(TextConfig(files=(str(file),)))
    said = next(iter(source.training.pieces())).text[:60]
    assert copies([said], *split(source, TextConfig(files=(str(file),)))).place == str(file)


@pytest.mark.parametrize("split_at", ["documents", "end"])
@pytest.mark.parametrize("name", ["my.txt", "my.jsonl"])
def test_the_place_is_in_the_training_text_not_where_it_is_validated(
    name: str, split_at: Any, tmp_path: Path
) -> None:
    """The same line stands in all documents, on both sides."""
    line = "a line that stands in two documents"
    texts = [f"{some_text(60, seed)}{line}\n" for seed in range(3)]
    texts[0] *= 2
    content = json_lines(texts) if "jsonl" in name else "\n<|endoftext|>\n\n".join(texts)
    file = str(write(tmp_path / name, content))
    config = TextConfig((file,), validation_fraction=0.4, split=split_at)
    training, validation = split(find_source(config), config)
    first = min(piece.number for piece in training.pieces() if line in piece.text)
    assert any(line in piece.text for piece in validation.pieces())

    in_file = [i for i, text in enumerate(content.split("\n"), start=1) if line in text]
    lines = in_file if "jsonl" in name else [in_file[0], *in_file[2:]]
    result = copies([line], training, validation)
    assert result.longest == line and result.place == f"{file}, line {lines[first]}"


def test_the_line_of_a_place_in_part_of_a_document_is_right(tmp_path: Path) -> None:
    text = "".join(f"line {i}\n" for i in range(1, 2001))
    config = TextConfig((str(write(tmp_path / "a.txt", text)),), validation_fraction=0.5)
    training, validation = split(find_source(config), config)
    assert place_of("line 7\n", training.pieces()) == f"{tmp_path / 'a.txt'}, line 7"
    assert place_of("line 1900\n", validation.pieces()) == f"{tmp_path / 'a.txt'}, line 1,900"
    for stretch in training.at_most(2_000, 80).pieces():
        if stretch.text.count("\n") > 1:
            second = stretch.text.split("\n")[1]
            assert stretch.line == int(second.removeprefix("line ")) - 1


def test_a_run_tells_what_it_has_copied(
    workplace: Path, told_copies: None, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train_tiny(validation_fraction=0.4)
    assert re.search(r"copied: of what it writes, \d+\.\d% of ", capsys.readouterr().err)
    kept = json.loads((run / JOURNAL / COPIED).read_text())
    assert kept == dataclasses.asdict(minigpt.load(run).copied())
    text = Path("my.txt").read_text()
    words = "nobody wrote these words before I did"
    result = minigpt.load(run).copied(text[:100] + words, words)
    assert result.longest == text[:100] and result.place == "my.txt, line 1"
    assert result.share == 100 / (100 + 2 * len(words)) and result.usual_share < 1
    own = minigpt.load(run).copied()
    assert own == minigpt.load(run).copied() and own.characters > 1000
    Path("new.txt").write_text(text[:100] + words)
    assert main(["evaluate", str(run), "new.txt", "--copied"]) == 0
    out = capsys.readouterr().out
    assert re.match(f"{run}: 73.0% of 137 characters .* the longest of 100: .*my.txt, line 1", out)
    assert main(["evaluate", str(run), "--copied", "--json"]) == 0
    assert f'"characters": {own.characters}' in capsys.readouterr().out


def test_a_text_that_is_not_there_any_more_is_an_error_of_one_line(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(train_tiny())
    write(Path("my.txt"), some_text(seed=3))
    with pytest.raises(UserError, match=r"^my.txt has changed since the run learned from it$"):
        minigpt.load(run).copied()
    Path("my.txt").unlink()
    capsys.readouterr()
    assert main(["evaluate", run, "--copied"]) == main(["evaluate", run]) == 2
    expected = [
        "error: no such file: my.txt",
        f"error: name a text to predict, as in minigpt evaluate {run} my.txt, or ask for --copied",
    ]
    assert capsys.readouterr().err.splitlines() == expected
    rows = minigpt.train([some_text()], out="rows", emb_dim=16, num_layers=1, num_heads=2, steps=2)
    with pytest.raises(UserError, match="documents given in Python, which cannot be read again"):
        minigpt.load(rows).copied()
