"""What `generate` does from start to end: a text on standard output as it is written, or records.

With --show it is `token_display.py` that prints; --interactive is `interactive.py`.
"""

import json
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..config import InferenceConfig, OutputConfig, SampleConfig, to_dict
from ..generation.results import Sample, Step, Token
from ..generation.writer import Writer
from ..model import count_parameters
from ..runs import load, newest_run
from .terminal import has_colours, say
from .token_display import ALTERNATIVES, TokenDisplay


def generate(
    prompt: str,
    run: str | None,
    machine: InferenceConfig,
    config: SampleConfig,
    output: OutputConfig,
) -> None:
    """Write a text, or several, to standard output.

    Args:
        prompt: how it begins.
        run: anything that :func:`minigpt.load` takes, or None for the newest run.
        machine: how to run it.
        config: how to generate.
        output: how to show it.

    Raises:
        UserError: if there is no such run, it is damaged, or the prompt cannot be encoded.
    """
    name, writer = open_writer(run, machine)
    config = seeded(config)
    if writer.compiles(config.max_new_tokens):
        say("compiling a step (the first time takes about a minute) ...")
    if output.json:
        _print_records(prompt, writer, config, output.logprobs)
        say(f"written with {described(name, writer)}")
        return
    draft = Draft(prompt)
    steps = draft.steps(writer, config, output.show)
    say(
        f"writing with {described(name, writer)}, "
        f"at temperature {config.temperature:g}, {config.max_new_tokens:,} tokens at most"
    )
    print_samples(prompt, steps, config.samples, writer, output.show)
    if writer.problem:
        say(f"not compiled, which costs some speed: {writer.problem}")
    say(f"{draft.figures()}   the same again: --seed {config.seed}   more: --max-new-tokens N")


def seeded(config: SampleConfig) -> SampleConfig:
    """With a seed, so that it can be told."""
    return config if config.seed is not None else replace(config, seed=random.randrange(2**31))


def _print_records(
    prompt: str, writer: Writer, config: SampleConfig, log_probabilities: bool
) -> None:
    """A JSON record for each sample, one on a line."""
    samples = writer.samples(prompt, log_probabilities=log_probabilities, **to_dict(config))
    for i, sample in enumerate(samples):
        print(json.dumps(_record(i, sample, config, writer)), flush=True)


def _record(i: int, sample: Sample, config: SampleConfig, writer: Writer) -> dict[str, object]:
    record: dict[str, object] = {
        "prompt": sample.prompt,
        "text": sample.text,
        "sample": i,
        "tokens": len(sample.token_ids),
        "stop_reason": sample.stop_reason,
        "seconds": round(sample.seconds, 6),
        "tokens_per_second": round(sample.tokens_per_second, 1),
        "seed": config.seed,
    }
    if sample.log_probabilities is not None:
        pairs = zip(sample.token_ids, sample.log_probabilities, strict=True)
        tokens = [Token(i, writer.tokenizer.token_bytes(i), nats) for i, nats in pairs]
        record["logprobs"] = [
            {"id": token.id, "text": token.text, "log_probability": token.log_probability}
            for token in tokens
        ]
    return record


def open_writer(run: str | None, machine: InferenceConfig) -> tuple[str, Writer]:
    """The writer of a run, or of the newest one, and what it is called.

    Raises:
        UserError: if there is no such run, or it is damaged.
    """
    name = str(newest_run() if run is None else run)
    return name, load(name, **to_dict(machine))


def described(name: str, writer: Writer) -> str:
    """A model in a few words."""
    return f"{name} ({count_parameters(writer.model.config) / 1e6:.2f} M parameters)"


@dataclass
class Draft:
    """A text while it is written, the first where there are several; whole also where Ctrl-C cut
    it off.
    """

    text: str
    tokens: int = 0  # written so far, those of all samples
    _start: float = field(default_factory=time.perf_counter)

    def steps(self, writer: Writer, config: SampleConfig, show: bool) -> Iterator[Step]:
        """Those of `writer`, noted down.

        Raises:
            UserError: if the text so far cannot be encoded, before the first step.
        """
        alternatives = ALTERNATIVES if show else 0
        return self._noted(
            writer.steps(self.text, config, log_probabilities=show, alternatives=alternatives)
        )

    def _noted(self, steps: Iterator[Step]) -> Iterator[Step]:
        for step in steps:
            self.tokens += 1
            if step.sample == 0:
                self.text += step.text
            yield step

    def figures(self) -> str:
        """How much was written and how fast."""
        speed = self.tokens / max(time.perf_counter() - self._start, 1e-9)
        return f"{self.tokens:,} tokens at {speed:,.0f} a second"


def print_samples(
    prompt: str, steps: Iterator[Step], samples: int, writer: Writer, show: bool
) -> None:
    """Write samples to standard output: the first as it comes, the others behind it.

    Args:
        prompt: what each begins with.
        steps: of all samples.
        samples: how many there are.
        writer: knows what tokens stand for.
        show: whether to show each token with its probability.
    """
    display = TokenDisplay(writer.tokenizer, has_colours(sys.stdout))
    for i, own in enumerate(_by_sample(steps, samples)):
        if i > 0:
            print(f"--- sample {i + 1} ---", flush=True)
        if show:
            display.show(prompt, own)
        else:
            print(prompt, end="", flush=True)
            for step in own:
                print(step.text, end="", flush=True)
            print(flush=True)


def _by_sample(steps: Iterator[Step], samples: int) -> Iterator[Iterator[Step]]:
    """The steps of each sample; to be read in turn, because the first come as they are drawn."""
    later: list[list[Step]] = [[] for _ in range(samples)]

    def first() -> Iterator[Step]:
        for step in steps:
            if step.sample == 0:
                yield step
            else:
                later[step.sample].append(step)

    yield first()
    yield from map(iter, later[1:])
