"""Scripts that put no spaces between words, which what looks for the beginning or the end of a word
has to know.
"""

import re

# How characters of such scripts begin in UTF-8, as a token may end before the rest of one. Emoji
# count too: each stands for itself.
WITHOUT_SPACES = re.compile(
    rb"\xe0[\xb8-\xbb]|\xe1[\x80\x81\x9e\x9f]"  # Thai, Lao, Burmese, Khmer
    rb"|\xe3[\x80-\x83\x90-\xbf]|[\xe4-\xe9]|\xef[\xa4-\xab]|\xf0[\xa0-\xbf]"  # kana, Chinese
    rb"|\xe2[\x98-\x9e]|\xf0\x9f"  # emoji
)
