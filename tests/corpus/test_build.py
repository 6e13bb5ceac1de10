"""The command: clones in, a corpus out. Held-out texts never get into it."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from data.base.corpus.document import LONGEST, Document
from data.base.corpus.habits import WIDTH, written
from data.base.corpus.heldout import HeldOut, refuse_authors
from data.base.corpus.pipeline import Corpus
from data.base.corpus.readers import READERS
from data.base.corpus.repeats import Repeats
from data.base.corpus.sources import COLUMNS, read_sources
from minigpt import UserError

from . import samples
from .samples import END, REPLY, STORY, clone, put, sentences, table

pytestmark = pytest.mark.figures

ROOT = Path(__file__).parents[2]
OWN = ROOT / "data"
CHAPTERS = 60


def build(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "data/base/build.py", folder / "clones"]
    command += ["--out", folder / "out", "--sources", folder / "SOURCES.md", *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def corpus(folder: Path) -> list[dict[str, str]]:
    """All documents of a built corpus."""
    files = (folder / "out" / name for name in ("train.jsonl", "val.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


def row(kind: str, name: str, files: str, commit: str, most: str = "9") -> str:
    """A row of SOURCES.md for the clone o/NAME."""
    reader = {"books": "standard-ebooks", "modern": "markdown", "dialogue": "mts-dialog"}[kind]
    cells = [kind, name, "A. Ferryman", "Ferries", f"o/{name}", files, reader, commit]
    return " | ".join([*cells, "CC0", "LICENSE", most, "yes"])


def chapter(number: int) -> str:
    """A chapter like no other."""
    said = f"“{sentences(1000 + number, 2)}” — so it was."
    return samples.EBOOK.replace(STORY, sentences(number)).replace(REPLY, said)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of a book, articles and talks, with much that must be dropped."""
    folder = tmp_path_factory.mktemp("built")
    clones = folder / "clones/o"
    book = {f"src/chapter-{i}.xhtml": chapter(i) for i in range(CHAPTERS)}
    book["src/imprint.xhtml"] = samples.IMPRINT

    tales = (OWN / "tales.txt").read_text(encoding="utf-8").split("\n\n<|endoftext|>\n\n")
    fables = (OWN / "fables.txt").read_text(encoding="utf-8").split("\n\n\n")
    articles = {
        "a.md": samples.MARKDOWN,
        "b/copy.md": samples.MARKDOWN.replace("How a", "How the"),
        "tale.md": f"# A tale\n\n{STORY}\n\n{tales[40]}\n",
        "fable.md": f"# A fable\n\n{fables[7].replace(' ', chr(10), 9)}\n\n{END}\n",
        "short.md": "# Short\n\nA boat.\n",
        "LICENSE.md": f"# Licence\n\n{sentences(77)}\n",
        ".github/pull_request.md": f"# Hello\n\n{sentences(78)}\n",
    }
    rows = [
        row("books", "book", "src/*.xhtml", clone(clones / "book", book)[:10]),
        row("modern", "guide", "**/*.md", clone(clones / "guide", articles)[:10]),
        row("dialogue", "talk", "*.csv", clone(clones / "talk", {"t.csv": talks()})[:10]),
    ]
    put(folder / "SOURCES.md", table(*rows))

    done = build(folder)
    assert done.returncode == 0, done.stderr
    put(folder / "said", done.stdout)
    return folder


def talks() -> str:
    """A table of different talks."""
    lines = ["ID,section_header,section_text,dialogue"]
    for i in range(20):
        said = f"Doctor: {sentences(2000 + i)}\nPatient: {sentences(3000 + i)}"
        lines.append(f'{i},X,Note,"{said}"')
    return "\n".join(lines)


def test_every_source_is_in_the_corpus_and_every_drop_has_a_reason(built: Path) -> None:
    documents = corpus(built)
    said = (built / "said").read_text()
    assert {document["source"] for document in documents} == {"book", "guide", "talk"}
    assert {document["kind"] for document in documents} == {"books", "modern", "dialogue"}
    assert all(document["best"] is True for document in documents)
    assert f"book: {CHAPTERS} documents" in said
    assert "document: sentences of a held-out text 2" in said
    assert "document: nearly the same as another 1" in said
    assert "document: too short 1" in said


