"""`minigpt generate`, or generate.py: prints a text as it is written, or JSON records."""

import argparse
import dataclasses
import itertools
import json
import random
import re
import shlex
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .. import UserError
from ..config import InferenceConfig, SampleConfig, count_parameters, counted
from ..generation.results import Step, Token, visible
from ..runs.memory import enough_memory
from .options import Parser, add_fields, given_fields
from .terminal import Wrapper, say, terminal_width, write

if TYPE_CHECKING:
    from ..generation.writer import Writer
    from ..tokenizer import Tokenizer

_ALTERNATIVES = 4  # to ask for with --show: one of them may be the token itself
_BETWEEN = "* * *"  # two texts that --min-words asks for
_MOST_TEXTS = 100  # that it begins: a model may always end at once
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff][\w'’-]*")
_WIDTH = 16  # of a token, in characters


def options(parser: Parser) -> None:
    prompt = "how the text begins; - for standard input (also read if it is no terminal)"
    parser.add_argument("prompt", nargs="*", help=prompt)
    run = "a run, or a model such as hf:gpt2 (default: the newest run)"
    parser.add_argument("--run", metavar="FOLDER", help=run)
    output = parser.add_argument_group("output")
    output.add_argument("--show", action="store_true", help="how likely each token was, and others")
    output.add_argument("--json", action="store_true", help="a JSON record for each sample")
    words = "begin another text, as the first began, until all together have so many words"
    output.add_argument("--min-words", type=int, metavar="N", help=words)
    wrap = "break lines between words after N columns at most (default: at a terminal, its width)"
    output.add_argument("--wrap", type=int, metavar="N", help=f"{wrap}; 0: never")
    add_fields(parser, SampleConfig, "sampling")
    add_fields(parser, InferenceConfig, "machine")


def run(given: argparse.Namespace) -> None:
    """Write a text, or records of several."""
    config = SampleConfig(**given_fields(given, SampleConfig))
    machine = InferenceConfig(**given_fields(given, InferenceConfig))
    _check(given, config)
    if len(given.prompt) > 1:
        raise UserError(f"put quotes around the prompt: {shlex.quote(' '.join(given.prompt))}")
    prompt = read_prompt(given.prompt[0] if given.prompt else None)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # if it is not UTF-8
    with enough_memory("fewer --samples, or a smaller model"):
        _generate(prompt, given, config, machine)


def _generate(
    prompt: str, given: argparse.Namespace, config: SampleConfig, machine: InferenceConfig
) -> None:
    from ..runs.find import load, newest_run

    name = str(newest_run() if given.run is None else given.run)
    writer = load(name, **vars(machine))
    if config.seed is None:  # so that the user can be told
        config = dataclasses.replace(config, seed=random.randrange(2**31))
    described = f"{name} ({count_parameters(writer.engine.config) / 1e6:.2f} M parameters)"
    if given.json:
        _write_records(prompt, writer, config)
        say(f"written with {described}")
    else:
        width = terminal_width() if given.wrap is None else given.wrap
        _write_text(prompt, writer, config, given.show, described, given.min_words, width)


def _check(given: argparse.Namespace, config: SampleConfig) -> None:
    """Refuse options that do not fit together, or have no meaning."""
    if given.json and given.show:
        raise UserError("--json excludes --show; leave one of them out")
    for name in ("min_words", "wrap"):
        value = getattr(given, name)
        option = f"--{name.replace('_', '-')}"
        if value is None:
            continue
        if value < 0:
            raise UserError(f"{option} must be at least 0, got {value}")
        if given.json or given.show:
            raise UserError(f"{option} is for plain text; leave it or --json and --show out")
    if given.min_words and config.samples > 1:
        raise UserError("--min-words writes as many texts as it takes; leave out --samples")
    if given.min_words and config.max_new_tokens == 0:
        raise UserError("--min-words needs --max-new-tokens of at least 1")


def read_prompt(given: str | None) -> str:
    """How a text begins: as `given`, or as on standard input, which is read to its end if "-" is
    given, or if nothing is given and it is no terminal. A last line end is dropped."""
    is_piped = sys.stdin is not None and not sys.stdin.isatty()
    if given != "-" and (given is not None or not is_piped):
        return given or ""
    if sys.stdin is None:
        raise UserError("standard input is closed; leave out the - or give the prompt itself")
    waiting = "type the prompt; Ctrl-D ends it" if sys.stdin.isatty() else "reading the prompt"
    say(f"{waiting} (standard input)")
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"the prompt is not UTF-8 (offset {error.start})") from None
    return text.removesuffix("\n").removesuffix("\r")


