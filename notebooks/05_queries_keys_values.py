# %% [markdown]
# # 3. Queries, keys and values
#
# In notebook 3 every word looked for words like itself. Now each word gets three vectors, for
# three different jobs:
#
# - a **query**: what am I looking for?
# - a **key**: what can I be found by?
# - a **value**: what do I hand over to those who find me?
#
# Think of a library. Your question is the query. The labels on the shelves are the keys. What you
# carry home are the values, from several shelves at once, more from those whose labels fit
# better.
#
# We compute an example of three words down to the last digit, find out why scores are divided by
# a square root, and let attention learn.

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
# The text is "sky is blue". A model does not see words but numbers, one for each piece of text it
# knows. The pieces are called **tokens**, and the numbers are their **ids**. Here each word is
# one token:

# %%
tokens = ["sky", "is", "blue"]
vocabulary = {"sky": 1, "is": 2, "blue": 3}
ids = [vocabulary[token] for token in tokens]
ids

# %% [markdown]
# An id says nothing about its word. So every id has an embedding, its vector, in a table:

# %%
table = {1: [-1.0720, -0.5001], 2: [-0.0120, -0.4311], 3: [-0.0050, -0.5321]}
X = torch.tensor([table[i] for i in ids])  # (T, d) = (3, 2)

# %% [markdown]
# ## Three matrices
#
# A matrix turns a vector into another one, by a product. Three matrices turn each word's
# embedding into its query, its key and its value:
#
# $$Q = X W_Q, \qquad K = X W_K, \qquad V = X W_V$$
#
# The numbers in the matrices are what a model learns. These here are made up.

# %%
W_Q = torch.tensor([[-0.0271, -0.3840], [-0.3940, -0.6610]])  # (d, d_k)
W_K = torch.tensor([[-0.4109, 0.5777], [-0.1162, -0.1661]])  # (d, d_k)
W_V = torch.tensor([[-0.2045, 0.1210], [-0.1712, -0.4462]])  # (d, d_v)

Q = X @ W_Q  # (T, d) @ (d, d_k) -> (T, d_k)
K = X @ W_K  # (T, d_k)
V = X @ W_V  # (T, d_v)

assert_printed(Q, [[0.2261, 0.7422], [0.1702, 0.2896], [0.2098, 0.3536]])
assert_printed(K, [[0.4986, -0.5362], [0.0550, 0.0647], [0.0639, 0.0855]])
assert_printed(V, [[0.3048, 0.0934], [0.0763, 0.1909], [0.0921, 0.2368]])

# %%
figure, panels = plt.subplots(1, 4, figsize=(7.4, 2.4), width_ratios=(1.25, 1, 1, 1))
named = {"embeddings X": X, "queries Q": Q, "keys K": K, "values V": V}
for axes, (name, matrix) in zip(panels, named.items(), strict=True):
    heatmap(axes, matrix, tokens if matrix is X else (), title=name, signed=True)
plt.show()

# %% [markdown]
# ## Scores, weights, context vectors
#
# From here it is the three steps of notebook 3. The only difference: a query is compared with
# *keys*, and the sum is one of *values*. And the scores are divided by $\sqrt{d_k}$, where $d_k$
# is the size of a query. We shall see why.
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

# %%
figure, panels = plt.subplots(1, 3, figsize=(7.4, 2.7), width_ratios=(1.15, 1, 0.9))
heatmap(panels[0], S, tokens, tokens, "scores S", signed=True, numbers=".4f")
heatmap(panels[1], A, (), tokens, "weights A", numbers=".4f")
heatmap(panels[2], Z, (), (), "context vectors Z", signed=True, numbers=".4f")
plt.show()

# %% [markdown]
# Follow one number all the way. The first number of the context vector of "sky" is a sum over all
# three words: the first number of each value, times the weight that "sky" gives it.
#
# $$Z_{\text{sky},1} = A_{\text{sky},\text{sky}} V_{\text{sky},1} +
# A_{\text{sky},\text{is}} V_{\text{is},1} + A_{\text{sky},\text{blue}} V_{\text{blue},1}$$

