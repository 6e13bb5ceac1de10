"""The batches drawn from tokens, and the windows of an evaluation. Tokens that count up say where a
window begins.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.config import TextConfig, TrainConfig
from minigpt.data.batches import (
    IGNORED,
    Batches,
    Dataset,
    Window,
    WindowBatches,
    make_batches,
    windows_of_stream,
    windows_side_by_side,
)
from minigpt.data.source import find_source
from minigpt.data.token_cache import prepare_tokens
from minigpt.tokenizer import CharacterTokenizer

from ..conftest import some_text

law = settings(max_examples=50, deadline=None)
TOKENIZER = CharacterTokenizer("ab")  # of which nothing is asked here
SEEDS = st.integers(0, 2**63 - 1)


def batches_of(
    tokens: np.ndarray, batch_size: int, context_length: int, *, seed: int = 1, counted: Any = None
) -> Batches:
    dataset = Dataset(TOKENIZER, tokens, tokens, counted_train=counted, counted_validation=counted)
    return WindowBatches(dataset, batch_size=batch_size, context_length=context_length, seed=seed)


def mask(length: int, counted: Iterable[int]) -> np.ndarray:
    is_counted = np.zeros(length, np.bool_)
    is_counted[[place for place in counted if place < length]] = True
    return is_counted


# What is drawn


@given(
    context=st.integers(1, 40),
    more=st.integers(1, 60),
    batch=st.integers(1, 8),
    seed=SEEDS,
    step=st.integers(0, 10**9),
)
@example(context=1, more=1, batch=1, seed=2**63 - 1, step=0)
@law
def test_targets_are_the_inputs_one_later(
    context: int, more: int, batch: int, seed: int, step: int
) -> None:
    first = 2**32 - context - more
    tokens = np.arange(first, 2**32).astype("<u4")  # the largest ids
    batches = batches_of(tokens, batch, context, seed=seed)
    inputs, targets = batches.batch(step, done=0.0)
    assert inputs.shape == targets.shape == (batch, context)
    assert inputs.dtype == targets.dtype == torch.int64
    assert torch.equal(inputs, inputs[:, :1] + torch.arange(context))
    assert torch.equal(targets, inputs + 1)
    assert (first + batches.starts(step)).tolist() == inputs[:, 0].tolist()


def test_a_step_draws_the_same_batch_whatever_was_drawn_before() -> None:
    """Steps of the same epoch and of others."""
    batches = batches_of(np.arange(2_000, dtype=np.uint16), 8, 16)
    first, _ = batches.batch(5, done=0.0)
    same = [torch.equal(batches.batch(i, done=0.0)[0], first) for i in (6, 5, 500, 5, 0)]
    assert same == [False, True, False, True, False]


def test_a_window_can_begin_at_every_place() -> None:
    """Five tokens hold three windows of two tokens and the next; the bounds are six sigma."""
    starts = batches_of(np.arange(5, dtype=np.uint16), 1800, 2, seed=0).starts(0)
    places, counts = np.unique(starts, return_counts=True)
    assert places.tolist() == [0, 1, 2]
    assert abs(counts - 600).max() < 6 * (1800 * 1 / 3 * 2 / 3) ** 0.5


@given(
    length=st.integers(60, 1000), context=st.integers(1, 29), batch=st.integers(5, 40), seed=SEEDS
)
@law
def test_an_epoch_reads_every_token_once(length: int, context: int, batch: int, seed: int) -> None:
    """But for less than two windows where it begins and ends; each in an order of its own."""
    tokens = np.arange(length, dtype=np.uint16)
    in_an_epoch = (length - context) // context
    steps = -(-2 * in_an_epoch // batch)
    batches = batches_of(tokens, batch, context, seed=seed)
    windows = torch.cat([batches.batch(i, done=0.0)[0] for i in range(steps)])
    at_once, _ = batches_of(tokens, len(windows), context, seed=seed).batch(0, done=0.0)
    assert torch.equal(windows, at_once)  # whatever the batch

    orders = []
    for epoch in (windows[:in_an_epoch], windows[in_an_epoch : 2 * in_an_epoch]):
        read = epoch.flatten().tolist()
        assert len(set(read)) == len(read) > length - 2 * context - 1
        orders.append(epoch[:, 0].argsort())
        in_sequence = orders[-1].diff().eq(1).sum().item()
        assert in_an_epoch < 20 or in_sequence < in_an_epoch / 2
    assert in_an_epoch < 20 or not torch.equal(*orders)


def test_the_draws_are_the_same_on_every_machine() -> None:
    """Written down, so that a run can be resumed anywhere."""
    starts = batches_of(np.arange(50_000, dtype=np.uint16), 6, 1, seed=5).starts(7)
    assert starts.tolist() == [38267, 3143, 7528, 15545, 21203, 20119]


# Batches that depend on how much is done


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("text")
    (folder / "my.txt").write_text(some_text())
    text = TextConfig((str(folder / "my.txt"),), vocab_size=300)
    return prepare_tokens(find_source(text), text, cache=folder)


def harder(dataset: Dataset, **changes: Any) -> Batches:
    """Windows of 16 tokens, of which some are split or cut."""
    return make_batches(dataset, TrainConfig(batch_size=6, seed=3, **changes), context_length=16)


KINDS: list[dict[str, Any]] = [
    {},
    {"token_split_prob": 0.5},
    {"warmup_context": 6},
    {"token_split_prob": 0.5, "warmup_context": 6},
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("done", [0.0, 0.9])
def test_batches_that_are_made_on_a_device_are_those_of_main_memory(
    dataset: Dataset, kind: dict[str, Any], done: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tokens are copied there, and the windows gathered by where they begin."""
    monkeypatch.setattr("minigpt.data.batches._AT_ONCE", 100)
    usual = harder(dataset, **kind)
    monkeypatch.setattr("minigpt.data.batches._gpu_for", lambda *_: torch.device("cpu"))
    gathered = harder(dataset, **kind)
    for step in (0, 5, 200):
        for rows in (slice(None), slice(2, 4)):
            expected = usual.batch(step, done, rows)
            found = gathered.batch(step, done, rows)
            assert all(map(torch.equal, found, expected))
            assert [ids.dtype for ids in found] == [torch.int64, torch.int64]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("done", [0.0, 0.9])
