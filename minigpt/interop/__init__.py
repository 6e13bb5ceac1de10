"""To and from other programs: `architectures.py` and `weights.py` (what is called what),
`huggingface.py` and `tokenizer_files.py` (folders), `hub.py` (by name), `gguf.py` (llama.cpp)."""
