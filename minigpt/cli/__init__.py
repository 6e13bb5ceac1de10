"""The commands; everything that only a terminal needs."""
