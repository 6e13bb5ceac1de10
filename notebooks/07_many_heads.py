# %% [markdown]
# # 5. Many heads
#
# One round of attention gives each word one set of weights. But a word may need several things at
# once. After "could not reach" a model may want to know *who* could not, and *what* was out of
# reach. So one lets several rounds of attention run side by side, each with matrices of its own.
# They are called **heads**.
#
# We build them in the plain way first, then in the fast one, and check that both are the same. In
# the end it is the layer of a real GPT, equal to torch's own.

# %%
import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Rectangle
from pictures import AMBER, BLUE, INK, PURPLE, heatmap
from torch import nn

from minigpt.attention import (
    CausalAttention,
    MultiHeadAttention,
    MultiHeadAttentionWrapper,
    attention_weights,
    causal_mask,
)

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
)  # (T, d_in)
batch = torch.stack([x, x.flip(0)])  # (b, T, d_in) = (2, 6, 3): the text, and the text backwards
b, T, d_in = batch.shape

# %% [markdown]
# ## Heads side by side
#
# Two causal heads as in notebook 6, each with random matrices of its own. Each gives two numbers
# for each word. Put side by side (**concatenated**) that is four:
#
# $$Z = [\, \text{head}_1(X) \;;\; \text{head}_2(X) \,]$$

# %%
num_heads, head_dim = 2, 2

torch.manual_seed(123)
heads = [CausalAttention(d_in, head_dim, T, dropout=0.0) for _ in range(num_heads)]
Z = torch.cat([head(batch) for head in heads], dim=-1)  # (b, T, num_heads * head_dim) = (2, 6, 4)

torch.manual_seed(123)
wrapper = MultiHeadAttentionWrapper(d_in, head_dim, T, dropout=0.0, num_heads=num_heads)
torch.testing.assert_close(Z, wrapper(batch))
known = torch.tensor([-0.4519, 0.2216, 0.4772, 0.1063])  # from courses that use the same seed
torch.testing.assert_close(Z[0, 0], known, atol=5.1e-5, rtol=0)
Z[0].detach()

# %% [markdown]
# The two heads look at different things. Here that is by chance. To make it visible, we multiply
# their queries by 8:

# %%
figure, panels = plt.subplots(1, 2, figsize=(7, 3.4))
for axes, head, title in zip(panels, heads, ("head 0", "head 1"), strict=True):
    weights = attention_weights(8 * head.W_query(x), head.W_key(x), mask=causal_mask(T)).detach()
    heatmap(axes, weights.masked_fill(causal_mask(T), torch.nan), words, words, title)
plt.show()

# %% [markdown]
# ## One layer for all heads
#
# This loop over heads does many small products. A computer is faster with one large product. And
# there is a way: put the heads' matrices below each other. Then one product gives the queries of
# all heads, side by side:
#
# $$W_Q = \begin{bmatrix} W_Q^{(1)} \\ W_Q^{(2)} \end{bmatrix} \quad\Longrightarrow\quad
# X W_Q^\top = \big[\, X W_Q^{(1)\top} \;;\; X W_Q^{(2)\top} \,\big]$$
#
# (`nn.Linear` keeps its matrix with rows and columns swapped, hence the $\top$.)

# %%
W_query = torch.cat([head.W_query.weight for head in heads])  # (num_heads * head_dim, d_in)
W_key = torch.cat([head.W_key.weight for head in heads])
W_value = torch.cat([head.W_value.weight for head in heads])

queries = batch @ W_query.T  # (b, T, d_in) @ (d_in, 4) -> (b, T, 4)
torch.testing.assert_close(queries[..., :2], heads[0].W_query(batch))
torch.testing.assert_close(queries[..., 2:], heads[1].W_query(batch))

# %% [markdown]
# ## Cutting the vectors into heads
#
# The four numbers of a word are two for head 0, then two for head 1. `view` gives a tensor
# another shape without moving a number: 4 becomes 2 × 2. `transpose` then swaps two dimensions,
# so that the heads come before the words:
#
# `(b, T, 4)` → `(b, T, num_heads, head_dim)` → `(b, num_heads, T, head_dim)`


