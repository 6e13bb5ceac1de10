"""`counting`, which `minigpt compare` takes in the place of a run: what counting alone makes of the
text that a run has learned from. Slow imports are inside the functions, so that a program which
only needs the name does not wait for them.
"""

import contextlib
from typing import TYPE_CHECKING

from .. import UserError

if TYPE_CHECKING:
    from ..data.counting import CountingModel
    from ..runs.read_model import FoundModel

COUNTING = "counting"
_CHARACTERS = 12_000_000  # of the training text, at most
_SECONDS = 10.0


def means_counting(name: str) -> bool:
    """Whether a name means counting: a model of that name comes first."""
    if name != COUNTING:
        return False
    from ..runs.find import full_name

    with contextlib.suppress(UserError):
        full_name(name)
        return False
    return True


def counting_model(found: "FoundModel") -> "CountingModel":
    """The model that has counted which token follows which in the text that a run learned from.
    UserError if the run does not say which text that is, or the text has changed or is missing."""
    import numpy as np

    from ..data.corpus import encode
    from ..data.counting import fit_in_time
    from ..data.source import read_again

    if found.config is None:
        raise UserError(f"{found.folder} does not say what text it learned from")
    training, _ = read_again(found.config.text, found.config.origin.fingerprint)
    text = training.at_most(_CHARACTERS)
    tokens = np.concatenate([piece for _, piece in encode(found.tokenizer, text)])
    return fit_in_time(tokens, found.tokenizer.vocab_size, _SECONDS)
