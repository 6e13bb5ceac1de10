# %% [markdown]
# # 5. Queries, keys and values
#
# In notebook 3 every word looked for words like itself. Now each word has three vectors, one for
# each of its jobs:
#
# - a **query**: what am I looking for?
# - a **key**: what can I be found by?
# - a **value**: what do I hand over to the words that find me?
#
# Think of a library. Your question is the query. The labels on the shelves are the keys. The books
# are the values. You carry home books from several shelves, more from shelves whose labels fit
# your question better.
#
# In this notebook we compute an example of three words, number by number. An experiment shows why
# scores are divided by a square root. At the end attention learns to play a game.
#
# This is the attention of the paper [Attention Is All You Need](https://arxiv.org/abs/1706.03762)
# of 2017, which also uses these names.

# %%
import matplotlib.pyplot as plt
import torch
from pictures import BLUE, PURPLE, heatmap
from torch import nn

from minigpt.attention import (
    SelfAttentionV1,
    SelfAttentionV2,
    attention_scores,
    attention_weights,
    scaled_dot_product_attention,
)


def assert_printed(tensor, numbers):
    """Every number is right to its last printed digit, the fourth after the point."""
    torch.testing.assert_close(tensor, torch.tensor(numbers), atol=5.1e-5, rtol=0)


# %% [markdown]
# ## Three words
#
# The text is "sky is blue". A model does not see words but numbers, one for each piece of text
# that it knows. The pieces are called **tokens**, and the numbers are their **ids**. Here each
# word is one token:

# %%
tokens = ["sky", "is", "blue"]
vocabulary = {"sky": 1, "is": 2, "blue": 3}
ids = [vocabulary[token] for token in tokens]
ids

# %% [markdown]
# An id says nothing about its word. So a table holds a vector for every id, its embedding:

# %%
table = {1: [-1.0720, -0.5001], 2: [-0.0120, -0.4311], 3: [-0.0050, -0.5321]}
X = torch.tensor([table[i] for i in ids])  # (T, d) = (3, 2)

# %% [markdown]
# ## Three matrices
#
# The product of a vector and a matrix is another vector. Three matrices turn the embedding $x$ of
# a word into its query $q$, its key $k$ and its value $v$:
#
# $$q = x\, W_Q, \qquad k = x\, W_K, \qquad v = x\, W_V$$
#
# A model learns the numbers in the matrices. These here are made up.

# %%
W_Q = torch.tensor([[-0.0271, -0.3840], [-0.3940, -0.6610]])  # (d, d_k)
W_K = torch.tensor([[-0.4109, 0.5777], [-0.1162, -0.1661]])  # (d, d_k)
W_V = torch.tensor([[-0.2045, 0.1210], [-0.1712, -0.4462]])  # (d, d_v)

# %% [markdown]
# ## One word, step by step
#
# We follow "sky" from its embedding to its context vector. Each number of its query is a dot
# product: the embedding times one column of $W_Q$. Key and value are made in the same way.