# %%
def split(x: torch.Tensor) -> torch.Tensor:
    """(b, T, num_heads * head_dim) -> (b, num_heads, T, head_dim)."""
    return x.view(b, T, num_heads, head_dim).transpose(1, 2)


by_head = split(queries)
torch.testing.assert_close(by_head[:, 0], heads[0].W_query(batch))
torch.testing.assert_close(by_head[:, 1], heads[1].W_query(batch))

# %%
figure, (whole, *parts) = plt.subplots(1, 3, figsize=(6.6, 3.2), width_ratios=(2.6, 1, 1))
heatmap(whole, queries[0].detach(), words, title="all queries, (T, 4)", signed=True, most=0.6)
for axes, colour, left, head in zip(parts, (BLUE, AMBER), (0, 2), (0, 1), strict=True):
    frame = {"fill": False, "edgecolor": colour, "linewidth": 2.5, "clip_on": False}
    whole.add_patch(Rectangle((left + 0.03, 0.03), 1.94, T - 0.06, **frame))
    heatmap(axes, by_head[0, head].detach(), title=f"head {head}, (T, 2)", signed=True, most=0.6)
    axes.add_patch(Rectangle((0.03, 0.03), 1.94, T - 0.06, **frame))
plt.show()

# %% [markdown]
# ## The batched product
#
# What does `@` do with four dimensions? It multiplies the last two, as matrices, and repeats that
# for all the others. So a single line computes the scores of all heads of all texts:
#
# $$S^{(t,h)} = Q^{(t,h)}\, K^{(t,h)\top} \quad \text{for every text } t \text{ and head } h$$

# %%
torch.manual_seed(0)
Q, K = torch.randn(2, 3, 4, 5, 8)  # 3 texts, 4 heads, 5 words, vectors of 8: (3, 4, 5, 8) each
S = Q @ K.transpose(-2, -1)  # (3, 4, 5, 8) @ (3, 4, 8, 5) -> (3, 4, 5, 5)

for text in range(3):
    for head in range(4):
        torch.testing.assert_close(S[text, head], Q[text, head] @ K[text, head].T)

# %% [markdown]
# ## Back together
#
# With that, attention of all heads is the code of notebook 6, not a line longer. Afterwards the
# heads go back side by side: swap the two dimensions again, and make one of the last two.

# %%
Q, K, V = (
    split(batch @ W.T) for W in (W_query, W_key, W_value)
)  # (b, num_heads, T, head_dim) each
S = (Q @ K.transpose(-2, -1)).masked_fill(causal_mask(T), -torch.inf)  # (b, num_heads, T, T)
A = (S / head_dim**0.5).softmax(dim=-1)  # (b, num_heads, T, T)
context = (A @ V).transpose(1, 2).flatten(-2)  # (b, T, num_heads * head_dim)

torch.testing.assert_close(context, Z)

# %% [markdown]
# The same numbers as from the loop. Note what the square root holds: the size of *a head*,
# because that is how many products its scores are sums of.

# %% [markdown]
# ## The output projection
#
# So far the heads stand side by side and do not know of each other. One more matrix mixes them,
# the **output projection**, and brings the result to the size that we want:
#
# $$Y = Z\, W_O^\top + b_O$$

# %%
torch.manual_seed(0)
out_proj = nn.Linear(num_heads * head_dim, 3)
Y = out_proj(context)  # (b, T, 4) -> (b, T, 3)

# %% [markdown]
# There is another way to see it. Each head meets only its own columns of $W_O$. So every head
# writes a vector of its own, and the output is their sum:
#
# $$Y = \sum_{h} \text{head}_h(X)\, W_O^{(h)\top} + b_O$$

# %%
W_0, W_1 = out_proj.weight[:, :2], out_proj.weight[:, 2:]  # (3, head_dim) each
total = heads[0](batch) @ W_0.T + heads[1](batch) @ W_1.T + out_proj.bias
torch.testing.assert_close(total, Y)

# %% [markdown]
# That is why a head can be switched off: leave its vector out of the sum. Notebook 10 does so.

# %% [markdown]
# ## The layer of the GPT
#
# All of it in one function, with the package's layer holding the matrices:


