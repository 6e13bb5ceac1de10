"""The character tokenizer: one token for each character of the training text."""

from collections.abc import Iterable

from .base import END_OF_TEXT, Tokenizer, UnknownCharacter
from .chunked_encoding import ANYWHERE


class CharacterTokenizer(Tokenizer):
    """One token for each of `characters`, which come in the order of their ids."""

    cut = ANYWHERE
    end_of_text: int

    def __init__(self, characters: Iterable[str]):
        self.characters = list(characters)
        self.ids = {character: i for i, character in enumerate(self.characters)}
        self.end_of_text = len(self.characters)
        self.vocab_size = self.end_of_text + 1

    def encode(self, text: str) -> list[int]:
        try:
            return [self.ids[character] for character in text]
        except KeyError as unknown:
            (character,) = unknown.args
            position = text.index(character)
            raise UnknownCharacter(character, f"at position {position}") from None

    def token_bytes(self, token_id: int) -> bytes:
        if token_id == self.end_of_text:
            return b""
        return self.characters[token_id].encode()

    def to_json(self) -> str:
        import tokenizers
        from tokenizers import decoders, models, pre_tokenizers

        vocab = {**self.ids, END_OF_TEXT: self.end_of_text}
        tokenizer = tokenizers.Tokenizer(models.WordLevel(vocab, unk_token=END_OF_TEXT))
        any_character = tokenizers.Regex(r"[\s\S]")
        tokenizer.pre_tokenizer = pre_tokenizers.Split(any_character, "isolated")
        tokenizer.decoder = decoders.Fuse()
        tokenizer.add_special_tokens([END_OF_TEXT])
        return tokenizer.to_str()
