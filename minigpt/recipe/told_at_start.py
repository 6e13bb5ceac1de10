"""What `train` tells of a run before it trains: the text, the plan, the model."""

import time
from typing import TYPE_CHECKING

from tqdm import tqdm

from ..config import GPTConfig, TextConfig
from ..data.dialogue import Dialogue
from ..data.readers.document import all_left_out, documents_read, kinds_read, title
from ..data.source import Source
from ..runs.base import BASE, bytes_read
from ..runs.folder import KEPT, PLAN
from ..runs.listing import unfinished_run
from ..system.commands import command
from ..system.platforms import quote_path
from ..system.shown import plural
from ..training.messages import duration, rough, say_command, say_row

if TYPE_CHECKING:
    from ..training.trainer import Trainer
    from .plan import Planned

_MOST_NAMES = 3  # of files that are held out
_MOST_SPEAKERS = 3  # who are named, of more
_LONGEST_NAME = 100  # characters of each; plan.json has more of the numbers of documents
BITS = (  # what is meant by bits/byte
    "the bits that would store one byte, a letter or a part of one, with the model's help; fewer "
    "is better, without help it takes 8"
)


def say_text(source: Source) -> None:
    """What was read, and what a person should know of it."""
    files = source.training.files
    size = source.training.scan.text_bytes
    reports = source.training.scan.reports
    names = title(files[0]) if len(files) == 1 else plural(len(files), "file")
    kinds = kinds_read(reports)
    if kinds:
        names += f" ({kinds}), {documents_read(reports)}"
    say_row("text", f"{names}, {tqdm.format_sizeof(size, 'B')}")

    left_out = all_left_out(reports)
    if left_out:
        say_row("", f"left out: {left_out}")
    _say_conversations(source)
    if size < 1000:  # nobody learns a language from so little
        say_row("", "less than 1,000 bytes can only be learned by heart; give it more text")


def _say_conversations(source: Source) -> None:
    """What conversations there are, and who speaks in them; nothing of a text without."""
    talk = source.training.scan.talk
    if talk is None:
        return
    speakers = Dialogue(talk.speakers).listed(most=_MOST_SPEAKERS)
    where = "in a text that stays as it is"
    if talk.conversations:
        where = f"in {plural(talk.conversations, 'conversation')}"
    say_row("talk", f"{speakers} {where}; --plain reads it as any text")

    if source.training.reading.anonymous:
        say_row("", "the speakers are called A, B, C; names inside what they say stay")
    if source.dialogue is None:
        say_row("", "most of the text is none: the model continues a prompt and does not answer it")


def say_unfinished(config: TextConfig, source: Source) -> None:
    """If a run on the same text was not finished: where it is, and how to continue it."""
    folder = unfinished_run(config, source.fingerprint)
    if folder is not None:
        resume = f"{command('train')} --resume --out {quote_path(folder)}"
        say_command(f"{folder} is an unfinished run on this text; to continue it instead", resume)


def reasons(plan: "Planned") -> list[str]:
    """What was measured, and why the plan is as it is: the lines that `--plan` prints, and that
    plan.json holds."""
    return [*_extent(plan), *lines_of_beginning(plan), *reasons_of_shape(plan), *_reading(plan)]


def _extent(plan: "Planned") -> list[str]:
    """How fast the machine is, and how much of the text is used."""
    from .machine import SPEED_OF_A_LESSON  # these load torch; a report of what was read does not

    lines = []
    speed = plan.machine.speed
    if speed is not None:
        operations = f"{speed.flops / 1e9:,.0f} billion operations a second"
        extent = f"{plural(plan.steps, 'step')} in {duration(plan.seconds)}"
        who = "a lesson counts with" if speed == SPEED_OF_A_LESSON else "this machine computes"
        lines.append(f"{who} {operations}: about {extent}")

    part = part_that_is_used(plan)
    if part is not None:
        lines.append(part)

    if plan.held_out:
        named = "; ".join(_shortened(name) for name in plan.held_out[:_MOST_NAMES])
        more = len(plan.held_out) - _MOST_NAMES
        others = f" and {plural(more, 'more file')}" if more > 0 else ""
        lines.append(f"held out, to validate on: {named}{others}")
    return lines


