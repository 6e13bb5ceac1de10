"""Chats, mailboxes, interviews and plays: recognised by their content and read as turns.

A file a format; `recognise.py` says which one a text is in, `turns.py` what a turn is and how a
conversation becomes text.
"""