def test_the_rows_of_all_processes_are_the_whole_batch(
    dataset: Dataset, kind: dict[str, Any], done: float
) -> None:
    batches = harder(dataset, **kind)
    parts = [batches.batch(20, done, slice(start, start + 2)) for start in (0, 2, 4)]
    for i, whole in enumerate(batches.batch(20, done)):
        assert torch.equal(torch.cat([part[i] for part in parts]), whole)


@pytest.mark.parametrize("kind", KINDS[1:], ids=str)
def test_near_the_end_all_batches_are_plain(dataset: Dataset, kind: dict[str, Any]) -> None:
    """Until then they are not. Where windows begin and what is evaluated on is always the same."""
    plain, other = harder(dataset), harder(dataset, **kind)
    for done, are_alike in ((0.0, False), (0.79, False), (0.8, True), (1.0, True)):
        assert torch.equal(plain.batch(3, done)[0], other.batch(3, done)[0]) == are_alike
        assert torch.equal(plain.batch(3, done)[1], other.batch(3, done)[1]) == are_alike
    assert plain.starts(3).tolist() == other.starts(3).tolist()
    assert listed(plain.validation(200)) == listed(other.validation(200))


def test_split_tokens_spell_the_same_text(dataset: Dataset) -> None:
    """A window begins with it; targets are one later."""
    plain, _ = harder(dataset).batch(20, done=0.0)
    inputs, targets = harder(dataset, token_split_prob=0.5).batch(20, done=0.0)
    assert inputs.is_contiguous() and targets.is_contiguous()  # as those that are not split
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    for one, other in zip(inputs.tolist(), plain.tolist(), strict=True):
        assert dataset.tokenizer.decode(other).startswith(dataset.tokenizer.decode(one))


def test_windows_that_are_cut_have_the_same_tokens(dataset: Dataset) -> None:
    """But for those too few for a piece; so do the targets."""
    whole = harder(dataset).batch(3, done=0.0)
    pieces = harder(dataset, warmup_context=6).batch(3, done=0.0)
    for of_pieces, of_whole in zip(pieces, whole, strict=True):
        assert of_whole.shape == (6, 16) and of_pieces.shape == (18, 5)
        assert torch.equal(of_pieces.reshape(6, 15), of_whole[:, :15])


def test_tokens_of_which_only_some_count_are_not_split() -> None:
    tokens = np.arange(100, dtype=np.uint16)
    dataset = Dataset(TOKENIZER, tokens, tokens, counted_train=mask(100, range(50)))
    with pytest.raises(UserError, match="cannot be split: token_split_prob"):
        harder(dataset, token_split_prob=0.5)


# Targets that count


