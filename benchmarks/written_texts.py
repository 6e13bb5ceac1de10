"""Texts that a model writes, and texts of people cut to the same length."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice

from minigpt.generation.writer import Writer
from minigpt.tokenizer import Tokenizer

AT_ONCE = 50  # texts that are written side by side


def written(writer: Writer, texts: int, tokens: int, temperature: float) -> list[str]:
    """So many texts of at most so many tokens, without a prompt."""
    endless = texts_of(writer, tokens, temperature, at_once=min(texts, AT_ONCE))
    return list(islice(endless, texts))


def texts_of(
    writer: Writer, tokens: int, temperature: float, at_once: int = AT_ONCE
) -> Iterator[str]:
    """Text after text without end."""
    for seed in count():
        samples = writer.samples(
            samples=at_once, max_new_tokens=tokens, temperature=temperature, seed=seed
        )
        yield from (sample.text for sample in samples)


def pieces_of(tokenizer: Tokenizer, documents: Iterable[str], tokens: int) -> Iterator[str]:
    """Documents, cut into pieces of so many tokens; what is left of each is left out."""
    for document in documents:
        ids = list(tokenizer.encode(document))
        for start in range(0, len(ids) - tokens + 1, tokens):
            yield tokenizer.decode(ids[start : start + tokens])


def spread(items: Sequence[str], most: int) -> list[str]:
    """At most so many of the items, spread evenly over them."""
    chosen = min(most, len(items))
    return [items[i * len(items) // chosen] for i in range(chosen)]
