"""The numbers that a page shows, computed with the glass engine: each `<data class="fact">` says
which number it is."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from minigpt.generation.explanation import Explanation, explain_token
from minigpt.generation.numpy_gpt import Cache, NumpyGPT, Record, gelu, silu
from minigpt.generation.repetition import boundaries_of
from minigpt.generation.sampler import TokenSampler, filtered, keep_top_k, log_softmax
from minigpt.generation.window import Array
from minigpt.runs.read_model import FoundModel

Head = tuple[int, int]  # layer and head, from 0
ALL = """selector => [...document.querySelectorAll(`${selector} data.fact`)]
    .filter(fact => fact.checkVisibility())
    .map(fact => [fact.dataset.what, fact.dataset.about, Number(fact.value), fact.textContent])"""


def shown_facts(page: Any, selector: str) -> list[tuple[str, dict[str, Any], float, str]]:
    """All visible numbers in an element: kind, what it is about, value, as it reads."""
    return [(what, json.loads(about), *rest) for what, about, *rest in page.evaluate(ALL, selector)]


def check_facts(
    page: Any, selector: str, found: FoundModel, ids: Sequence[int], **options: Any
) -> set[str]:
    """Compare every visible number with the glass engine; the kinds that were there."""
    texts: dict[int, Predicted] = {}
    facts = shown_facts(page, selector)
    for what, about, value, shown in facts:
        place = about.get("place", len(ids))  # a few are about no place
        predicted = texts.setdefault(place, Predicted(found, ids, place, **options))
        expected = predicted.number(what, about)
        assert abs(value - expected) < 1e-3 * max(1, abs(expected)), (what, about, shown, expected)
    return {what for what, *_ in facts}


@dataclass
class Predicted:
    """The prediction of a token after its window, `ids[start:place]`, without the heads `off`."""

    found: FoundModel
    ids: Sequence[int]
    place: int
    starts: Sequence[int] | Mapping[int, int] | None = (
        None  # where each place's window begins; all with 0 if None
    )
    off: Sequence[Head] = field(default=())
    settings: Mapping[str, Any] = field(default_factory=dict)  # given beside the model's own
    hidden: int = 0  # tokens that are not shown
    forbidden: Sequence[int] = field(default=())  # tokens that are never drawn

    @property
    def glass(self) -> NumpyGPT:
        return self.found.glass

    @property
    def start(self) -> int:
        return 0 if self.starts is None else self.starts[self.place]

    @property
    def window(self) -> Array:
        return np.array(self.ids[self.start : self.place])

    @cached_property
    def record(self) -> Record:
        return _record(self.glass, tuple(self.window.tolist()), tuple(map(tuple, self.off)))

    @cached_property
    def cache(self) -> Cache:
        """Keys and values of the window."""
        cache = self.glass.new_cache(1)
        self.glass.last_stream(self.window[None], cache, self.off)
        return cache

    @cached_property
    def probabilities(self) -> Array:
        logits = self.glass.logits(self.record.residual[-1, -1]).astype(np.float64)
        return np.exp(log_softmax(logits))

    @cached_property
    def whole(self) -> Array:
        """The probabilities with all heads on."""
        stream = self.glass.record(self.window).residual[-1, -1]
        return np.exp(log_softmax(self.glass.logits(stream).astype(np.float64)))

    @cached_property
    def after(self) -> Array:
        """The probabilities after penalty, temperature and filters."""
        logits = self.glass.logits(self.record.residual[-1, -1])
        bias = np.zeros(len(logits), np.float32)
        bias[list(self.forbidden)] = -np.inf
        so_far = self.ids[self.hidden : self.place]
        config = self.found.usual.with_given(**self.settings)
        boundaries = boundaries_of(self.found.tokenizer)
        sampler = TokenSampler(config, bias, so_far, boundaries=boundaries)
        kept = sampler.adjusted(logits[None])[0]

        if config.temperature == 0:
            kept = keep_top_k(kept, 1)
        else:
            filters = ("temperature", "top_k", "top_p", "min_p")
            kept = filtered(kept, **{name: getattr(config, name) for name in filters})
        return np.exp(log_softmax(kept.astype(np.float64)))

    def explanation(self, token: int) -> Explanation:
        known: dict[int, Explanation] = self.__dict__.setdefault("_explanations", {})
        if token not in known:
            ids = [*self.window.tolist(), token]
            known[token] = explain_token(self.glass, ids, len(ids) - 1, self.off)
        return known[token]

    def number(self, what: str, about: dict[str, Any]) -> float:
        if what in KINDS:
            return float(KINDS[what](self, about))
        return float(self.vector(what, about)[about.get("component", 0)])

    def vector(self, what: str, about: dict[str, Any]) -> Array:
        """The vectors of one head at the row that predicts."""
        layer, head = about["layer"], about["head"]
        config = self.glass.config
        group = head * config.kv_heads // config.num_heads
        T = len(self.window)
        keys, values = self.cache.keys_values[:, layer, 0, :T, group]  # each (T, head_dim)
        query = self._query(layer, head)
        weights = self.record.attention[layer, head, -1]  # (T,)

        if what in ("key", "value"):
            return (keys if what == "key" else values)[about["to"] - self.start]
        if what == "product":
            return np.array([query @ keys[about["to"] - self.start]])
        if what == "score":
            return np.array([query @ keys[about["to"] - self.start]]) / np.sqrt(config.head_size)
        if what == "query":
            return query
        if what == "context":
            is_off = (layer, head) in self.off
            return np.zeros_like(query) if is_off else weights @ values
        assert what == "output", what
        return self.added(layer)

    def added(self, layer: int) -> Array:
        """What an attention layer adds to the stream of the row that predicts, (emb_dim,)."""
        config = self.glass.config
        about = [{"layer": layer, "head": head} for head in range(config.num_heads)]
        joined = np.concatenate([self.vector("context", one) for one in about])
        return self.glass.layers[layer].out_proj(joined[None].astype(np.float32))[0]

    def _query(self, layer: int, head: int) -> Array:
        config = self.glass.config
        block = self.glass.layers[layer]
        T = len(self.window)
        projected = block.W_key_query_value(block.attention_norm(self.record.residual[layer]))
        heads = projected.reshape(1, T, -1, config.head_size)[:, :, : -config.kv_heads]
        if config.qk_norm:
            heads = block.key_query_norm(heads)
        turn = self.glass._new_tokens(np.zeros(1, int), T).turn
        if turn is not None:
            heads = turn(heads)
        return heads[0, -1, config.kv_heads + head]


@lru_cache(maxsize=4096)
def _record(glass: NumpyGPT, window: tuple[int, ...], off: tuple[Head, ...]) -> Record:
    """What the model computes for a window: a page shows much of it again and again."""
    return glass.record(np.array(window), off)


def _rank(predicted: Predicted, about: dict[str, Any]) -> int:
    chances = predicted.probabilities
    token = about["token"]
    is_better = chances > chances[token]
    return int(is_better.sum() + (chances[:token] == chances[token]).sum()) + 1


def _weight(predicted: Predicted, about: dict[str, Any]) -> float:
    row = about.get("from", predicted.place - 1) - predicted.start
    weights = predicted.record.attention[about["layer"], about["head"], row]
    return float(weights[about["to"] - predicted.start])


def _sum_of_parts(predicted: Predicted, about: dict[str, Any]) -> float:
    parts = predicted.explanation(about["token"]).parts
    return sum(parts[name] for name in about["parts"])


def _divergence(predicted: Predicted, about: dict[str, Any]) -> float:
    """From the whole model to the one without the heads that are off, in bits."""
    whole = predicted.whole
    return float((whole * np.log2(whole / predicted.probabilities)).sum())


def _entropy(predicted: Predicted, about: dict[str, Any]) -> float:
    chances = predicted.probabilities
    return float(-(chances * np.log2(chances)).sum())


def _lens(predicted: Predicted, about: dict[str, Any]) -> float:
    """The probability of a token if the model ended after so many layers."""
    logits = predicted.glass.logits(predicted.record.residual[about["layer"], -1])
    return float(np.exp(log_softmax(logits.astype(np.float64)))[about["token"]])


def _unit(predicted: Predicted, about: dict[str, Any]) -> float:
    """How a feed-forward unit fires at the row that predicts, or at another row of its window."""
    if "from" in about:
        end = about["from"] + 1
        found, ids, off = predicted.found, predicted.ids, predicted.off
        predicted = Predicted(found, ids, end, {end: predicted.start}, off)
    layer = predicted.glass.layers[about["layer"]]
    before = predicted.record.residual[about["layer"], -1]
    stream = before + predicted.added(about["layer"])  # after attention
    hidden = layer.W_in(layer.feed_forward_norm(stream[None]))[0]  # with a gate (2 ff_dim,)
    if layer.config.feed_forward == "gelu":
        return float(gelu(hidden)[about["unit"]])
    gate, into = np.split(hidden, 2)
    return float((silu(gate) * into)[about["unit"]])


def _similarity(predicted: Predicted, about: dict[str, Any]) -> float:
    """The cosine of two tokens' vectors."""
    vectors = predicted.glass.weights["token_embedding.weight"][[about["token"], about["other"]]]
    lengths = np.linalg.norm(vectors, axis=1)
    return float(vectors[0] @ vectors[1] / (lengths.prod() or 1))


def _word(predicted: Predicted, about: dict[str, Any]) -> float:
    return predicted.explanation(about["token"]).words[about["to"] - predicted.start]


KINDS: dict[str, Callable[[Predicted, dict[str, Any]], Any]] = {
    "probability": lambda p, about: p.probabilities[about["token"]],
    "whole": lambda p, about: p.whole[about["token"]],
    "after": lambda p, about: p.after[about["token"]],
    "bits": lambda p, about: -np.log2(p.probabilities[p.ids[p.place]]),
    "entropy": _entropy,
    "divergence": _divergence,
    "lens": _lens,
    "unit": _unit,
    "similarity": _similarity,
    "rank": _rank,
    "weight": _weight,
    "cell": _weight,
    "logit": lambda p, about: p.explanation(about["token"]).logit,
    "part": lambda p, about: p.explanation(about["token"]).parts[about["part"]],
    "parts": _sum_of_parts,
    "word": _word,
    "without": lambda p, about: p.explanation(about["token"]).heads[about["head"]],
    "norm": lambda p, about: np.linalg.norm(p.record.residual[about["layer"], -1]),
    "added": lambda p, about: np.linalg.norm(p.added(about["layer"])),
}
