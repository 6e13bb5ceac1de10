"""Texts that were dropped: as they arrive, what was read of them, what to expect of trainings."""
