"""The OpenAI API on a model of your own. Begin with `app.py`, where requests arrive."""
