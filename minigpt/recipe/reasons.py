"""Why a plan has this model, this vocabulary, this context and this batch: a line for each, with
the numbers that decided. The rules themselves are in rules.py; draft.py follows them.
"""

from dataclasses import replace

from tqdm import tqdm

from ..config import GPTConfig, counted
from ..training.messages import duration
from . import rules
from .draft import Draft, batch_sizes, count_steps, has_time
from .given import Given
from .machine import Machine
from .text_stats import TextStats


def explain(draft: Draft, text: TextStats, machine: Machine, given: Given) -> tuple[str, ...]:
    """The reasons for what a draft chooses."""
    model = draft.shape.model
    shape = f"{counted(model.num_layers, 'layer')} of width {model.emb_dim}"
    context = counted(model.context_length, "token")
    batch = counted(draft.batch_size, "sequence")
    return (
        f"model: {shape}{_why_model(draft, text, machine, given)}",
        f"vocabulary: {_why_vocabulary(model, text, given)}",
        f"context: {context}{_why_context(draft, text, given)}",
        f"batch: {batch}{_why_batch(draft, machine, given)}",
    )


def _why_model(draft: Draft, text: TextStats, machine: Machine, given: Given) -> str:
    if given.init is not None:
        return f", that of {given.init}"
    if given.emb_dim is not None and given.num_layers is not None:
        return ", as given"

    larger = draft.larger
    if larger is None:
        return ", the largest that is planned"

    parameters = rules.parameters_to_train(larger.shape.model)
    name = f"{larger.shape.model.num_layers} of width {larger.shape.model.emb_dim}"
    if has_time(larger, text):
        most = f"{rules.PARAMETERS_PER_TOKEN:g} for each of the text's {rough(draft.shape.tokens)}"
        return f"; {name} have {rough(parameters)} parameters, more than {most} tokens"

    needed = rough(rules.tokens_needed(parameters, text.repeats_afar))
    extent = _extent(larger, machine, given)
    read = rough(larger.trained_tokens)
    return f"; {name} would need {needed} tokens, and {extent} give them {read}"


def _extent(draft: Draft, machine: Machine, given: Given) -> str:
    """What limits how many tokens a draft is trained on."""
    if given.steps is not None:
        return counted(given.steps, "step")
    if count_steps(draft.shape, draft.batch_size, machine, given).ends_early:
        return f"at most {draft.shape.max_epochs:g} readings of the text"
    return duration(60 * given.minutes)


def _why_vocabulary(model: GPTConfig, text: TextStats, given: Given) -> str:
    size = model.vocab_size
    tokens = f"{size:,} tokens"
    if given.init is not None:
        return f"{tokens}, that of {given.init}"
    if text.tokenizer not in ("bpe", "char"):
        return f"{tokens}, those of {text.tokenizer}"
    if given.vocab_size is not None:
        return f"{tokens}, as given"
    if text.tokenizer == "char":
        return "the characters of the text, as given"

    if text.repeats_afar:
        usual_text = replace(text, repeats_afar=False)
        usual_size = rules.plan_vocabulary(usual_text, replace(model, vocab_size=1))
        if size > usual_size:
            return f"{tokens}: long ones, because the text repeats itself far away"
    if size == rules.SMALLEST_VOCABULARY:
        return f"{tokens}, the fewest that are planned"
    if size < rules.vocabulary_of_words(text.size):
        return f"{tokens}; {2 * size:,} would need more parameters than the layers have"
    if size == rules.LARGEST_VOCABULARY:
        return f"{tokens}, the most that are planned"
    extent = tqdm.format_sizeof(text.size, "B")
    return f"{tokens}; more would be too rare in {extent} of text to be learned"


def _why_context(draft: Draft, text: TextStats, given: Given) -> str:
    length = draft.shape.model.context_length
    if given.context_length is not None:
        return ", as given"
    if given.start is not None:
        longest = given.start.context_length
        if length == longest:
            return f", that of {given.init}"
        if text.before is None and length == 4 * rules.short_context(text.tokenizer):
            return f" of the {longest:,} that the model can read; more need more time and memory"
        return f", because the text has only {rough(draft.shape.tokens)}"

    times = 1
    if text.repeats_afar:
        times = 4
    elif draft.longer is None:
        times = 2
    if length < rules.short_context(text.tokenizer) * times:
        return f", because the text has only {rough(draft.shape.tokens)}"
    if text.repeats_afar:
        return ", because the text repeats itself far away"

    many = rough(rules.MANY_TOKENS)
    if draft.longer is None:
        read = rough(draft.trained_tokens)
        return f", because {many} tokens or more are read: {read}"
    read = rough(draft.longer.trained_tokens)
    return f", because for {2 * length} too few tokens are read: {read} instead of {many}"


def _why_batch(draft: Draft, machine: Machine, given: Given) -> str:
    if given.batch_size is not None:
        return ", as given"
    if given.steps is not None:
        return ", as usual for a given number of steps"

    sizes = batch_sizes(machine, given, draft.batch_divisor)
    if draft.batch_size not in sizes:
        return ", as usual for a model that is trained further"
    place = sizes.index(draft.batch_size)
    if place == 0:
        return f", the fewest, because there are no more than {rules.MANY_STEPS:,} steps"

    smaller = sizes[place - 1]
    steps = count_steps(draft.shape, smaller, machine, given).number
    most = f"{rules.MANY_STEPS:,}"
    return f", because {smaller} would make more than {most} steps: {rough(steps)}"


def rough(number: float) -> str:
    """A number in three digits: 1.23 million, 45,600."""
    if number >= 999.5e6:
        return f"{number / 1e9:,.3g} billion"
    if number >= 999_500:
        return f"{number / 1e6:,.3g} million"
    return f"{float(f'{number:.3g}'):,.0f}"
