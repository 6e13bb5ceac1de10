"""Readers of chats, mailboxes, interviews and plays, whose documents have turns."""
