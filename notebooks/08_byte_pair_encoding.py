# %% [markdown]
# # 8. Byte-pair encoding
#
# What is a token? In notebooks 1 and 4 it was a character, in the others a word. Both have a
# drawback. With characters a text is a long row of tokens, and attention has to look far back to
# see a single sentence. With words the **vocabulary**, the list of all tokens, is huge, and a word
# that was never seen has no token at all.
#
# **Byte-pair encoding** is in between. Common words become one token, rare words consist of several
# pieces, and nothing is unknown. Most language models use it. In this notebook you build one, first
# on two sentences, then on a book. It will be the same as the package's, token for token.
#
# (Philip Gage invented it in 1994 to compress files, in "A New Algorithm for Data Compression".
# Sennrich, Haddow and Birch used it for words in [2016](https://arxiv.org/abs/1508.07909). GPT-2
# used it on bytes in 2019. Andrej Karpathy's lecture [Let's build the GPT
# Tokenizer](https://www.youtube.com/watch?v=zduSFxRajkE) goes a similar way.)

# %%
from collections import Counter, defaultdict
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import regex  # like re, but it also knows the letters of all languages
from matplotlib.patches import Rectangle
from pictures import AMBER, BLUE, PURPLE, QUIET

from minigpt.tokenizer import train_bpe
from minigpt.tokenizer.bpe import bytes_to_printable
from minigpt.tokenizer.chunked_encoding import GPT2_PATTERN

# %% [markdown]
# ## The idea, on two sentences
#
# Begin with characters. Then do one thing again and again: find the two neighbouring tokens that
# occur together most often, and make them one token everywhere. This is a **merge**.
#
# `pairwise` goes through all neighbours: in "fox" they are "f", "o" and "o", "x". `Counter` counts
# them.


# %%
def merge(tokens: list, pair: tuple) -> list:
    """The same tokens, but wherever the pair occurs, it is one token."""
    merged = []
    for token in tokens:
        if merged and (merged[-1], token) == pair:
            merged[-1] += token  # joined to the one before
        else:
            merged.append(token)
    return merged


assert merge(["f", "o", "x"], ("o", "x")) == ["f", "ox"]
assert merge(["a", "a", "a"], ("a", "a")) == ["aa", "a"]  # from left to right

# %%
sentences = "the fox saw the box. the other fox saw the ox in the box."
tokens = list(sentences)  # the characters
rows = {"characters": tokens}

for i in range(1, 11):
    counts = Counter(pairwise(tokens))
    pair, count = counts.most_common(1)[0]  # of pairs that are equally common, the first
    tokens = merge(tokens, pair)
    if i in (1, 2, 3, 4, 6, 8, 10):
        rows[f"merge {i}: {''.join(pair)!r}, {count} times"] = tokens

assert "".join(tokens) == sentences  # nothing is lost
assert len(tokens) < 0.5 * len(sentences)


# %%
def draw_tokens(axes, rows: dict[str, list[str]]) -> None:
    """Each row of tokens as boxes, one letter beside the other."""
    tints = ("#dce8f5", "#f0dff0", "#f8ead6")
    for y, tokens in enumerate(rows.values()):
        x = 0
        for i, token in enumerate(tokens):
            shown = token.replace(" ", "␣")
            box = Rectangle(
                (x, y + 0.1), len(token), 0.8, facecolor=tints[i % 3], edgecolor="white"
            )
            axes.add_patch(box)
            for j, letter in enumerate(shown):
                axes.text(x + j + 0.5, y + 0.5, letter, ha="center", va="center", size=7.5)
            x += len(token)
        axes.text(x + 0.8, y + 0.5, f"{len(tokens)}", va="center", size=8, color=PURPLE)
    longest = max(len("".join(tokens)) for tokens in rows.values())
    axes.set(xlim=(0, longest + 3), ylim=(len(rows), 0), xticks=[])
    axes.set_yticks(np.arange(len(rows)) + 0.5, list(rows))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


figure, axes = plt.subplots(figsize=(9, 2.5))
draw_tokens(axes, rows)
plt.show()