# %%
def product(x: torch.Tensor, y: torch.Tensor) -> str:
    """The dot product of two vectors, written out."""
    terms = [f"({a:.4f} × {b:.4f})" for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return f"{' + '.join(terms)} = {x.dot(y):.4f}"


x_sky = X[0]  # (d,)
for name, W in {"query": W_Q, "key": W_K, "value": W_V}.items():
    print(f"{name} of sky")
    print(f"  first number:  {product(x_sky, W[:, 0])}")
    print(f"  second number: {product(x_sky, W[:, 1])}")

q_sky, k_sky, v_sky = x_sky @ W_Q, x_sky @ W_K, x_sky @ W_V  # (d,) @ (d, d_k) -> (d_k,) each
assert_printed(q_sky, [0.2261, 0.7422])
assert_printed(k_sky, [0.4986, -0.5362])
assert_printed(v_sky, [0.3048, 0.0934])

# %% [markdown]
# The **scores** of "sky" are the dot products of *its* query with the keys of all three words. So
# the keys of the other words are needed, too:

# %%
k_is, k_blue = X[1] @ W_K, X[2] @ W_K  # (d_k,) each

for word, key in zip(tokens, (k_sky, k_is, k_blue), strict=True):
    print(f"score of sky and {word}: {product(q_sky, key)}")

s_sky = torch.stack([q_sky.dot(k_sky), q_sky.dot(k_is), q_sky.dot(k_blue)])  # (T,)
assert_printed(s_sky, [-0.2853, 0.0604, 0.0779])

# %% [markdown]
# The scores are divided by $\sqrt{d_k}$, where $d_k = 2$ is how many numbers a query has. (The
# experiment below shows why.) The softmax turns the result into **weights**: take the exponentials,
# and divide them by their sum.

# %%
scaled = s_sky / 2**0.5  # (T,)
exponentials = scaled.exp()  # (T,)
a_sky = exponentials / exponentials.sum()  # (T,)

for i, word in enumerate(tokens):
    print(word)
    print(f"  score divided by √2: {s_sky[i]:.4f} / {2**0.5:.4f} = {scaled[i]:.4f}")
    print(f"  exponential:         {exponentials[i]:.4f}")
    print(
        f"  weight:              {exponentials[i]:.4f} / {exponentials.sum():.4f} = {a_sky[i]:.4f}"
    )

assert_printed(scaled, [-0.2017, 0.0427, 0.0551])
assert_printed(a_sky, [0.2801, 0.3577, 0.3622])

# %% [markdown]
# The **context vector** of "sky" is the sum of the three *values*, each times its weight:

# %%
values = torch.stack([v_sky, X[1] @ W_V, X[2] @ W_V])  # (T, d_v)
print(f"context vector of sky, first number:  {product(a_sky, values[:, 0])}")
print(f"                       second number: {product(a_sky, values[:, 1])}")

z_sky = a_sky @ values  # (T,) @ (T, d_v) -> (d_v,)
assert_printed(z_sky, [0.1460, 0.1802])

# %% [markdown]
# ## All words at once
#
# The matrix $X$ has one row for each word, its embedding. Multiplied by the same three matrices, it
# becomes the queries, keys and values of all words:
#
# $$Q = X W_Q, \qquad K = X W_K, \qquad V = X W_V$$

# %%
Q = X @ W_Q  # (T, d) @ (d, d_k) -> (T, d_k)
K = X @ W_K  # (T, d_k)
V = X @ W_V  # (T, d_v)

assert_printed(Q, [[0.2261, 0.7422], [0.1702, 0.2896], [0.2098, 0.3536]])
assert_printed(K, [[0.4986, -0.5362], [0.0550, 0.0647], [0.0639, 0.0855]])
assert_printed(V, [[0.3048, 0.0934], [0.0763, 0.1909], [0.0921, 0.2368]])

# %%
figure, panels = plt.subplots(1, 4, figsize=(7.8, 2.4), width_ratios=(1.25, 1, 1, 1))
named = {"embeddings X": X, "queries Q": Q, "keys K": K, "values V": V}
for axes, (name, matrix) in zip(panels, named.items(), strict=True):
    rows = tokens if matrix is X else ()
    heatmap(axes, matrix, rows, title=name, signed=True, numbers=".4f")
plt.show()

# %% [markdown]
# The rest is the three steps of notebook 3, with three changes. Queries are compared with *keys*.
# The scores are divided by $\sqrt{d_k}$. And the *values* are added up, not the embeddings.
#
# $$S = Q K^\top, \qquad A = \operatorname{softmax}\!\left(\frac{S}{\sqrt{d_k}}\right),
# \qquad Z = A V$$

# %%
d_k = Q.shape[-1]  # 2
S = Q @ K.T  # (T, d_k) @ (d_k, T) -> (T, T): row i is query i with every key
A = (S / d_k**0.5).softmax(dim=-1)  # (T, T): each row adds up to 1
Z = A @ V  # (T, T) @ (T, d_v) -> (T, d_v)

scores = [[-0.2853, 0.0604, 0.0779], [-0.0704, 0.0281, 0.0356], [-0.0850, 0.0344, 0.0436]]
scaled = [[-0.2017, 0.0427, 0.0551], [-0.0498, 0.0199, 0.0252], [-0.0601, 0.0243, 0.0309]]
assert_printed(S, scores)
assert_printed(S / d_k**0.5, scaled)
assert_printed(A, [[0.2801, 0.3577, 0.3622], [0.3175, 0.3404, 0.3422], [0.3141, 0.3418, 0.3441]])
assert_printed(Z, [[0.1460, 0.1802], [0.1543, 0.1757], [0.1535, 0.1761]])
Z

# %% [markdown]
# The first row is "sky" as above:

# %%
torch.testing.assert_close(A[0], a_sky)
torch.testing.assert_close(Z[0], z_sky)

# %%
figure, panels = plt.subplots(1, 3, figsize=(7.4, 2.7), width_ratios=(1.15, 1, 0.9))
heatmap(panels[0], S, tokens, tokens, "scores S", signed=True, numbers=".4f")
heatmap(panels[1], A, (), tokens, "weights A", numbers=".4f")
heatmap(panels[2], Z, (), (), "context vectors Z", signed=True, numbers=".4f")
plt.show()

# %% [markdown]
# One function of the package does all of this. Its name is the full name of this attention, *scaled
# dot-product attention*. Two more functions stop earlier: at the scores, not yet divided by the
# square root, and at the weights.

# %%
torch.testing.assert_close(attention_scores(Q, K), S)
torch.testing.assert_close(attention_weights(Q, K), A)
torch.testing.assert_close(scaled_dot_product_attention(Q, K, V), Z)

# %% [markdown]
# Queries may come from another text than keys and values. If two words look at a text of three
# words, there are two rows of weights and two context vectors. This is called *cross-attention*.
# The first models with this attention were translators: each word of the translation looked at
# the words of the original.

# %%
assert attention_weights(Q[:2], K).shape == (2, 3)
assert scaled_dot_product_attention(Q[:2], K, V).shape == (2, 2)

# %% [markdown]
# ## Why the square root? An experiment
#
# Draw many random queries and keys of $d_k$ numbers each. How far apart are their dot products?
# The **variance** measures that: it is the mean of the squared distances from the mean. Each
# number of our queries and keys has mean 0 and variance 1.

# %%
torch.manual_seed(0)
sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
unscaled, scaled = [], []
for size in sizes:
    queries, keys = torch.randn(2, 4000, size)  # (4000, d_k) each
    dots = (queries * keys).sum(dim=-1)  # (4000,): q · k
    unscaled.append(dots.var().item())
    scaled.append((dots / size**0.5).var().item())

# %%
figure, axes = plt.subplots(figsize=(5.6, 2.8))
axes.loglog(sizes, unscaled, "o-", base=2, markersize=4, label="$q\\cdot k$")
axes.loglog(sizes, scaled, "o-", base=2, markersize=4, label="$q\\cdot k\\,/\\sqrt{d_k}$")
axes.set(xlabel="$d_k$, the size of queries and keys", ylabel="variance of the scores")
axes.legend()
plt.show()

# %% [markdown]
# The variance of the dot products is close to $d_k$. Divided by the square root, they have a
# variance close to 1 for every size.

# %%
torch.testing.assert_close(torch.tensor(unscaled), torch.tensor(sizes).float(), rtol=0.2, atol=0)
assert all(0.8 < variance < 1.2 for variance in scaled)

# %% [markdown]
# Here is the reason. Write $\operatorname{Var}(s)$ for the variance of $s$. A dot product is a sum
# of $d_k$ products $q_i k_i$. Each product has variance 1, because both of its factors have mean 0
# and variance 1 and do not depend on each other. The products do not depend on each other either,
# so their variances add up. And dividing by a number divides the variance by the square of that
# number:
#
# $$\operatorname{Var}(q \cdot k) = \sum_{i=1}^{d_k} \operatorname{Var}(q_i k_i) = d_k,
# \qquad \operatorname{Var}\!\left(\frac{q \cdot k}{\sqrt{d_k}}\right) =
# \frac{d_k}{(\sqrt{d_k})^2} = 1$$
#
# Why does it matter? Softmax turns *differences* of scores into *ratios* of weights. If two scores
# differ by 10, one weight is $e^{10} \approx 22{,}000$ times the other. So with a large $d_k$ and
# no scaling, a word looks almost only at one word, and chance decides which one:

# %%
figure, panels = plt.subplots(1, 2, figsize=(7.2, 2.3), sharey=True)
queries, keys = torch.randn(2, 8, 512)  # eight words, (T, d_k) each
largest = []
for axes, factor, title in zip(panels, (1, 512**-0.5), ("not scaled", "scaled"), strict=True):
    weights = (queries @ keys.T * factor).softmax(dim=-1)  # (T, T)
    largest.append(weights[0].max())
    axes.bar(range(8), weights[0], 0.6, color=BLUE if factor < 1 else PURPLE)
    axes.set(title=f"weights of one query, {title}", xlabel="key", ylim=(0, 1.05))
plt.show()

assert largest[0] > 0.99 and largest[1] < 0.7
assert round(torch.tensor(10.0).exp().item(), -3) == 22_000

# %% [markdown]
# Worse, a model then hardly learns. The **gradient** of notebook 4 says how much a result changes
# if a number changes a little. Where one weight is almost 1, a small change of the scores changes
# almost nothing. So the gradient is almost 0. Without scaling, the mean gradient is less than a
# tenth of the mean gradient with scaling:


# %%
def mean_gradient(factor: float) -> float:
    """How much the weights react to the scores: the mean size of the gradients."""
    torch.manual_seed(0)
    queries, keys = torch.randn(2, 200, 8, 512)  # (b, T, d_k) each: 200 texts of 8 words
    scores = queries @ keys.transpose(1, 2) * factor  # (b, T, T); transpose swaps T and d_k
    scores.requires_grad_()  # we want the gradients of the scores
    first = scores.softmax(dim=-1)[:, :, 0]  # (b, T): the first weight of each row
    first.sum().backward()  # computes the gradients
    return scores.grad.abs().mean().item()


print(f"not scaled: {mean_gradient(1):.5f}   scaled: {mean_gradient(512**-0.5):.5f}")
assert mean_gradient(1) < 0.1 * mean_gradient(512**-0.5)

# %% [markdown]
# ## A class with the three matrices
#
# A class keeps the matrices together. `nn.Parameter` marks a tensor as something to learn. The
# matrices start with random numbers, here between 0 and 1 (`torch.rand`).


# %%
class Attention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):  # (T, d_in) -> (T, d_out)
        Q, K, V = x @ self.W_query, x @ self.W_key, x @ self.W_value  # (T, d_out) each
        return (Q @ K.T / K.shape[-1] ** 0.5).softmax(dim=-1) @ V


