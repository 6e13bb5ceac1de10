# %% [markdown]
# # 1. Dice and counting
#
# A language model predicts how a text goes on. The simplest one is a die: roll it, and write down
# the letter on top. This notebook begins with a fair die and makes it better step by step. Every
# step only *counts* what is in a book. You need a little Python and school mathematics.
#
# For each step we ask three questions: What does it write? How good is it? What is still wrong?
# The last step is a model that is hard to beat. We shall see why it cannot get much better, and
# what another kind of model must be able to do.
#
# (Claude Shannon wrote such texts in 1948, from letters at random to longer and longer contexts,
# in "A Mathematical Theory of Communication". Andrej Karpathy's lectures on
# [makemore](https://github.com/karpathy/makemore) begin with pairs of letters, too.)

# %%
import re
from collections import Counter, defaultdict
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from pictures import AMBER, BLUE, PURPLE, QUIET, heatmap

from minigpt.data.batches import windows_side_by_side
from minigpt.data.counting import CountingModel

# %% [markdown]
# ## A text, in two parts
#
# The text is a book of short fables. We count in the first nine tenths, the **training text**. The
# last tenth is set aside. It is the **held-out text**, and it shows how good a model is: a model
# has learned something about English only if it also predicts fables that it has never seen.

# %%
with open("../data/fables.txt", encoding="utf-8") as file:
    text = file.read()

nine_tenths = int(0.9 * len(text))
training, held_out = text[:nine_tenths], text[nine_tenths:]
characters = sorted(set(text))  # each different character once
V = len(characters)

assert set(held_out) <= set(training)  # no character is new in the held-out text
print(f"{len(training):,} characters to count in, {len(held_out):,} held out, {V} different ones")
print("".join(characters).replace("\n", "↵"))

# %% [markdown]
# Letters, capitals, the space, the new line and the punctuation: these are the faces of our dice.
#
# ## A fair die
#
# On a fair die every face has the same probability, $\frac{1}{61}$. `rng.choice` rolls a die: it
# draws one of the characters, each with its probability `p`. The seed makes the rolls the same
# every time that the notebook runs.

# %%
assert V == 61

rng = np.random.default_rng(seed=1)
fair = np.full(V, 1 / V)  # (V,): V times the same number
rolls = rng.choice(characters, size=70, p=fair)  # 70 rolls
print("".join(rolls).replace("\n", "↵"))

# %% [markdown]
# ## What does a text cost?
#
# How bad is that? We need a number. Look at one character of a text, and at the probability $p$
# that the model gave to it. The **cost** of the character is
#
# $$-\log_2 p$$
#
# A probability of 1 costs nothing. Each time that the probability is halved, the cost grows by one:
# $\frac12$ costs 1, $\frac14$ costs 2, $\frac18$ costs 3. The unit is the **bit**, the answer to
# one yes-or-no question. If eight characters are equally likely, three questions find the right
# one. Is it among the first four? Among the first two of those? Is it the first?
#
# The probability of a whole text is the product of all these probabilities. A logarithm turns
# products into sums, so the cost of a text is the sum over its characters. The mean cost of a
# character is called **cross-entropy**:
#
# $$\text{cost} = -\frac{1}{N} \sum_{i=1}^{N} \log_2 p(\text{character } i)$$
#
# Some programs use the natural logarithm instead of $\log_2$. Then the unit is the **nat**. It
# is the same cost in another unit, as a length in inches or in centimetres: 1 nat is
# $\frac{1}{\ln 2} \approx 1.44$ bits.


# %%
def mean_cost(probabilities) -> float:
    """Bits per character: the mean of -log2 of what each character of a text was given."""
    return -np.log2(probabilities).mean()


assert mean_cost([1 / 8]) == 3
assert mean_cost([1 / 2, 1 / 8]) == 2  # one bit and three bits
np.testing.assert_allclose(mean_cost([0.2]), -np.log(0.2) / np.log(2))  # nats by ln 2

