"""How a text is generated, and how a trained model is run."""

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from .checked import (
    ANY_SEED,
    Base,
    Checked,
    Count,
    Factor,
    Multiplier,
    Natural,
    Penalty,
    Samples,
    SeedOrAny,
    Share,
    Temperature,
    TopP,
    is_utf8,
    require,
    setting,
)

# How a new run is sampled, if nothing else is given, as measured in docs/results.md. How long a
# passage may be repeated is counted in its text.
USUAL: Final[dict[str, Any]] = {"temperature": 0.7, "dry_multiplier": 2.0, "dry_base": 2.0}

# The settings that change probabilities. Only these can be a model's own; the others say how much
# is written, and where it ends.
OF_PROBABILITIES: Final = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "dry_multiplier",
    "dry_base",
    "dry_allowed_length",
)


@dataclass(frozen=True)
class SampleConfig(Checked):
    """How a text is generated. The defaults hold for a model that does not say it: `PLAIN`."""

    max_new_tokens: Natural = setting(300, "how many tokens to write at most")
    temperature: Temperature = setting(
        0.8, "below 1 favours likely tokens, above 1 evens them out; 0: always the likeliest"
    )
    top_k: Count | None = setting(None, "choose only among this many of the likeliest tokens")
    top_p: TopP | None = setting(
        None, "choose only among the likeliest tokens that together have this probability"
    )
    min_p: Share | None = setting(
        None, "leave out tokens less likely than this share of the likeliest one's probability"
    )
    repetition_penalty: Factor = setting(
        1.0, "above 1, such as 1.1, avoids tokens that the prompt or the text already has"
    )
    presence_penalty: Penalty = setting(
        0.0, "subtracted from the logit of a token that has been written"
    )
    frequency_penalty: Penalty = setting(
        0.0, "subtracted from a token's logit each time that it was written"
    )
    dry_multiplier: Multiplier = setting(
        0.0, "keeps a text from repeating passages (docs/generating.md); 0: does not"
    )
    dry_base: Base = setting(
        1.75, "how many times larger the penalty on a repeated passage is for each further token"
    )
    dry_allowed_length: Count = setting(
        2, "tokens of a passage that may be repeated without a penalty"
    )
    stop: tuple[str, ...] = setting((), r"end before this text (\n: new line); repeatable", "TEXT")
    whole_sentences: bool = setting(
        False, "go on to the end of the sentence or, in a play, of the speech (at most 200 tokens)"
    )
    samples: Samples = setting(1, "number of continuations, written side by side")
    seed: SeedOrAny | None = setting(
        None, "the same seed writes the same text; random if unset or -1"
    )

    def with_given(self, **given: Any) -> "SampleConfig":
        """These settings of a model, with those that are given for a text in their place.

        Whoever gives the temperature 0 or 1 asks for the likeliest tokens, or for the model's own
        probabilities: then no penalty acts that is not given. Any setting of DRY gives the penalty
        on repeated passages.
        """
        settings = given
        if given.get("temperature") in (0, 1):
            settings = {**_NO_PENALTIES, **given}
            if any(name.startswith("dry_") for name in given):
                settings.setdefault("dry_multiplier", self.dry_multiplier)
            else:
                settings["dry_multiplier"] = 0.0
        return replace(self, **settings)

    def _check(self) -> None:
        if self.seed == ANY_SEED:
            object.__setattr__(self, "seed", None)
        is_right = all(text and is_utf8(text) for text in self.stop)
        require(self, "stop", is_right, "texts, none empty")


_NO_PENALTIES: Final = {
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
PLAIN: Final = SampleConfig()  # how a model is sampled that does not say it


@dataclass(frozen=True)
class InferenceConfig(Checked):
    """How a trained model is run."""

    device: str = setting("auto", "where to compute: auto, cpu, cuda, cuda:1 or mps")
    precision: Literal["float32", "bfloat16"] = setting("float32", "bfloat16 is faster on a GPU")
