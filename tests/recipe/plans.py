"""Plans for tests: of a text that is described, or of a file."""

from typing import Any

from minigpt.config import GPTConfig, Settings
from minigpt.data.source import find_source
from minigpt.recipe.beginning import beginning_of, with_base
from minigpt.recipe.choose_plan import Measured, measure
from minigpt.recipe.machine import Machine
from minigpt.recipe.plan import Planned, plan
from minigpt.recipe.run import plan_run
from minigpt.recipe.text_stats import TextStats


def plan_with(
    text: TextStats, machine: Machine, start: GPTConfig | None = None, **given: Any
) -> Planned:
    """A plan around some settings, which are not checked against one another."""
    return plan(text, machine, Settings().with_values("given", given), start)


def plan_of(**fields: Any) -> Planned:
    """The plan of a training with these settings, of a text that is in files."""
    beginning = beginning_of(Settings.given(fields))
    return plan_run(find_source(beginning.settings.text), with_base(beginning))


def measured_for(*arguments: Any, **fields: Any) -> Measured:
    """What plans for a training with these settings are made from; the arguments are those of
    `measure` after the second."""
    beginning = beginning_of(Settings.given(fields))
    return measure(find_source(beginning.settings.text), with_base(beginning), *arguments)
