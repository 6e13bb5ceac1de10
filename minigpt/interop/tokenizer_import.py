"""The tokenizer of a Hugging Face folder: byte-level BPE of GPT-2's kind, or our own characters."""

from pathlib import Path

from .. import UserError
from ..tokenizer import END_OF_TEXT, Tokenizer, load_tokenizer, tiktoken_tokenizer
from ..tokenizer.tokenizer_json import tokenizer_from_json

_GPT2_VOCAB_SIZE = 50_257


def read_tokenizer(folder: Path, vocab_size: int) -> Tokenizer:
    """The tokenizer of a folder whose model has `vocab_size` tokens.

    It comes from `tokenizer.json`, or from `vocab.json` with `merges.txt`. A model with GPT-2's
    vocabulary and neither file gets tiktoken's. Ids without a token become special tokens.
    """
    file, vocab = folder / "tokenizer.json", folder / "vocab.json"
    if file.exists():
        tokenizer = load_tokenizer(file, vocab_size)
    elif vocab.exists():
        text = _join(vocab, folder / "merges.txt")
        tokenizer = tokenizer_from_json(text, vocab, vocab_size)
    elif vocab_size == _GPT2_VOCAB_SIZE:
        return tiktoken_tokenizer("gpt2")
    else:
        raise UserError(f"{folder} has no tokenizer: no tokenizer.json, no vocab.json")
    if tokenizer.vocab_size != vocab_size:
        raise UserError(
            f"the tokenizer of {folder} has {tokenizer.vocab_size} tokens but the model's "
            f"vocab_size is {vocab_size}"
        )
    return tokenizer


def _join(vocab: Path, merges: Path) -> str:
    """GPT-2's first two files as one `tokenizer.json`."""
    from tokenizers import ByteLevelBPETokenizer

    try:
        tokenizer = ByteLevelBPETokenizer.from_file(str(vocab), str(merges))
    except Exception as error:  # the library raises no narrower class
        raise UserError(f"{vocab} with {merges.name} cannot be used: {error}") from None
    if tokenizer.token_to_id(END_OF_TEXT) is not None:
        tokenizer.add_special_tokens([END_OF_TEXT])
    text: str = tokenizer.to_str()
    return text