cost_of_fair = mean_cost(np.full(len(held_out), 1 / V))
np.testing.assert_allclose(cost_of_fair, np.log2(61))
print(f"fair die: {cost_of_fair:.2f} bits per character")

# %% [markdown]
# The fair die costs $\log_2 61 = 5.93$ bits per character, whatever the text says. Now this number
# has to fall.
#
# ## A loaded die
#
# In English an "e" is more common than a "q". So count how often each character occurs in the
# training text, and let its probability be its share. (`Counter` counts what is in a list or a
# text.)

# %%
occurs = Counter(training)
share = np.array([occurs[character] for character in characters]) / len(training)  # (V,)

# %%
order = np.argsort(-share)  # the numbers of the characters, the most common first
names = [characters[i].replace(" ", "␣").replace("\n", "↵") for i in order]

figure, axes = plt.subplots(figsize=(7.6, 2.4))
axes.bar(range(40), share[order[:40]], 0.7)
axes.axhline(1 / V, color=PURPLE, linewidth=1)
axes.annotate("fair die", (39.5, 1 / V + 0.004), color=PURPLE, ha="right")
axes.set_xticks(range(40), names[:40])
axes.set(ylabel="probability", title="the loaded die: its 40 likeliest faces", xlim=(-0.7, 39.7))
plt.show()
assert names[:4] == ["␣", "e", "t", "a"]

# %% [markdown]
# The space comes first, then "e", "t" and "a". What does this die write, and what does it cost?
# For the cost we look up the probability of every character of the held-out text:

# %%
number_of = {character: i for i, character in enumerate(characters)}
numbers = np.array([number_of[character] for character in held_out])  # (N,)
cost_of_loaded = mean_cost(share[numbers])  # share[numbers]: one probability per character, (N,)

print("".join(rng.choice(characters, size=70, p=share)).replace("\n", "↵"))
print(f"loaded die: {cost_of_loaded:.2f} bits per character")
assert cost_of_loaded < cost_of_fair - 1.5

# %% [markdown]
# A die that only knows *how often* each character occurs saves more than 1.5 bits. But each roll
# knows nothing of the one before.
#
# ## Pairs: a die for each character
#
# After a "q" comes a "u". So take a separate die for each character: one to roll after a "q", one
# to roll after an "e", and so on. Each die is loaded by how often each character came next in the
# training text. That is a table with one row per die. Two neighbouring characters are called a
# **bigram**.

# %%
pairs = np.zeros((V, V))  # row: the character before; column: the one that follows
for before, after in pairwise(training):  # (h, e), (e, n), …
    pairs[number_of[before], number_of[after]] += 1

assert pairs[number_of["q"]].argmax() == number_of["u"]

# %%
small = [number_of[character] for character in " abcdefghijklmnopqrstuvwxyz"]
labels = ["␣", *"abcdefghijklmnopqrstuvwxyz"]
rows = pairs / pairs.sum(axis=1, keepdims=True)  # (V, V): each row divided by its sum

figure, axes = plt.subplots(figsize=(5.6, 5.2))
heatmap(axes, rows[small][:, small], labels, labels, numbers=None)
axes.tick_params(axis="x", rotation=0)
axes.set(xlabel="… comes this one", ylabel="after this character …")
axes.set_title("the probabilities of 27 of the 61 dice")
plt.show()

# %% [markdown]
# The darker a square, the larger its probability. In the row of "q" there is one dark square, "u".
# The first column is dark where words end: after "d" and "y" a space is the likeliest of all.

# %%
assert rows[number_of["q"], number_of["u"]] > 0.9
for letter in "dy":
    assert rows[number_of[letter]].argmax() == number_of[" "]

# %% [markdown]
# A new problem appears. Many squares are empty: these pairs never occur in the training text, so
# their probability is 0. If such a pair comes in the held-out text, it costs
# $-\log_2 0 = \infty$. One surprise is enough, and the mean is infinite.

