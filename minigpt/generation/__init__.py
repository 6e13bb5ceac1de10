"""From a trained model to text: `writer.py` (use this), `decode.py` (the loop), `sampling.py`."""