def _write_text(
    prompt: str,
    writer: "Writer",
    config: SampleConfig,
    show: bool,
    described: str,
    min_words: int | None,
    width: int | None,
) -> None:
    """Write the samples to standard output, the first as it comes, in lines of `width` columns. A
    prompt that cannot be encoded is refused before anything is written."""
    start = time.perf_counter()
    alternatives = _ALTERNATIVES * show
    steps = writer.steps(prompt, config, log_probabilities=show, alternatives=alternatives)
    most = f"{counted(config.max_new_tokens, 'token')} at most"
    if config.whole_sentences:
        most = f"{counted(config.max_new_tokens, 'token')} and to the end of the sentence at most"
    say(f"writing with {described}, at temperature {config.temperature:g}, {most}")
    samples: list[list[Step]] = [[] for _ in range(config.samples)]

    def first() -> Iterator[Step]:
        for step in steps:
            samples[step.sample].append(step)
            if step.sample == 0:
                yield step

    for i, sample in enumerate([first(), *samples[1:]], start=1):
        if len(samples) > 1:
            write(f"--- sample {i} ---")
        if show:
            show_tokens(prompt, sample, writer.tokenizer)
        else:
            _write_steps(prompt, sample, width)

    if min_words is not None:
        _write_more(prompt, writer, config, samples, min_words, width)
    count = sum(map(len, samples))
    speed = f"{counted(count, 'token')} at {count / (time.perf_counter() - start):,.0f} a second"
    is_cut = any(sample and sample[-1].stop_reason == "length" for sample in samples)
    end = "more: --max-new-tokens N" if is_cut else "it ended by itself"
    say(f"{speed}   the same again: --seed {config.seed}   {end}")


def _write_more(
    prompt: str,
    writer: "Writer",
    config: SampleConfig,
    samples: list[list[Step]],
    min_words: int,
    width: int | None,
) -> None:
    """Write and add samples until all have so many words, with the seeds after that of `config`."""
    while _count_words(prompt, samples) < min_words and len(samples) < _MOST_TEXTS:
        seed = ((config.seed or 0) + len(samples)) % (1 << 63)
        another = dataclasses.replace(config, seed=seed)
        samples.append([])
        write(f"\n{_BETWEEN}\n")
        _write_steps(prompt, _kept(writer.steps(prompt, another), samples[-1]), width)


def _write_steps(prompt: str, steps: Iterable[Step], width: int | None) -> None:
    """Write a text as it comes, its lines broken if there is a width."""
    pieces = itertools.chain([prompt], (step.text for step in steps))
    if not width:
        for text in pieces:
            write(text, end="")
    else:
        wrapper = Wrapper(width)
        for text in pieces:
            write(wrapper.add(text), end="")
        write(wrapper.end(), end="")
    write("")


def _kept(steps: Iterable[Step], kept: list[Step]) -> Iterator[Step]:
    """The steps, each added to a list as it comes."""
    for step in steps:
        kept.append(step)
        yield step


def _count_words(prompt: str, samples: list[list[Step]]) -> int:
    """How many words all texts have together; characters of languages without spaces count."""
    texts = ("".join([prompt, *(step.text for step in sample)]) for sample in samples)
    return sum(len(_WORD.findall(text)) for text in texts)


def _write_records(prompt: str, writer: "Writer", config: SampleConfig) -> None:
    """A JSON record for each sample, one on a line."""
    for i, sample in enumerate(writer.samples(prompt, **vars(config))):
        record = {
            "prompt": sample.prompt,
            "text": sample.text,
            "sample": i,
            "tokens": len(sample.token_ids),
            "stop_reason": sample.stop_reason,
            "seconds": round(sample.seconds, 6),
            "tokens_per_second": round(sample.tokens_per_second, 1),
            "seed": config.seed,
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


def token_line(token: Token, alternatives: Iterable[Token], end_of_text: int) -> str:
    """A token with its probability, and the likeliest others."""

    def name(token: Token) -> str:
        return visible(token.bytes) or ("(end)" if token.id == end_of_text else f"({token.id})")

    others = [other for other in alternatives if other.id != token.id][: _ALTERNATIVES - 1]
    listed = "  ".join(f"{name(other)} {percent(other.probability)}" for other in others)
    return f"{percent(token.probability):>11}  {name(token):<{_WIDTH}}  {listed}"


def percent(probability: float) -> str:
    """A probability in two digits or so: 83%, 2.4%, <0.1%."""
    if probability < 0.001:
        return "<0.1%"
    return f"{probability:.{0 if probability >= 0.0995 else 1}%}"
