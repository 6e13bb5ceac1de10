"""Makes the page of a run: the model, its tokenizer, the code and the style in one HTML file.

A run is read as for writing, without torch. The JavaScript beside this file and in web/ stays as it
is written: modules are put one after another, their import lines left out, so their names must
differ.
"""

import base64
import dataclasses
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from .. import UserError
from ..config import GPTConfig, SampleConfig
from ..data.dialogue import Dialogue
from ..generation.repetition import Boundaries, boundaries_of
from ..runs.find import glass_writer
from ..runs.read_model import FoundModel
from ..tokenizer import BytePairTokenizer, CharacterTokenizer, Tokenizer
from ..tokenizer.bpe import bytes_to_printable
from ..tokenizer.chunked_encoding import PATTERNS, word_pattern
from .about import facts, history, openings
from .weights import WeightType, page_weights

LARGEST = 40_000_000  # parameters
_FOLDER = Path(__file__).parent
WEB = _FOLDER.parent / "web"  # what page and window share
SCRIPT = _FOLDER / "frame/main.js"
WORKER = _FOLDER / "model/worker.js"
_SHEETS = ("frame", "map", "sheet", "talk", "bars", "die", "why", "attention", "views")
STYLE = (WEB / "base.css", WEB / "curve.css", *(_FOLDER / f"style/{name}.css" for name in _SHEETS))
STRINGS = (WEB / "strings.json", _FOLDER / "strings.json")
# Nothing may be loaded from anywhere; the code and the style are those with these hashes.
POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; worker-src blob:; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
_IMPORT = re.compile(r'^import [^;]*? from "([./\w]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=async|class|const|function)", re.MULTILINE)


def build_page(
    found: FoundModel,
    title: str,
    *,
    weights: WeightType | None = None,
    text_name: str | None = None,
) -> str:
    """The page of a model as HTML. `weights` is the type in which the weights are stored, by
    default the smallest that raises the loss by at most 0.1%; `text_name` is what to call the text
    that the model has read, by default the name of its file.

    Raises:
        UserError: if the model is too large for a page, or its tokenizer is of a kind that the
            page cannot run.
    """
    parameters = found.glass.num_parameters
    if parameters > LARGEST:
        raise UserError(
            f"a page holds at most {LARGEST:,} parameters, this model has {parameters:,}; "
            "export it instead: minigpt export --to gguf, and use llama.cpp"
        )

    model, packed = page_model(found, title, weights, text_name)

    script = bundle(SCRIPT)
    style = _style()
    parts = {
        "policy": POLICY.format(script=_hash(script), style=_hash(style)),
        "style": style,
        "strings": _json(strings()),
        "model": _json(model),
        "weights": packed,
        "worker": bundle(WORKER),
        "script": script,
    }
    return _filled(parts)


def page_model(
    found: FoundModel,
    title: str,
    weights: WeightType | None = None,
    text_name: str | None = None,
) -> tuple[dict[str, Any], str]:
    """What the page knows of a model, and its weights in base64."""
    packed = page_weights(found, weights)
    writer = glass_writer(found)

    model = {
        "title": title,
        "parameters": found.glass.num_parameters,
        "weights": {"bits": packed.bits, "cost": packed.cost},
        "facts": facts(found, text_name),
        "openings": openings(found),
        "history": history(found),
        "config": page_config(found.glass.config),
        "tokenizer": page_tokenizer(found.tokenizer),
        "dialogue": page_dialogue(writer.dialogue),
        "firstToken": writer.first_token(),
        "forbidden": np.flatnonzero(writer.bias).tolist(),
        "usual": page_settings(writer.usual),
        "boundaries": page_boundaries(boundaries_of(found.tokenizer)),
    }
    return model, packed.content


def page_boundaries(boundaries: Boundaries) -> dict[str, list[int]]:
    """The tokens of each kind."""
    return {
        "separators": np.flatnonzero(boundaries.separators).tolist(),
        "beginWithLetter": np.flatnonzero(boundaries.begins_with_letter).tolist(),
        "endWithLetter": np.flatnonzero(boundaries.ends_with_letter).tolist(),
    }


def page_config(config: GPTConfig) -> dict[str, Any]:
    """What the page's engine knows of a model: its config, and two sizes that follow from it."""
    return {
        **dataclasses.asdict(config),
        "head_size": config.head_size,
        "kv_heads": config.kv_heads,
    }


def page_settings(usual: SampleConfig) -> dict[str, float]:
    """How the page draws tokens until something else is chosen; a filter that is off is 0 or 1."""
    return {
        "temperature": usual.temperature,
        "topK": usual.top_k or 0,
        "topP": usual.top_p or 1.0,
        "minP": usual.min_p or 0.0,
        "repetitionPenalty": usual.repetition_penalty,
        "dryMultiplier": usual.dry_multiplier,
        "dryBase": usual.dry_base,
        "dryAllowedLength": usual.dry_allowed_length,
    }


def page_dialogue(dialogue: Dialogue | None) -> dict[str, Any] | None:
    """Who speaks in the training text and how it writes a turn; None if nobody speaks."""
    if dialogue is None:
        return None
    return {
        "speakers": list(dialogue.speakers),
        "beforeText": dialogue.before_text,
        "end": dialogue.end,
        "stops": dialogue.stops,
        "betweenLines": dialogue.between_lines,
        "stranger": dialogue.most_frequent(but=dialogue.speakers),
    }


def page_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """What the page's tokenizer needs: tokens by id (null for a special one), how a text is cut
    into words, and the order of the merges where it is not that of the ids."""
    if isinstance(tokenizer, CharacterTokenizer):
        return {"kind": "char", "tokens": tokenizer.characters, "end": tokenizer.end_of_text}

    tokens = [tokenizer.token_bytes(i) for i in range(tokenizer.vocab_size)]
    data: dict[str, Any] = {
        "kind": "bpe",
        "tokens": [bytes_to_printable(token) if token else None for token in tokens],
        "end": tokenizer.end_of_text,
    }
    if isinstance(tokenizer, BytePairTokenizer):
        data["pattern"] = javascript_pattern(tokenizer.encoding._pat_str)
        data["speaker"] = tokenizer.speaker
        data["endOfTurn"] = tokenizer.end_of_turn
        return data
    return data | _settings_of_file(json.loads(tokenizer.to_json()))


def _settings_of_file(saved: dict[str, Any]) -> dict[str, Any]:
    """What the page's tokenizer needs of a tokenizer.json that another program wrote."""
    pattern = word_pattern(saved["pre_tokenizer"]) or ""
    normalizer = saved["normalizer"]
    is_known_pattern = pattern in PATTERNS.values()
    is_known_normalizer = normalizer in (None, {"type": "NFC"})
    adds_no_words = all(token["special"] for token in saved["added_tokens"])
    if not (is_known_pattern and is_known_normalizer and adds_no_words):
        raise UserError(
            "the page cannot run this model's tokenizer: it cuts words in a way of its own or adds "
            "tokens to its vocabulary; minigpt export takes the model elsewhere"
        )

    model = saved["model"]
    merges = [pair if isinstance(pair, list) else pair.split(" ") for pair in model["merges"]]
    return {
        "pattern": javascript_pattern(pattern),
        "nfc": normalizer is not None,
        "merges": merges,
        "whole": bool(model.get("ignore_merges")),
    }


def javascript_pattern(pattern: str) -> str:
    """One of PATTERNS as JavaScript writes it: without possessive quantifiers, which change nothing
    there, with Unicode's white space, and with both cases of a letter instead of (?i:...)."""
    pattern = re.sub(r"([+*?]|\{[\d,]+\})\+", r"\1", pattern)
    pattern = pattern.replace(r"\s", r"\p{White_Space}")
    pattern = pattern.replace(r"\S", r"\P{White_Space}")
    return re.sub(r"\(\?i:([^()]*)\)", lambda group: f"(?:{_both_cases(group[1])})", pattern)


def _both_cases(pattern: str) -> str:
    """A pattern in which each letter matches in both cases; s also matches ſ, as with (?i:...)."""
    is_in_class = False  # between [ and ]
    result = ""
    for c in pattern:
        if c == "[":
            is_in_class = True
        elif c == "]":
            is_in_class = False
        if not c.isalpha():
            result += c
            continue

        cases = c + c.upper()
        if c == "s":
            cases += "ſ"
        result += cases if is_in_class else f"[{cases}]"
    return result


def _style() -> str:
    """The style sheets as one, without comments and indentation."""
    sheets = "\n".join(sheet.read_text(encoding="utf-8") for sheet in STYLE)
    return re.sub(r"/\*.*?\*/\n?|^ +", "", sheets, flags=re.DOTALL | re.MULTILINE)


def strings() -> dict[str, dict[str, str]]:
    """All words of the page, by group and name."""
    found: dict[str, dict[str, str]] = {}
    for table in STRINGS:
        found |= json.loads(table.read_text(encoding="utf-8"))
    return found


def bundle(script: Path) -> str:
    """A module and all that it imports as one script."""
    return "\n".join(code_of(module) for module in modules_of(script))


def modules_of(script: Path) -> list[Path]:
    """A module and all that it imports, each after those that it imports itself."""
    found: dict[Path, None] = {}

    def visit(module: Path) -> None:
        if module in found:
            return
        for path in _IMPORT.findall(module.read_text(encoding="utf-8")):
            visit((module.parent / path).resolve())
        found[module] = None

    visit(script.resolve())
    return list(found)


def code_of(module: Path) -> str:
    """A module as a part of a script: without imports, and without the word that exports."""
    return _EXPORT.sub("", _IMPORT.sub("", module.read_text(encoding="utf-8")))


def _filled(parts: dict[str, str]) -> str:
    """The page with its parts filled in; nothing in a part is a place to fill."""
    page = (_FOLDER / "index.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], page)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()


def _json(value: Any) -> str:
    """JSON that can be put into HTML."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
