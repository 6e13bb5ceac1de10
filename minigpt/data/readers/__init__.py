"""Readers of files: each turns one kind of file into documents of text."""
