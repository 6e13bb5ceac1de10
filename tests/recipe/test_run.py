"""Training from a text to its end: on documents from Python; a start
that fails leaves nothing, a resume that is refused changes nothing.
"""

import errno
import itertools
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import minigpt
from minigpt import UserError
from minigpt.cli import main
from minigpt.config import TextConfig
from minigpt.data.batches import Dataset
from minigpt.data.origin import Origin
from minigpt.data.source import find_source
from minigpt.data.token_cache import prepare_tokens
from minigpt.measure.copied import reserved_seconds
from minigpt.recipe.run import resume_run
from minigpt.runs import weights
from minigpt.runs.folder import (
    BEST,
    CHECKPOINT,
    JOURNAL,
    METRICS,
    PLAN,
    STATE,
    WEIGHTS,
    read_config,
    read_metrics,
)
from minigpt.runs.listing import newest_run, why_not_continued
from minigpt.system.atomic import unfinished_name
from minigpt.tokenizer.tokenizer_json import FOREIGN
from minigpt.training import folder as training_folder
from minigpt.training.checkpoint import read_state
from minigpt.training.folder import RunFolder
from minigpt.training.interruption import Interrupted
from tests.conftest import TINY, some_text, train_tiny
from tests.hostile import NO_ROOM
from tests.training.runs import after_step, contents, interrupted, resume

TINY_OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
TEXTS = [some_text(40, seed) for seed in range(30)]


@pytest.fixture(autouse=True)
def here(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder but for my.txt; temporary files go there too."""
    monkeypatch.setattr(tempfile, "tempdir", str(workplace))
    return workplace


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[Dataset]:
    """The datasets that were trained on."""
    seen: list[Dataset] = []

    def noted(*arguments: Any, **keywords: Any) -> Dataset:
        seen.append(prepare_tokens(*arguments, **keywords))
        return seen[-1]

    monkeypatch.setattr("minigpt.data.token_cache.prepare_tokens", noted)
    return seen


# Documents from Python


class Rows:
    """What can be read again, as a dataset of Hugging Face's."""

    def __init__(self, name: str, texts: Iterable[str]):
        self.rows = [{"id": i, name: text} for i, text in enumerate(texts)]

    def __iter__(self) -> Any:
        return iter(self.rows)


def stops_when_it_is_asked_to(run: str) -> bool:
    """Whether a text ends where nothing is likelier than its end."""
    writer = minigpt.load(run)

    def at_once(ids: np.ndarray, logits: np.ndarray) -> np.ndarray:
        logits[:, writer.tokenizer.end_of_text] = 1e6
        return logits

    (sample,) = writer.samples("The", processors=[at_once], max_new_tokens=3, seed=0)
    return sample.stop_reason == "end_of_text"


def test_a_text_of_one_document_has_no_end(here: Path) -> None:
    train_tiny("my.txt", out="runs/one")
    assert not stops_when_it_is_asked_to("runs/one")


@pytest.mark.parametrize(
    "given", [lambda: iter(TEXTS), lambda: Rows("text", TEXTS)], ids=["an iterator", "rows"]
)
def test_documents_are_trained_on_like_a_file_of_them(
    given: Any, prepared: list[Dataset], here: Path
) -> None:
    lines = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in TEXTS)
    Path("same.jsonl").write_text(lines)
    assert train_tiny(given()) == Path("runs/documents")
    assert stops_when_it_is_asked_to("runs/documents")
    config = TextConfig(files=("same.jsonl",), vocab_size=300)
    same = prepare_tokens(find_source(config), config)
    for name in ("train", "validation"):
        one, other = (getattr(dataset, name)[:].tolist() for dataset in (prepared[0], same))
        assert one == other
    assert not list(here.glob("minigpt-documents-*"))
    with pytest.raises(UserError, match=r"documents given in Python.* cannot be read again"):
        resume(Path("runs/documents"), steps=20)


