"""The folder of a run, `runs/<name>/`: what its files are called and hold.

Training writes the folder, everything else reads it. It can be loaded at every moment.
"""

import contextlib
import dataclasses
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import UserError
from ..config import (
    GPT_NAME,
    OF_PROBABILITIES,
    PLAIN,
    GPTConfig,
    SampleConfig,
    TextConfig,
    TrainConfig,
    fields_of,
    from_dict,
)
from ..data.origin import Origin
from ..system.atomic import whole_name
from ..system.json_objects import read_lines, read_object
from .weights import read_network

if TYPE_CHECKING:
    from ..data.dialogue import Dialogue

CONFIG = "config.json"
WEIGHTS = "model.safetensors"  # the best by validation
TOKENIZER = "tokenizer.json"
PLAN = "plan.json"
GENERATION = "generation.json"  # how it is sampled, if nothing else is given
_WITHOUT_IT = "delete the file to use the plain defaults"
METRICS = "metrics.jsonl"  # a row for each evaluation
STEPS = "steps.jsonl"  # a row for each step, or for some of them
PICTURE = "loss.png"
PAGE = "page.html"  # of `minigpt page`
CHECKPOINT = "checkpoint"  # a folder, which holds
LAST = "last.safetensors"
PREVIOUS = "previous.safetensors"
KEPT = "kept"  # a folder, which holds the weights of single steps
STEP_NAME = "(?:0|[1-9][0-9]{0,14})"  # a pattern of their names, without the ending
FIRST = "0.safetensors"  # in KEPT: the weights before training
DAMAGED = "damaged.safetensors"  # in CHECKPOINT, too: a LAST that could not be read
BEST = "best.safetensors"  # the best weights, if model.safetensors could not be replaced
LOCK = ".lock"  # held by the training, from its beginning to its end
WANDB = "wandb"  # a folder that --log wandb writes where it is offline
JOURNAL = "journal"  # a folder, which holds
STATE = "state.json"  # what a training does
SAMPLES = "samples.jsonl"  # what the model writes, from before its first step on
COPIED = "copied.json"  # how much of what it writes at the end is in its text word for word
STOP = "stop"  # whoever makes this file ends the training
JOURNAL_FILES = (STATE, SAMPLES, COPIED, STOP)
JOB = "job.json"  # and what the studio adds: what a run is to learn, and for how long;
LOG = "log.txt"  # what the training prints
STUDIO_FILES = (JOB, LOG)
AT_ONCE = "now"  # what `stop` holds if nothing is to be saved any more
FOLDERS = (CHECKPOINT, KEPT, JOURNAL)

_WEIGHTS_OF_STEP = ".safetensors"  # endings, in KEPT
_PAGE_OF_STEP = ".html"
_STEP = re.compile(STEP_NAME)
_MOST_LISTED = 24

_FORMAT = 9  # of config.json: another number whenever what a run holds changes its name or meaning
_BITS = ("train_bits_per_byte", "val_bits_per_byte")
_FIGURES = ("step", "seconds", "done", "train_loss", "val_loss", "tokens_per_second", *_BITS)
FIGURES_OF_A_STEP = ("step", "seconds", "loss", "bits_per_byte")
COUNTING_BITS = "counting_bits_per_byte"  # what counting gives; older runs do not have it
EXPECTED = "expected_bits_per_byte"  # where such trainings usually end; not in the rows of a file
NEARLY = 0.005  # the part by which a loss may be above the lowest one
INTERPOLATION = "interpolation"  # how far the kept weights lie from the first ones


@dataclass(frozen=True)
class RunConfig:
    """What `config.json` holds: the model, how it was trained, and on what."""

    model: GPTConfig | None  # None: a network of somebody's own, which their program makes
    training: TrainConfig
    origin: Origin = field(default_factory=Origin)
    context_length: int | None = None  # of such a network, in tokens

    @property
    def gpt(self) -> GPTConfig:
        """The config of a `GPT`; UserError if the run is of another network."""
        if self.model is None:
            raise UserError("the run does not describe a GPT")
        return self.model

    @property
    def text(self) -> TextConfig:
        """The text that the tokens come from; UserError if the run does not know it."""
        if self.origin.text is None:
            raise UserError("the run does not say what text it learned from")
        return self.origin.text

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps({"format": _FORMAT, **dataclasses.asdict(self)}, indent=2) + "\n"


def read_config(folder: Path) -> RunConfig:
    """The settings of a run; what is wrong with them is named."""
    path = existing_file(folder, CONFIG)
    data = read_raw_config(folder)
    try:
        model = data["model"]
        training = data["training"]
        if data.get("format") != _FORMAT:
            raise UserError("written by another version of minigpt; train again")

        origin = data["origin"]
        return RunConfig(
            model=None if model is None else from_dict(GPTConfig, model),
            training=from_dict(TrainConfig, training),
            origin=Origin(
                text=None if origin["text"] is None else from_dict(TextConfig, origin["text"]),
                fingerprint=str(origin["fingerprint"]),
                knows_documents=bool(origin["knows_documents"]),
                alphabet=bytes.fromhex(origin["alphabet"]).hex(),
                dialogue=_read_dialogue(origin.get("dialogue")),
            ),
            context_length=data["context_length"] and int(data["context_length"]),
        )
    except UserError as error:
        raise UserError(f"{path}: {error}", kind="damaged_run") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UserError(f"{path} is damaged or not a run's", kind="damaged_run") from None


