"""`counting`, which `minigpt compare` takes in the place of a run."""

import contextlib

from .. import UserError
from .find import full_name

COUNTING = "counting"


def means_counting(name: str) -> bool:
    """Whether a name means counting: a model of that name comes first."""
    if name != COUNTING:
        return False
    with contextlib.suppress(UserError):
        full_name(name)
        return False
    return True
