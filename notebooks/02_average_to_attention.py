# %% [markdown]
# # 1. From an average to attention
#
# A language model reads a text and guesses how it goes on. It guesses after every word, and each
# time it may use all the words so far. So it needs a way to put *many* words into *one* summary.
#
# The simplest summary is an average. This notebook computes a running average in three ways. The
# third way has a place where something new fits in: weights that depend on what the words say.
# That is attention.
#
# You need a little Python, and nothing of machine learning.

# %%
import matplotlib.pyplot as plt
import torch
from pictures import BLUE, PURPLE, QUIET, heatmap

from minigpt.attention import attention_weights, causal_average

# %% [markdown]
# ## Words as points
#
# A computer cannot average words, but it can average numbers. So each word becomes a list of
# numbers, a **vector**. A trained model finds good numbers by itself. Here we choose two for each
# word by hand: how much it names a thing, and how much it says that something is done.

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
# and `d` columns. We shall write the shape beside every line that makes a new tensor.

# %% [markdown]
# ## First way: a loop
#
# After word $t$, the summary $y_t$ is the mean of the words $x_1$ to $x_t$:
#
# $$y_t = \frac{1}{t} \sum_{s=1}^{t} x_s$$
#
# It never looks ahead. After "saw" the model must guess "grapes", so "grapes" may not be part of
# the summary.

# %%
by_loop = torch.zeros(T, d)
for t in range(T):
    by_loop[t] = x[: t + 1].mean(dim=0)  # yₜ, (d,): the rows 0 to t; Python counts from 0

by_loop

# %% [markdown]
# Every word is a point in the plane, and so is every average.

# %%
figure, axes = plt.subplots(figsize=(6, 3.2))
axes.plot(*by_loop.T, "o-", color=PURPLE, markersize=4, label="the average after each word")
axes.plot(*x.T, "o", color=BLUE, label="the words")
for word, (thing, action) in zip(words, x.tolist(), strict=True):
    axes.annotate(word, (thing, action), xytext=(6, 3), textcoords="offset points", color=BLUE)
axes.set(xlabel="names a thing", ylabel="says that something is done", xlim=(-0.05, 1.15))
axes.legend(loc="upper right")
plt.show()

# %% [markdown]
# The first average is the first word itself. Then the path moves less and less: each new word
# counts for less than the one before. After eight words the average lies in the middle of
# nowhere.

# %% [markdown]
# ## Second way: a matrix of weights
#
# An average is a **weighted sum**: multiply each word by its weight, then add. Write the weights
# $w_{ts}$ of word $s$ in the summary after word $t$ into a matrix $W$, one row for each summary:
#
# $$y_t = \sum_{s=1}^{T} w_{ts}\, x_s \qquad\text{or, for all rows at once,}\qquad Y = W X$$
#
# In Python the product of two matrices is `@`. For the running average, row $t$ has $t$ equal
# weights of $1/t$, and zeros for the words that are still to come. `tril` makes these zeros: it
# keeps the lower triangle of a matrix.

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

# %% [markdown]
# ## Third way: softmax
#
# Where do weights come from? They have to be positive, and each row must add up to 1. There is a
# function that makes such a row from *any* numbers, the **softmax**. Call the numbers **scores**:
#
# $$w_s = \frac{e^{a_s}}{\sum_r e^{a_r}}$$
#
# The exponential $e^{a}$ makes every score positive. Dividing by the sum makes the row add up to
# 1. A larger score gives a larger weight.

# %%
scores = torch.tensor([0.0, 1.0, 2.0])
by_hand = scores.exp() / scores.exp().sum()  # wₛ = e^aₛ / Σ e^aᵣ
torch.testing.assert_close(by_hand, scores.softmax(dim=0))
by_hand

# %% [markdown]
# Two special cases are all we need. Equal scores give equal weights. And since $e^{-\infty} = 0$,
# a score of $-\infty$ gives weight 0: this is how to forbid a word.
#
# So here is the running average once more: all scores are 0, except that later words get
# $-\infty$.

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
# The package has this as a function. All three ways agree with it:

# %%
for ours in (by_loop, by_matrix, by_softmax):
    torch.testing.assert_close(ours, causal_average(x))

# %% [markdown]
# It also takes several texts at a time, a **batch** of shape `(b, T, d)`. Nothing changes: a
# product of matrices is done for each text by itself. (`torch.randn` draws random numbers around
# 0. The seed makes them the same in every run.)

# %%
torch.manual_seed(1337)
batch = torch.randn(4, 8, 2)  # (b, T, d)
torch.testing.assert_close(weights @ batch, causal_average(batch))

# %% [markdown]
# ## What an average cannot do
#
# Imagine a game. There are $T$ numbers, and one of them is marked. What is the marked number?
# Each number comes as a vector of two: the number itself, and its mark, 1 or 0.
#
# An average mixes the marked number with all the others. It *could* answer if the marked one had
# all the weight. But which one that is changes with every game, so no fixed table of weights can
# do it. The weights have to come from the words.
#
# So let the score of a word be its mark times some strength, and try several strengths:
#
# $$a_s = \text{strength} \cdot \text{mark}_s$$

# %%
games = 2000
number = torch.randn(games, T)  # (games, T)
marked = torch.randint(T, (games,))  # which one has the mark, another in each game
mark = torch.nn.functional.one_hot(marked, T).float()  # (games, T)
answer = (mark * number).sum(dim=1)  # (games,)


def error(strength: float) -> float:
    """How far the weighted sum is from the marked number, on average over all games."""
    weights = (strength * mark).softmax(dim=1)  # (games, T): aₛ = strength · markₛ
    return ((weights * number).sum(dim=1) - answer).abs().mean().item()


strengths = torch.linspace(0, 10, 41).tolist()
errors = [error(strength) for strength in strengths]
assert errors[-1] < 0.01 < 0.5 < errors[0]

# %%
figure, axes = plt.subplots(figsize=(5.4, 2.6))
axes.plot(strengths, errors)
axes.plot(0, errors[0], "o", color=PURPLE, clip_on=False)
axes.annotate("the plain average", (0.25, errors[0]), color=PURPLE, va="center")
axes.set(xlabel="strength", ylabel="mean error", xlim=(0, 10), ylim=(0, 1))
plt.show()

# %% [markdown]
# With strength 0 all scores are equal: this is the average again, and it is wrong by a lot. With
# a strength of 8 or so nearly all the weight is on the marked number, and the answer is right.
# The weights follow the content now, and no weight was ever written down for a position.

# %% [markdown]
# ## Back to the fox
#
# After "reach" the model has to guess the next word, perhaps "them". For that it should look for
# the *things* in the text, above all the last one. In our vectors the first number says how much
# a word names a thing. Let the scores of the last row be that number, times a strength of 4:

# %%
last = 4 * x[:, 0]  # (T,): the scores of the row "reach"
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
# Now the summary is mostly foxes and grapes. Between the two it cannot decide, because our
# vectors hardly tell them apart. A trained model has more numbers for each word, and better ones.
#
# Something is missing still. Where does the rule "look for things" come from? Here it was ours.
# It should come from the word that is looking: "reach" looks for a thing, "the" perhaps for
# something else. That is the next notebook. Its function for the weights is the one below. With
# equal scores it gives our first table again:

# %%
equal = torch.zeros(T, 1)  # vectors of zeros: every score will be 0
torch.testing.assert_close(attention_weights(equal, equal, mask=ones == 0), weights)

# %% [markdown]
# ## Try
#
# - Give the score of "grapes" one point more than that of "fox". How many times as much weight
#   does it get? (Look at the formula of the softmax before you run it.)
# - Swap "fox" and "grapes" in `words` and in `x`. What happens to the average after "reach"?
#   Should "the fox saw grapes" and "the grapes saw fox" have the same summary? (Notebook 9 tells
#   words by their position, too.)
# - In the game, mark two numbers instead of one. What does the weighted sum answer at strength
#   10?
