"""The batches drawn from tokens. Tokens that count up say where a window begins."""

from functools import partial

import numpy as np
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minigpt.data.batches import sample_batch
from minigpt.tokenizer import TokenSplitter, train_bpe

from ..conftest import some_text

law = settings(max_examples=50, deadline=None)


@given(
    context=st.integers(1, 40),
    more=st.integers(1, 60),
    batch=st.integers(1, 8),
    seed=st.integers(0, 2**63 - 1),
    step=st.integers(0, 10**9),
)
@example(context=1, more=1, batch=1, seed=2**63 - 1, step=0)
@law
def test_targets_are_the_inputs_one_later(
    context: int, more: int, batch: int, seed: int, step: int
) -> None:
    tokens = np.arange(2**32 - context - more, 2**32).astype("<u4")  # the largest ids
    inputs, targets = sample_batch(tokens, batch, context, seed=seed, step=step)
    assert inputs.shape == targets.shape == (batch, context)
    assert inputs.dtype == targets.dtype == torch.int64
    assert torch.equal(inputs, inputs[:, :1] + torch.arange(context))
    assert torch.equal(targets, inputs + 1)


def test_a_step_draws_the_same_batch_whatever_was_drawn_before() -> None:
    """Steps of the same epoch and of others."""
    draw = partial(sample_batch, np.arange(2_000, dtype=np.uint16), 8, 16, seed=1)
    same = [torch.equal(draw(step=i)[0], draw(step=5)[0]) for i in (6, 5, 500, 5, 0)]
    assert same == [False, True, False, True, False]


def test_a_window_can_begin_at_every_place() -> None:
    """Five tokens hold three windows of two tokens and the next; the bounds are six sigma."""
    inputs, _ = sample_batch(np.arange(5, dtype=np.uint16), 1800, 2, seed=0, step=0)
    starts, counts = inputs[:, 0].unique(return_counts=True)
    assert starts.tolist() == [0, 1, 2]
    assert (counts - 600).abs().max().item() < 6 * (1800 * 1 / 3 * 2 / 3) ** 0.5


@given(
    length=st.integers(60, 1000),
    context=st.integers(1, 29),
    batch=st.integers(5, 40),
    seed=st.integers(0, 2**63 - 1),
)
@law
def test_an_epoch_reads_every_token_once(length: int, context: int, batch: int, seed: int) -> None:
    """But for less than two windows where it begins and ends; each in an order of its own."""
    tokens = np.arange(length, dtype=np.uint16)
    in_an_epoch = (length - context) // context
    steps = -(-2 * in_an_epoch // batch)
    draw = partial(sample_batch, tokens, context_length=context, seed=seed)
    windows = torch.cat([draw(batch_size=batch, step=i)[0] for i in range(steps)])
    at_once, _ = draw(batch_size=len(windows), step=0)
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
    tokens = np.arange(50_000, dtype=np.uint16)
    inputs, _ = sample_batch(tokens, 6, 1, seed=5, step=7)
    assert inputs.flatten().tolist() == [38267, 3143, 7528, 15545, 21203, 20119]


def test_the_rows_of_all_ranks_are_the_whole_batch_with_and_without_split_tokens() -> None:
    """A window whose tokens are split begins with the same text; targets are one later."""
    tokenizer = train_bpe([some_text()], 300)
    tokens = np.array(tokenizer.encode(some_text()))
    splitter = TokenSplitter(tokenizer)
    batch = partial(sample_batch, tokens, 6, 9, seed=3, step=20, splitter=splitter)
    for split_prob in (0.0, 0.5):
        rows = [slice(start, start + 2) for start in (0, 2, 4)]
        parts = [batch(split_prob=split_prob, rows=own) for own in rows]
        for i, whole in enumerate(batch(split_prob=split_prob)):
            assert torch.equal(torch.cat([part[i] for part in parts]), whole)
    (plain, _), (inputs, targets) = batch(split_prob=0.0), batch(split_prob=0.5)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    assert not torch.equal(inputs, plain)
    for one, other in zip(inputs.tolist(), plain.tolist(), strict=True):
        assert tokenizer.decode(other).startswith(tokenizer.decode(one))
