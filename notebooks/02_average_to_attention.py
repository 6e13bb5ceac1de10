# %% [markdown]
# # 2. From an average to attention
#
# A language model reads a text and predicts the next word. It predicts one after every word, and
# each time it may use all the words so far. The counts of notebook 1 could use only the last few
# characters. To use *many* words, a model must put them into *one* summary.
#
# The simplest summary is an average. This notebook computes a running average in three ways. Each
# way leads to the next, and the third one needs only one change to become **attention**: how much
# each word counts must depend on the words.
#
# (The three ways to compute a running average come from Andrej Karpathy's lecture
# [Let's build GPT](https://www.youtube.com/watch?v=kCc8FmEb1nY). He calls the average a *bag of
# words*, because it forgets their order.)

# %%
import matplotlib.pyplot as plt
import torch
from pictures import BLUE, PURPLE, QUIET, heatmap

from minigpt.attention import attention_weights, causal_average

# %% [markdown]
# ## Words as points
#
# A computer cannot average words, but it can average numbers. So each word becomes a list of
# numbers, a **vector**. A trained model finds good numbers by itself. Here we choose two numbers
# for each word by hand: how much it names a thing, and how much it says that something is done.

# %%
words = ["the", "fox", "saw", "grapes", "but", "could", "not", "reach"]
x = torch.tensor(
    [
        [0.1, 0.0],  # the
        [1.0, 0.2],  # fox
        [0.2, 0.8],  # saw
        [0.9, 0.0],  # grapes
        [0.0, 0.2],  # but
        [0.0, 0.5],  # could
        [0.0, 0.3],  # not
        [0.3, 1.0],  # reach
    ]
)
T, d = x.shape
print(f"T = {T} words, each a vector of d = {d} numbers")

# %% [markdown]
# Such a table of numbers is a **tensor**. Its **shape** is `(T, d)`: `T` rows, one for each word,
# and `d` columns. Comments in the code show the shapes of new tensors.

# %% [markdown]
# ## First way: a loop
#
# After word $t$, the summary $y_t$ is the mean of the words $x_1$ to $x_t$:
#
# $$y_t = \frac{1}{t} \sum_{s=1}^{t} x_s$$
#
# The summary never looks ahead. After "saw" the model must predict "grapes", so "grapes" may not
# be part of the summary.

# %%
by_loop = torch.zeros(T, d)
for t in range(T):
    by_loop[t] = x[: t + 1].mean(dim=0)  # yₜ, (d,): the rows 0 to t; Python counts from 0

by_loop

# %% [markdown]
# Every word is a point in the plane, and so is every average.

# %%
figure, axes = plt.subplots(figsize=(6.4, 3.6))
axes.plot(*by_loop.T, "o-", color=PURPLE, markersize=4, label="the average after 1, 2, 3, … words")
axes.plot(*x.T, "o", color=BLUE, label="the words")
for word, point in zip(words, x.tolist(), strict=True):
    axes.annotate(word, point, xytext=(-5, 6), textcoords="offset points", color=BLUE)
for t in range(1, T):  # the first average is the first word itself
    below = t in (1, 4, 5)
    axes.annotate(
        str(t + 1),
        by_loop[t].tolist(),
        xytext=(3, -11) if below else (4, 4),
        textcoords="offset points",
        color=PURPLE,
        fontsize=8,
    )
axes.set(xlabel="names a thing", ylabel="says that something is done")
axes.set(xlim=(-0.05, 1.15), ylim=(-0.06, 1.2))
axes.legend(loc="upper right")
plt.show()

# %% [markdown]
# The first average is the first word itself. The second is halfway between "the" and "fox", since
# both words count equally. After $t$ words all of them count $\frac{1}{t}$, the newest no more
# than the first. So the average moves only one $t$-th of the way towards the newest word: half of
# the way to "fox", but an eighth of the way to "reach".
#
# $$y_t = y_{t-1} + \frac{1}{t}\,(x_t - y_{t-1})$$

# %%
for t in range(1, T):
    way = x[t] - by_loop[t - 1]  # (d,): from the last average to the new word, number t + 1
    torch.testing.assert_close(by_loop[t], by_loop[t - 1] + way / (t + 1))

# %% [markdown]
# After eight words the average is far from all of them. Even the closest word, "not", is 0.32
# away. The average says a little of everything, and nothing clearly.

# %%
distance = (x - by_loop[-1]).norm(dim=1)  # (T,): of each word from the last average
assert words[distance.argmin()] == "not"
assert round(distance.min().item(), 2) == 0.32

