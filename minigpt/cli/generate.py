"""`minigpt generate`, or generate.py: prints a text as it is written, or JSON records."""

import argparse
import json
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .. import UserError
from ..config import USUAL, InferenceConfig, SampleConfig, check_given
from ..config.checked import is_utf8
from ..devices.memory import enough_memory
from ..generation.results import Step, Token
from ..system.platforms import end_of_input, quote
from ..system.shown import percent, plural, visible
from .interactive import Session, TalkSession, Task, hold
from .options import A_MODEL, Parser, add_fields, chosen_model, given_fields, typed_text
from .terminal import print_message, write, write_steps

if TYPE_CHECKING:
    from ..data.dialogue import Dialogue
    from ..generation.talk import Talk
    from ..generation.writer import Writer
    from ..tokenizer import Tokenizer

_OTHERS = ("interactive", "json", "show", "min_words", "wrap")  # options
_DEFAULTS = {  # of settings for which each run has its own
    **{name: f"the run's own, mostly {value:g}" for name, value in USUAL.items()},
    "dry_allowed_length": "the run's own, fitted to its text",
}
_ALTERNATIVES = 4  # to ask for with --show: one of them may be the token itself
_BETWEEN = "* * *"  # two texts that --min-words asks for
_MOST_TEXTS = 100  # that --min-words begins: a model may always end at once
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff][\w'’-]*")
_WIDTH = 16  # of a token, in characters


def options(parser: Parser) -> None:
    prompt = "how the text begins (\\n: new line); from standard input with -, or in a pipe"
    parser.add_argument("prompt", nargs="*", help=prompt)
    parser.add_argument("--run", metavar="NAME", help=A_MODEL)

    talking = parser.add_argument_group("talking, with a model that learned from conversations")
    answerer = "answer as this speaker (default: the most frequent one who does not ask)"
    talking.add_argument("--as", dest="answerer", metavar="NAME", help=answerer)
    plain = "continue the prompt as a text, instead of answering it"
    talking.add_argument("--plain", action="store_true", help=plain)

    output = parser.add_argument_group("output")
    interactive = "ask for one prompt after another; /help there lists what can be typed"
    output.add_argument("--interactive", action="store_true", help=interactive)
    output.add_argument(
        "--show", action="store_true", help="show how likely each token was, and the other choices"
    )
    output.add_argument("--json", action="store_true", help="print a JSON record for each sample")
    words = "write further texts from the same prompt until all have this many words together"
    output.add_argument("--min-words", type=int, metavar="N", help=words)
    wrap = "break lines between words, after at most N columns; 0: never"
    output.add_argument(
        "--wrap", type=int, metavar="N", help=f"{wrap} (default: the width of a terminal)"
    )

    sampling = add_fields(parser, SampleConfig, "sampling", defaults=_DEFAULTS)
    sampling.add_argument(
        "--without",
        action="append",
        type=typed_text,
        default=[],
        metavar="TEXT",
        help="never write this text, such as a letter or a word; repeatable",
    )
    add_fields(parser, InferenceConfig, "machine")


def run(given: argparse.Namespace) -> None:
    """Write a text, or records of several."""
    settings = given_fields(given, SampleConfig)
    SampleConfig(**settings)  # refuses a wrong one before the model is read
    machine = InferenceConfig(**given_fields(given, InferenceConfig))
    _check(given, settings)
    if len(given.prompt) > 1:
        words = " ".join(given.prompt)
        raise UserError(f"put quotes around the prompt: {quote(words)}")

    prompt = typed_text(given.prompt[0]) if given.prompt else None
    if not given.interactive:
        prompt = read_prompt(prompt)
    with enough_memory("fewer --samples, or a smaller model"):
        _generate(prompt or "", given, settings, machine)


def _generate(
    prompt: str, given: argparse.Namespace, settings: dict[str, Any], machine: InferenceConfig
) -> None:
    from ..data.dialogue import MANNER
    from ..generation.processors import without
    from ..generation.talk import read_talk

    name = str(chosen_model(given.run))
    writer = _writer(name, machine)
    processors = [without(text, writer.tokenizer) for text in given.without]
    task = Task(writer, settings, processors, prompt, shown=prompt)
    _check_repetition(task.config, settings)

    millions = writer.engine.num_parameters / 1e6
    model = f"{name} ({millions:.2f} M parameters)"
    dialogue = _dialogue(task, given)
    talk = None if dialogue is None else read_talk(dialogue, prompt, given.answerer)
    if given.interactive:
        print_message(f"writing with {model}")
        _hold_session(task, talk, given)
        return

    if talk is not None and (prompt or given.answerer is not None):
        task = task.as_answer(talk)
        print_message(f"answering as {talk.answerer}: {MANNER}")
    task = task.seeded()  # so that the user can be told
    if given.json:
        _write_records(task)
        print_message(f"written with {model}")
    else:
        _write_text(task, given, model)


def _hold_session(task: Task, talk: "Talk | None", given: argparse.Namespace) -> None:
    """Ask for one prompt after another: for turns, if there is a talk."""
    from ..data.dialogue import MANNER

    if talk is None:
        hold(Session(task, given.wrap), first=task.prompt if given.prompt else None)
        return
    who = f"you are {talk.asker}, and {talk.answerer} answers: {MANNER}"
    print_message(f"{who}; there are {talk.dialogue.listed()}")
    session = TalkSession(task, given.wrap, replace(talk, turns=()))
    hold(session, first=task.prompt or None)


def _writer(name: str, machine: InferenceConfig) -> "Writer":
    """The writer of a model."""
    from ..runs.find import load

    with warnings.catch_warnings(record=True) as problems:
        writer = load(name, **vars(machine))
    for problem in problems:  # such as a GPU that is not used
        print_message(str(problem.message))
    return writer


def _dialogue(task: Task, given: argparse.Namespace) -> "Dialogue | None":
    """Who speaks in the text that a model learned from, if it is to be talked with."""
    dialogue = task.writer.dialogue
    if given.answerer is not None and dialogue is None:
        raise UserError("--as is for a model that learned from conversations; this one did not")
    return None if given.plain else dialogue


def _check(given: argparse.Namespace, settings: dict[str, Any]) -> None:
    """Refuse options that do not fit together, or have no meaning."""
    others = {name: vars(given)[name] for name in _OTHERS}
    check_given({**settings, **others})

    for option, value in (("--min-words", given.min_words), ("--wrap", given.wrap)):
        if value is not None and value < 0:
            raise UserError(f"{option} must be at least 0, got {value}")
    if given.plain and given.answerer is not None:
        raise UserError("--as does nothing beside --plain; leave one of them out")
    if given.min_words and settings.get("max_new_tokens") == 0:
        raise UserError("--min-words needs --max-new-tokens of at least 1")
    if given.interactive and given.prompt == ["-"]:
        raise UserError("--interactive reads prompts from standard input; leave out the -")
    if given.interactive and not all(map(is_utf8, given.prompt)):
        raise UserError("the prompt is not UTF-8")


def _check_repetition(config: SampleConfig, settings: dict[str, Any]) -> None:
    """Refuse to say how repeated passages are penalised where they are not."""
    for name in ("dry_base", "dry_allowed_length"):
        if name in settings and config.dry_multiplier == 0:
            option = f"--{name.replace('_', '-')}"
            useless = f"{option} does nothing beside --dry-multiplier 0"
            raise UserError(f"{useless}; give a --dry-multiplier above 0, or leave it out")


def read_prompt(given: str | None) -> str:
    """How a text begins: as `given`, or as on standard input, which is read to its end if "-" is
    given, or if nothing is given and it is no terminal. Line ends become new lines, as in the text
    that is learned from; a last one is dropped."""
    is_piped = sys.stdin is not None and not sys.stdin.isatty()
    if given is not None and given != "-":
        return given
    if given is None and not is_piped:
        return ""

    if sys.stdin is None:
        raise UserError("standard input is closed; leave out the - or give the prompt itself")
    waiting = "reading the prompt"
    if sys.stdin.isatty():
        waiting = f"type the prompt; {end_of_input()} ends it"
    print_message(f"{waiting} (standard input)")
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"the prompt is not UTF-8 (offset {error.start})") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removesuffix("\n")


