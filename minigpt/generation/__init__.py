"""From a trained model to text. Begin with `writer.py`. It uses `numpy_gpt.py` or `torch_gpt.py`
(the model), `window.py` (what the model reads), `processors.py` and `sampler.py` (which token comes
next, and how likely it was) and `continuation.py` (what may be shown, and where the text ends)."""