# %% [markdown]
# Each box is a token, and the number at the end of a row counts them. (Spaces are drawn as ␣.) "th"
# is the most common pair, because it occurs in "the" and in "other". After two merges "the" is a
# token, after four "ox". After ten merges the 57 characters have become 20 tokens. We needed no
# rule of English, we only counted.

# %%
assert "merge 1: 'th', 6 times" in rows and "merge 2: 'the', 6 times" in rows
assert "ox" in rows["merge 4: 'ox', 5 times"]
assert len(sentences) == 57 and len(tokens) == 20
print(tokens)

# %% [markdown]
# ## Cut into words first
#
# Something is wrong with these tokens. One is "fox saw", and "the " is another token than " the ".
# On a long text such combinations would fill the vocabulary: "of the", "dog." and "dog!". But a
# model can combine words itself. So a pattern first cuts the text into words, and no merge crosses
# a cut. (Punctuation and line breaks count as words, too.) The package uses GPT-2's pattern:

# %%
print(regex.sub(r"\|(?=[ \\])", "\n|", GPT2_PATTERN))  # one alternative per line
print(regex.findall(GPT2_PATTERN, "The fox didn't see 12 grapes, did he?  No!"))

# %% [markdown]
# Each line describes one kind of piece: an ending like *'t* or *'ll*; letters (`\p{L}`); digits
# (`\p{N}`); other signs; the last three lines are white space. The second to the fourth begin with
# a space and `?`: there may be one space before the letters, the digits or the signs.
#
# So **a space belongs to the word after it**: " fox" is one piece. That has two advantages. No
# token is needed for the space between two words. And the tokens of a text, one after the other,
# *are* the text: when a model writes, no rule has to say where spaces go.

# %%
with open("../data/fables.txt", encoding="utf-8") as file:
    text = file.read()

nine_tenths = int(0.9 * len(text))
training, held_out = text[:nine_tenths], text[nine_tenths:]
words = Counter(regex.findall(GPT2_PATTERN, training))

assert "".join(regex.findall(GPT2_PATTERN, training)) == training  # the cuts lose nothing
print(f"{words.total():,} words, {len(words):,} different ones")
print("the most common:", ", ".join(repr(word) for word, _ in words.most_common(12)))

# %% [markdown]
# Cutting also saves time: " the" occurs 2,522 times, but it has to be merged only once, as one of
# 3,815 *different* words.

# %%
assert words[" the"] == 2522 and len(words) == 3815

# %% [markdown]
# ## Bytes, not characters
#
# There are more than 150,000 characters in the world's scripts. A vocabulary with all of them would
# be too large, and with only some of them the others would be unknown. But every text is stored as
# **bytes**, numbers from 0 to 255. **UTF-8** is the usual code: the letters of English are one byte
# each, "ü" is two, a Chinese character is three, an emoji four. If the first tokens are the 256
# bytes, every text in every language can be written with them.

# %%
for character in "fü狐🦊":
    print(character, list(character.encode()))  # encode: a text to its UTF-8 bytes

assert [len(character.encode()) for character in "fü狐🦊"] == [1, 2, 3, 4]
assert bytes([240, 159, 166, 138]).decode() == "🦊"  # decode: bytes to a text

# %% [markdown]
# ## On a book
#
# Now the same on a whole book. A token is a string of bytes, such as `b" fox"`, and has a number,
# its id. The first 256 ids are the single bytes. (GPT-2 numbers them in an order of its own,
# printable characters first. We use the same order.) Then each merge adds a token, until the
# vocabulary is full.
#
# It would be slow to count all pairs again after every merge. But a merge changes only the words
# that contain the pair. So we remember which words contain each pair. After a merge we count again
# only in these.


