"""The README.md of an exported model."""

from typing import Any

from ..config import GPTConfig
from ..model import count_parameters
from .architectures import architecture_of

_FIGURES = {  # rows of metrics.jsonl, in words
    "val_bits_per_byte": "{:.4f} bits per byte of validation text",
    "val_loss": "{:.4f} nats per token of validation text",
    "train_loss": "{:.4f} nats per token of training text",
    "step": "at step {:,} of its training",
}

_CARD = """\
---
library_name: transformers
pipeline_tag: text-generation
tags: [minigpt]
---

# {name}

A text generator trained with minigpt. {architecture} with {parameters:,} parameters:
{config.num_layers} layers of width {config.emb_dim}, {config.num_heads} heads,
{config.vocab_size:,} tokens, context of {config.context_length}.

{figures}

    from transformers import pipeline

    print(pipeline("text-generation", model=".")("Once upon a time")[0]["generated_text"])
"""


def model_card(name: str, config: GPTConfig, metrics: list[dict[str, Any]]) -> str:
    """What the model is, how well it predicts, how to use it.

    Args:
        name: of the model.
        config: its shape.
        metrics: the rows of its run's metrics.jsonl; none if it has no such file.
    """
    rows = [row for row in metrics if all(isinstance(row.get(k), int | float) for k in _FIGURES)]
    figures = "No figures of its training came with it."
    if rows:
        best = min(rows, key=lambda row: row["val_loss"])
        figures = "\n".join("- " + words.format(best[key]) for key, words in _FIGURES.items())
    return _CARD.format(
        name=name,
        architecture=architecture_of(config).name,
        parameters=count_parameters(config),
        config=config,
        figures=figures,
    )
