"""From a trained model to text: `writer.py` (use this) and what it calls on."""
