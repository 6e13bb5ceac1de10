"""The OpenAI API on a model of one's own. Begin with `app.py`, where requests arrive."""
