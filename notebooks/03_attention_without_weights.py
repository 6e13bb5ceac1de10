# %% [markdown]
# # 3. Attention without weights to learn
#
# In notebook 2 an average became a weighted sum, and the weights came from scores. We made up the
# scores. Now they come from the words themselves: **a word looks at the words that are like it.**
#
# Three steps make a new vector for each word: scores, weights, context vectors. Every GPT takes
# these three steps. (A GPT is the kind of language model that you will build in notebook 9.) But a
# GPT does not use the vectors of the words directly: it makes three new vectors from each. Notebook
# 5 shows how.
#
# (The six words, their numbers and the three steps are those of chapter 3 of Sebastian Raschka's
# book [Build a Large Language Model (From Scratch)](https://github.com/rasbt/LLMs-from-scratch).
# Many courses use them, so you can compare.)

# %%
import matplotlib.pyplot as plt
import torch
from pictures import BLUE, INK, PURPLE, QUIET, heatmap

from minigpt.attention import attention_scores, simple_self_attention

# %% [markdown]
# ## Six words
#
# Each word is a vector of three numbers. In a language model such a vector is called an
# **embedding**. A model learns its embeddings. Here the numbers are given.

# %%
words = ["Your", "journey", "starts", "with", "one", "step"]
x = torch.tensor(
    [
        [0.43, 0.15, 0.89],  # Your
        [0.55, 0.87, 0.66],  # journey
        [0.57, 0.85, 0.64],  # starts
        [0.22, 0.58, 0.33],  # with
        [0.77, 0.25, 0.10],  # one
        [0.05, 0.80, 0.55],  # step
    ]
)  # (T, d) = (6, 3)

# %% [markdown]
# ## How alike are two vectors?
#
# The **dot product** answers that with one number. Multiply the vectors number by number, then
# add:
#
# $$x \cdot y = \sum_{k=1}^{d} x_k\, y_k$$

# %%
journey, starts, one = x[1], x[2], x[4]  # (d,) each
by_hand = (journey * one).sum()  # Σ xₖ yₖ
torch.testing.assert_close(by_hand, journey.dot(one))
print(f"journey · one    = {by_hand:.4f}")
print(f"journey · starts = {journey.dot(starts):.4f}")

# %% [markdown]
# By this measure "journey" is more like "starts" than like "one". The picture draws vectors as
# arrows, and shows what a dot product measures. Two arrows in similar directions have a positive
# dot product, two arrows at a right angle have 0, and two in opposite directions have a negative
# one. An arrow of twice the length has twice the dot product, as the first and the last picture
# show.

