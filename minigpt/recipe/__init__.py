"""The way from a text to a run: what was found out about texts, machines and small models."""