# %%
before, after = numbers[:-1], numbers[1:]  # (N - 1,) each: the pairs of the held-out text
new = (pairs[before, after] == 0).sum()
print(f"{(pairs == 0).mean():.0%} of the table is empty")
print(f"{new} of {len(after):,} pairs in the held-out text are new")
assert 0 < new < 30

# %% [markdown]
# "Never seen" does not mean "impossible". So add a little to each count before dividing: pretend
# that every **context**, here the one character before, occurred $a$ more times, followed equally
# often by each of the $V$ characters. This is called **smoothing**.
#
# $$p(\text{after} \mid \text{before}) =
# \frac{\text{count}(\text{before, after}) + a \cdot \frac1V}{\text{count}(\text{before}) + a}$$

# %%
a = 1
smoothed = (pairs + a / V) / (pairs.sum(axis=1, keepdims=True) + a)  # (V, V)
np.testing.assert_allclose(smoothed.sum(axis=1), 1)  # every row is still a die

cost_of_pairs = mean_cost(smoothed[before, after])
print(f"pairs: {cost_of_pairs:.2f} bits per character")
assert cost_of_pairs < cost_of_loaded - 1

# %% [markdown]
# ## Longer contexts
#
# If one character of context saves a bit, let us take two, three, seven. A piece of $n$ characters
# is an **n-gram**: $n - 1$ characters of context and the one that follows. A table is no longer
# possible, since there are $61^7$ contexts of seven characters, more than three trillion. But
# nearly all of them never occur. So we keep a dictionary of those that do: for each context a
# `Counter` of what followed it. (A `defaultdict` makes an empty one when a context is new.)

# %%
LONGEST = 8  # characters in the longest n-gram

followers = defaultdict(Counter)  # context -> how often each character followed it
for size in range(LONGEST):  # of the context
    for i in range(size, len(training)):
        followers[training[i - size : i]][training[i]] += 1

totals = {context: counts.total() for context, counts in followers.items()}
print(f"{61**7:,} contexts of seven characters could be, ", end="")
print(f"{sum(len(context) == 7 for context in followers):,} are there")
print("after “the fo”:", dict(followers["the fo"]))

# %% [markdown]
# Each of these contexts has its own die. We roll these dice to write: take the last $n - 1$
# characters, look up what followed them, draw one of those, repeat. (To write we need no
# smoothing.)


# %%
def write(n: int, count: int) -> str:
    """Text from n-grams, drawn from what followed the last n - 1 characters."""
    written = "The fox"
    for _ in range(count):
        counts = followers[written[len(written) - (n - 1) :]]
        shares = np.array(list(counts.values())) / counts.total()
        written += rng.choice(list(counts), p=shares)
    return " ".join(written.split())


def words_in(text: str) -> list[str]:
    return re.findall("[a-z]+", text.lower())


known = set(words_in(training))
written = {n: write(n, 2000) for n in (2, 3, 4, 6, 8)}
shares = {n: np.mean([word in known for word in words_in(written[n])]) for n in written}

lines = [f"n = {n}: {shares[n]:.0%} of the words are in the book" for n in written]
print("\n\n".join(f"{line}\n{written[n][:88]} …" for n, line in zip(written, lines, strict=True)))
assert sorted(shares, key=lambda n: shares[n]) == [2, 3, 4, 6, 8]
assert shares[8] > 0.95

# %% [markdown]
# It gets better from line to line: syllables, words, pieces of sentences. With 8-grams nearly every
# word is English. (`re.findall` finds all words, that is, all stretches of letters.) Is the longest
# context the best? Ask the held-out text, and for comparison a piece of the training text.


# %%
def probability(n: int, context: str, character: str) -> float:
    """Of `character` after the last n - 1 characters of `context`, smoothed with the fair die."""
    last = context[len(context) - (n - 1) :]
    count = followers[last][character] if last in totals else 0
    return (count + a / V) / (totals.get(last, 0) + a)