# %%
figure, panels = plt.subplots(1, 4, figsize=(7.4, 2.2), sharex=True, sharey=True)
arrow = torch.tensor([1.0, 0.3])
others = torch.tensor([[0.9, 0.5], [-0.3, 1.0], [-0.9, -0.4], [1.8, 1.0]])
for axes, other in zip(panels, others, strict=True):
    for vector, colour in ((arrow, BLUE), (other, PURPLE)):
        axes.annotate("", vector.tolist(), (0, 0), arrowprops={"arrowstyle": "->", "color": colour})
    axes.plot(0, 0, "o", color=INK, markersize=3)
    axes.set(title=f"dot product {arrow.dot(other):.2f}", aspect="equal")
    axes.set(xlim=(-1.1, 2), ylim=(-0.6, 1.2), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
plt.show()

similar, right_angle, opposite, longer = (others @ arrow).tolist()
assert opposite < 0 < similar and abs(right_angle) < 1e-6
torch.testing.assert_close(others[3], 2 * others[0])  # the same direction, twice the length
assert abs(longer - 2 * similar) < 1e-6
assert journey.dot(starts) > journey.dot(one)

# %% [markdown]
# ## Step 1: attention scores
#
# Take the second word, "journey". It is the word that looks, so it is called the **query**. Its
# **attention scores** are its dot products with all words, itself included. We write them with
# the Greek letter ω (omega):
#
# $$\omega_{2j} = x_2 \cdot x_j$$

# %%
query = x[1]  # (d,)
scores_2 = torch.tensor([query.dot(word) for word in x])  # (T,): ω₂ⱼ, word by word
torch.testing.assert_close(scores_2, x @ query)  # or all at once: (T, d) @ (d,) -> (T,)
scores_2

# %% [markdown]
# ## Step 2: attention weights
#
# Scores become weights: positive numbers with a sum of 1. For these scores we could simply divide
# by their sum, because all of them are positive. Softmax works for any scores:
#
# $$\alpha_{2j} = \frac{e^{\omega_{2j}}}{\sum_{r} e^{\omega_{2r}}}$$

# %%
divided = scores_2 / scores_2.sum()  # (T,)
weights_2 = scores_2.exp() / scores_2.exp().sum()  # (T,): α₂ⱼ

print("divided by the sum:", divided)
print("softmax:           ", weights_2)

# %% [markdown]
# Subtract 1 from every score. The differences between the scores are unchanged. But the division
# by the sum now makes negative weights. The weights of the softmax stay the same. Every
# exponential is divided by the same $e$, since $e^{\omega - 1} = e^{\omega} / e$, and that $e$
# cancels.

# %%
lower = scores_2 - 1
divided = lower / lower.sum()
print("divided by the sum:", divided)

assert (divided < 0).any()
torch.testing.assert_close(lower.softmax(dim=0), weights_2)

# %% [markdown]
# So we may subtract a number from all scores. That solves a problem of our softmax by hand:
# $e^{1000}$ is larger than the largest number that a tensor can hold. Torch's softmax first
# subtracts the largest score from all scores. Then the largest exponential is $e^0 = 1$.

# %%
large = torch.tensor([1000.0, 999.0])
by_hand = large.exp() / large.exp().sum()
print("by hand:", by_hand, "(nan: not a number)")
print("torch:  ", large.softmax(dim=0))

assert by_hand.isnan().all()
torch.testing.assert_close(large.softmax(dim=0), torch.tensor([0.0, -1.0]).softmax(dim=0))

# %% [markdown]
# ## Step 3: the context vector
#
# Multiply each word by its weight, and add up the results. The sum $z_2$ is the **context vector**
# of "journey". It is a mix of all words, with the largest parts from the words with the highest
# scores.
#
# $$z_2 = \sum_{j=1}^{T} \alpha_{2j}\, x_j$$

# %%
context_2 = torch.zeros(3)
for weight, word in zip(weights_2, x, strict=True):
    context_2 += weight * word  # z₂ = Σ α₂ⱼ xⱼ

torch.testing.assert_close(context_2, weights_2 @ x)  # the same: (T,) @ (T, d) -> (d,)
torch.testing.assert_close(context_2, torch.tensor([0.4419, 0.6515, 0.5683]), atol=5e-5, rtol=0)
context_2

# %%
figure, axes = plt.subplots(figsize=(5.6, 2.2))
bars = axes.bar(words, weights_2, 0.6, color=BLUE)
axes.bar_label(bars, fmt="%.2f", color=INK, fontsize=8)
axes.set(ylabel="weight for “journey”", ylim=(0, 0.3))
plt.show()

# %% [markdown]
# ## All words at once
#
# Now every word is the query once. One product of matrices computes the dot products of all pairs
# of words. $X^\top$ is $X$ with rows and columns swapped (`x.T`):
#
# $$S = X X^\top, \qquad A = \operatorname{softmax}(S) \text{ (row by row)}, \qquad Z = A X$$
#
# Watch the shapes. In the first product the two $d$ in the middle disappear. A square is left,
# with one number for each pair of words.

# %%
scores = x @ x.T  # S: (T, d) @ (d, T) -> (T, T)
weights = scores.softmax(dim=-1)  # A: (T, T); dim=-1 is the last dimension: each row adds up to 1
context = weights @ x  # Z: (T, T) @ (T, d) -> (T, d)

torch.testing.assert_close(context[1], context_2)
torch.testing.assert_close(weights.sum(dim=-1), torch.ones(6))
context

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.4))
heatmap(left, scores, words, words, "scores S", signed=True)
heatmap(right, weights, words, words, "weights A")
left.set_ylabel("how much this word looks …")
for axes in (left, right):
    axes.set_xlabel("… at this one")
plt.show()

# %% [markdown]
# The scores are symmetric: "one" is as much like "step" as "step" is like "one". The weights are
# not symmetric, because each row is divided by its own sum.

# %%
torch.testing.assert_close(scores, scores.T)
assert weights[4, 5] != weights[5, 4]

# %% [markdown]
# The package has functions for this, one for the scores and one for all three steps:

# %%
torch.testing.assert_close(attention_scores(x, x), scores)
torch.testing.assert_close(simple_self_attention(x), context)