# %%
terms = [f"{A[0, j]:.4f} × {V[j, 0]:.4f}" for j in range(3)]
print(" + ".join(terms), f"= {sum(A[0, j] * V[j, 0] for j in range(3)):.4f}")

# %% [markdown]
# The package has the whole of it in one function, named after its longest name, *scaled
# dot-product attention*. Its scores are still without the square root:

# %%
torch.testing.assert_close(attention_scores(Q, K), S)
torch.testing.assert_close(attention_weights(Q, K), A)
torch.testing.assert_close(scaled_dot_product_attention(Q, K, V), Z)

# %% [markdown]
# Queries need not come from the same text as keys and values. Two words may ask, and three may
# answer. Then there are two rows of weights, and two context vectors. This is called
# *cross-attention*; translators use it.

# %%
assert scaled_dot_product_attention(Q[:2], K, V).shape == (2, 2)

# %% [markdown]
# ## Why the square root? An experiment
#
# Draw many random queries and keys of $d_k$ numbers each. How far do their dot products spread?
# The **variance** measures that: the mean of the squared distances from the mean. Each number
# here has variance 1.

# %%
torch.manual_seed(0)
sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
unscaled, scaled = [], []
for size in sizes:
    queries, keys = torch.randn(2, 4000, size)  # (4000, d_k) each
    dots = (queries * keys).sum(dim=-1)  # (4000,): q · k
    unscaled.append(dots.var().item())
    scaled.append((dots / size**0.5).var().item())

torch.testing.assert_close(torch.tensor(unscaled), torch.tensor(sizes).float(), rtol=0.2, atol=0)
assert all(0.8 < variance < 1.2 for variance in scaled)

# %%
figure, axes = plt.subplots(figsize=(5.6, 2.8))
axes.loglog(sizes, unscaled, "o-", base=2, markersize=4, label="$q\\cdot k$")
axes.loglog(sizes, scaled, "o-", base=2, markersize=4, label="$q\\cdot k\\,/\\sqrt{d_k}$")
axes.set(xlabel="$d_k$, the size of queries and keys", ylabel="variance of the scores")
axes.legend()
plt.show()

# %% [markdown]
# A dot product is a sum of $d_k$ products. Each product has variance 1, they are independent, and
# then variances add up:
#
# $$\operatorname{Var}(q \cdot k) = \sum_{i=1}^{d_k} \operatorname{Var}(q_i k_i) = d_k,
# \qquad \operatorname{Var}\!\left(\frac{q \cdot k}{\sqrt{d_k}}\right) =
# \frac{d_k}{(\sqrt{d_k})^2} = 1$$
#
# Why does it matter? Softmax turns *differences* of scores into *ratios* of weights. If scores
# differ by 10, one weight is $e^{10} \approx 22{,}000$ times the other. So with large $d_k$ and
# no scaling a word looks at a single word, chosen by chance:

# %%
figure, panels = plt.subplots(1, 2, figsize=(7.2, 2.3), sharey=True)
queries, keys = torch.randn(2, 8, 512)  # eight words, (T, d_k) each
for axes, factor, title in zip(panels, (1, 512**-0.5), ("not scaled", "scaled"), strict=True):
    weights = (queries @ keys.T * factor).softmax(dim=-1)  # (T, T)
    axes.bar(range(8), weights[0], 0.6, color=BLUE if factor < 1 else PURPLE)
    axes.set(title=f"weights of one query, {title}", xlabel="key", ylim=(0, 1.05))
plt.show()

# %% [markdown]
# Worse, such a word cannot learn. A model learns by small changes: it asks how much its error
# would change if a number changed a little. That answer is called the **gradient**. At a weight
# of almost exactly 1, the softmax is flat. A small change of the scores changes nothing, and the
# gradient is 0:

# %%


def mean_gradient(factor: float) -> float:
    """How much the weights react to the scores: the mean size of the gradients."""
    torch.manual_seed(0)
    queries, keys = torch.randn(2, 200, 8, 512)  # 200 texts of 8 words
    scores = (queries @ keys.transpose(1, 2) * factor).requires_grad_()  # (200, T, T)
    scores.softmax(dim=-1)[..., 0].sum().backward()  # gradients of each row's first weight
    return scores.grad.abs().mean().item()