def costs_of(text: str, probability) -> list[float]:
    """Bits per character of a text under 1-grams, 2-grams, …, each with a whole context."""
    places = range(LONGEST - 1, len(text))
    return [
        mean_cost([probability(n, text[i - LONGEST + 1 : i], text[i]) for i in places])
        for n in range(1, LONGEST + 1)
    ]


seen = training[: len(held_out)]  # as long as the held-out text
costs_seen = costs_of(seen, probability)
costs_held_out = costs_of(held_out, probability)
np.testing.assert_allclose(costs_held_out[:2], [cost_of_loaded, cost_of_pairs], atol=0.01)

unseen = []  # per n: the share of places in the held-out text whose context is new
for n in range(1, LONGEST + 1):
    contexts = [held_out[i - n + 1 : i] for i in range(LONGEST - 1, len(held_out))]
    unseen.append(np.mean([context not in totals for context in contexts]))

# %%
ns = range(1, LONGEST + 1)
figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 2.9))
left.plot(ns, costs_held_out, "o-", color=PURPLE, markersize=4)
left.plot(ns, costs_seen, "o-", color=BLUE, markersize=4)
left.annotate("held-out text", (6, costs_held_out[5] + 0.25), color=PURPLE, ha="right")
left.annotate("training text", (6, costs_seen[5] - 0.5), color=BLUE, ha="right")
left.set(xlabel="n", ylabel="bits per character", xticks=ns, ylim=(0, 4.8))
right.bar(ns, 100 * np.array(unseen), 0.6, color=QUIET)
right.set(
    xlabel="n", ylabel="% of places", xticks=ns, title="context was never seen in the training text"
)
plt.show()

best = int(np.argmin(costs_held_out)) + 1
print(f"best: n = {best} with {costs_held_out[best - 1]:.2f} bits per character")
assert best == 4
assert np.all(np.diff(costs_seen) < 0)  # every step down
assert np.all(np.diff(costs_held_out[3:]) > 0)  # from n = 4 on every step up
assert 0.3 < unseen[7] < 0.4

# %% [markdown]
# Remember this picture: every kind of model has one like it. On the text that we counted in, the
# model gets better with every $n$. On new text it gets worse again from $n = 5$ on. It no longer
# learns English. It learns *this book by heart*. This is called **overfitting**, and only held-out
# text can show it.
#
# The right picture says why. With $n = 8$, more than a third of the places in the held-out text
# have a context that never occurred in the training text. There the model knows nothing, and it
# rolls the fair die.
#
# ## Falling back
#
# There is something better than the fair die: the next shorter context. If nobody has seen what
# follows "e lizar", then perhaps what follows "lizar", or "zar", or "ar". So we change one thing in
# the formula. The $a$ extra counts are no longer shared equally. They are shared by the
# probabilities after the shorter context. That knows more than the fair die, so it deserves more
# than one count: we choose $a = 8$. Write $h$ for the context, $h'$ for the context without its
# first character, and $c$ for the character that follows:
#
# $$p(c \mid h) = \frac{\text{count}(h, c) + a \cdot p(c \mid h')}{\text{count}(h) + a}$$
#
# The formula uses itself, with shorter and shorter contexts, down to the empty one and the fair
# die. Where a long context was seen often, its counts decide. Where it was never seen, all its
# counts are 0, and the formula becomes $p(c \mid h) = p(c \mid h')$.


# %%
def falling_back(n: int, context: str, character: str, a: float = 8) -> float:
    """As `probability`, but smoothed with what the shorter context says."""
    p = 1 / V  # the fair die
    for size in range(n):  # of the context: 0, 1, …, n - 1
        last = context[len(context) - size :]
        if last not in totals:
            break  # longer ones were not seen either
        p = (followers[last][character] + a * p) / (totals[last] + a)
    return p


all_faces = [falling_back(8, "the liz", character) for character in characters]
np.testing.assert_allclose(sum(all_faces), 1)  # still a die
assert "the liz" not in totals

