"""What counting alone makes of a text: the yardstick that a language model has to beat.

`CountingModel` counts which token follows which four, in numpy. To ask what it gives on a text,
fit it on the training tokens in the seconds that there are, and hand it the windows that the model
was evaluated on:

    counting = fit_in_time(dataset.train, tokenizer.vocab_size, seconds=2.0)
    counting.bits_per_byte(batches.validation(max_tokens), tokenizer.byte_lengths())
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .batches import TokenSequence

ORDER = 5  # tokens in the longest n-gram: one is predicted from the four before it
_MOST_TOKENS = 3_000_000  # to count; they take about 300 MB of memory while they are counted
_TRIAL = 1 << 15  # tokens that are counted first, to see how fast this machine is
_POWER = 1.3  # the time grows at most with this power of the number of tokens
_PIECES = 16  # of a text too long to be counted whole, from all over it
_ROWS = 256  # windows that are looked up together

Ids = NDArray[np.integer]


@dataclass(frozen=True)
class _Level:
    """The n-grams of one length n, each a context of n - 1 tokens and the token that followed it.

    An n-gram's number is its index in `keys`. A context is an n-gram of the level below, and has
    the number that it has there.
    """

    keys: NDArray[np.int64]  # of each n-gram, sorted: number of its context * vocab_size + token
    share: NDArray[np.float64]  # of each n-gram: its discounted count / its context's count
    rest: NDArray[np.float64]  # of each context: what is left for the shorter context to share out


class CountingModel:
    """Interpolated Kneser-Ney smoothing with modified discounts, over token ids.

    "An Empirical Study of Smoothing Techniques for Language Modeling", Chen and Goodman 1998,
    section 3: the probability of a token w after a context h of n - 1 tokens is

        p(w | h) = (c(hw) - D(c(hw))) / sum_v c(hv) + rest(h) p(w | h without its first token)

    The discount D depends on the count c: one for n-grams seen once, one for twice, one for more.
    ``rest(h)`` is the sum of the discounts after h divided by the sum of the counts, so that
    probabilities sum to 1. For all but the longest n-grams, c counts the different tokens that
    stood before an n-gram, not how often it was seen. At the bottom every id is equally likely.
    After a context that was never seen, p is the probability after the shorter context.

    N-grams are found by exact keys. End-of-text ids are tokens like all others, as they are to a
    GPT.

    Args:
        tokens: ids ``(n,)`` to count, from 0 to vocab_size - 1; there may be none.
        vocab_size: how many ids there are.
        order: length of the longest n-grams.
    """

    def __init__(self, tokens: Ids, vocab_size: int, order: int = ORDER):
        self.vocab_size = vocab_size
        self.tokens = len(tokens)
        self._levels: list[_Level] = []

        longest = min(order, len(tokens))  # length of the longest n-grams that there are
        if longest == 0:
            return

        ids = tokens.astype(np.int64)
        contexts = 1  # of single tokens: the empty one
        # The n-grams of one length in order, and for each place in the text the number of the one
        # that begins there: its index among these.
        keys, place = np.unique(ids, return_inverse=True)

        for n in range(1, longest):
            longer = place[:-1] * vocab_size + ids[n:]  # the n-gram of each place, and one token
            longer_keys, longer_place = np.unique(longer, return_inverse=True)
            counts = _contexts_before(place, longer_place, count=len(keys), longer=len(longer_keys))
            self._add_level(keys, counts, contexts)

            contexts = len(keys)
            keys = longer_keys
            place = longer_place

        self._add_level(keys, np.bincount(place, minlength=len(keys)), contexts)

    def _add_level(self, keys: NDArray[np.int64], counts: NDArray[np.int64], contexts: int) -> None:
        """Add the n-grams of the next length, with their counts, which are discounted, and the
        number of contexts."""
        context = keys // self.vocab_size  # of each n-gram
        discount = _discounts(counts)[np.minimum(counts, 3)]
        total = np.bincount(context, counts, minlength=contexts)
        taken = np.bincount(context, discount, minlength=contexts)

        rest = np.ones(contexts)  # of a context that nothing follows, at the end of the text
        np.divide(taken, total, out=rest, where=total > 0)
        self._levels.append(_Level(keys, (counts - discount) / total[context], rest))

    def log_probabilities(self, tokens: Ids) -> NDArray[np.float64]:
        """The natural logarithm of the probability of each token, given those before it in its row.

        `tokens` are ids ``(..., T)``; the result has the same shape. The first token of a row has
        no context, the next one a context of one token, and so on up to four.
        """
        tokens = tokens.astype(np.int64)
        p = np.full(tokens.shape, 1.0 / self.vocab_size)  # (..., T)
        context = np.zeros(tokens.shape, np.int64)  # its number, -1 if it was never seen

        for n, level in enumerate(self._levels[: tokens.shape[-1]], start=1):
            keys = context * self.vocab_size + tokens[..., n - 1 :]  # (..., T - n + 1)
            place = np.searchsorted(level.keys, keys).clip(max=len(level.keys) - 1)
            is_seen = level.keys[place] == keys

            share = np.where(is_seen, level.share[place], 0.0)
            rest = np.where(context >= 0, level.rest[context], 1.0)
            p[..., n - 1 :] = share + rest * p[..., n - 1 :]

            context = np.where(is_seen, place, -1)[..., :-1]
        return np.log(p)

    def bits_per_byte(
        self, windows: Iterable[tuple[Ids, Ids]], byte_lengths: Sequence[int] | Ids
    ) -> float:
        """The bits that a byte of text takes under this model, every window on its own.

        As in the evaluation of a GPT, each target of a window that counts is predicted from the
        tokens before it in the window. ``byte_lengths`` are the bytes of text of each id.
        """
        lengths = np.asarray(byte_lengths)
        nats = 0.0
        size = 0  # bytes
        for _, targets, losses in self.predictions(windows):
            nats += float(losses.sum())
            size += int(lengths[targets[targets >= 0]].sum())
        return nats / math.log(2) / max(size, 1)

    def predictions(
        self, windows: Iterable[tuple[Ids, Ids]]
    ) -> Iterator[tuple[Ids, Ids, NDArray[np.float64]]]:
        """Inputs and targets of windows of the same length, and the loss of each target in nats, 0
        if it does not count: each ``(rows, T)``. A window is inputs and targets, ``(T,)`` each; a
        target that does not count is negative."""
        for _, alike in groupby(windows, key=lambda window: len(window[0])):
            while rows := list(islice(alike, _ROWS)):
                inputs, targets = map(np.stack, zip(*rows, strict=True))  # each (rows, T)
                last = np.maximum(targets[:, -1:], 0)  # any id, if it does not count
                tokens = np.concatenate((inputs, last), axis=1)  # (rows, T + 1)
                losses = -self.log_probabilities(tokens)[:, 1:]
                yield inputs, targets, np.where(targets >= 0, losses, 0.0)


def fit_in_time(
    tokens: "TokenSequence",
    vocab_size: int,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> CountingModel:
    """The model of as many tokens as can be counted in so many seconds, three million at most.

    A few are counted first; the time that this takes tells how many can be counted in the rest. If
    those are not all, they come from all over the text. `clock` tells the time in seconds.
    """
    end = clock() + seconds
    most = min(len(tokens), _MOST_TOKENS)
    count = min(_TRIAL, most)
    while True:
        start = clock()
        model = CountingModel(_sample(tokens, count), vocab_size)
        now = clock()

        times_as_long = max(end - now, 0.0) / max(now - start, 1e-9)
        affordable = min(most, int(count * times_as_long ** (1.0 / _POWER)))
        is_worth_it = affordable == most or affordable >= 2 * count
        if count == most or affordable <= count or not is_worth_it:
            return model
        count = affordable


def _sample(tokens: "TokenSequence", count: int) -> Ids:
    """So many tokens of a text, in pieces from all over it."""
    if count == len(tokens):
        return tokens[:]

    length = count // _PIECES
    starts = [i * len(tokens) // _PIECES for i in range(_PIECES)]
    return np.concatenate([tokens[start : start + length] for start in starts])


def _contexts_before(
    place: NDArray[np.int64], longer_place: NDArray[np.int64], count: int, longer: int
) -> NDArray[np.int64]:
    """How many different tokens stood before each n-gram; the beginning of the text is one more.

    `place` holds, for each token, the number of the n-gram that begins there; `count` is how many
    different n-grams there are. `longer_place` and `longer` are the same for n-grams with one more
    token at the end.
    """
    somewhere = np.empty(longer, np.int64)  # where each longer n-gram stands, any one place
    somewhere[longer_place] = np.arange(len(longer_place))
    suffix = place[somewhere + 1]  # of each longer n-gram: all of it but the first token

    counts = np.bincount(suffix, minlength=count)
    counts[place[0]] += 1
    return counts


def _discounts(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """What is taken from a count of 0, 1, 2, and of 3 or more (Chen and Goodman 1998, eq. 26).

    Where a text is too short or too regular for their formula, half of the count, as KenLM does
    (Heafield et al. 2013).
    """
    once, twice, thrice, four_times = (int((counts == n).sum()) for n in (1, 2, 3, 4))
    y = once / max(once + 2 * twice, 1)

    discounts = [0.0]
    for n, seen, seen_more in ((1, once, twice), (2, twice, thrice), (3, thrice, four_times)):
        best = n - (n + 1) * y * seen_more / max(seen, 1)
        is_possible = 0.0 < best < n
        discounts.append(best if is_possible else n / 2)
    return np.array(discounts)