def part_that_is_used(plan: "Planned") -> str | None:
    """How much of a long text is used; None if all of it is."""
    characters = (plan.text.whole or plan.text.size) / plan.text.bytes_per_character
    most_used = plan.settings["max_characters"]
    if most_used is None or most_used >= characters:
        return None
    return f"of this long text {rough(most_used)} characters are used, from all over it"


def reasons_of_shape(plan: "Planned") -> list[str]:
    """Why the plan has its model, vocabulary, context and batch."""
    settings = plan.settings
    size_field = "num_layers" if settings.source("emb_dim") == "given" else "emb_dim"
    shape = f"{plural(settings['num_layers'], 'layer')} of width {settings['emb_dim']}"
    vocabulary = f"{settings['vocab_size']:,} tokens{settings.why('vocab_size')}"
    is_counted = settings.source("vocab_size") == "planned"  # when the text has been read
    if plan.text.tokenizer == "char" and is_counted:
        vocabulary = "the characters of the text, as given"
    context = plural(settings["context_length"], "token")
    batch = plural(settings["batch_size"], "sequence")
    return [
        f"model: {shape}{settings.why(size_field)}",
        f"vocabulary: {vocabulary}",
        f"context: {context}{settings.why('context_length')}",
        f"batch: {batch}{settings.why('batch_size')}",
    ]


def _reading(plan: "Planned") -> list[str]:
    """How often the text is read, what makes that harder, and what to expect of it."""
    settings = plan.settings
    tokens = f"the text's {rough(plan.tokens)} tokens"
    often = f"{plan.epochs:.1%} of {tokens} are read"
    if plan.epochs >= 1:
        often = f"{tokens} are read {plan.epochs:,.1f} times"
    if settings["dropout"] and plan.epochs >= 1:
        often += f", so dropout {settings['dropout']:g} keeps it from being learned by heart"
    lines = [often]

    harder = []
    if settings["token_split_prob"] > 0:
        harder.append(f"{settings['token_split_prob']:.0%} of the tokens are split in two")
    if settings["warmup_context"] < settings["context_length"]:
        seen = plural(settings["warmup_context"], "token")
        harder.append(f"the model sees only {seen} at a time")
    if harder:
        lines.append(f"until the last fifth {' and '.join(harder)}, which makes training harder")

    if plan.bits_per_byte is not None:
        lines.append(f"expected: about {plan.bits_per_byte:.2g} bits/byte ({BITS})")
    elif settings["only"] is not None:
        lines.append("expected: not known of the words of one speaker")
    elif plan.init is None or plan.text.loss_before is not None:
        lines.append("expected: not known, since no text of this size and kind was tried")
    if plan.ends_early:
        often = f"{settings['max_epochs']:g} readings"
        lines.append(f"ends early: after {often} more would only be learned by heart")
    return lines


def _shortened(name: str) -> str:
    """A name that fits a line or two of a terminal, cut at a space if it has one."""
    if len(name) <= _LONGEST_NAME:
        return name
    last_space = name.rfind(" ", 0, _LONGEST_NAME - 4)
    end = last_space if last_space > 0 else _LONGEST_NAME - 4
    return f"{name[:end]} ..."


def lines_of_beginning(plan: "Planned") -> list[str]:
    """What a training begins with, and why: a line where that was chosen or measured."""
    if plan.init is None:
        if plan.with_base is None or plan.from_nothing is None:
            return []
        expected = f"about {plan.from_nothing:.3g} bits/byte"
        other = f"the base would not end clearly lower (about {plan.with_base:.3g})"
        return [f"begins {what_it_begins_with(None)}: {expected}; {other}"]
    if plan.text.loss_before is None:
        return []

    before = f"{plan.text.loss_before:.3g} bits/byte on this text"
    line = f"begins {what_it_begins_with(plan.init)}: {before}"
    if plan.with_base is not None and plan.from_nothing is not None:
        line += f" before the first step and about {plan.with_base:.3g} at the end"
        line += f"; from nothing about {plan.from_nothing:.3g}"
    return [line]


