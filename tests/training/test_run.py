"""Training through the public function: on documents from Python, on several texts by weight, and
going on with runs of earlier versions.
"""

import json
import signal
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import minigpt
from minigpt import UserError
from minigpt.data.batches import Dataset
from minigpt.training import resume as resume_command
from minigpt.training import run as train_command
from minigpt.training.checkpoint import LAST, TrainingState
from minigpt.training.interruption import Interrupted
from minigpt.training.report import Report
from minigpt.training.resume import resume_run

from ..conftest import TINY, some_text

TEXTS = [some_text(40, seed) for seed in range(30)]


@pytest.fixture(autouse=True)
def here(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder but for my.txt; temporary files go there too."""
    monkeypatch.setattr("minigpt.training.report.draw", lambda *_: None)
    monkeypatch.setattr(tempfile, "tempdir", str(workplace))
    return workplace


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[Dataset]:
    """The datasets that were trained on."""
    seen: list[Dataset] = []
    prepare = train_command.prepare

    def noted(*arguments: Any, **keywords: Any) -> Dataset:
        seen.append(prepare(*arguments, **keywords))
        return seen[-1]

    for module in (train_command, resume_command):
        monkeypatch.setattr(module, "prepare", noted)
    return seen


def train(*texts: Any, **settings: Any) -> Path:
    return minigpt.train(*texts, **(TINY | settings))


class Rows:
    """What can be read again, as a dataset of Hugging Face's."""

    def __init__(self, name: str, texts: Iterable[str]):
        self.rows = [{"id": i, name: text} for i, text in enumerate(texts)]

    def __iter__(self) -> Any:
        return iter(self.rows)


# Documents from Python


@pytest.mark.parametrize(
    "given",
    [lambda: TEXTS, lambda: iter(TEXTS), lambda: Rows("text", TEXTS)],
    ids=["a list", "an iterator", "rows"],
)
def test_documents_are_trained_on_like_a_file_of_them(
    given: Any, prepared: list[Dataset], here: Path
) -> None:
    lines = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in TEXTS)
    Path("same.jsonl").write_text(lines)
    run = train(given())
    assert run == Path("runs/documents")
    train("same.jsonl")
    for name in ("train", "validation"):
        one, other = (getattr(dataset, name)[:].tolist() for dataset in prepared)
        assert one == other
    assert not list(here.glob("minigpt-documents-*"))
    assert minigpt.load(run).generate("the", max_new_tokens=2, seed=0).startswith("the")


def test_validation_can_be_documents_too(prepared: list[Dataset]) -> None:
    train(Rows("body", TEXTS), validation=Rows("body", ["the fox flew\n"]), text_field="body")
    (dataset,) = prepared
    assert dataset.tokenizer.decode(dataset.validation[:].tolist()) == "the fox flew\n"


def test_of_the_splits_of_a_dataset_train_and_validation_are_taken(
    prepared: list[Dataset],
) -> None:
    splits = {"test": 5, "train": Rows("text", TEXTS), "validation": Rows("text", ["the crow\n"])}
    train(splits)
    (dataset,) = prepared
    assert dataset.tokenizer.decode(dataset.validation[:].tolist()) == "the crow\n"
    with pytest.raises(UserError, match="no split 'train' but test, other"):
        train({"test": TEXTS, "other": TEXTS})


def test_splits_of_hugging_face_are_taken_too(prepared: list[Dataset]) -> None:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"text": TEXTS})
    train(datasets.DatasetDict(train=rows))
    train(rows)
    assert prepared[0].train[:].tolist() == prepared[1].train[:].tolist()


@pytest.mark.parametrize("text", [5, None, 1.5])
def test_what_is_no_text_is_refused(text: Any) -> None:
    with pytest.raises(UserError, match="neither the name of a text nor documents"):
        train(text)


def test_a_run_on_documents_is_not_resumed_without_them() -> None:
    run = train(TEXTS)
    with pytest.raises(UserError, match="documents given in Python, which cannot be read again"):
        resume_run(run, {"steps": 20}, time.monotonic())


# Weights


def test_texts_with_weights_are_drawn_by_them_and_a_resumed_run_ends_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("other.txt").write_text("a b c d e f g\n" * 300)
    whole = train("my.txt", "other.txt", weights=(1, 3))
    assert "drawn      25% my.txt, 75% other.txt" in capsys.readouterr().err
    plain = Report.step

    def stopping(self: Report, state: TrainingState, *rest: float) -> None:
        plain(self, state, *rest)
        if state.step == 3:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(Report, "step", stopping)
        train("my.txt", "other.txt", weights=(1, 3), out="cut")
    resume_run("cut", {}, time.monotonic())
    by_size = train("my.txt", "other.txt")
    ends = [load_file(Path(run, "checkpoint", LAST)) for run in (whole, "cut", by_size)]
    assert all(torch.equal(tensor, ends[1][name]) for name, tensor in ends[0].items())
    assert not all(torch.equal(tensor, ends[2][name]) for name, tensor in ends[0].items())


def test_a_source_shorter_than_the_context_is_named() -> None:
    Path("short.txt").write_text("the fox asked a crow\n")
    with pytest.raises(UserError, match=r"^short.txt has \d+ tokens, too few .*16"):
        train("my.txt", "short.txt", weights=(1, 3), tokenizer="bpe", vocab_size=300)


# What is set aside


def test_few_documents_are_said_to_be_set_aside_whole(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.txt").write_text(some_text(seed=1))
    train("my.txt", "other.txt")
    err = capsys.readouterr().err
    assert "no document is split: 50% of the text is set aside" in err and "--split end" in err
    train("my.txt", "other.txt", split="end")
    train("my.txt")
    assert "no document is split" not in capsys.readouterr().err
