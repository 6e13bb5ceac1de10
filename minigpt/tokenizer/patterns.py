"""How texts are cut into words before their bytes are merged, and where a long text may be cut so
that its parts, encoded for themselves, have the ids of the whole.
"""

import re

# The pattern of GPT-2 and the encodings after it, as tiktoken ships them, and of Qwen's models.
GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
O200K_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = {
    "gpt2": GPT2_PATTERN,
    "cl100k_base": CL100K_PATTERN,
    "o200k_base": O200K_PATTERN,
    "qwen": QWEN_PATTERN,
}

# None of these joins anything across the following places or looks across them: white space
# behind a letter or digit, a letter or digit behind the only line end after something else, ...
_WHITE_SPACE = r"(?<=[^\W_])(?=[ \t\r\n])|(?<=\S\n)(?=[^\W_])"
# ... punctuation behind a letter or digit, other than an apostrophe.
_PUNCTUATION = r"""(?<=[^\W_])(?=[]!"#$%&()*+,./:;<=>?@[\\^_`{|}~、。，！？；：」』）-])"""
_AT_WHITE_SPACE = re.compile(_WHITE_SPACE)
_AT_PUNCTUATION = re.compile(f"{_WHITE_SPACE}|{_PUNCTUATION}")
ANYWHERE = re.compile(r"(?s)(?=.)")
_NOWHERE = re.compile(r"(?!)")


def places_to_cut(pattern: str, has_added: bool) -> re.Pattern[str]:
    """What matches where a text may be cut.

    Args:
        pattern: of the words; a text cut by one that is not known here is encoded whole.
        has_added: whether there are added tokens, which hold no white space but anything else.
    """
    if pattern not in PATTERNS.values():
        return _NOWHERE
    return _AT_WHITE_SPACE if has_added else _AT_PUNCTUATION