def read_raw_config(folder: Path) -> dict[str, Any]:
    """What config.json holds, also of another version; nothing if it is damaged."""
    return read_object(folder / CONFIG)


def read_plan(folder: Path) -> dict[str, Any]:
    """What was measured and chosen before the training; nothing if it had no plan, or a damaged
    one."""
    return read_object(folder / PLAN)


def read_usual(folder: Path) -> SampleConfig:
    """How a run is sampled, if nothing else is given: what its generation.json says, or the plain
    defaults if it has none. UserError if it holds no setting that changes probabilities, or another
    field of a SampleConfig, which a model cannot have."""
    path = folder / GENERATION
    if not path.exists():
        return PLAIN
    data = read_object(path)
    settings = fields_of(SampleConfig, data)
    others = [name for name in settings if name not in OF_PROBABILITIES]
    if others:
        *names, last = OF_PROBABILITIES
        known = f"{', '.join(names)} and {last}"
        raise UserError(f"{path} cannot set {others[0]}, only {known}", kind="damaged_run")
    if not settings:
        problem = f"{path} is damaged: it has no setting; {_WITHOUT_IT}"
        raise UserError(problem, kind="damaged_run")
    try:
        return from_dict(SampleConfig, settings)
    except UserError as error:
        raise UserError(f"{path}: {error}; {_WITHOUT_IT}", kind="damaged_run") from None


def _read_dialogue(data: Any) -> "Dialogue | None":
    """Who speaks in a run's text; None of an older run, or if the text is not conversations."""
    if data is None:
        return None
    from ..data.dialogue import Dialogue  # what only names files does not wait for it
    from ..data.readers.document import Layout

    speakers = {str(name): int(turns) for name, turns in data["speakers"].items()}
    layout = Layout(str(data["layout"]["template"]), bool(data["layout"]["ends_at_name"]))
    before, _, after = layout.template.partition("{text}")
    if "{speaker}" not in before or not after:
        raise ValueError("no template of a turn")
    return Dialogue(speakers, layout)


def check_is_gpt(folder: Path) -> None:
    """Refuse a run of a network that is not exactly a `GPT`, with its name."""
    name = read_network(folder / WEIGHTS)
    if name != GPT_NAME:
        raise UserError(
            f"{folder} holds a network that is not minigpt's GPT: {name}; make that network in a "
            f"program of your own and load it with minigpt.load({str(folder)!r}, model=...)"
        )


def existing_file(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise UserError(f"{folder} is not a run: it has no {name}", kind="damaged_run")
    return path


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics.jsonl; a line that is not a row, such as half of one, is left out."""
    return _read_rows(path, _FIGURES)


def read_steps(path: Path) -> list[dict[str, Any]]:
    """The rows of a steps.jsonl, read as :func:`read_metrics` reads."""
    return _read_rows(path, FIGURES_OF_A_STEP)


def _read_rows(path: Path, names: tuple[str, ...]) -> list[dict[str, Any]]:
    rows = []
    for row in read_lines(path):
        with contextlib.suppress(TypeError, LookupError, OverflowError):
            figures = [row[name] for name in names] + [row.get(COUNTING_BITS, 0.0)]
            if all(map(math.isfinite, figures)):
                rows.append(row)
    return rows


def is_kept(loss: float, best: float | None, *, is_on_line: bool) -> bool:
    """Whether evaluated weights are kept in the place of those with the loss `best`.

    The last weights of a training that began with a model (`is_on_line`) are also kept if their
    loss is only nearly the lowest: the longer a model has trained, the more it writes as its text
    does.
    """
    if best is None:
        return True
    return loss < (best * (1.0 + NEARLY) if is_on_line else best)


def kept_row(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The evaluation in a metrics.jsonl whose weights are kept; empty if there is none."""
    kept: dict[str, Any] = {}
    for row in rows:
        if is_kept(row["val_loss"], kept.get("val_loss"), is_on_line=INTERPOLATION in row):
            kept = row
    return kept


def has_checkpoint(folder: Path) -> bool:
    """Whether a run has a checkpoint, whole or damaged."""
    return any((folder / CHECKPOINT / name).exists() for name in (LAST, PREVIOUS))


# The weights of single steps, kept/STEP.safetensors


def kept_file(folder: Path, step: int) -> Path:
    """Where the weights of a step are, if they are kept."""
    return folder / KEPT / f"{step}{_WEIGHTS_OF_STEP}"


def kept_page(folder: Path, step: int) -> Path:
    """Where the page of a step is, once it is made."""
    return folder / KEPT / f"{step}{_PAGE_OF_STEP}"


def kept_steps(folder: Path) -> list[int]:
    """The steps whose weights a run has kept, in order."""
    return [step for step in steps_in(folder) if kept_file(folder, step).is_file()]


def steps_in(folder: Path) -> list[int]:
    """The steps of which a run has kept anything, whole or half-written, in order."""
    files = [Path(whole_name(file.name)) for file in (folder / KEPT).glob("*")]
    ours = [file.stem for file in files if file.suffix in (_WEIGHTS_OF_STEP, _PAGE_OF_STEP)]
    return sorted({int(name) for name in ours if _STEP.fullmatch(name)})


def listed(steps: list[int]) -> str:
    """Steps as a list to read; of many, only the first and the last ones."""
    names = list(map(str, steps))
    if len(names) > _MOST_LISTED:
        names[_MOST_LISTED // 2 : -_MOST_LISTED // 2] = ["..."]
    return ", ".join(names)