# %% [markdown]
# ## Second way: a matrix of weights
#
# An average is a **weighted sum**: multiply each word by its weight, then add. Write $w_{ts}$ for
# the weight of word $s$ in the summary after word $t$. All these weights form a matrix $W$, with
# one row for each summary:
#
# $$y_t = \sum_{s=1}^{T} w_{ts}\, x_s \qquad\text{or, for all rows at once,}\qquad Y = W X$$
#
# In Python the product of two matrices is `@`. For the running average, row $t$ has $t$ equal
# weights of $\frac{1}{t}$, and zeros for the words that are still to come. `tril` makes these
# zeros: it keeps the lower triangle of a matrix.

# %%
ones = torch.ones(T, T).tril()  # (T, T): 1 on and below the diagonal, 0 above
weights = ones / ones.sum(dim=1, keepdim=True)  # (T, T): each row divided by its sum
by_matrix = weights @ x  # Y = W X, (T, T) @ (T, d) -> (T, d)

torch.testing.assert_close(by_matrix, by_loop)  # stops with an error if they differ

# %%
figure, axes = plt.subplots(figsize=(4.6, 4))
heatmap(axes, weights.masked_fill(ones == 0, torch.nan), words, words, "weights of the average")
axes.set(xlabel="how much of this word …", ylabel="… is in the summary after this one")
plt.show()

# %% [markdown]
# Read it row by row. The row of "saw" says: a third of "the", a third of "fox", a third of "saw".
# Grey squares are later words. They have weight 0.

# %%
torch.testing.assert_close(weights[2], torch.tensor([1 / 3, 1 / 3, 1 / 3, 0, 0, 0, 0, 0]))

# %% [markdown]
# ## Third way: softmax
#
# How can we compute weights from the words? No weight may be negative, and each row must add up
# to 1. The **softmax** makes such a row from *any* numbers. We call these numbers **scores** and
# write them $a_s$:
#
# $$w_s = \frac{e^{a_s}}{\sum_r e^{a_r}}$$
#
# The exponential $e^{a}$ makes every score positive. Dividing by the sum makes the sum of the
# row 1. A larger score becomes a larger weight.

# %%
scores = torch.tensor([0.0, 1.0, 2.0])
by_hand = scores.exp() / scores.exp().sum()  # wₛ = e^aₛ / Σ e^aᵣ

torch.testing.assert_close(by_hand, scores.softmax(dim=0))
assert by_hand[0] < by_hand[1] < by_hand[2]
by_hand

# %% [markdown]
# Two special cases are all we need. Equal scores become equal weights. And a score of $-\infty$
# becomes the weight 0, because $e^{-\infty} = 0$. That is how a word can be forbidden.
#
# Here is the running average once more: all scores are 0, except that later words get $-\infty$.

# %%
scores = torch.zeros(T, T).masked_fill(ones == 0, -torch.inf)  # (T, T): the rule, written as scores
by_softmax = scores.softmax(dim=1) @ x  # softmax of each row, then Y = W X

torch.testing.assert_close(by_softmax, by_loop)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.6))
heatmap(left, scores, words, words, "scores", numbers=".0f")
heatmap(right, scores.softmax(dim=1), words, words, "weights = softmax of each row")
plt.show()

# %% [markdown]
# The package has the running average as a function. All three ways agree with it:

# %%
for ours in (by_loop, by_matrix, by_softmax):
    torch.testing.assert_close(ours, causal_average(x))

# %% [markdown]
# The function also takes several texts at a time, a **batch** of shape `(b, T, d)`, where `b` is
# the number of texts. The product of matrices is then computed for each text separately.
# (`torch.randn` draws random numbers around 0. The seed makes them the same in every run. Seed
# and shape are those of Karpathy's lecture.)

# %%
torch.manual_seed(1337)
batch = torch.randn(4, 8, 2)  # (b, T, d)
torch.testing.assert_close(weights @ batch, causal_average(batch))

# %% [markdown]
# ## What an average cannot do
#
# Imagine a game. There are $T$ numbers, and one of them is marked. Which number is marked? Each
# number comes as a vector of two: the number itself, and its mark, 1 or 0.
#
# An average mixes the marked number with all the others. The answer would be right if the marked
# number had all the weight. But the mark is at another place in each game, so no fixed table of
# weights can be right. The weights must depend on the marks.
#
# So let the score of a number be its mark times a strength, and try several strengths:
#
# $$a_s = \text{strength} \cdot \text{mark}_s$$

# %%
games = 2000
number = torch.randn(games, T)  # (games, T)
marked = torch.randint(T, (games,))  # (games,): which number is marked in each game
mark = torch.nn.functional.one_hot(marked, T).float()  # (games, T): 1 at the marked number, else 0
answer = (mark * number).sum(dim=1)  # (games,): the marked number


def error(strength: float) -> float:
    """How far the weighted sum is from the marked number, on average over all games."""
    weights = (strength * mark).softmax(dim=1)  # (games, T): aₛ = strength · markₛ
    return ((weights * number).sum(dim=1) - answer).abs().mean().item()


