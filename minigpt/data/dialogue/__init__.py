"""Chats, mailboxes, interviews and plays: recognised by their content and read as turns.

A file a format; `reading.py` says which one a file is in, `turns.py` what a conversation is made of
and `speakers.py` who speaks.
"""