# %% [markdown]
# This is the package's `SelfAttentionV1`. The same seed makes the same random matrices, so the two
# classes must agree. The words are the six of notebook 3. They, the names of the classes, the seed
# and the result for "journey" are those of Sebastian Raschka's book
# [Build a Large Language Model (From Scratch)](https://github.com/rasbt/LLMs-from-scratch):

# %%
x = torch.tensor(
    [
        [0.43, 0.15, 0.89],  # Your
        [0.55, 0.87, 0.66],  # journey
        [0.57, 0.85, 0.64],  # starts
        [0.22, 0.58, 0.33],  # with
        [0.77, 0.25, 0.10],  # one
        [0.05, 0.80, 0.55],  # step
    ]
)  # (T, d_in) = (6, 3)

torch.manual_seed(123)
ours = Attention(d_in=3, d_out=2)(x)
torch.manual_seed(123)
theirs = SelfAttentionV1(d_in=3, d_out=2)(x)

torch.testing.assert_close(ours, theirs)
assert_printed(ours[1], [0.3061, 0.8210])  # journey

# %% [markdown]
# In practice such a matrix is an `nn.Linear` of torch. It starts with better random numbers,
# around 0. It can also add a constant vector, a **bias**; here it does not. It stores its matrix
# with rows and columns swapped. The package's `SelfAttentionV2` uses it. With the same numbers in
# its matrices, its result is the same:

