"""To and from other programs: `architectures.py` and `weights.py` (what is called what),
`huggingface.py`, `tokenizer_files.py` and `model_card.py` (folders), `hub.py` (models by name),
`gguf.py` (for llama.cpp)."""