print(f"not scaled: {mean_gradient(1):.5f}   scaled: {mean_gradient(512**-0.5):.5f}")
assert mean_gradient(1) < 0.1 * mean_gradient(512**-0.5)

# %% [markdown]
# ## A class with the three matrices
#
# A class keeps the matrices together. `nn.Parameter` marks a tensor as something to learn. The
# matrices start as random numbers, here between 0 and 1 (`torch.rand`).


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
# This is the package's `SelfAttentionV1`. The same seed gives the same random matrices, so on the
# six words of notebook 3 the two must agree:

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
# In practice one uses torch's `nn.Linear` for such a matrix. It starts with better random
# numbers, around 0, and it can add a constant vector, a **bias**. It keeps its matrix with rows
# and columns swapped. That is `SelfAttentionV2`; with the same numbers in it, it gives the same
# result:

# %%
first, second = SelfAttentionV1(3, 2), SelfAttentionV2(3, 2)
for name in ("W_query", "W_key", "W_value"):
    getattr(second, name).weight.data = getattr(first, name).data.T  # (d_out, d_in)
torch.testing.assert_close(first(x), second(x))

# %% [markdown]
# ## It learns
#
# Remember the game of notebook 2: one of eight numbers is marked, which one? There we chose the
# scores by hand. Now nobody tells the matrices anything. They only get games and right answers.
#
# The first place asks, because every word may look everywhere here. The **loss** is the mean
# squared error of its first output. In each step the gradient says in which direction to change
# every number of the matrices so that the loss falls, and the **optimizer** makes a small change
# in that direction.


# %%
def games(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors (number, mark, 1) of eight places each, (b, T, 3), and the marked numbers, (b,)."""
    number = torch.randn(count, 8)
    mark = nn.functional.one_hot(torch.randint(8, (count,)), 8).float()
    return torch.stack([number, mark, torch.ones(count, 8)], dim=-1), (number * mark).sum(dim=1)


torch.manual_seed(5)
layer = SelfAttentionV2(d_in=3, d_out=4)
optimizer = torch.optim.Adam(layer.parameters(), lr=0.03)  # a common one; lr: how far a step goes
inputs, answers = games(1)  # one game to look at
before = attention_weights(layer.W_query(inputs), layer.W_key(inputs))[0]  # (T, T)

losses = []
for _ in range(400):
    batch, wanted = games(256)
    loss = (layer(batch)[:, 0, 0] - wanted).square().mean()
    optimizer.zero_grad()
    loss.backward()  # the gradients
    optimizer.step()  # a small change of every number
    losses.append(loss.item())

after = attention_weights(layer.W_query(inputs), layer.W_key(inputs))[0]  # (T, T)
assert losses[0] > 0.5 and losses[-1] < 0.02

# %%
names = [f"{number:.1f}{' ←' if mark else ''}" for number, mark, _ in inputs[0].tolist()]
figure, panels = plt.subplots(1, 3, figsize=(7.6, 2.5), width_ratios=(1.3, 1, 1))
panels[0].plot(losses)
panels[0].set(xlabel="step", title="loss", ylim=(0, None))
heatmap(panels[1], before.detach(), names, (), "weights before", numbers=None)
heatmap(panels[2], after.detach(), names, (), "weights after", numbers=None)
print(f"marked: {answers[0]:.2f}, answer: {layer(inputs)[0, 0, 0]:.2f}")
plt.show()

# %% [markdown]
# The arrow shows the marked number. Before, all weights are about equal: an average. After, every
# place looks at the marked one. The queries learned to ask for a mark, the keys to show it, and
# the values to hand over the number.

# %% [markdown]
# ## Try
#
# - In the example of three words, set $W_K$ to zero. What are the weights, and what are the
#   context vectors? Which notebook did you see that in?
# - Let the game have 64 places instead of 8. Does it still learn? Is the loss as low?
# - In the experiment on variance, draw the queries with `torch.rand` instead of `torch.randn`. Is
#   the variance still $d_k$? Why not?