def _write_text(task: Task, given: argparse.Namespace, model: str) -> None:
    """Write the samples to standard output, the first as it comes. A prompt that cannot be encoded
    is refused before anything is written."""
    start = time.perf_counter()
    config = task.config
    shown = {"log_probabilities": True, "alternatives": _ALTERNATIVES} if given.show else {}
    steps = task.steps(**shown)

    tokens = plural(config.max_new_tokens, "token")
    end = ""
    if config.whole_sentences:
        last = "sentence" if task.writer.dialogue is None else "turn"
        end = f" and to the end of the {last}"
    print_message(
        f"writing with {model}, at temperature {config.temperature:g}, {tokens}{end} at most"
    )

    # The first sample is shown while all are written, the others when they are there.
    samples: list[list[Step]] = [[] for _ in range(config.samples)]
    first = _collected(steps, samples)
    for i, sample in enumerate([first, *samples[1:]], start=1):
        if len(samples) > 1:
            write(f"--- sample {i} ---")
        if given.show:
            show_tokens(task.shown, sample, task.writer.tokenizer)
        else:
            write_steps(task.shown, sample, given.wrap)

    if given.min_words is not None:
        _write_more(task, samples, given.min_words, given.wrap)

    seconds = time.perf_counter() - start
    print_message(
        task.summary(samples, seconds, "the same again: --seed", "more: --max-new-tokens N")
    )