# %%
first, second = SelfAttentionV1(3, 2), SelfAttentionV2(3, 2)
for name in ("W_query", "W_key", "W_value"):
    getattr(second, name).weight.data = getattr(first, name).data.T  # (d_out, d_in)
torch.testing.assert_close(first(x), second(x))

# %% [markdown]
# ## It learns
#
# Remember the game of notebook 2: one of eight numbers is marked, and that number is the right
# answer. There we chose the scores by hand. Now nobody tells the matrices what to look for. They
# only see games and right answers.
#
# Each place of a game is a vector of three numbers: the number, its mark (1 or 0), and the
# constant 1. With the constant, every place can have the same query, whatever its number.
#
# We train only the first place's output. Nothing is hidden from it, so it sees all eight places.
# The **loss** is the mean squared error of the first number of this output. Each step goes
# downhill, as in notebook 4: it computes the gradient of the loss, and moves every number of the
# matrices a little way against it. The **optimizer** does the moving. Ours is the Adam of notebook
# 4, with a separate step size for each number.


# %%
def games(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors (number, mark, 1) of eight places each, (b, T, 3), and the marked numbers, (b,)."""
    number = torch.randn(count, 8)  # (b, T)
    mark = nn.functional.one_hot(torch.randint(8, (count,)), 8).float()  # (b, T)
    return torch.stack([number, mark, torch.ones(count, 8)], dim=-1), (number * mark).sum(dim=1)


torch.manual_seed(5)
layer = SelfAttentionV2(d_in=3, d_out=4)
optimizer = torch.optim.Adam(layer.parameters(), lr=0.03)  # lr: the learning rate
inputs, answers = games(1)  # one game to look at
before = attention_weights(layer.W_query(inputs), layer.W_key(inputs))[0]  # (T, T)

losses = []
for _ in range(400):
    batch, wanted = games(256)  # (b, T, 3), (b,)
    output = layer(batch)[:, 0, 0]  # (b,): of each game, the first place's first number
    loss = (output - wanted).square().mean()
    optimizer.zero_grad()  # forget the last gradients
    loss.backward()  # compute the gradients
    optimizer.step()  # change every number a little
    losses.append(loss.item())

after = attention_weights(layer.W_query(inputs), layer.W_key(inputs))[0]  # (T, T)

# %%
names = [f"{number:.1f}{' ←' if mark else ''}" for number, mark, _ in inputs[0].tolist()]
figure, panels = plt.subplots(1, 3, figsize=(7.6, 2.8), width_ratios=(1.3, 1, 1))
panels[0].plot(losses)
panels[0].set(xlabel="step", title="loss", ylim=(0, None))
heatmap(panels[1], before.detach(), names, (), "weights before", numbers=None)
heatmap(panels[2], after.detach(), names, (), "weights after", numbers=None)
for axes in panels[1:]:
    axes.set_xlabel("looks at these places\n(in the same order)")
plt.show()

answer = layer(inputs)[0, 0, 0]
print(f"marked: {answers[0]:.2f}, answer: {answer:.2f}")

# %% [markdown]
# The arrow shows the marked number. The loss falls from 0.8 to less than 0.001. Before the
# training all weights are nearly equal, so each context vector is almost an average. After it,
# every place gives more than 95% of its weight to the marked number.

# %%
marked = inputs[0, :, 1].argmax()

assert round(losses[0], 1) == 0.8 and losses[-1] < 0.001
assert (before - 1 / 8).abs().max() < 0.04
assert (after[:, marked] > 0.95).all()
assert abs(answer - answers[0]) < 0.05

# %% [markdown]
# The queries have learned to ask for a mark, the keys to show it, and the values to hand over the
# number. We can see it if we compare two places that differ only in their mark, and two that differ
# only in their number. Almost only the mark changes the score, and the value follows the number:

# %%
plain, with_mark, larger = torch.tensor([[0.0, 0, 1], [0, 1, 1], [1, 0, 1]])  # (3,) each
query = layer.W_query(plain)  # (d_out,)
by_mark = (query @ layer.W_key(with_mark - plain)).item()
by_number = (query @ layer.W_key(larger - plain)).item()
handed_over = layer.W_value(larger - plain)[0].item()  # the first number of a value
print(f"a mark changes the score by {by_mark:.1f}, a number larger by 1 by {by_number:.1f}")
print(f"a number larger by 1 makes the value larger by {handed_over:.2f}")

assert by_mark > 5 and abs(by_number) < 0.5
assert abs(handed_over - 1) < 0.1

# %% [markdown]
# ## Try
#
# **1.** In the example of three words, set $W_K$ to zero. What are the weights, and what are the
# context vectors? In which notebook did you see that?
#
# <details><summary>Answer</summary>
#
# All keys are zero, so all scores are 0 and all weights are $\frac{1}{3}$. Every context vector is
# the mean of the three values. It is the average of notebook 2, but over all words, also the later
# ones.
#
# ```python
# no_keys = torch.zeros(3, 2)
# torch.testing.assert_close(attention_weights(Q, no_keys), torch.full((3, 3), 1 / 3))
# context = scaled_dot_product_attention(Q, no_keys, V)
# torch.testing.assert_close(context, V.mean(dim=0).expand(3, 2))
# ```
#
# </details>
#
# **2.** Let the game have 64 places instead of 8. Does attention still learn it? Is the loss as
# low?
#
# <details><summary>Answer</summary>
#
# Yes, to both. It takes more steps until the loss falls, because at first the marked number has
# only a 64th of the weight. In the end the loss is below 0.001, as with 8 places. The marked key
# needs a larger score now, because it competes with 63 others.
#
# ```python
# def long_games(count: int) -> tuple[torch.Tensor, torch.Tensor]:
#     number = torch.randn(count, 64)
#     mark = nn.functional.one_hot(torch.randint(64, (count,)), 64).float()
#     return torch.stack([number, mark, torch.ones(count, 64)], dim=-1), (number * mark).sum(dim=1)
#
# torch.manual_seed(5)
# layer = SelfAttentionV2(d_in=3, d_out=4)
# optimizer = torch.optim.Adam(layer.parameters(), lr=0.03)
# long_losses = []
# for _ in range(400):
#     batch, wanted = long_games(64)
#     loss = (layer(batch)[:, 0, 0] - wanted).square().mean()
#     optimizer.zero_grad()
#     loss.backward()
#     optimizer.step()
#     long_losses.append(loss.item())
#
# assert sum(long_losses[-50:]) / 50 < 0.001
# assert losses[40] < 0.1 < long_losses[40]
# ```
#
# </details>
#
# **3.** In the experiment on variance, draw the queries with `torch.rand` (evenly between 0 and 1)
# instead of `torch.randn`. Is the variance still $d_k$?
#
# <details><summary>Answer</summary>
#
# No, it is $\frac{d_k}{3}$. The keys still have mean 0, so the variance of $q_i k_i$ is the mean
# of $q_i^2 k_i^2$. The mean of $k_i^2$ is 1. The mean of $q_i^2$ is $\int_0^1 q^2\, dq =
# \frac{1}{3}$.
#
# ```python
# queries, keys = torch.rand(4000, 256), torch.randn(4000, 256)
# variance = (queries * keys).sum(dim=-1).var()
# torch.testing.assert_close(variance, torch.tensor(256 / 3), rtol=0.1, atol=0)
# ```
#
# </details>
