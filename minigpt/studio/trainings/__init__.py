"""Runs: what they do, the line in which they wait, what they write, and how they are removed."""