# %% [markdown]
# This is called **self**-attention, because the words that look and the words that they look at
# belong to the same text.

# %% [markdown]
# ## What is wrong with it
#
# Look at the largest weight of each row. "Your" looks most at itself. The other five words look
# most at "journey" or "starts". Do these two matter most? No: they have the longest vectors, and a
# dot product rewards length.

# %%
looks_most_at = [words[column] for column in weights.argmax(dim=-1)]
assert looks_most_at == ["Your", "journey", "journey", "journey", "starts", "journey"]

lengths = (x * x).sum(dim=-1).sqrt()  # (T,): the length of each vector
received = weights.mean(dim=0)  # (T,): the mean weight that a word receives
longest = [words[i] for i in lengths.argsort(descending=True)[:2]]
assert longest == ["journey", "starts"]

# %%
figure, axes = plt.subplots(figsize=(5, 2.8))
axes.plot(lengths, received, "o", color=PURPLE)
for word, length, weight in zip(words, lengths, received, strict=True):
    below = word in ("Your", "starts")  # the labels of close points are kept apart
    axes.annotate(
        word,
        (length, weight),
        xytext=(6, -10) if below else (-4, 7),
        textcoords="offset points",
        color=QUIET,
    )
axes.set(xlabel="length of its vector", ylabel="mean weight received")
axes.set(xlim=(0.6, 1.35), ylim=(0.11, 0.23))
plt.show()

# %% [markdown]
# On the whole, longer vectors receive more weight. The **correlation** measures how closely the
# points follow a line. It is 1 if all points lie on a rising line, and 0 if the points on the whole
# neither rise nor fall. Here it is 0.95.

# %%
correlation = torch.corrcoef(torch.stack([lengths, received]))[0, 1]
assert round(correlation.item(), 2) == 0.95

# %% [markdown]
# This attention has more limits:
#
# - A word looks at words that are like itself. But in notebook 2 "reach" should look for *things*,
#   not for other words that say what is done.
# - The rule is fixed. Nothing in it can be learned from a text.
# - Each word has a single vector. It decides which words look at the word, and it is also what the
#   word adds to the sum. Two different vectors could do these two jobs better.
#
# Three small matrices remove all of these limits. Notebook 5 adds them. Before that, notebook 4
# shows how the numbers in a matrix can be learned.

# %% [markdown]
# ## Try
#
# **1.** Multiply `x` by 4 before the three steps. What do the weights look like, and why? And if
# you multiply it by 0.1?
#
# <details><summary>Answer</summary>
#
# Multiplied by 4, nearly all the weight of each row is on two or three words. Every score is 16
# times as large, and so is every difference between two scores. The ratio of two weights is $e$ to
# the power of that difference, so it becomes extreme. Multiplied by 0.1, all weights are nearly
# $\frac{1}{6}$. The scores are then a hundredth of what they were, so they hardly differ, and
# attention becomes an average.
#
# ```python
# strong, weak = ((factor * x @ (factor * x).T).softmax(dim=-1) for factor in (4, 0.1))
# assert (strong.topk(3).values.sum(dim=-1) > 0.96).all()
# assert ((weak - 1 / 6).abs() < 0.001).all()
# ```
#
# </details>
#
# **2.** Make the vector of "with" three times as long. Which words look most at it then?
#
# <details><summary>Answer</summary>
#
# All of them, "with" included. All dot products with "with" become three times as large, its
# product with itself even nine times.
#
# ```python
# longer_with = x.clone()
# longer_with[3] *= 3
# new_weights = (longer_with @ longer_with.T).softmax(dim=-1)
# assert new_weights.argmax(dim=-1).tolist() == [3, 3, 3, 3, 3, 3]
# ```
#
# </details>
#
# **3.** Change the order of the words. How do the weights and the context vectors change? Does
# this kind of attention know about order?
#
# <details><summary>Answer</summary>
#
# Rows and columns of the weights change places as the words do. The context vector of a word stays
# the same. So this attention does not know about order. Notebook 9 tells a model where each word
# is, and notebook 6 hides the later words.
#
# ```python
# order = [5, 3, 0, 1, 4, 2]
# shuffled = x[order]
# new_weights = (shuffled @ shuffled.T).softmax(dim=-1)
# torch.testing.assert_close(new_weights, weights[order][:, order])
# torch.testing.assert_close(new_weights @ shuffled, context[order])
# ```
#
# </details>
