"""Models and tokenizers to and from other programs: Hugging Face folders, its hub, GGUF files."""
