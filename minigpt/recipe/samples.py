"""What a model writes while it learns: a callback of the training."""

from typing import TYPE_CHECKING, Any

from .. import UserError
from ..config import counted
from ..data.voices import mark_of
from ..generation.torch_gpt import engine_of
from ..generation.writer import Writer
from ..runs.folder import SAMPLES
from ..training.messages import say_text_of_a_model
from .result import first_words

if TYPE_CHECKING:
    from ..training.trainer import Trainer

_TOKENS = 80


class Samples:
    """Writes a short text after each evaluation: shown, and added to samples.txt in the run."""

    def on_evaluation(self, trainer: "Trainer", figures: dict[str, Any]) -> None:
        config = trainer.config
        writer = writer_of(trainer)
        if writer.voices:  # one after another
            turn = max(trainer.state.evaluations - 1, 0) % len(writer.voices)
            writer = writer.in_voice(writer.voices[turn])

        prompt = config.sample_prompt or _usual_prompt(trainer)
        sample = writer.generate(prompt, max_new_tokens=_TOKENS, seed=config.seed)
        if writer.voice is not None:
            sample = f"{mark_of(writer.voice)}{sample}"
        say_text_of_a_model(sample)
        if trainer.out is None:
            return

        path = trainer.out / SAMPLES

        def add() -> None:
            with open(path, "a", encoding="utf-8") as samples:
                samples.write(f"--- step {figures['step']}\n{sample}\n")

        trainer.disk.write("the sample", add)


def _usual_prompt(trainer: "Trainer") -> str:
    """How a sample begins if nothing else is said: with the name of the only speaker whose turns
    are learned, if so; else with nothing."""
    origin = trainer.dataset.origin
    if origin.text is None or origin.text.only is None or origin.dialogue is None:
        return ""
    return origin.dialogue.opening(origin.dialogue.find(origin.text.only))


def opening(trainer: "Trainer") -> str:
    """How the texts in a run's journal begin: as its samples do or, where those begin with nothing,
    as its training text does."""
    return trainer.config.sample_prompt or _usual_prompt(trainer) or first_words(trainer.dataset)


def check_sample_prompt(trainer: "Trainer") -> None:
    """Refuse a --sample-prompt that the tokenizer cannot encode, or that the model cannot read at
    once."""
    prompt = trainer.config.sample_prompt
    if not prompt:
        return

    try:
        length = len(trainer.dataset.tokenizer.encode(prompt))
    except UserError as problem:
        raise UserError(f"--sample-prompt cannot be used: {problem}") from None
    if length > trainer.context_length:
        context = counted(trainer.context_length, "token")
        raise UserError(
            f"--sample-prompt is {counted(length, 'token')} long, more than the context of "
            f"{context}; choose a shorter one"
        )


def writer_of(trainer: "Trainer", **more: Any) -> Writer:
    """A writer with the model in its present state; `more` are further arguments of it."""
    dataset = trainer.dataset
    origin = dataset.origin
    return Writer(
        engine_of(trainer.model, trainer.context_length),
        dataset.tokenizer,
        knows_documents=origin.knows_documents,
        alphabet=origin.alphabet,
        dialogue=origin.dialogue,
        voices=origin.voices,
        **more,
    )
