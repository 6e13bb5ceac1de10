"""What somebody sends who means no good, or knows no better, and a disk that is full: tables that
several tests use.
"""

import errno

# Hosts in a request that are none of a server's own, beside its port
STRANGE_HOSTS = (
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "[::1].evil.example",
    "evil-localhost",
    "evil.localhost",
    "localhost@evil.example",
    "localhost,evil.example",
    "localhost evil.example",
    "evil.example",
    "0.0.0.0",
)

# A name that was sent, and the one under which it is kept
UNSAFE_NAMES = (
    ("../../x", "x"),
    ("..\\..\\x.txt", "x.txt"),
    ("/etc/passwd", "passwd"),
    ("CON", "_CON"),
    ("nul.txt", "_nul.txt"),
    ("a\0b.txt", "a_b.txt"),
    (".hidden", "hidden"),
    ("..", "text"),
    ("...", "text"),
    ("", "text"),
    ("<script>.txt", "_script_.txt"),
    ("a<b>:c|d?.txt. ", "a_b_c_d_.txt"),
    ("\ud800.txt", "_.txt"),
    ("diary/2024/may.txt", "may.txt"),
    ("Ärger über Öl.docx", "Ärger über Öl.docx"),
    ("Война и мир.txt", "Война и мир.txt"),
    ("a" * 300 + ".docx", "a" * 75 + ".docx"),
)

# A name, or a text, that runs where it is taken for HTML
EVIL_NAME = "<img src=x onerror=top.hacked=1>"

NO_ROOM = OSError(errno.ENOSPC, "No space left on device")  # of a disk that is full