def test_no_sentence_of_our_tales_and_fables_is_in_the_corpus(built: Path) -> None:
    """Whatever the line ends of the source."""
    held_out = HeldOut([OWN / "tales.txt", OWN / "fables.txt"])
    documents = corpus(built)
    paragraphs = [text for document in documents for text in document["text"].split("\n\n")]
    assert not any(held_out.shares(Document([document["text"]])) for document in documents)
    assert not any(held_out.resembles(paragraph) for paragraph in paragraphs)
    assert len([document for document in documents if document["source"] == "guide"]) == 1


def test_the_same_clones_make_the_same_corpus(built: Path) -> None:
    files = [built / "out" / name for name in ("train.jsonl", "val.jsonl")]
    before = [file.read_bytes() for file in files]
    assert build(built).returncode == 0
    assert [file.read_bytes() for file in files] == before


def test_no_document_comes_twice(built: Path) -> None:
    texts = [document["text"] for document in corpus(built)]
    assert len(set(texts)) == len(texts)


def test_both_habits_of_quotation_marks_and_line_ends_occur(built: Path) -> None:
    """Independent of each other; of dialogues, also three ways to name the speakers."""
    books = [document["text"] for document in corpus(built) if document["kind"] == "books"]
    habits = {("“" in text, max(map(len, text.splitlines())) <= WIDTH): text for text in books}
    assert len(habits) == 4
    assert all(("“" in text) != ('"' in text) and "\n\n" in text for text in books)

    talks = [document["text"] for document in corpus(built) if document["kind"] == "dialogue"]
    assert {text.split(" ")[0] for text in talks} == {"Doctor:", "DOCTOR:", "-"}


def test_a_source_is_cut_down_to_its_share(built: Path, tmp_path: Path) -> None:
    cut = (built / "SOURCES.md").read_text().replace(" | 9 | ", " | 0.02 | ")
    (tmp_path / "clones").symlink_to(built / "clones")
    put(tmp_path / "SOURCES.md", cut)
    done = build(tmp_path, "--only", "book")
    assert "more than the source's share" in done.stdout
    assert 0 < sum(len(document["text"].encode()) for document in corpus(tmp_path)) < 21_000


def test_a_missing_clone_is_named_with_the_command_that_fetches_it(
    built: Path, tmp_path: Path
) -> None:
    put(tmp_path / "SOURCES.md", (built / "SOURCES.md").read_text())
    done = build(tmp_path)
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and len(lines) == 3
    assert all("git clone https://github.com/o/" in line and "checkout" in line for line in lines)
    assert not (tmp_path / "out").exists()


def test_a_clone_at_another_commit_is_refused(built: Path, tmp_path: Path) -> None:
    (tmp_path / "clones").symlink_to(built / "clones")
    put(tmp_path / "SOURCES.md", table(row("books", "book", "src/*.xhtml", "0123456789")))
    done = build(tmp_path)
    assert done.returncode == 1 and "checkout 0123456789" in done.stderr


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    commit = clone(tmp_path / "clones/o/book", {"src/chapter-1.xhtml": "<html><body>"})
    put(tmp_path / "SOURCES.md", table(row("books", "book", "src/*.xhtml", commit)))
    done = build(tmp_path)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "chapter-1.xhtml cannot be read" in done.stderr


def test_twelve_words_of_a_held_out_text_condemn_a_document_and_nine_a_paragraph(
    tmp_path: Path,
) -> None:
    held_out = HeldOut([put(tmp_path / "judge.txt", STORY)])
    corpus = Corpus(held_out)
    words = STORY.split()
    chance = f"He said: {' '.join(words[4:13])}! " + sentences(1, 2)
    copied = f"He said: {' '.join(words[4:16])}! " + sentences(2, 2)

    dropped: Counter[str] = Counter()
    by_chance = Document([chance, REPLY, END])
    assert corpus.accepted(by_chance, "books", dropped) == Document([REPLY, END])
    assert corpus.accepted(Document([copied, REPLY, END]), "books", dropped) is None
    assert dropped["like a held-out text"] == 1
    assert dropped["document: sentences of a held-out text"] == 1


