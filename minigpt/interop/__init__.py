"""To and from other programs: `architectures.py` (configs and weights), `huggingface.py` (folders),
`tokenizer_files.py`, `hub.py` (models by name), `gguf.py` (for llama.cpp)."""
