"""What is written between two documents of a plain text: as the token."""

MARK = "<|endoftext|>"