# %%
def multi_head_attention(x: torch.Tensor, layer: MultiHeadAttention) -> torch.Tensor:
    """(b, T, d_in) -> (b, T, d_out)."""
    b, T, _ = x.shape
    h, d = layer.num_heads, layer.head_dim
    Q, K, V = (
        W(x).view(b, T, h, d).transpose(1, 2) for W in (layer.W_query, layer.W_key, layer.W_value)
    )
    S = (Q @ K.transpose(-2, -1)).masked_fill(causal_mask(T), -torch.inf)  # (b, h, T, T)
    A = (S / d**0.5).softmax(dim=-1)  # (b, h, T, T)
    return layer.out_proj((A @ V).transpose(1, 2).flatten(-2))  # (b, T, h * d) -> (b, T, d_out)


torch.manual_seed(123)
small = MultiHeadAttention(d_in=3, d_out=2, context_length=6, dropout=0.0, num_heads=2)
torch.testing.assert_close(multi_head_attention(batch, small), small(batch))
known = torch.tensor([0.3190, 0.4858])  # once more from those courses
torch.testing.assert_close(small(batch)[0, 0], known, atol=5.1e-5, rtol=0)

large = MultiHeadAttention(d_in=64, d_out=64, context_length=32, dropout=0.0, num_heads=8)
text = torch.randn(2, 32, 64)
torch.testing.assert_close(multi_head_attention(text, large), large(text), atol=1e-5, rtol=1e-4)

# %% [markdown]
# The layer computes the same with a faster function of torch, which never keeps the weights. When
# we want to see them, there is `forward_with_weights`:

# %%
output, weights = large.forward_with_weights(text)
print("output", tuple(output.shape), "weights", tuple(weights.shape))
torch.testing.assert_close(output, large(text), atol=1e-5, rtol=1e-4)

# %% [markdown]
# ## Equal to torch's own
#
# torch has such a layer too, `torch.nn.MultiheadAttention`. It keeps queries, keys and values in
# a single matrix, below each other. Copy our numbers into it, and both give the same output and
# the same weights:

# %%
theirs = nn.MultiheadAttention(64, num_heads=8, bias=True, batch_first=True)
with torch.no_grad():  # no gradients: we only copy
    theirs.in_proj_weight.copy_(
        torch.cat([large.W_query.weight, large.W_key.weight, large.W_value.weight])
    )
    theirs.in_proj_bias.zero_()
    theirs.out_proj.load_state_dict(large.out_proj.state_dict())

their_output, their_weights = theirs(
    text, text, text, attn_mask=causal_mask(32), average_attn_weights=False
)
torch.testing.assert_close(their_output, output, atol=1e-5, rtol=1e-4)
torch.testing.assert_close(their_weights, weights, atol=1e-5, rtol=1e-4)

# %% [markdown]
# ## What do more heads cost?
#
# Nothing, in numbers to learn. The same vectors are cut into more, narrower pieces:

# %%
for num_heads in (1, 2, 8, 32):
    layer = MultiHeadAttention(64, 64, context_length=32, dropout=0.0, num_heads=num_heads)
    count = sum(parameter.numel() for parameter in layer.parameters())
    print(f"{num_heads:2} heads of {layer.head_dim:2} numbers: {count:,} parameters")
    assert count == 4 * 64 * 64 + 64  # four matrices and one bias

# %% [markdown]
# A **parameter** is a number that is learned. More heads look at more things, but each compares
# shorter vectors. Heads of 32 to 128 numbers are common.
#
# What does grow is the table of weights: $T^2$ for each head. Twice the text means four times the
# table. This is why long texts are expensive.

# %%
lengths = torch.arange(1025)
figure, axes = plt.subplots(figsize=(5, 2.4))
axes.plot(lengths, 12 * lengths**2 / 1e6, color=PURPLE)
axes.set(xlabel="words in the text", ylabel="million weights", xlim=(0, 1024), ylim=(0, None))
axes.set_title("a layer of 12 heads", color=INK)
plt.show()

# %% [markdown]
# ## Try
#
# - Set the columns of head 1 in `out_proj.weight` to zero. By how much does the output change? Is
#   it what you get by leaving head 1 out of the sum?
# - Swap the two heads in `heads`. How must the columns of `out_proj` change to give the same
#   output?
# - `MultiHeadAttention(..., num_kv_heads=1)` lets all heads share their keys and values. How many
#   parameters does that save in `large`?
