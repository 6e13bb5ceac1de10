"""What a model writes while it learns: a callback of the training."""

from typing import TYPE_CHECKING, Any

from ..generation.torch_gpt import engine_of
from ..generation.writer import Writer
from ..runs.folder import SAMPLES
from ..training.messages import say_text_of_a_model
from ..training.saving import try_to_write

if TYPE_CHECKING:
    from ..training.trainer import Trainer

_TOKENS = 80


class Samples:
    """Writes a short text after each evaluation: shown, and added to samples.txt in the run."""

    def on_evaluation(self, trainer: "Trainer", figures: dict[str, Any]) -> None:
        sample = writer_of(trainer).generate(max_new_tokens=_TOKENS, seed=trainer.config.seed)
        say_text_of_a_model(sample)
        if trainer.out is None:
            return

        path = trainer.out / SAMPLES

        def add() -> None:
            with open(path, "a", encoding="utf-8") as samples:
                samples.write(f"--- step {figures['step']}\n{sample}\n")

        try_to_write("the sample", trainer.out, add)


def writer_of(trainer: "Trainer", **more: Any) -> Writer:
    """A writer with the model in its present state; `more` are further arguments of it."""
    dataset = trainer.dataset
    origin = dataset.origin
    return Writer(
        engine_of(trainer.model, trainer.context_length),
        dataset.tokenizer,
        knows_documents=origin.knows_documents,
        alphabet=origin.alphabet,
        **more,
    )
