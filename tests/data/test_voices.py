"""Voices: which file has which, and the windows of tokens that a model reads in one."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from minigpt import GPT, GPTConfig, TrainConfig, UserError
from minigpt.config import ReadingConfig, TextConfig
from minigpt.data.batches import Dataset, marks_of_batch, sample_batch, with_marks
from minigpt.data.dialogue.counted import IGNORED
from minigpt.data.source import find_source
from minigpt.data.token_cache import prepare_tokens
from minigpt.data.voices import Voices, find_voice, find_voiced_files, mark_of, voice_names, voiced
from minigpt.training.evaluation import evaluate_voices, evaluate_windows, windows_of
from minigpt.training.gradients import training_batch

from ..conftest import some_text

VOICES = Voices(names=("a", "b", "c"), marks=((7,), (7, 8), (9,)), train=(90, 5, 60), validation=())
TOKENS = np.repeat(np.array([1, 2, 3], np.uint16), [90, 5, 60])  # each token tells its voice


@pytest.fixture
def texts(workplace: Path) -> Path:
    (workplace / "poems").mkdir()
    for i in range(4):
        (workplace / "poems" / f"{i}.txt").write_text(some_text(200, seed=i).upper())
    (workplace / "my letters.txt").write_text(some_text(500, seed=9))
    return workplace


@pytest.fixture
def dataset(texts: Path) -> Dataset:
    config = TextConfig(files=("poems", "my letters.txt"), voices=True, vocab_size=300)
    return prepare_tokens(find_source(config), config)


# Names


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["poems.txt", "b/Mr. Smith.txt.gz"], ["poems", "Mr. Smith"]),
        (["a/letters.txt", "b/letters.md", "diary"], ["a/letters", "b/letters", "diary"]),
        (["x/a/l.txt", "y/a/l.txt"], ["x/a/l", "y/a/l"]),
        (["l.txt", "l.md"], ["l.txt", "l.md"]),
        (["Ένα βιβλίο.txt", "本.txt"], ["Ένα βιβλίο", "本"]),
        (["a: b\n.txt", "x.txt"], ["a b", "x"]),
    ],
)
def test_a_voice_is_called_as_its_file_and_its_folders_tell_two_apart(
    paths: list[str], names: list[str]
) -> None:
    assert list(voice_names(paths).values()) == names


def test_two_voices_with_one_name_are_refused() -> None:
    with pytest.raises(UserError, match=r"a:b\.txt and a b\.txt would both be called 'a b'"):
        voice_names(["a:b.txt", "a b.txt"])


def test_a_folder_that_is_named_is_one_voice_and_each_file_is_read_once(texts: Path) -> None:
    (texts / "poems" / "deep").mkdir()
    (texts / "poems" / "deep" / "9.txt").write_text("a poem\n")
    named = ("poems/", "my letters.txt", "poems/0.txt", "*.txt")
    files, voices = find_voiced_files(named, print, ReadingConfig())
    assert [file.name for file in files] == [
        "0.txt", "1.txt", "2.txt", "3.txt", "9.txt", "my letters.txt", "my.txt",
    ]  # fmt: skip
    assert voices == ("poems",) * 5 + ("my letters", "my")


def test_a_voice_is_found_by_the_beginning_of_its_name() -> None:
    names = ("poems", "Letters", "letters to Otto")
    assert find_voice(names, "po") == "poems"
    assert find_voice(names, "LETTERS") == "Letters"
    with pytest.raises(UserError, match="no voice 'l'; there are poems, Letters and letters to"):
        find_voice(names, "l")
    with pytest.raises(UserError, match="trained without --voices"):
        find_voice((), "poems")


# What is trained and validated on


def test_of_each_voice_something_is_set_aside(texts: Path) -> None:
    config = TextConfig(files=("poems", "my letters.txt"), voices=True, vocab_size=300)
    source = find_source(config)
    assert source.voices == ("poems", "my letters")
    voices = prepare_tokens(source, config).voices
    assert voices is not None and voices.names == source.voices
    for train, validation in zip(voices.train, voices.validation, strict=True):
        assert 0.05 < validation / (train + validation) < 0.3


def test_the_tokens_are_found_again_with_their_voices_and_not_under_others(texts: Path) -> None:
    config = TextConfig(files=("poems", "my letters.txt"), voices=True, vocab_size=300)
    first = find_source(config)
    made = prepare_tokens(first, config)
    again = prepare_tokens(find_source(config), config)
    assert again.voices == made.voices

    (texts / "poems").rename(texts / "verses")
    renamed = find_source(TextConfig(files=("verses", "my letters.txt"), voices=True))
    assert renamed.fingerprint != first.fingerprint
    assert renamed.training.scan.fingerprint == first.training.scan.fingerprint


def test_each_voice_may_have_a_validation_text_of_its_name(texts: Path) -> None:
    (texts / "held").mkdir()
    (texts / "held" / "my letters.txt").write_text("a letter\n" * 9)
    (texts / "held" / "poems.txt").write_text("A POEM\n" * 9)
    held = ("held/my letters.txt", "held/poems.txt")
    config = TextConfig(
        files=("poems", "my letters.txt"), validation=held, voices=True, vocab_size=300
    )
    dataset = prepare_tokens(find_source(config), config)
    assert dataset.voices is not None
    found = {
        name: dataset.tokenizer.decode(own[:].tolist())
        for name, _, own in dataset.voices.validation_texts(dataset.validation)
    }
    assert found == {"poems": "A POEM\n" * 9, "my letters": "a letter\n" * 9}


def test_a_tokenizer_of_characters_can_write_every_mark(texts: Path) -> None:
    (texts / "本.txt").write_text(some_text(100))
    config = TextConfig(files=("本.txt", "my letters.txt"), voices=True, tokenizer="char")
    dataset = prepare_tokens(find_source(config), config)
    assert dataset.voices is not None
    marks = [dataset.tokenizer.decode(mark) for mark in dataset.voices.marks]
    assert marks == [mark_of("本"), mark_of("my letters")]


def test_a_chat_with_a_voice_is_text_in_which_nobody_is_talked_with(texts: Path) -> None:
    (texts / "interview.txt").write_text("Anna: Who?\n\nOtto: I.\n\n" * 60)
    source = find_source(TextConfig(files=("interview.txt", "poems"), voices=True))
    assert source.training.scan.talk is not None
    assert source.dialogue is None and not source.has_turns


# Windows


def test_every_window_lies_in_one_voice_and_all_of_each_voice_is_read() -> None:
    read = np.zeros(len(TOKENS), int)
    for step in range(40):
        inputs, targets = sample_batch(TOKENS, 4, 16, seed=1, step=step, voices=VOICES)
        windows = torch.cat([inputs, targets[:, -1:]], dim=1)
        assert (windows == windows[:, :1]).all()

    starts = np.arange(len(TOKENS) - 16)
    for start in VOICES.within(starts, 17).tolist():
        text = VOICES.window(TOKENS, start, 17)
        assert len(text) == 17 and len(set(text.tolist())) == 1
        read[start : start + 17] += 1
    assert read.min() > 0


def test_a_mark_stands_before_a_window_and_is_not_counted() -> None:
    inputs = torch.arange(10, 16).repeat(2, 1)  # (2, 6)
    x, y = with_marks(inputs, inputs + 1, [(7, 8), ()])
    assert x.tolist() == [[7, 8, 10, 11, 12, 13], [10, 11, 12, 13, 14, 15]]
    assert y.tolist() == [[IGNORED, IGNORED, 11, 12, 13, 14], [11, 12, 13, 14, 15, 16]]


@pytest.mark.parametrize("micro_batch", [None, 4])
def test_every_piece_of_a_batch_begins_with_the_mark_of_its_voice(
    dataset: Dataset, micro_batch: int | None
) -> None:
    assert dataset.voices is not None
    config = TrainConfig(
        batch_size=12, warmup_context=16, token_split_prob=0.3, micro_batch_size=micro_batch
    )
    seen = set()
    for done, pieces in ((0.0, 2), (1.0, 1)):
        parts = training_batch(dataset, config, 32, step=3, done=done)
        marks = marks_of_batch(dataset, 12, 32, seed=config.seed, step=3)
        inputs = torch.cat([x for x, _ in parts])
        targets = torch.cat([y for _, y in parts])
        assert inputs.shape == (12 * pieces, 32 // pieces)
        for i, mark in enumerate(m for m in marks for _ in range(pieces)):
            seen.add(mark)
            assert tuple(inputs[i, : len(mark)].tolist()) == mark
            assert (targets[i, : len(mark)] == IGNORED).all() and (
                targets[i, len(mark) :] >= 0
            ).all()
            text = dataset.tokenizer.decode(inputs[i, len(mark) :].tolist())
            if mark:
                assert text.isupper() == (mark == dataset.voices.marks[0])
    assert seen >= set(dataset.voices.marks)


def test_a_tenth_of_the_windows_has_no_mark_and_a_rank_has_its_own_rows(dataset: Dataset) -> None:
    marks = [m for step in range(40) for m in marks_of_batch(dataset, 20, 32, seed=5, step=step)]
    assert 0.07 < marks.count(()) / len(marks) < 0.13
    assert marks[:20] != marks[20:40]
    rows = marks_of_batch(dataset, 20, 32, seed=5, step=0, rows=slice(10, 20))
    assert rows == marks[10:20]


# Evaluation


def test_the_loss_of_a_voice_counts_its_text_once_and_no_mark(dataset: Dataset) -> None:
    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=300, context_length=16, emb_dim=16, num_layers=1, num_heads=2))
    lengths = torch.tensor(dataset.tokenizer.byte_lengths())
    voices = dataset.voices
    assert voices is not None
    result = evaluate_voices(
        model, dataset.validation, voices, lengths, context_length=16, max_tokens=1 << 20
    )
    assert set(result.voices) == set(voices.names)
    assert result.tokens == len(dataset.validation) - 2  # all but the first of each voice

    _, mark, own = next(iter(voices.validation_texts(dataset.validation)))

    def windows() -> Iterator[np.ndarray]:
        yield from voiced(windows_of([own[:]], 16 - len(mark)), mark)

    alone = evaluate_windows(model, windows(), lengths, context_length=16)
    assert alone.bits_per_byte == pytest.approx(result.voices[voices.names[0]])
    assert alone.bytes == int(lengths[own[1:].astype(np.int64)].sum())
