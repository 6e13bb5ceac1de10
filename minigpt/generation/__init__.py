"""From a trained model to text. Use `writer.py`; it calls on `decode.py` (the loop), `choosing.py`
(which token: `sampling.py`, `banning.py`), `stopping.py` (what may be shown) and `scoring.py`.
"""
