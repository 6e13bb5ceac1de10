"""Whether a text is long enough to train on: two checks, made of a short text before anything slow
begins, and of every text when its tokens are there. No torch is needed.
"""

from .. import UserError
from ..config import SMALLEST_VOCABULARY, TextConfig, counted
from ..tokenizer import Tokenizer, make_tokenizer
from .corpus import Part, encode
from .source import Source, split

# Characters. A shorter text is planned with the smallest vocabulary, so its tokens can be known
# at once; a longer one has enough of them.
_SHORT = 1 << 15


def check_short_text(
    source: Source,
    config: TextConfig,
    context_length: int | None = None,
    tokenizer: Tokenizer | None = None,
) -> None:
    """Refuse a short text that would not pass :func:`check_counts` or :func:`check_context`.

    It never refuses a text that would pass; a long one passes here whatever its tokens are.
    `context_length` is None where it is planned; a `tokenizer` replaces the one of `config`.
    """
    training, validation = split(source, config)
    is_short = training.size <= _SHORT
    if not is_short and validation.size > _SHORT:
        return

    if tokenizer is None and (is_short or config.tokenizer not in ("bpe", "char")):
        learned_from = [training, validation] if config.tokenizer == "char" else [training]
        vocab_size = config.vocab_size or SMALLEST_VOCABULARY
        texts = (piece.text for part in learned_from for piece in part.pieces())
        tokenizer = make_tokenizer(config.tokenizer, vocab_size, texts, has_turns=source.has_turns)

    tokens = _count(training, tokenizer) if is_short else training.size
    others = _count(validation, tokenizer) if validation.size <= _SHORT else validation.size
    check_counts(tokens, others, config)
    if is_short and context_length is not None:
        check_context(tokens, context_length)


def check_counts(training: int, validation: int, config: TextConfig) -> None:
    """Refuse a text with fewer than two tokens to train on, or to validate on."""
    if min(training, validation) >= 2:
        return

    remedy = "use a longer text"
    if config.validation and training >= 2:
        remedy = "use a longer --validation text"
    elif config.max_characters is not None:
        remedy = "use a larger --max-characters"
    raise UserError(
        f"the text is too short: it has {counted(training, 'token')} to train on and "
        f"{validation:,} to validate on, but at least 2 of each are needed; {remedy}",
        kind="too_short",
    )


def check_context(training: int, context_length: int) -> None:
    """Refuse a training text of so few tokens that they do not fill a window and its next token."""
    if training <= context_length:
        raise UserError(
            f"the training text has {counted(training, 'token')}, too few for context_length "
            f"{context_length:,}; use a longer text or --context-length {training - 1}",
            kind="setting",
        )


def _count(part: Part, tokenizer: Tokenizer | None) -> int:
    """How many tokens a text gives; at most its bytes, if the tokenizer is not known yet."""
    if tokenizer is None:
        return sum(len(piece.text.encode()) for piece in part.pieces())
    return sum(len(ids) for _, ids in encode(tokenizer, part))