@given(
    length=st.integers(20, 200),
    context=st.integers(1, 18),
    counted=st.sets(st.integers(1, 199), min_size=1),
    step=st.integers(0, 50),
)
@law
def test_a_target_is_ignored_exactly_where_it_does_not_count(
    length: int, context: int, counted: set[int], step: int
) -> None:
    counted = {place for place in counted if place < length} or {1}
    batches = batches_of(np.arange(length), 3, context, counted=mask(length, counted))
    inputs, targets = batches.batch(step, done=0.0)
    assert inputs.shape == targets.shape == (3, context)
    assert torch.equal(inputs, inputs[:, :1] + torch.arange(context))
    is_counted = torch.isin(inputs + 1, torch.tensor(sorted(counted)))
    assert torch.equal(targets, torch.where(is_counted, inputs + 1, IGNORED))
    assert is_counted.any(dim=1).all()  # some in each row


def test_if_all_tokens_count_it_is_as_without_saying_so() -> None:
    tokens = np.arange(300)
    plain, all_counted = (batches_of(tokens, 4, 9, counted=c) for c in (None, mask(300, tokens)))
    for step in (0, 3, 40):
        for one, other in zip(plain.batch(step, 0.0), all_counted.batch(step, 0.0), strict=True):
            assert torch.equal(one, other)
    assert listed(plain.validation(80)) == listed(all_counted.validation(80))


def test_all_windows_that_count_are_drawn_equally_often() -> None:
    """In an epoch of the text, which has 20 windows; a few of them count."""
    batches = batches_of(np.arange(1050), 2, 50, counted=mask(1050, [60, 160, 460, 860]))
    seen = Counter(start for step in range(10) for start in batches.starts(step).tolist())
    assert len(seen) == 4 and max(seen.values()) - min(seen.values()) <= 1


# Windows to evaluate on


def listed(windows: Iterable[Window]) -> list[tuple[list[int], list[int]]]:
    return [(inputs.tolist(), targets.tolist()) for inputs, targets in windows]


@given(length=st.integers(2, 300), context=st.integers(1, 12), most=st.integers(1, 100))
@law
def test_the_windows_of_an_evaluation_lie_side_by_side_or_are_spread(
    length: int, context: int, most: int
) -> None:
    """At most `most` tokens and a window, always the same ones; all of a shorter text."""
    batches = batches_of(np.arange(length), 1, context)
    windows = listed(batches.validation(most))
    assert windows == listed(batches.validation(most))
    inputs = [token for ids, _ in windows for token in ids]
    assert [token for _, ids in windows for token in ids] == [token + 1 for token in inputs]
    assert 1 <= len(inputs) <= most + context
    if length - 1 + context <= most:
        assert inputs == list(range(length - 1))


def test_windows_that_are_spread_are_from_all_over_the_text() -> None:
    starts = [int(inputs[0]) for inputs, _ in windows_side_by_side(np.arange(1000), 10, 100)]
    assert len(starts) == 10 and set(np.diff(starts)) == {100}


@given(length=st.integers(2, 40), context=st.integers(1, 12), counted=st.sets(st.integers(0, 39)))
@law
def test_the_windows_of_an_evaluation_are_just_those_with_a_target_that_counts(
    length: int, context: int, counted: set[int]
) -> None:
    is_counted = mask(length, counted)
    expected = []
    for inputs, targets in windows_side_by_side(np.arange(length), context, 1000):
        if is_counted[targets].any():
            expected.append((inputs, np.where(is_counted[targets], targets, IGNORED)))
    batches = batches_of(np.arange(length), 1, context, counted=is_counted)
    assert listed(batches.validation(1000)) == listed(expected)


@given(
    length=st.integers(2, 60),
    context=st.integers(1, 12),
    stride=st.integers(1, 12),
    places=st.lists(st.integers(0, 60), max_size=5),
)
@law
def test_in_a_stream_each_token_is_a_target_that_counts_once(
    length: int, context: int, stride: int, places: list[int]
) -> None:
    """In the first window that has it, in whichever pieces the stream comes."""
    stride = min(stride, context)
    pieces = np.split(np.arange(length), sorted({place for place in places if place < length}))
    windows = listed(windows_of_stream(pieces, context, stride))
    found = [target for _, targets in windows for target in targets if target != IGNORED]
    assert found == list(range(1, length))
    for number, (inputs, targets) in enumerate(windows):
        start = number * stride
        assert inputs == list(range(start, start + len(inputs))) and len(inputs) <= context
        assert all(t in (IGNORED, i + 1) for i, t in zip(inputs, targets, strict=True))