# %%
def learn(words: Counter, size: int) -> dict[bytes, int]:
    """The tokens of a byte-pair encoding, `size` of them, and their ids."""
    single = sorted((bytes([i]) for i in range(256)), key=bytes_to_printable)
    ids = {token: i for i, token in enumerate(single)}
    parts = {word: [bytes([byte]) for byte in word.encode()] for word in words}

    counts = Counter()  # of each pair
    where = defaultdict(set)  # the words that contain a pair

    def count(word: str, times: int) -> None:
        """Add the pairs of a word, so many times as it occurs; a negative number takes away."""
        for pair in pairwise(parts[word]):
            counts[pair] += times
            where[pair].add(word)

    for word in words:
        count(word, words[word])

    def rank(pair: tuple[bytes, bytes]) -> tuple[int, int, int]:
        """The most common pair is the largest; of equally common ones, that with smaller ids."""
        left, right = pair
        return counts[pair], -ids[left], -ids[right]

    while len(ids) < size:
        best = max(counts, key=rank)
        left, right = best
        ids.setdefault(left + right, len(ids))

        for word in where.pop(best):
            count(word, -words[word])
            parts[word] = merge(parts[word], best)
            count(word, words[word])
        where.pop(best, None)
        del counts[best]
    return ids


ids = learn(words, size=1023)
tokens = list(ids)
print(" ".join(token.decode().replace(" ", "␣") for token in tokens[256:306]))
print("the longest:", sorted(tokens, key=len)[-8:])

# %% [markdown]
# The first merges make pieces that are common in every English text. Later ones make whole words,
# such as " peddler" for this book. The package's tokenizer learns from the same text. (A fast
# library written in Rust, `tokenizers`, does it there.) It has 1,024 tokens: our 1,023, and one
# that marks the end of a document.

# %%
package = train_bpe([training], vocab_size=1024)
assert package.vocab_size == 1024
assert [package.token_bytes(i) for i in range(1023)] == tokens  # the same tokens, in the same order

# %% [markdown]
# ## Encoding a text
#
# To **encode** means to turn a text into token ids. For each word: begin with its bytes, and do the
# merges in the order in which they were learned. The code does the same in another way: of all
# neighbours that together are a token, it merges those with the smallest id, until none are left.
# **Decoding** is easier: join the bytes of the tokens.


# %%
def encode(text: str, ids: dict[bytes, int]) -> list[int]:
    encoded = []
    for word in regex.findall(GPT2_PATTERN, text):
        parts = [bytes([byte]) for byte in word.encode()]
        while True:
            known = [(a, b) for a, b in pairwise(parts) if a + b in ids]
            if not known:
                break
            parts = merge(parts, min(known, key=lambda pair: ids[pair[0] + pair[1]]))
        encoded += [ids[part] for part in parts]
    return encoded


def decode(encoded: list[int], tokens: list[bytes]) -> str:
    return b"".join(tokens[i] for i in encoded).decode(errors="replace")


examples = [
    held_out,
    "A lizard, a 🦊 and a 狐 met 12 times.",
    "Der Fuchs trägt grüne Strümpfe.",
    "  spaces   and\n\n\nlines ",
]
for example in examples:
    assert encode(example, ids) == package.encode(example)  # the same ids
    assert decode(encode(example, ids), tokens) == example  # and back

# %% [markdown]
# The ids are the same as the package's, on the held-out tenth of the book and on texts that are
# quite unlike it. Here is one sentence with vocabularies of four sizes:

# %%
sentence = "The old lizard said nothing, but the fox understood."
sizes = (257, 512, 1024, 4096)
vocabularies = {size: train_bpe([training], vocab_size=size) for size in sizes}

rows = {}
for size, tokenizer in vocabularies.items():
    rows[f"{size:,} tokens"] = [tokenizer.decode([i]) for i in tokenizer.encode(sentence)]

figure, axes = plt.subplots(figsize=(8.4, 1.5))
draw_tokens(axes, rows)
plt.show()

assert "lizard" not in training
lizard = [tokens[i] for i in encode(" lizard", ids)]
print(lizard)
assert len(lizard) == 3
assert len(rows["257 tokens"]) == 52 and len(rows["4,096 tokens"]) == 13

# %% [markdown]
# "lizard" does not occur in the training text. So no vocabulary has a token for it, and it is put
# together from pieces. With 257 tokens (256 bytes, and the end of a document) the sentence is 52
# tokens long, one for each letter. With 4,096 it is 13 tokens long: nine words, two punctuation
# marks, and two more because "lizard" has three pieces.
#
# ## How many tokens?
#
# The size of the vocabulary is a choice. What does it gain, and what does it cost? Three
# measurements:
#
# - How many bytes long is a token on average? The longer tokens are, the further back a model with
#   the same context length sees, and the fewer steps it needs to write a text.
# - How many of the learned tokens occur fewer than ten times in the training text? About such a
#   token a model can learn very little.
# - What does the loaded die of notebook 1 cost on the held-out text, with tokens on its faces
#   instead of characters?

