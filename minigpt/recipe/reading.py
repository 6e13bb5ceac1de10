"""Reading the text of a training. It needs no torch, so that the command reads while that is not
loaded yet, which takes seconds.
"""

from ..config import Settings
from ..data.source import Source, TellShare, check_short_text, find_source
from ..tokenizer import Tokenizer
from ..training.messages import say
from . import told_at_start


def read_text(
    settings: Settings,
    tokenizer: Tokenizer | None = None,
    *,
    is_for_run: bool = True,
    tell_share: TellShare = lambda file, share: None,
) -> Source:
    """Read the text that the settings name, and say what was found; one that is too short for the
    `tokenizer` is refused. `tell_share` as in :func:`find_source`."""
    config = settings.text
    source = find_source(config, say, tell_share)
    if config.init is None or tokenizer is not None:  # else the model is read first, and brings one
        check_short_text(source, config, settings.fixed("context_length"), tokenizer)

    told_at_start.say_text(source)
    if is_for_run:
        told_at_start.say_unfinished(config, source)
    return source