strengths = torch.linspace(0, 10, 41).tolist()
errors = [error(strength) for strength in strengths]
print(f"mean error of the plain average: {error(0):.2f}")
print(f"mean error at strength 8:        {error(8):.3f}")
print(f"mean error of always saying 0:   {answer.abs().mean():.2f}")

# %%
figure, axes = plt.subplots(figsize=(5.4, 2.6))
axes.plot(strengths, errors)
axes.plot(0, errors[0], "o", color=PURPLE, clip_on=False)
axes.annotate("the plain average", (0.3, errors[0] + 0.06), color=PURPLE, va="center")
axes.set(xlabel="strength", ylabel="mean error", xlim=(0, 10), ylim=(0, 1))
plt.show()

# %% [markdown]
# With strength 0 all scores are equal. This is the plain average, and it is hardly better than
# always saying 0. With strength 8 the marked number has more than 99% of the weight, and the
# answer is almost right.

# %%
assert 0.9 < error(0) / answer.abs().mean() < 1
assert (8 * mark).softmax(dim=1).amax(dim=1).min() > 0.99  # in the worst game
assert error(8) < 0.01

# %% [markdown]
# These weights do not depend on the position of a number. They depend on its mark.

# %% [markdown]
# ## Back to the fox
#
# After "reach" the model has to predict the next word, perhaps "them". For that it should look
# for the *things* in the text. In our vectors the first number says how much a word names a
# thing. So let the scores in the row of "reach" be that number, times a strength of 4:

# %%
last = 4 * x[:, 0]  # (T,): the scores in the row of "reach"
before, after = weights[-1], last.softmax(dim=0)  # (T,), (T,)

figure, axes = plt.subplots(figsize=(7, 2.4))
positions = torch.arange(T)
axes.bar(positions - 0.2, before, 0.38, color=QUIET, alpha=0.5, label="equal scores: an average")
axes.bar(positions + 0.2, after, 0.38, color=BLUE, label="scores from the words")
axes.set_xticks(positions, words)
axes.set(ylabel="weight after “reach”")
axes.legend()
plt.show()

# %% [markdown]
# Now "fox" and "grapes" have nine tenths of the weight. But "fox" has more than "grapes", and the
# model would need "grapes". Our two numbers for each word do not say enough to choose between
# them. A trained model has hundreds of numbers for each word.

# %%
fox, grapes = after[1], after[3]
assert round((fox + grapes).item(), 1) == 0.9
assert fox > grapes

# %% [markdown]
# One thing is still missing. We wrote the rule "look for things" ourselves. The word that looks
# should decide: "reach" looks for a thing, "the" perhaps for something else. Notebook 3 makes a
# first step in that direction, and notebook 5 the second.
#
# The package has a function that computes scores from vectors, forbids later words and applies the
# softmax. With equal scores its weights are those of the average:

# %%
equal = torch.zeros(T, 1)  # (T, 1): vectors of zeros, so every score will be 0
torch.testing.assert_close(attention_weights(equal, equal, mask=ones == 0), weights)

# %% [markdown]
# ## Try
#
# **1.** Two words have scores that differ by 1. How many times as much weight does the word with
# the larger score get? (Look at the formula of the softmax before you run it.)
#
# <details><summary>Answer</summary>
#
# $e \approx 2.718$ times as much, whatever the two scores are: $e^{a+1} / e^{a} = e$. The
# denominator is the same for both words, so it cancels.
#
# ```python
# small, large = torch.tensor([0.3, 1.3]).softmax(dim=0)
# torch.testing.assert_close(large / small, torch.tensor(1.0).exp())
# ```
#
# </details>
#
# **2.** Swap "fox" and "grapes" in `words` and in `x`. What happens to the average after "reach"?
# Should "the fox saw grapes" and "the grapes saw fox" have the same summary?
#
# <details><summary>Answer</summary>
#
# The average stays the same, because a sum does not depend on the order of its terms. But the two
# sentences mean different things, so their summaries should differ. Notebook 9 adds a vector for
# the position to the vector of each word. Then order matters.
#
# ```python
# swapped = x.clone()
# swapped[[1, 3]] = x[[3, 1]]
# torch.testing.assert_close(causal_average(swapped)[-1], by_loop[-1])
# ```
#
# </details>
#
# **3.** In the game, mark two numbers instead of one. What does the weighted sum answer at
# strength 10?
#
# <details><summary>Answer</summary>
#
# The mean of the two marked numbers, almost exactly. Both have the same score, so they share the
# weight equally.
#
# ```python
# numbers = torch.randn(T)
# marks = torch.tensor([0.0, 1, 0, 0, 0, 1, 0, 0])  # the second and the sixth
# answered = (10 * marks).softmax(dim=0) @ numbers
# torch.testing.assert_close(answered, (numbers[1] + numbers[5]) / 2, atol=0.01, rtol=0)
# ```
#
# </details>
