"""Other ways to write a text in the same tokens, so that more is learned from a text that is read
often."""

import numpy as np
from numpy.typing import NDArray

from .bpe import Tokenizer


class TokenSplitter:
    """Writes some tokens as two shorter ones that stand for the same bytes.

    Each pair of tokens that makes up the token is as likely, whether or not the tokenizer would
    merge them ("StochasTok: Improving Fine-Grained Subword Understanding in LLMs", Sims et al.
    2025). Tokens that no pair makes up, such as single characters, stay as they are.

    Args:
        tokenizer: whose tokens these are.
    """

    def __init__(self, tokenizer: Tokenizer):
        spelled = [tokenizer.token_bytes(i) for i in range(tokenizer.vocab_size)]
        ids = {token: i for i, token in enumerate(spelled) if token}
        pairs: list[tuple[int, int]] = []
        counts = np.zeros(len(spelled), np.int64)  # of the pairs of each token
        for i, token in enumerate(spelled):
            before = len(pairs)
            for cut in range(1, len(token)):
                left, right = ids.get(token[:cut]), ids.get(token[cut:])
                if left is not None and right is not None:
                    pairs.append((left, right))
            counts[i] = len(pairs) - before
        self._pairs = np.array(pairs, np.int64).reshape(-1, 2)
        self._counts, self._firsts = counts, np.cumsum(counts) - counts

    def __call__(
        self, token_ids: NDArray[np.int64], share: float, chance: NDArray[np.floating]
    ) -> NDArray[np.int64]:
        """The beginning of the same texts.

        Args:
            token_ids: ``(b, n)``.
            share: of the tokens that are respelled, if they can be.
            chance: ``(2, b, n)``, uniform random numbers from 0 to 1.

        Returns:
            ``(b, n)``; what becomes longer is cut off.
        """
        rows = zip(token_ids, chance[0], chance[1], strict=True)
        return np.stack([self._respelled(ids, share, *two)[: len(ids)] for ids, *two in rows])

    def _respelled(
        self,
        ids: NDArray[np.int64],
        share: float,
        whether: NDArray[np.floating],
        how: NDArray[np.floating],
    ) -> NDArray[np.int64]:
        """All of it: ``(n,)`` to ``(n + as many as are respelled,)``."""
        chosen = (whether < share) & (self._counts[ids] > 0)
        which = self._firsts[ids] + (how * self._counts[ids]).astype(np.int64)
        longer = np.repeat(ids, 1 + chosen)
        places = (np.arange(len(ids)) + np.cumsum(chosen) - chosen)[chosen]
        longer[places], longer[places + 1] = self._pairs[which[chosen]].T
        return longer