@pytest.mark.parametrize("limit", [{"steps": 4}, {"steps": 4, "max_characters": 5000}])
def test_of_a_stream_without_an_end_no_more_is_read_than_the_training_can_use(
    limit: dict[str, int],
    prepared: list[Dataset],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing of it stays in memory either: a text is gone when the next one is asked for."""
    monkeypatch.setattr("minigpt.recipe.texts._FEWEST_CHARACTERS", 0)
    read = 0

    def rows() -> Iterator[dict[str, str]]:
        nonlocal read
        for number in itertools.count():
            text = some_text(seed=number)
            read += len(text)
            yield {"text": text}

    assert train_tiny(rows(), **limit)
    most = 2 * limit.get("max_characters", 5 * 4 * TINY["batch_size"] * TINY["context_length"])
    assert most <= read <= most + len(some_text())
    assert f"of these documents the first {read:,} characters are read" in capsys.readouterr().err


@pytest.mark.long  # imports a large package
def test_a_streaming_dataset_is_read_as_far_as_it_is_needed(prepared: list[Dataset]) -> None:
    import datasets

    def rows() -> Iterator[dict[str, str]]:
        for number in itertools.count():
            yield {"text": some_text(seed=number)}

    stream = datasets.IterableDataset.from_generator(rows)
    train_tiny(stream, max_characters=5000)
    assert 1000 < len(prepared[0].train) < 5000


def test_documents_to_validate_on_can_come_from_python_too(prepared: list[Dataset]) -> None:
    rows, other = Rows("body", TEXTS), Rows("body", ["the crow\n"])
    train_tiny(rows, validation=other, text_field="body", steps=1)
    assert prepared[0].tokenizer.decode(prepared[0].validation[:].tolist()) == "the crow\n"


@pytest.mark.parametrize("kind", [list, tuple, iter, lambda texts: (text for text in texts)])
def test_texts_to_validate_on_are_documents_however_they_come(
    kind: Any, prepared: list[Dataset]
) -> None:
    """`validation=docs[:20]` is no list of names."""
    train_tiny(kind(TEXTS), validation=kind(["a crow\n", "one fox\n"]), steps=1)
    dataset = prepared[0]
    end = dataset.tokenizer.end_of_text
    documents = dataset.tokenizer.decode(dataset.validation[:].tolist())
    assert documents == "a crow\none fox\n" and end in dataset.validation[:]


@pytest.mark.parametrize(
    "kind", [str, Path, lambda name: [Path(name)], lambda name: Path().glob(name)]
)
def test_a_file_is_named_by_a_text_a_path_or_paths(kind: Any, prepared: list[Dataset]) -> None:
    for name in ("train.md", "held.md"):
        Path(name).write_text(f"{some_text()}{name}\n")
    run = train_tiny(kind("train.md"), validation=kind("held.md"), steps=1)
    config = read_config(run).text
    assert (config.files, config.validation) == (("train.md",), ("held.md",))


def test_a_name_among_documents_is_not_taken_for_a_text() -> None:
    """Nor a text for a name."""
    match = r"document 2 is 'my.txt', the name of a file; give its name itself, or several as Paths"
    for texts, changes in ((["a", "my.txt"], {}), ("my.txt", {"validation": ("a", "my.txt")})):
        with pytest.raises(UserError, match=match):
            train_tiny(texts, **changes)
    with pytest.raises(
        UserError, match=r"^'the fox\\n.*is not the name of a file; put the text itself into a"
    ):
        train_tiny("the fox\n" * 1000)
    with pytest.raises(UserError, match="is not the name of a file; put the text itself into a"):
        train_tiny("the fox in one long line " * 20)
    with pytest.raises(UserError, match="there is no text in documents"):
        train_tiny("my.txt", validation=[])
    with pytest.raises(UserError, match="texts come first"):
        train_tiny("my.txt", files=("my.txt",))


class Table(Rows):
    """What iterates over the names of its columns, as a DataFrame of pandas does."""

    def iterrows(self) -> Any:
        raise NotImplementedError


def test_a_column_of_a_table_can_be_validated_on(prepared: list[Dataset]) -> None:
    """Compared with anything, an array gives an array."""
    column = np.array(TEXTS[:9])
    run = train_tiny(TEXTS[9:], validation=column, steps=1)
    assert len(read_config(run).text.validation) == 1
    assert train_tiny(TEXTS, validation=None, out="none", steps=1) == Path("none")
    assert read_config(Path("none")).text.validation == ()
    given, none = (dataset.validation[:].tolist() for dataset in prepared)
    assert given != none


@pytest.mark.parametrize("text", [5, None, 1.5, b"text", {"train": TEXTS}, Table("text", TEXTS)])
def test_what_is_no_text_is_refused(text: Any) -> None:
    places: list[tuple[Any, dict[str, Any]]] = [(text, {})]
    if text is not None:  # which means that there is no text to validate on
        places.append(("my.txt", {"validation": text}))
    for texts, changes in places:
        with pytest.raises(
            UserError, match="this is neither the name of a text nor documents"
        ) as refused:
            train_tiny(texts, **changes)
        is_table = isinstance(text, dict | Table)
        assert str(refused.value).endswith("give one of its columns or parts") == is_table


def test_training_leaves_the_random_numbers_of_its_caller_as_they_were() -> None:
    def draw() -> list[float]:
        return [random.random(), np.random.random(), torch.rand(()).item()]

    def seeded(action: Callable[[], Any]) -> list[float]:
        random.seed(5), np.random.seed(5), torch.manual_seed(5)
        action()
        return draw()

    before = seeded(lambda: None)
    assert seeded(lambda: train_tiny(steps=2)) == before
    with pytest.raises(UserError):
        seeded(lambda: train_tiny("nowhere.txt"))
    assert draw() == before


# A start that fails


def fail() -> None:
    raise torch.OutOfMemoryError


class Terminated(BaseException):
    """What nothing in the package knows."""


FAILURES = [
    torch.OutOfMemoryError(), RuntimeError("DefaultCPUAllocator: not enough memory"), OSError("io"),
    BrokenPipeError(), MemoryError(), UserError("diverged"), KeyboardInterrupt(), Terminated(),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("failure", FAILURES, ids=repr)
def test_a_run_with_a_checkpoint_is_kept_whatever_ends_it(
    failure: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its first evaluation, too; continued, it ends as if nothing had happened."""

    def end() -> None:
        raise failure

    whole = train_tiny(out="whole", num_evals=1)
    with monkeypatch.context() as patch, pytest.raises((type(failure), UserError)):
        after_step(patch, lambda step: step == 5, end)
        train_tiny(num_evals=1)
    assert not Path("runs/my", METRICS).exists() and read_state(Path("runs/my")).step >= 1
    resume(Path("runs/my"))
    assert Path("runs/my", WEIGHTS).read_bytes() == (whole / WEIGHTS).read_bytes()


@pytest.mark.long
def test_of_two_that_start_in_a_folder_the_second_leaves_the_first_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also while that has no checkpoint yet."""
    monkeypatch.setattr("minigpt.runs.journal.SECONDS", 3600.0)  # the first says nothing meanwhile

    def start_again() -> None:
        before = contents(Path("runs/my"))
        with (
            pytest.raises(UserError, match="another process is training"),
            RunFolder("runs/my").held(),
        ):
            pass
        assert contents(Path("runs/my")) == before

    after_step(monkeypatch, lambda step: step == 1, start_again)
    assert read_state(train_tiny()).finished


@pytest.mark.parametrize("out", [None, "empty"])
def test_a_training_that_fails_before_its_first_checkpoint_can_be_tried_again(
    out: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("empty").mkdir()
    with monkeypatch.context() as patch, pytest.raises(UserError, match="out of memory"):
        after_step(patch, lambda step: step == 1, fail)
        train_tiny(out=out)
    assert not list(Path().rglob(WEIGHTS))
    assert train_tiny(out=out, steps=1) == Path(out or "runs/my")


@pytest.mark.parametrize("out", ["runs/my", None])
def test_what_was_killed_before_its_first_checkpoint_is_in_nobody_s_way(
    monkeypatch: pytest.MonkeyPatch, out: str | None
) -> None:
    """Half a checkpoint may be there."""
    after_step(monkeypatch, lambda step: step == 1, lambda: shutil.copytree("runs/my", "killed"))
    shutil.rmtree(train_tiny())
    shutil.move("killed", "runs/my")
    Path("runs/my/checkpoint").mkdir()
    Path("runs/my/checkpoint", unfinished_name("last.safetensors")).write_bytes(b"half")
    assert train_tiny(out=out, steps=1) == Path(out or "runs/my-2")


def test_a_run_says_what_it_is_where_it_is_printed() -> None:
    run = train_tiny(steps=4)
    assert isinstance(run, minigpt.Run) and minigpt.load(run).generate(max_new_tokens=1)
    about = run.about()
    assert about["text"] == "my.txt" and about["finished"] and 1 < about["bits_per_byte"] < 9
    bits, counting = about["bits_per_byte"], about["counting_bits_per_byte"]
    assert 0 < counting < 9
    assert repr(run).startswith(f"runs/my: {bits:.3f} bits/byte (counting {counting:.3f}), 0.0")
    interrupted(Path("cut"), step=6)  # evaluated after 4 of 8
    assert repr(minigpt.Run("cut")).endswith("not finished")
    assert repr(minigpt.Run("nowhere")) == repr(Path("nowhere"))


def test_a_training_that_fails_later_keeps_what_it_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    after_step(monkeypatch, lambda step: step == 6, fail)  # evaluated after 4 and 8
    advice = "out of memory; try --micro-batch-size 2, .*; the last checkpoint is kept"
    with pytest.raises(UserError, match=advice):
        train_tiny()
    assert newest_run() == Path("runs/my") and read_state(newest_run()).step == 4


def test_only_of_a_run_that_can_be_continued_it_is_said_how(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupted("runs/my")
    said = capsys.readouterr().err
    assert "to continue it:\n  minigpt train --resume --out runs/my\n" in said
    assert "cannot continue it" not in said

    interrupted("runs/documents", texts=(TEXTS,))
    said = capsys.readouterr().err
    assert (
        "--resume cannot continue it: the run learned from standard input or from documents" in said
    )
    assert said.endswith("; a new run can begin with its model: --init runs/documents\n")
    assert "train --resume" not in said

    after_step(monkeypatch, lambda step: step == 6, fail)
    with pytest.raises(UserError, match=r"^out of memory; try (?!.*--resume)"):
        train_tiny(TEXTS)


def test_a_run_is_continued_only_if_all_that_it_needs_is_in_its_folder(
    tiny_run: Path, here: Path
) -> None:
    assert why_not_continued(tiny_run) is None

    def without(name: str, put: Callable[[Path], Any]) -> str:
        copy = shutil.copytree(tiny_run, here / name.replace("/", "-"))
        put(copy / name)
        why_not = why_not_continued(copy)
        assert why_not is not None
        return why_not

    assert without("checkpoint", shutil.rmtree) == "it has no checkpoint"
    foreign = json.dumps({FOREIGN: {"name": "Words", "fingerprint": ""}})
    of_its_own = without("tokenizer.json", lambda file: file.write_text(foreign))
    assert "a tokenizer of your own, Words" in of_its_own
    network = without(WEIGHTS, lambda file: weights.save_weights(torch.nn.Linear(1, 1), file))
    assert "holds a network that is not minigpt's GPT" in network
    assert why_not_continued(here / "nowhere") == "it has no checkpoint"


def test_a_run_that_has_learned_nothing_yet_is_not_the_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when it is killed before its first evaluation."""
    trained, seen = train_tiny(out="runs/trained", steps=1), []
    after_step(monkeypatch, lambda step: step == 3, lambda: seen.append(newest_run()))
    assert train_tiny() == newest_run() and seen == [trained]


def test_a_run_interrupted_before_its_first_evaluation_has_learned_something() -> None:
    train_tiny(out="runs/untrained", steps=1, learning_rate=1e-9)
    interrupted(Path("runs/my"), learning_rate=1e-2)
    assert newest_run() == Path("runs/my") and not Path("runs/my", METRICS).exists()
    one, other = (load_file(Path("runs", name, WEIGHTS)) for name in ("my", "untrained"))
    assert not any(torch.equal(one[name], other[name]) for name in one)


def test_a_run_interrupted_twice_before_its_first_evaluation_keeps_what_it_learned_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Path("runs/my")
    interrupted(run, step=1, steps=80, learning_rate=1e-2)
    first = load_file(run / WEIGHTS)
    after_step(monkeypatch, lambda step: step == 5, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(Interrupted):
        resume(run)
    assert read_state(run).step == 5 and not (run / METRICS).exists()
    second = load_file(run / WEIGHTS)
    assert not any(torch.equal(first[name], second[name]) for name in first)


def test_however_little_time_there_was_a_run_keeps_what_it_learned() -> None:
    run = train_tiny(steps=None, minutes=1e-5)
    assert read_state(run).step >= 1 and newest_run() == run


def test_the_minutes_begin_with_the_command_and_not_with_the_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reading the text and planning are a part of them."""
    reading: list[float] = []
    started: list[float] = []

    def read_and_note(*arguments: Any, **keywords: Any) -> Any:
        reading.append(time.monotonic())
        return find_source(*arguments, **keywords)

    def note_and_end(*_: Any, **keywords: Any) -> Any:
        started.append(keywords["started"])
        raise UserError("enough")

    monkeypatch.setattr("minigpt.recipe.reading.find_source", read_and_note)
    monkeypatch.setattr("minigpt.recipe.run.make_trainer", note_and_end)
    before = time.monotonic()
    with pytest.raises(UserError, match="enough"):
        train_tiny()
    assert main(["train", "my.txt", *TINY_OPTIONS]) == 2
    assert before <= started[0] <= reading[0] <= started[1] <= reading[1]


def test_a_folder_that_holds_files_of_others_is_refused() -> None:
    Path("out").mkdir()
    Path("out", "tokenizer.json").write_text("somebody's")
    with pytest.raises(UserError, match=r"out exists and is not an empty folder; .* --out"):
        train_tiny(out="out")
    assert contents(Path("out")) == {"tokenizer.json": b"somebody's"}


def test_every_file_of_a_run_has_the_permissions_of_any_new_file() -> None:
    previous = os.umask(0o027)
    try:
        run = train_tiny(steps=2, num_evals=2)
    finally:
        os.umask(previous)
    files = [f for f in run.rglob("*") if f.is_file() and f.name != ".lock"]
    modes = {str(f): oct(f.stat().st_mode & 0o777) for f in files}
    assert len(modes) > 7 and set(modes.values()) == {"0o640"}, modes


def refuse(*_: Any, **__: Any) -> None:
    raise NO_ROOM


def refuse_weights(
    monkeypatch: pytest.MonkeyPatch, after: int = 0, error: OSError | None = None
) -> None:
    """No weights can be written but for those that a run begins with and as many more, since the
    disk has no room or for another error."""
    plain, written = weights.save_tensors, list[Path]()

    def save(tensors: Any, path: Path, *metadata: Any, **named: Any) -> None:
        if not path.parent.name.startswith(".new-"):  # in which a run is begun
            written.append(path)
            if len(written) > after:
                raise error or NO_ROOM
        plain(tensors, path, *metadata, **named)

    monkeypatch.setattr(weights, "save_tensors", save)


@pytest.mark.long
@pytest.mark.parametrize("written", [0, 1])
def test_a_run_whose_best_weights_could_not_be_written_says_so_and_writes_them_when_continued(
    written: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From its first evaluation, or from its second and best."""
    whole = train_tiny(out="whole")
    capsys.readouterr()
    with monkeypatch.context() as patch:
        refuse_weights(patch, after=written)
        status = main(["train", "my.txt", *TINY_OPTIONS])
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert "error: the best weights could not be written to runs/my/model.safetensors; " in err
    assert err.endswith("--resume --out runs/my\n")
    assert main(["train", "--resume", "--out", "runs/my"]) == 0
    assert Path("runs/my", WEIGHTS).read_bytes() == (whole / WEIGHTS).read_bytes()
    assert [row["step"] for row in read_metrics(Path("runs/my", METRICS))] == [4, 8]


def test_a_run_of_which_nothing_could_be_written_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_weights(monkeypatch)
    monkeypatch.setattr(training_folder, "save_checkpoint", refuse)
    with pytest.raises(
        UserError, match=r"could not be written to .*, and neither could a checkpoint; make room"
    ):
        train_tiny()


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "make room there"),
        (errno.EDQUOT, "make room there"),
        (errno.EACCES, "allow writing there"),
        (errno.EROFS, "see to it that such a file can be written there"),
        (errno.EFBIG, "see to it that such a file can be written there"),
        (errno.ENOLCK, "see to it that such a file can be written there"),
    ],
)
def test_the_advice_after_weights_that_could_not_be_written_follows_the_reason(
    number: int,
    advice: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    refuse_weights(monkeypatch, error=OSError(number, os.strerror(number)))
    assert main(["train", "my.txt", *TINY_OPTIONS, "--steps=1", "--num-evals=1"]) == 2
    last_line = capsys.readouterr().err.splitlines()[-1]
    assert last_line.endswith(f"; {advice}, then continue with --resume --out runs/my")

    # Those that were put aside have to take their place.
    rename = training_folder.rename

    def refuse_rename(source: Path, target: Path) -> None:
        if target.name == WEIGHTS:
            raise OSError(number, os.strerror(number))
        rename(source, target)

    aside = Path("runs/my", CHECKPOINT, BEST)
    shutil.copyfile(Path("runs/my", WEIGHTS), aside)
    monkeypatch.setattr(training_folder, "rename", refuse_rename)
    assert main(["train", "--resume", "--out", "runs/my"]) == 2
    last_line = capsys.readouterr().err.splitlines()[-1]
    assert f"{os.strerror(number)}; {advice}, then continue with" in last_line


# Resuming


def test_a_resume_that_is_refused_changes_nothing_but_the_journal() -> None:
    whole, cut = train_tiny(out="whole"), Path("cut")
    interrupted(cut)
    state = cut / JOURNAL / STATE
    before = contents(cut)
    with pytest.raises(UserError, match=r"cut.*does not fit this run"):
        resume(cut, steps=16, optimizer="adamw")
    told = {str(state.relative_to(cut)): state.read_bytes()}
    assert contents(cut) == before | told and b"does not fit this run" in state.read_bytes()
    resume(cut)
    assert (cut / WEIGHTS).read_bytes() == (whole / WEIGHTS).read_bytes()


def test_a_run_is_not_resumed_on_another_text_or_with_what_would_do_nothing() -> None:
    run = train_tiny(out="runs/my", optimizer="adamw")
    before = contents(run)
    with pytest.raises(UserError, match=r"runs/my learned from my\.txt"):
        resume_run(run, {"steps": 16}, 0.0, files=("other.txt",))
    for given, refused in (
        ({"max_epochs": 3.0}, "--max-epochs does nothing beside --steps 8; leave it out"),
        ({"steps": 16, "momentum": 0.5}, "--momentum does nothing beside --optimizer adamw"),
    ):
        with pytest.raises(UserError, match=refused):
            resume(run, **given)
    assert contents(run) == before


def test_a_run_that_is_continued_is_drawn_with_what_is_expected_of_all_of_it(
    known_kind: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[float | None] = []
    monkeypatch.setattr(
        "minigpt.training.reports.draw_losses",
        lambda folder, marks: found.append(marks["expected"]),
    )
    run = train_tiny(steps=1)
    expected = json.loads((run / PLAN).read_text())["bits_per_byte"]
    resume(run, steps=2)
    (run / PLAN).write_text("[]")
    resume(run, steps=3)
    first, longer, without_plan = found
    assert first == expected and longer is not None and longer < expected
    assert without_plan is None


def test_time_is_kept_to_look_for_copies_only_if_there_will_be_a_look() -> None:
    def reserved(parameters: int, minutes: float, text: TextConfig | None) -> float:
        network = torch.nn.Embedding(parameters, 1, device="meta")
        dataset: Any = SimpleNamespace(train=range(100), origin=Origin(text=text))
        return round(reserved_seconds(network, dataset, minutes), 2)

    text = TextConfig()
    assert [reserved(3 * 10**6, minutes, text) for minutes in (1.0, 10.0)] == [0.0, 2.0]
    assert reserved(3 * 10**6, 10.0, None) == 0.0
    assert reserved(9 * 10**6, 10.0, text) == 0.0


@pytest.mark.parametrize(
    ("given", "threads"), [({"num_workers": 2}, 2), ({}, 3), ({"num_workers": 1}, 5)]
)
def test_it_is_said_how_many_threads_compute(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: dict[str, int],
    threads: int,
) -> None:
    """Workers, of which a batch has no more than sequences, or else torch's."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 5)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)  # or later tests have 5, too
    train_tiny(steps=1, batch_size=3, **given)
    assert f" on cpu with {threads} threads in float32" in capsys.readouterr().err


@pytest.mark.long
def test_it_is_said_why_workers_are_not_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = "several processes share each batch"
    run = train_tiny(num_workers=2, steps=1)
    monkeypatch.setattr("minigpt.training.workers.why_not_shared", lambda *_: reason)
    monkeypatch.setattr("minigpt.training.workers.why_not_shared", lambda *_: reason)
    assert "not used" not in capsys.readouterr().err
    train_tiny(steps=1)
    resume(run, steps=2)
    assert "not used" not in capsys.readouterr().err
    train_tiny(steps=1, num_workers=2)
    resume(run, steps=3, num_workers=3)
    said = capsys.readouterr().err
    for number in (2, 3):
        assert f"--num-workers {number} is not used: {reason}\n" in said


def test_a_new_training_reads_no_earlier_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of gigabytes would take long."""
    train_tiny(steps=1)
    monkeypatch.setattr("minigpt.training.checkpoint._read", lambda path: 1 // 0)
    train_tiny(steps=1)


def test_a_wrong_setting_is_refused_before_a_document_is_read(workplace: Path) -> None:
    """A stream of documents may have no end."""

    def documents() -> Iterator[str]:
        raise AssertionError("a document was read")
        yield ""

    with pytest.raises(UserError, match="there is no setting minuts"):
        minigpt.train(documents(), minuts=1)


def test_random_weights_are_no_end_of_a_line(workplace: Path) -> None:
    with pytest.raises(UserError, match="--interpolate is for a training that begins with a model"):
        minigpt.train("my.txt", init="none", interpolate=True, steps=2)


@pytest.mark.long
def test_a_lesson_can_begin_with_a_run(tiny_run: Path, workplace: Path) -> None:
    run = minigpt.train("my.txt", lesson=True, init=str(tiny_run), minutes=0.143)
    config = read_config(run)
    assert config.text.init == str(tiny_run) and config.training.lesson
    assert config.training.num_workers == 1


def test_a_tokenizer_of_ones_own_has_the_vocabulary_that_was_given(
    workplace: Path, tiny_run: Path
) -> None:
    tokenizer = minigpt.load(tiny_run).tokenizer
    run = minigpt.train("my.txt", tokenizer=tokenizer, steps=1, num_evals=1)
    plan = json.loads((run / PLAN).read_text())
    assert f"vocabulary: {tokenizer.vocab_size} tokens, as given" in plan["reasons"]
