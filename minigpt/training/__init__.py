"""Trains any network: the loop, and what it calls on."""