costs_falling_back = costs_of(held_out, falling_back)
best = int(np.argmin(costs_falling_back)) + 1
print(f"best: n = {best} with {costs_falling_back[best - 1]:.2f} bits per character")
assert best == 6
assert costs_falling_back[best - 1] < min(costs_held_out) - 0.1

# %% [markdown]
# ## The package's model of counts
#
# minigpt has such a model, `CountingModel`. It falls back in the same way, but it weighs short and
# long contexts better (*Kneser-Ney smoothing*). It takes a little from each count and gives it to
# the shorter context. After a short context it counts not how often a character followed, but in
# *how many different* longer contexts it did. It counts 5-grams of **tokens**, the pieces that a
# model reads. Here they are characters.

# %%
training_numbers = np.array([number_of[character] for character in training])
package = CountingModel(training_numbers, vocab_size=V)  # n = 5
window = (numbers[:-1], numbers[1:])  # what is read, and what follows each of these
cost_of_package = package.bits_per_byte([window], byte_lengths=np.ones(V, int))

by_hand = mean_cost(np.exp(package.log_probabilities(numbers)[1:]))
np.testing.assert_allclose(cost_of_package, by_hand)  # the mean that we know from above
print(f"the package's model of counts: {cost_of_package:.2f} bits per character")
assert cost_of_package < min(costs_falling_back)

# %%
every_n = [
    CountingModel(training_numbers, V, order=n).bits_per_byte([window], np.ones(V, int)) for n in ns
]
np.testing.assert_allclose(every_n[4], cost_of_package)
np.testing.assert_allclose(every_n[:2], [cost_of_loaded, cost_of_pairs], atol=0.01)
assert every_n[4] - every_n[7] < 0.1

figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(ns, costs_held_out, "o-", color=PURPLE, markersize=4, label="mixed with the fair die")
axes.plot(ns, costs_falling_back, "o-", color=AMBER, markersize=4, label="falling back")
axes.plot(ns, every_n, "o-", color=BLUE, markersize=4, label="the package's CountingModel")
axes.set(xlabel="n", ylabel="bits per character", xticks=ns, ylim=(1.5, 4.6))
axes.set_title("held-out text")
axes.legend(loc="upper center", bbox_to_anchor=(0.55, 1))
plt.show()

# %% [markdown]
# At the end of a training, `minigpt train` prints what this model of counts costs on the held-out
# text, beside the cost under the model that it trained. For that it cuts the text into windows,
# here of 256 characters. At the beginning of a window there is no context, so the cost is a little
# higher. We get the same number as `minigpt train` with the options `--tokenizer char
# --context-length 256`: "counting which token follows which four gives 1.976 bits/byte on the same
# text". (In this text every character is one byte. The 62nd token marks the end of a document.)

# %%
windows = windows_side_by_side(numbers, context_length=256, max_tokens=len(numbers))
reported = CountingModel(training_numbers, V + 1).bits_per_byte(windows, np.ones(V + 1, int))
print(f"{reported:.3f}")
assert round(reported, 3) == 1.976

# %% [markdown]
# Counting is a hard opponent. The GPT of notebook 9 reads the same book. After its first ten
# seconds of training it still costs more than our 4-grams. With minutes instead of seconds, and
# with more text, a GPT gets below the counts.
#
# For comparison: Shannon let people guess letter by letter ("Prediction and Entropy of Printed
# English", 1951). He estimated that a reader who knows the last hundred letters needs between 0.6
# and 1.3 bits per letter. (His texts had 27 characters: no capitals, no punctuation.)
#
# ## Where counting ends
#
# Look at the blue curve of the last picture: after $n = 5$ it hardly falls any more. A longer
# context would help a reader, but the table cannot use it, because nearly every long context is
# new. Here is an example. The last fable of the held-out text has a Mr. Lark. What does his name
# cost each time?