# %%
sizes = (257, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 5500)
seen_length, new_length, rare, per_token, per_byte = [], [], [], [], []
for size in sizes:
    tokenizer = train_bpe([training], vocab_size=size)
    seen, new = tokenizer.encode(training), tokenizer.encode(held_out)
    seen_length.append(len(training) / len(seen))  # one character of this book is one byte
    new_length.append(len(held_out) / len(new))

    counts = np.bincount(seen, minlength=size)  # how often each id occurs, (size,)
    rare.append((counts[256 : size - 1] < 10).mean() if size > 257 else 0)

    probabilities = (counts + 1 / size) / (len(seen) + 1)  # smoothed, as in notebook 1
    bits = -np.log2(probabilities[new])  # (number of tokens,)
    per_token.append(bits.mean())
    per_byte.append(bits.sum() / len(held_out))

# %%
figure, panels = plt.subplots(1, 3, figsize=(9, 2.7))
panels[0].plot(sizes, seen_length, "o-", color=BLUE, markersize=3.5, label="training text")
panels[0].plot(sizes, new_length, "o-", color=PURPLE, markersize=3.5, label="held-out text")
panels[0].set(title="bytes per token", ylim=(0, 4.2))
panels[0].legend(loc="lower right")
panels[1].plot(sizes, 100 * np.array(rare), "o-", color=QUIET, markersize=3.5)
panels[1].set(title="% of tokens seen under ten times", ylim=(0, 100))
panels[2].plot(sizes, per_token, "o-", color=AMBER, markersize=3.5, label="bits per token")
panels[2].plot(sizes, per_byte, "o-", color=PURPLE, markersize=3.5, label="bits per byte")
panels[2].set(title="cost of a loaded die", ylim=(0, 10))
panels[2].legend(loc="center right")
for axes in panels:
    axes.set(xlabel="vocabulary size", xlim=(0, 5700))
plt.show()

at = {size: i for i, size in enumerate(sizes)}
assert new_length[at[257]] == 1 and new_length[at[1024]] > 2.5 and new_length[at[4096]] < 4
assert rare[at[1024]] < 0.1 and rare[at[4096]] > 0.8
assert round(per_byte[at[257]], 1) == 4.4  # the loaded die of notebook 1
assert np.all(np.diff(per_token) > 0) and per_byte[at[1024]] < 3.1
assert np.all(np.diff(per_byte[: at[4096] + 1]) < 0) and per_byte[-1] > per_byte[-2]

# %% [markdown]
# The first thousand tokens gain most: with 1,024 a token is nearly three bytes long. After that a
# text gets shorter only slowly, and the tokens become rare. With 4,096 most of them occur fewer
# than ten times in this book. And each token needs a row in the table of embeddings: a vocabulary
# of 4,096 with vectors of 64 numbers is 262,144 weights, more than twice as many as the whole model
# of the next notebook. So a short text needs a small vocabulary. GPT-2 learned from 40 GB of text,
# and has 50,257 tokens.
#
# The right picture is about the loss. The cost *per token* rises with longer tokens, because each
# of them says more. That does not mean that the model is worse. *Per byte* the cost falls, because
# a die with words on its faces knows more than one with letters. (At 5,500 it rises a little: too
# many tokens were seen too rarely.) So the losses of models with different tokenizers can only be
# compared per byte:
#
# $$\text{bits per byte} = \frac{\text{nats per token}}{\ln 2 \cdot \text{bytes per token}}$$
#
# This is why `minigpt train` prints bits per byte.

# %%
assert 4096 * 64 == 262_144
nats_per_token = per_token[at[1024]] * np.log(2)
np.testing.assert_allclose(
    nats_per_token / (np.log(2) * new_length[at[1024]]), per_byte[at[1024]], rtol=1e-9
)

