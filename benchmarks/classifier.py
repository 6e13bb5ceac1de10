"""Tells two kinds of text apart by their words and pairs of neighbouring words.

Logistic regression on which of them occur in a piece of text, with a fixed ridge: p = σ(w·x), where
w minimises -Σ log p(its kind) + RIDGE/2 |w|². Fitted by Newton's method ("Pattern Recognition and
Machine Learning", Bishop 2006, sections 4.3.3 and 6.1). There are far fewer pieces than words, so
w = Xᵀa is found through the products of pieces, K = X Xᵀ.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

RIDGE = 1.0
ITERATIONS = 30
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")  # letters and apostrophes within; no punctuation

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Classifier:
    """Which words and pairs speak for the first kind of text, and how much each."""

    columns: dict[str, int]  # of each word and each pair
    weights: Floats  # (d + 1,), the last one is of the constant

    def is_first(self, pieces: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each piece is more likely of the first kind than of the second, ``(n,)``."""
        return _inputs(pieces, self.columns) @ self.weights > 0

    def share(self, pieces: Sequence[str]) -> float:
        """The share of pieces that it takes to be of the first kind."""
        return float(self.is_first(pieces).mean())


def fit(first: Sequence[str], second: Sequence[str]) -> Classifier:
    """Learn to tell pieces of two kinds of text apart, as many of each.

    Raises:
        ValueError: if there are more of one kind, which would make it likelier everywhere.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} pieces of the first kind, {len(second)} of the second")

    pieces = [*first, *second]
    seen = Counter(feature for piece in pieces for feature in features(piece))
    often = [feature for feature, count in seen.items() if count > 1]
    columns = {feature: column for column, feature in enumerate(often)}

    inputs = _inputs(pieces, columns)  # (n, d + 1)
    is_first = np.repeat([1.0, 0.0], len(first))  # (n,)
    return Classifier(columns, inputs.T @ _dual_weights(inputs @ inputs.T, is_first))


def features(piece: str) -> set[str]:
    """The words of a piece, in small letters, and the pairs of words that follow each other."""
    words = WORD.findall(piece.lower().replace("’", "'"))
    return {*words, *map(" ".join, pairwise(words))}


def _inputs(pieces: Sequence[str], columns: dict[str, int]) -> Floats:
    """For each piece 1 where a feature occurs in it, and a constant, ``(n, d + 1)``."""
    inputs = np.zeros((len(pieces), len(columns) + 1))
    inputs[:, -1] = 1.0
    for row, piece in enumerate(pieces):
        known = [columns[feature] for feature in features(piece) if feature in columns]
        inputs[row, known] = 1.0
    return inputs


def _dual_weights(K: Floats, is_first: Floats) -> Floats:
    """The a ``(n,)`` with which w = Xᵀa, from the products of pieces ``(n, n)``."""
    a: Floats = np.zeros(len(K))
    for _ in range(ITERATIONS):
        scores = K @ a  # (n,)
        p = 1.0 / (1.0 + np.exp(-scores))
        slope = np.maximum(p * (1.0 - p), 1e-9)

        target = scores + (is_first - p) / slope
        a = np.linalg.solve(K + RIDGE * np.diag(1.0 / slope), target)
    return a
