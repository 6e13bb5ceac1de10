"""Bytes as printable characters and back, as the Hugging Face format writes them."""


def _byte_alphabet() -> dict[int, str]:
    """GPT-2's way to write each byte as a printable character (Radford et al. 2019)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {
        byte: chr(0x100 + i) for i, byte in enumerate(others)
    }


_TO_PRINTABLE = _byte_alphabet()
_TO_BYTE = {character: byte for byte, character in _TO_PRINTABLE.items()}


def to_printable(token: bytes) -> str:
    """Bytes as the Hugging Face format writes them: a printable character for each."""
    return "".join(_TO_PRINTABLE[byte] for byte in token)


def to_raw(token: str) -> bytes:
    """The bytes that :func:`to_printable` wrote.

    Raises:
        KeyError: if a character stands for no byte.
    """
    return bytes(_TO_BYTE[character] for character in token)