def what_it_begins_with(init: str | None) -> str:
    """What a training begins with: after "begins"."""
    if init is None:
        return "from nothing"
    words = f"with {called(init)}"
    size = bytes_read() if init == BASE else None
    if size is not None:
        words += f", which has read {size / 1e6:,.0f} MB of English"
    return words


def called(init: str) -> str:
    """What a model that a training begins with is called in a sentence."""
    return "the base" if init == BASE else init


def say_run(trainer: "Trainer", began: float, planned: "Planned | None" = None) -> None:
    """What is about to be done, in a few plain lines. `began` is when its minutes began, in
    time.monotonic's seconds. `planned` is the plan of a new run; one that is continued has none,
    nor has a network of somebody's own."""
    how_to_stop = "Ctrl-C saves and stops, twice stops at once"
    if planned is not None:
        part = part_that_is_used(planned)
        if part is not None:
            say_row("", part)
        say_row("begins", what_it_begins_with(planned.init))
        how_to_stop += f"; {PLAN} there says why all is so"

    say_row("model", _network(trainer))
    say_row("training", _training(trainer, began, planned))
    if trainer.config.keep is not None:
        say_row("keeping", _keeping(trainer))
    say_row("run", f"{trainer.folder.path} ({how_to_stop})")


def _keeping(trainer: "Trainer") -> str:
    """Of how many steps weights are kept, where, and how much of the disk they take."""
    from ..system.networks import tensors_of

    keep = trainer.config.keep
    steps = trainer.config.steps
    assert keep is not None
    folder = trainer.folder.path
    assert folder is not None
    if steps is not None:  # there may be fewer
        keep = min(keep, steps + 1)
    one = sum(t.numel() * t.element_size() for t in tensors_of(trainer.model).values())
    sizes = f"{tqdm.format_sizeof(one, 'B')} each, {tqdm.format_sizeof(keep * one, 'B')} together"
    return f"the weights of {keep} steps, from step 0 to the last, in {folder / KEPT}: {sizes}"


def _network(trainer: "Trainer") -> str:
    """What is trained, and how large it is."""
    size = sum(parameter.numel() for parameter in trainer.model.parameters())
    millions = f"{size / 1e6:.2f} M parameters"
    config = getattr(trainer.model, "config", None)
    if not isinstance(config, GPTConfig):
        name = type(trainer.model).__name__
        return f"{name}, {millions}, context {trainer.context_length}"
    return (
        f"{config.kind}, {millions}: {plural(config.num_layers, 'layer')} of width "
        f"{config.emb_dim}, {plural(config.num_heads, 'head')}, context {config.context_length}"
    )


def _training(trainer: "Trainer", began: float, planned: "Planned | None") -> str:
    """How long it is trained, by what, and when that is over."""
    import torch

    from ..training.distributed import world_size
    from ..training.workers import number_for
    from .size_and_batch import whole_seconds

    training = trainer.config
    goal = duration(60 * training.minutes)
    seconds: float | None = 60 * training.minutes  # from its beginning to its end
    if training.steps is not None:
        goal = plural(training.steps, "step")
        if training.lesson:
            goal += f", a lesson of {duration(60 * training.minutes)},"
        seconds = None
    if planned is not None and planned.machine.speed is not None:
        expected = whole_seconds(planned.seconds)
        seconds = expected if seconds is None else min(seconds, expected)

    device = trainer.device.type
    if world_size() > 1:
        device = f"{world_size()} processes, each {device}"
    if trainer.device.type == "cpu":
        threads = number_for(trainer.model, training)
        if threads == 1 and not training.lesson:
            threads = torch.get_num_threads()
        device += f" with {plural(threads, 'thread')}"

    row = f"{goal} on {device} in {training.precision}"
    if seconds is not None:
        left = max(began + seconds - time.monotonic(), 0.0)
        end = time.localtime(time.time() + left)
        row += time.strftime(", done about %H:%M", end)
    return row