# %% [markdown]
# ## Limits
#
# **A model does not see letters.** It gets the id of a token, and nothing tells it which letters
# are in it. That makes it hard to rhyme, or to count the letters of a word. **One word is several
# tokens**, too: with and without a space, with a capital or without. The model has to learn that
# they belong together.

# %%
for form in ("the", " the", "The", " The"):
    print(f"{form!r:7} -> {encode(form, ids)}")
forms = [tuple(encode(form, ids)) for form in ("the", " the", "The", " The")]
assert len(set(forms)) == 4

# %% [markdown]
# **Other texts cost more.** The tokens are those of an English book. A German sentence needs more
# than twice as many of them, so it fills the context sooner and takes longer to write:

# %%
english = "The fox wore green stockings and walked over the bridge to the tailor."
german = "Der Fuchs trug grüne Strümpfe und ging über die Brücke zum Schneider."
for sentence in (english, german):
    encoded = encode(sentence, ids)
    print(f"{len(sentence)} characters, {len(encoded)} tokens")

assert len(encode(german, ids)) > 2 * len(encode(english, ids))

# %% [markdown]
# **A token may be a part of a character.** The bytes of an emoji are four tokens here. While a
# model writes, the first three are not yet a text. `decode` puts the sign � in place of bytes that
# it cannot read, so a program has to wait for the fourth:

# %%
fox = encode("🦊", ids)
for i in range(1, 5):
    print(fox[:i], decode(fox[:i], tokens))

assert len(fox) == 4
assert decode(fox[:3], tokens) == "�" and decode(fox, tokens) == "🦊"

# %% [markdown]
# The next notebook uses characters again, because they are few and a small model learns them in
# seconds. `train.py`, the same program as `minigpt train`, learns a byte-pair encoding from your
# text. It chooses the size of the vocabulary by the length of the text and the size of the model.
#
# ## Try
#
# **1.** How large can the vocabulary of this book become? What are the tokens then?
#
# <details><summary>Answer</summary>
#
# 5,983. Then every word of the training text is a single token, nothing is left to merge, and the
# learning stops. New texts have new words, and those still fall into pieces.
#
# ```python
# largest = train_bpe([training], vocab_size=20_000)
# assert largest.vocab_size == 5983
# assert all(len(largest.encode(word)) == 1 for word in words)
# assert len(largest.encode(" lizard")) > 1
# ```
#
# </details>
#
# **2.** Learn 300 merges from text that is not cut into words. What are the longest tokens?
#
# <details><summary>Answer</summary>
#
# The whole text is one "word" now, and merges cross spaces: among the longest tokens are
# `'," said the '`, `'," he said'` and `'with the '`. Such tokens make a text shorter. But what a
# model has learned about "said" it must learn again for each of them.
#
# ```python
# uncut = learn(Counter([training[:20_000]]), size=556)
# longest = sorted(uncut, key=len)[-12:]
# assert {b'," said the ', b'," he said', b"with the "} <= set(longest)
# ```
#
# </details>
#
# **3.** A merge is never taken back. Does a text then have more tokens than necessary? Find the
# smallest number of tokens for each word of the held-out text.
#
# <details><summary>Answer</summary>
#
# Yes, but not many: it has 7,284 tokens, and 7,248 would be enough. One example is "Nothing". It
# becomes `N`, `ot`, `hing`, though `No` and `thing` are tokens.
#
# To find the smallest number, write `fewest[i]` for the smallest number of tokens for the first `i`
# bytes of a word. It is 1 more than the smallest `fewest[j]` of all `j` before `i` for which the
# bytes from `j` to `i` are a token.
#
# ```python
# def fewest_tokens(word: str) -> int:
#     text = word.encode()
#     fewest = [0]
#     for i in range(1, len(text) + 1):
#         fewest.append(1 + min(fewest[j] for j in range(i) if text[j:i] in ids))
#     return fewest[-1]
#
# assert len(encode(held_out, ids)) == 7284
# assert sum(fewest_tokens(word) for word in regex.findall(GPT2_PATTERN, held_out)) == 7248
# assert [tokens[i] for i in encode("Nothing", ids)] == [b"N", b"ot", b"hing"]
# assert fewest_tokens("Nothing") == 2
# ```
#
# </details>