# %%
costs = -package.log_probabilities(numbers) / np.log(2)  # (N,): bits of each character
last_fable = held_out.rindex("\n\n\n")
name_costs = []
start = held_out.find("Mr. Lark", last_fable)
while start >= 0:
    name = slice(start + len("Mr. "), start + len("Mr. Lark"))
    name_costs.append(float(costs[name].sum()))
    start = held_out.find("Mr. Lark", start + 1)

print("bits for “Lark”:", " ".join(f"{cost:.1f}" for cost in name_costs))
assert len(name_costs) == 4
assert max(name_costs) - min(name_costs) < 1e-6

# %% [markdown]
# The cost is the same four times. When the name comes the second time, every reader expects it. The
# model does not: it sees only four characters, and "Mr. " does not say who was there before. Two
# things are missing:
#
# - **Looking back.** What the model needs may be hundreds of characters back, at a different place
#   in every text.
# - **Similarity.** For a table, "the fox ran" and "the wolf ran" are two contexts, and they have
#   nothing to do with each other. What it counted for one says nothing about the other.
#
# So a better model must be able to look back at *everything* so far, and find in it what is
# *similar* to what it needs now. This is **attention**, and the next notebook begins with it.
#
# ## Try
#
# **1.** In a text, all 61 characters are equally common and in random order. What does it cost?
# Could any model do better on it?
#
# <details><summary>Answer</summary>
#
# $\log_2 61 = 5.93$ bits per character. No model can do better on average, because there is nothing
# to know: the fair die *is* the truth about such a text. The mean cost of the best possible model
# is called the **entropy** of the text's source. A die that is loaded by the counts of one part of
# such a text is a little worse on the rest, because the differences between its counts are chance:
#
# ```python
# nonsense = rng.integers(V, size=40_000)
# counts = np.bincount(nonsense[:20_000], minlength=V)
# cost = mean_cost(counts[nonsense[20_000:]] / 20_000)
# assert cost_of_fair < cost < cost_of_fair + 0.01
# ```
#
# </details>
#
# **2.** Compare $a = 1$, $a = 30$ and $a = 100$ in `falling_back`. (The first 6,000 characters of
# the held-out text are enough.) Which $n$ is best each time?
#
# <details><summary>Answer</summary>
#
# With 1, a long context is believed after a single sighting, and the best $n$ is 4. With 30, a
# context must have been seen often. Then long contexts do no harm, and $n = 8$ is best. It is also
# better than our $a = 8$. With 100, useful contexts are hardly believed either, and everything
# costs more again. (To choose $a$ like this is not quite fair, because the held-out text has then
# helped to make the model. One keeps a third part of the text for such choices.)
#
# ```python
# lowest = {}
# best = {}
# for a in (1, 8, 30, 100):
#
#     def with_a(n: int, context: str, character: str) -> float:
#         return falling_back(n, context, character, a)
#
#     costs = costs_of(held_out[:6000], with_a)
#     lowest[a] = min(costs)
#     best[a] = int(np.argmin(costs)) + 1
#
# assert best[1] == 4 and best[30] == 8
# assert lowest[30] < lowest[8] < lowest[1] and lowest[30] < lowest[100]
# ```
#
# </details>
#
# **3.** Write a text with the probabilities of `falling_back`, with $n = 8$. Is it better than the
# text of the 8-grams above?
#
# <details><summary>Answer</summary>
#
# No, although it costs less on the held-out text: fewer words are in the book. Without smoothing, a
# context of seven characters allows only what followed it in the book, so `write` copies whole
# words. With smoothing, every step has a small probability of a character that never followed, and
# one such character spoils a word. A good predictor is not yet a good writer. Notebook 9 shows how
# to draw only from the likely characters.
#
# ```python
# smooth = "The fox"
# for _ in range(1000):
#     p = np.array([falling_back(8, smooth[-7:], character) for character in characters])
#     smooth += rng.choice(characters, p=p / p.sum())
#
# share_in_book = np.mean([word in known for word in words_in(smooth)])
# assert share_in_book < shares[8] - 0.03
# ```
#
# </details>
