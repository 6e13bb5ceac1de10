"""From tokens to a trained model: `plan.py`, `loop.py` and what the loop calls on."""
