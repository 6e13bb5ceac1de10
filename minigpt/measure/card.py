"""The model card of an export for transformers: `README.md`, which the Hugging Face hub shows.

It says how the model was made, how good it is and how to use it. It names the text and its size,
and quotes nothing of it. The licence is left to the owner.
"""

import contextlib
import json
import re
from collections.abc import Mapping
from pathlib import PureWindowsPath
from typing import Any

from tqdm import tqdm

from .. import UserError, __version__
from ..config import SampleConfig
from ..data.readers.document import title
from ..interop.gguf import sampling_options
from ..interop.hub import PREFIX
from ..runs.base import BASE, is_base
from ..runs.find import beginning
from ..runs.folder import COUNTING_BITS, METRICS, kept_row, read_metrics, read_plan
from ..runs.read_model import FoundModel
from ..system.platforms import quote
from ..system.shown import in_utf8, plural

CARD = "README.md"
_MARKUP = re.compile(r"[\\`*_\[\]<>#$~|&^!]")
_PROMPTS = ("Once upon a time", "The", "the", " ", "\n")


def model_card(found: FoundModel, name: str) -> str:
    """The text of a card for a model whose exported folder is called `name`."""
    parts = [
        _front_matter(found),
        f"# {_escaped(name)}",
        _introduction(found),
        _training(found),
        _quality(found),
        _usage(name, _prompt(found), found.usual),
        _expectations(found),
        _licence(),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _front_matter(found: FoundModel) -> str:
    """What the hub reads. Language and licence are not known."""
    lines = [
        "library_name: transformers",
        "pipeline_tag: text-generation",
        "tags:",
        "- minigpt",
        f"- {found.glass.config.preset}",
    ]
    init = _settings(found).get("init") or ""
    if init.startswith(PREFIX):
        lines.append(f"base_model: {json.dumps(init.removeprefix(PREFIX))}")
    return "\n".join(["---", *lines, "---"])


def _introduction(found: FoundModel) -> str:
    config = found.glass.config
    size = f"{found.glass.num_parameters / 1e6:.2f} million parameters"
    layers = plural(config.num_layers, "layer")
    heads = plural(config.num_heads, "head")
    return (
        f"A text generator with {size}: {config.kind}, {layers} of width {config.emb_dim}, "
        f"{heads} in each layer, {config.vocab_size:,} different tokens. It looks "
        f"{plural(config.context_length, 'token')} back."
    )


def _training(found: FoundModel) -> str:
    """What it learned from, and how; nothing if the model is not a run."""
    if found.config is None:
        return ""
    lines = ["## Training", ""]
    settings = _settings(found)
    plan = read_plan(found.folder)

    if settings:
        names = ", ".join(f"`{_last_part(title(file))}`" for file in settings["files"])
        lines.append(f"- Text: {names}{_extent(plan)}. It is not part of this folder.")
        model = beginning(found)
        if model is not None:
            quoted = model if settings["init"] == BASE else f"`{_plain(model)}`"
            lines.append(f"- Begun with the weights of {quoted}.")
    elif is_base(found.folder):
        lines.append("- Text: English in the public domain or under free licences.")

    rows = read_metrics(found.folder / METRICS)
    if rows:
        minutes = rows[-1]["seconds"] / 60
        steps = plural(rows[-1]["step"], "step")
        lines.append(f"- Trained for {minutes:,.1f} minutes, {steps}{_machine(found, plan)}.")
    if found.step is not None:
        when = f"after step {found.step:,} of this training" if found.step else "before training"
        lines.append(f"- **These are its weights {when}**, kept to study how a model learns.")
    program = "[minigpt](https://github.com/minigpt-text/minigpt-text)"
    lines.append(f"- Made with {program} and exported by its version {__version__}.")
    return "\n".join(lines)


def _quality(found: FoundModel) -> str:
    """The loss on text that the model has not seen, beside that of counting; nothing if it is not
    known."""
    rows = [] if found.config is None else read_metrics(found.folder / METRICS)
    if found.step is not None:  # rows of other steps tell of other weights
        rows = [row for row in rows if row["step"] == found.step]
    if not rows:
        return ""

    lines = [
        "## How good it is",
        "",
        "Measured on the validation text, which it did not learn from. Bits per byte are what it "
        "takes to store one byte of that text with the model's help; fewer is better, and without "
        "help it takes 8.",
        "",
        "| | bits per byte |",
        "|---|---|",
        f"| this model | {kept_row(rows)['val_bits_per_byte']:.3f} |",
    ]
    counting = rows[-1].get(COUNTING_BITS)
    if counting is not None:
        lines.append(f"| counting which token follows which four | {counting:.3f} |")
    return "\n".join(lines)


def _usage(name: str, prompt: str, usual: SampleConfig) -> str:
    quoted_prompt = quote(prompt)
    folder = quote(name)
    file = quote(f"{name}-gguf/{name}.gguf")
    return f"""## How to use it

With transformers:

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = {name!r}  # this folder, or its name on the hub
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder)
prompt = tokenizer({prompt!r}, return_tensors="pt")
written = model.generate(**prompt)
print(tokenizer.decode(written[0], skip_special_tokens=True))
```

With minigpt, where this folder is:

```sh
minigpt generate {quoted_prompt} --run {folder}
```

With llama.cpp, which reads a GGUF file:

```sh
minigpt export {folder} --to gguf --out {quote(f"{name}-gguf")}
llama-cli -m {file} {sampling_options(usual)} -p {quoted_prompt}
```

{_sampled(usual)}"""


def _sampled(usual: SampleConfig) -> str:
    """How it is sampled in each of them."""
    by_all = f"All of them sample at temperature {usual.temperature:g} unless told otherwise."
    if usual.dry_multiplier == 0.0:
        return by_all
    length = plural(usual.dry_allowed_length, "token")
    return (
        f"{by_all} minigpt, and llama.cpp with these options, also keep it from repeating passages "
        f"of more than {length}. transformers has no such setting: there it goes round in circles "
        "sooner."
    )


def _expectations(found: FoundModel) -> str:
    context = plural(found.glass.config.context_length, "token")
    return f"""## What to expect

It continues a text in the style of the text it learned from. It is not an assistant: it follows no
instructions and knows no facts. What it writes can be wrong, can lose its thread after {context},
and can repeat parts of its training text word for word."""


def _licence() -> str:
    return """## Licence

Left to the owner of this model: add a line `license: ...` to the block at the top of this file. It
depends on the rights to the training text."""


def _prompt(found: FoundModel) -> str:
    """A beginning that the tokenizer can encode and that leaves half of the context free."""
    for prompt in _PROMPTS:
        with contextlib.suppress(UserError):
            length = len(found.tokenizer.encode(prompt))
            if 0 < length <= found.glass.config.context_length // 2:
                return prompt
    return found.tokenizer.decode([0])


def _settings(found: FoundModel) -> dict[str, Any]:
    """The settings of the text, if they are known."""
    if found.config is None or found.config.origin.text is None:
        return {}
    return vars(found.config.origin.text)


def _extent(plan: Mapping[str, Any]) -> str:
    """How much text there was, if that is known."""
    try:
        training = tqdm.format_sizeof(plan["text"]["size"], "B")
        validation = tqdm.format_sizeof(plan["text"]["validation"], "B")
    except (LookupError, TypeError, ValueError):
        return ""
    return f", {training} to learn from and {validation} to validate on"


def _machine(found: FoundModel, plan: Mapping[str, Any]) -> str:
    """What it was trained on, as far as the run knows it."""
    assert found.config is not None
    training = found.config.training
    device = "" if training.device == "auto" else f" on {training.device}"
    try:
        operations = f"{plan['speed']['flops'] / 1e9:,.0f} billion operations a second"
    except (LookupError, TypeError):
        return f"{device} in {training.precision}"
    return f"{device} in {training.precision}, on a machine that computes {operations}"


def _last_part(path: str) -> str:
    """The name of a file without its folders, which are private; also of a path of Windows."""
    return _plain(PureWindowsPath(path).name or path)


def _plain(name: str) -> str:
    """A name in one line and without backticks, so that it can be quoted in Markdown."""
    return " ".join(in_utf8(name).replace("`", "'").split())


def _escaped(name: str) -> str:
    """A name in one line that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(name.split()))