def test_a_long_document_is_cut_between_paragraphs() -> None:
    paragraphs = [sentences(i) for i in range(100)]
    parts = list(Document(paragraphs).parts())
    assert len(parts) > 1
    assert [text for part in parts for text in part.paragraphs] == paragraphs
    assert all(sum(map(len, part.paragraphs)) <= LONGEST for part in parts)


def test_more_texts_can_be_held_out(built: Path, tmp_path: Path) -> None:
    (tmp_path / "clones").symlink_to(built / "clones")
    put(tmp_path / "SOURCES.md", (built / "SOURCES.md").read_text())
    held_out = put(tmp_path / "judge.txt", sentences(3).upper().replace(" ", "\n"))
    done = build(tmp_path, "--only", "book", "--held-out", str(held_out))
    assert done.returncode == 0

    def holds_it(folder: Path) -> bool:
        texts = [" ".join(document["text"].split()) for document in corpus(folder)]
        return any(sentences(3)[:60] in text for text in texts)

    assert holds_it(built) and not holds_it(tmp_path)
    assert len(corpus(tmp_path)) > CHAPTERS / 2


def test_a_source_by_a_held_out_author_is_refused(tmp_path: Path) -> None:
    commit = "0123456789"
    rows = table(row("books", "moon", "*.xhtml", commit).replace("A. Ferryman", "H. G. Wells"))
    with pytest.raises(UserError, match=r"moon is by H\. G\. Wells"):
        refuse_authors(read_sources(put(tmp_path / "SOURCES.md", rows)))

    hidden = table(
        row("books", "moon", "*.xhtml", commit).replace("o/moon", "o/h-g-wells_the-moon")
    )
    with pytest.raises(UserError, match="held out"):
        refuse_authors(read_sources(put(tmp_path / "SOURCES.md", hidden)))


def test_the_table_of_the_base_can_be_read_and_names_no_held_out_author() -> None:
    sources = read_sources(ROOT / "data/base/SOURCES.md")
    refuse_authors(sources)
    assert {source.format for source in sources} == set(READERS)
    assert all(getattr(source, column) != "" for source in sources for column in COLUMNS)
    repositories = {source.repository: source.commit for source in sources}
    assert all(repositories[source.repository] == source.commit for source in sources)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (" | CC0", "", "10 columns, not 11"),
        ("0123456789", "main", "'main' is not a commit"),
        (" | 9 | ", " | much | ", "'much' is not a number"),
        (" | yes", " | good", "the last column is yes or no"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, old: str, new: str, problem: str) -> None:
    rows = table(row("books", "book", "*.xhtml", "0123456789").replace(old, new))
    with pytest.raises(UserError, match=f"line 3: {problem}"):
        read_sources(put(tmp_path / "SOURCES.md", rows))


def test_paragraphs_are_separated_by_an_empty_line_and_nothing_of_them_is_lost() -> None:
    paragraphs = [STORY, "The river is wide,\nthe river is deep,", "- " + END, REPLY]
    for i in range(8):
        document = Document([f"Chapter {i}", *paragraphs])
        text = written(document)
        assert len(text.split("\n\n")) == 5
        straight = str.maketrans({"“": '"', "”": '"', "—": "--"})
        same = " ".join(document.paragraphs).translate(straight).split()
        assert text.translate(straight).split() == same


def test_a_paragraph_comes_once_and_a_short_one_as_often_as_it_likes() -> None:
    repeats = Repeats()
    assert repeats.fresh(Document([STORY, "Yes."])) == [STORY, "Yes."]
    assert repeats.fresh(Document([STORY.upper(), "Yes.", END])) == ["Yes.", END]