def _collected(steps: Iterable[Step], samples: list[list[Step]]) -> Iterator[Step]:
    """Add each step to its sample as it comes, and pass on those of the first sample."""
    for step in steps:
        samples[step.sample].append(step)
        if step.sample == 0:
            yield step


def _write_more(task: Task, samples: list[list[Step]], min_words: int, width: int | None) -> None:
    """Write and add samples until all have so many words, with the seeds after that of the task."""
    first_seed = task.config.seed or 0
    while _count_words(task.shown, samples) < min_words and len(samples) < _MOST_TEXTS:
        another = task.seeded(first_seed + len(samples))
        sample: list[Step] = []
        write(f"\n{_BETWEEN}\n")
        write_steps(task.shown, _collected(another.steps(), [sample]), width)
        samples.append(sample)

    count = _count_words(task.shown, samples)
    if count < min_words:
        words = plural(count, "word")
        print_message(f"after {len(samples)} texts, the most there are, there are {words}")


def _count_words(prompt: str, samples: list[list[Step]]) -> int:
    """How many words all texts have together; characters of languages without spaces count."""
    count = 0
    for sample in samples:
        text = prompt + "".join(step.text for step in sample)
        count += len(_WORD.findall(text))
    return count


def _write_records(task: Task) -> None:
    """A JSON record for each sample, one on a line."""
    samples = task.samples()
    for i, sample in enumerate(samples):
        record = {
            "prompt": sample.prompt,
            "text": sample.text.strip() if task.is_answer else sample.text,
            "sample": i,
            "tokens": len(sample.token_ids),
            "stop_reason": sample.stop_reason,
            "seconds": round(sample.seconds, 6),
            "tokens_per_second": round(sample.tokens_per_second, 1),
            "seed": task.config.seed,
        }
        write(json.dumps(record))


def show_tokens(prompt: str, steps: Iterable[Step], tokenizer: "Tokenizer") -> None:
    """Print a line for each token of a sample as it is drawn, then the text."""
    write(f"{'probability':>11}  {'token':<{_WIDTH}}  it could have been")
    text = prompt
    try:
        for step in steps:
            if step.log_probability is not None:
                written = tokenizer.token_bytes(step.token_id)
                token = Token(step.token_id, written, step.log_probability)
                write(token_line(token, step.alternatives, tokenizer.end_of_text))
            text += step.text
    finally:  # also after Ctrl-C
        write(f"\n{text}\n")


def token_line(token: Token, alternatives: Iterable[Token], end_of_text: int | None) -> str:
    """A token with its probability, and the likeliest others."""
    others = [other for other in alternatives if other.id != token.id]
    named = [
        f"{token_name(other, end_of_text)} {percent(other.probability)}"
        for other in others[: _ALTERNATIVES - 1]
    ]
    name = token_name(token, end_of_text)
    return f"{percent(token.probability):>11}  {name:<{_WIDTH}}  {'  '.join(named)}"


def token_name(token: Token, end_of_text: int | None) -> str:
    """How a token looks in a table; one without text is (end) or its id."""
    if token.bytes:
        return visible(token.bytes)
    return "(end)" if token.id == end_of_text else f"({token.id})"
