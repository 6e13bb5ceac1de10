"""From a trained model to text. Begin with `writer.py`. It uses `numpy_gpt.py` or `torch_gpt.py`
(the model), `window.py` (what the model reads), `sampler.py` (which token comes next),
`streaming.py` (what may be shown) and `scoring.py` (how likely a text is)."""
