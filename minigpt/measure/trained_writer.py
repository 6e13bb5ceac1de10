"""The writer of a network that is being trained."""

from typing import Any

from ..generation.torch_gpt import engine_of
from ..generation.writer import Writer
from ..training.callbacks import Training


def writer_of(trainer: Training, **more: Any) -> Writer:
    """A writer with the model in its present state; `more` are further arguments of it."""
    dataset = trainer.dataset
    origin = dataset.origin
    return Writer(
        engine_of(trainer.model, trainer.context_length),
        dataset.tokenizer,
        knows_documents=origin.knows_documents,
        alphabet=origin.alphabet,
        dialogue=origin.dialogue,
        **more,
    )
