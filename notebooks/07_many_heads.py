# %% [markdown]
# # 7. Many heads
#
# With one round of attention, each word has one set of weights. But a word may need several things
# at once. After "could not reach" a model may want to know *who* could not reach something, and
# *what* could not be reached. So several rounds of attention run side by side, each with its own
# matrices. They are called **heads**.
#
# We build them in the plain way first, then in the fast way, and check that both compute the same.
# The result is the layer of a real GPT. We also check that it equals torch's own layer.
#
# (The six words, the seed 123 and the classes `MultiHeadAttentionWrapper` and `MultiHeadAttention`
# are those of chapter 3 of Sebastian Raschka's book
# [Build a Large Language Model (From Scratch)](https://github.com/rasbt/LLMs-from-scratch). Heads
# were introduced by [Attention Is All You Need](https://arxiv.org/abs/1706.03762).)

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
# We make two causal heads as in notebook 6, each with its own random matrices. Each head computes
# two numbers for each word. Put side by side (**concatenated**), these are four numbers:
#
# $$Z = [\, \text{head}_0(X) \;;\; \text{head}_1(X) \,]$$
#
# The package's `MultiHeadAttentionWrapper` does just that. The book prints the same four numbers
# for the first word:

# %%
num_heads, head_dim = 2, 2

torch.manual_seed(123)
heads = [CausalAttention(d_in, head_dim, T, dropout=0.0) for _ in range(num_heads)]
Z = torch.cat([head(batch) for head in heads], dim=-1)  # (b, T, num_heads * head_dim) = (2, 6, 4)

torch.manual_seed(123)
wrapper = MultiHeadAttentionWrapper(d_in, head_dim, T, dropout=0.0, num_heads=num_heads)
torch.testing.assert_close(Z, wrapper(batch))
in_the_book = torch.tensor([-0.4519, 0.2216, 0.4772, 0.1063])
torch.testing.assert_close(Z[0, 0], in_the_book, atol=5.1e-5, rtol=0)
Z[0].detach()

# %% [markdown]
# The two heads look at different words. Nothing is trained here, so the difference is due to
# chance. Random queries are short, and short queries make nearly equal weights. To make the
# difference visible, we multiply the queries of both heads by 80. A frame shows the largest weight
# of each row.

# %%
figure, panels = plt.subplots(1, 2, figsize=(7, 3.4))
looks_most_at = []
for axes, head, title in zip(panels, heads, ("head 0", "head 1"), strict=True):
    weights = attention_weights(80 * head.W_query(x), head.W_key(x), mask=causal_mask(T)).detach()
    heatmap(axes, weights.masked_fill(causal_mask(T), torch.nan), words, words, title)
    columns = weights.argmax(dim=-1).tolist()
    for row, column in enumerate(columns):
        frame = {"fill": False, "edgecolor": AMBER, "linewidth": 2.5}
        axes.add_patch(Rectangle((column + 0.04, row + 0.04), 0.92, 0.92, **frame))
    looks_most_at.append([words[column] for column in columns])
plt.show()

# %% [markdown]
# In head 0, all words from the second on look most at "journey". In head 1 they look most at
# "journey", "starts" or "one". Four of the six words look most at another word than in head 0.

# %%
in_head_0, in_head_1 = looks_most_at
assert in_head_0 == ["Your", "journey", "journey", "journey", "journey", "journey"]
assert in_head_1 == ["Your", "journey", "starts", "starts", "one", "one"]
assert sum(zero != one for zero, one in zip(in_head_0, in_head_1, strict=True)) == 4

# %% [markdown]
# ## One layer for all heads
#
# The loop over the heads computes many small products. A computer is faster with one large product.
# So put the heads' matrices one below the other. Then one product computes the queries of all
# heads, side by side:
#
# $$W_Q = \begin{bmatrix} W_Q^{(0)} \\ W_Q^{(1)} \end{bmatrix} \quad\Longrightarrow\quad
# X W_Q^\top = \big[\, X W_Q^{(0)\top} \;;\; X W_Q^{(1)\top} \,\big]$$
#
# (`nn.Linear` keeps its matrix with rows and columns swapped, hence the $\top$.)

# %%
W_query = torch.cat([head.W_query.weight for head in heads])  # (num_heads * head_dim, d_in)
W_key = torch.cat([head.W_key.weight for head in heads])  # (num_heads * head_dim, d_in)
W_value = torch.cat([head.W_value.weight for head in heads])  # (num_heads * head_dim, d_in)

queries = batch @ W_query.T  # (b, T, d_in) @ (d_in, 4) -> (b, T, 4)
torch.testing.assert_close(queries[:, :, :2], heads[0].W_query(batch))
torch.testing.assert_close(queries[:, :, 2:], heads[1].W_query(batch))

# %% [markdown]
# ## Cutting the vectors into heads
#
# A word's queries are now four numbers: the first two belong to head 0, the other two to head 1.
# `view` changes the shape of a tensor without moving a number: 4 becomes 2 × 2. Then `transpose`
# swaps two dimensions, which puts the heads before the words:
#
# `(b, T, 4)` → `(b, T, num_heads, head_dim)` → `(b, num_heads, T, head_dim)`


# %%
def split(x: torch.Tensor) -> torch.Tensor:
    """(b, T, num_heads * head_dim) -> (b, num_heads, T, head_dim)."""
    return x.view(b, T, num_heads, head_dim).transpose(1, 2)


by_head = split(queries)  # (b, num_heads, T, head_dim)
torch.testing.assert_close(by_head[:, 0], heads[0].W_query(batch))
torch.testing.assert_close(by_head[:, 1], heads[1].W_query(batch))

# %% [markdown]
# Here are the queries of the first text. Those of head 0 have a blue frame, those of head 1 an
# amber one.

# %%
figure, (whole, *parts) = plt.subplots(1, 3, figsize=(6.2, 3.2), width_ratios=(2.4, 1, 1))
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
# for all the others. So a single line computes the scores of all heads for all texts. For every
# text $t$ and every head $h$:
#
# $$S^{(t,h)} = Q^{(t,h)}\, K^{(t,h)\top}$$

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
# The code of notebook 6 for one head now computes the attention of all heads; no line is added.
# Then the heads go back side by side: `transpose` swaps the two dimensions again, and `flatten`
# joins the last two into one.

# %%
Q = split(batch @ W_query.T)  # (b, num_heads, T, head_dim)
K = split(batch @ W_key.T)  # (b, num_heads, T, head_dim)
V = split(batch @ W_value.T)  # (b, num_heads, T, head_dim)

S = (Q @ K.transpose(-2, -1)).masked_fill(causal_mask(T), -torch.inf)  # (b, num_heads, T, T)
A = (S / head_dim**0.5).softmax(dim=-1)  # (b, num_heads, T, T)
context = (A @ V).transpose(1, 2).flatten(-2)  # (b, T, num_heads * head_dim)

torch.testing.assert_close(context, Z)

# %% [markdown]
# These are the same numbers as from the loop. Under the square root is `head_dim`, the size of
# *one head*, because each score is the dot product of two vectors of that size.

# %% [markdown]
# ## The output projection
#
# So far the heads are side by side, and none knows what the others found. One more matrix $W_O$
# and a bias $\beta$ mix them. This is the **output projection**. It also brings the result to the
# size that we want:
#
# $$Y = Z\, W_O^\top + \beta$$

# %%
torch.manual_seed(0)
out_proj = nn.Linear(num_heads * head_dim, 3)
Y = out_proj(context)  # (b, T, 4) -> (b, T, 3)

# %% [markdown]
# There is another way to see it. The numbers of head $h$ meet only their own columns of $W_O$,
# written $W_O^{(h)}$. So every head adds a vector of its own, and the output is the sum of these
# vectors and the bias:
#
# $$Y = \sum_{h} \text{head}_h(X)\, W_O^{(h)\top} + \beta$$

# %%
W_0, W_1 = out_proj.weight[:, :2], out_proj.weight[:, 2:]  # (3, head_dim) each
total = heads[0](batch) @ W_0.T + heads[1](batch) @ W_1.T + out_proj.bias  # (b, T, 3)
torch.testing.assert_close(total, Y)

# %% [markdown]
# That is why a head can be switched off: leave its vector out of the sum. Notebook 10 does so.
#
# The output projection is optional: `MultiHeadAttentionWrapper` above has none. If $W_O$ is the
# matrix that changes nothing (the **identity**: ones on the diagonal) and $\beta$ is 0, the result
# is as if there were no projection. Almost every real model has one.

# %%
unchanged = nn.Linear(4, 4)
unchanged.weight.data = torch.eye(4)  # the identity, (4, 4)
unchanged.bias.data.zero_()
torch.testing.assert_close(unchanged(context), wrapper(batch))

# %% [markdown]
# ## The layer of the GPT
#
# Here is all of it in one function. The package's layer holds the matrices:


# %%
def multi_head_attention(x: torch.Tensor, layer: MultiHeadAttention) -> torch.Tensor:
    """(b, T, d_in) -> (b, T, d_out)."""
    b, T, _ = x.shape
    h, d = layer.num_heads, layer.head_dim
    Q = layer.W_query(x).view(b, T, h, d).transpose(1, 2)  # (b, h, T, d)
    K = layer.W_key(x).view(b, T, h, d).transpose(1, 2)  # (b, h, T, d)
    V = layer.W_value(x).view(b, T, h, d).transpose(1, 2)  # (b, h, T, d)
    S = (Q @ K.transpose(-2, -1)).masked_fill(causal_mask(T), -torch.inf)  # (b, h, T, T)
    A = (S / d**0.5).softmax(dim=-1)  # (b, h, T, T)
    return layer.out_proj((A @ V).transpose(1, 2).flatten(-2))  # (b, T, h * d) -> (b, T, d_out)


torch.manual_seed(123)
small = MultiHeadAttention(d_in=3, d_out=2, context_length=6, dropout=0.0, num_heads=2)
torch.testing.assert_close(multi_head_attention(batch, small), small(batch))
in_the_book = torch.tensor([0.3190, 0.4858])  # the first word
torch.testing.assert_close(small(batch)[0, 0], in_the_book, atol=5.1e-5, rtol=0)

large = MultiHeadAttention(d_in=64, d_out=64, context_length=32, dropout=0.0, num_heads=8)
text = torch.randn(2, 32, 64)  # (b, T, d_in)
torch.testing.assert_close(multi_head_attention(text, large), large(text), atol=1e-5, rtol=1e-4)

# %% [markdown]
# The package's layer calls a faster function of torch, which computes the same but never stores
# the weights. `forward_with_weights` computes and returns them, too:

# %%
output, weights = large.forward_with_weights(text)  # (b, T, d_out), (b, num_heads, T, T)
print("output", tuple(output.shape), "weights", tuple(weights.shape))
torch.testing.assert_close(output, large(text), atol=1e-5, rtol=1e-4)

# %% [markdown]
# A GPT is a decoder, so the layer has the causal mask. With `causal=False` it is the layer of an
# encoder (notebook 6), which also looks at later words:

# %%
encoder = MultiHeadAttention(64, 64, context_length=32, dropout=0.0, num_heads=8, causal=False)
_, both_ways = encoder.forward_with_weights(text)  # (b, num_heads, T, T)

assert (weights[:, :, causal_mask(32)] == 0).all()
assert (both_ways > 0).all()

# %% [markdown]
# ## Equal to torch's own
#
# torch has such a layer too, `torch.nn.MultiheadAttention`. It keeps the matrices of queries, keys
# and values in a single matrix, one below the other. With our numbers in this matrix, its output
# and its attention weights are the same as ours:

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
# A **parameter** is a number that is learned. More heads do not need more parameters. The same
# vectors are cut into more, but shorter pieces:

# %%
for num_heads in (1, 2, 8, 32):
    layer = MultiHeadAttention(64, 64, context_length=32, dropout=0.0, num_heads=num_heads)
    count = sum(parameter.numel() for parameter in layer.parameters())
    print(f"{num_heads:2} heads of {layer.head_dim:2} numbers: {count:,} parameters")
    assert count == 4 * 64 * 64 + 64  # four matrices and the bias of the output projection

# %% [markdown]
# With more heads a layer can look at more things at once, but each head compares shorter vectors.
#
# The table of attention weights does grow: it has $T^2$ numbers for each head. A text of twice the
# length needs a table of four times the size. This is why long texts are expensive.

# %%
lengths = torch.arange(1025)
table = 12 * lengths**2  # weights of a layer of 12 heads
assert table[1024] == 4 * table[512]

figure, axes = plt.subplots(figsize=(5, 2.4))
axes.plot(lengths, table / 1e6, color=PURPLE)
axes.set(xlabel="tokens in the text", ylabel="million weights", xlim=(0, 1024), ylim=(0, None))
axes.set_title("a layer of 12 heads", color=INK)
plt.show()

# %% [markdown]
# ## Real sizes
#
# How large are real models? Their vectors all have one size, $d$, which is both `d_in` and `d_out`
# of every attention layer. The context is the longest text that they can read, in tokens.

# %%
models = {  # d, heads, layers, context
    "Transformer, 2017": (512, 8, 6, None),
    "GPT-2 small, 2019": (768, 12, 12, 1024),
    "GPT-2 medium": (1024, 16, 24, 1024),
    "GPT-2 large": (1280, 20, 36, 1024),
    "GPT-2 XL": (1600, 25, 48, 1024),
    "GPT-3, 2020": (12288, 96, 96, 2048),
}
print("model                  d  heads  size of a head  layers  context  matrices of a layer")
for name, (d, h, layers, longest) in models.items():
    size = d // h  # of a head
    matrices = 4 * d * d
    print(f"{name:17} {d:6,} {h:6} {size:15} {layers:7} {longest or '-':>8} {matrices:20,}")

    assert d == h * size
    assert size == (128 if name.startswith("GPT-3") else 64)

# %% [markdown]
# The last column counts the parameters in one layer's four matrices, $W_Q$, $W_K$, $W_V$ and $W_O$:
# $4 d^2$. From GPT-2 small to GPT-2 XL the models have more heads, and each head keeps its
# 64 numbers. The heads of GPT-3 have 128. (The Transformer of "Attention Is All You Need" has no
# fixed context. Its six layers are those of the encoder; the decoder has six more.)
#
# We make a layer of GPT-2 small with the package. It has as many parameters as the table says, and
# four biases of 768 numbers each (GPT-2 has biases for queries, keys and values, too):

# %%
gpt2 = MultiHeadAttention(768, 768, context_length=1024, dropout=0.0, num_heads=12, qkv_bias=True)
assert gpt2.head_dim == 64
assert sum(parameter.numel() for parameter in gpt2.parameters()) == 4 * 768 * 768 + 4 * 768

# %% [markdown]
# ## Try
#
# **1.** Set the columns of head 1 in `out_proj.weight` to zero. How does the output change? Is it
# the same as leaving head 1 out of the sum?
#
# <details><summary>Answer</summary>
#
# The output changes by the vectors that head 1 wrote. Yes, it is the same. Columns of zeros
# multiply everything that head 1 found by 0.
#
# ```python
# silenced = nn.Linear(4, 3)
# silenced.load_state_dict(out_proj.state_dict())
# silenced.weight.data[:, 2:] = 0
# torch.testing.assert_close(silenced(context), heads[0](batch) @ W_0.T + out_proj.bias)
# torch.testing.assert_close(Y - silenced(context), heads[1](batch) @ W_1.T)
# ```
#
# </details>
#
# **2.** Swap the two heads in `heads`. How must the columns of `out_proj.weight` change, so that
# the output stays the same?
#
# <details><summary>Answer</summary>
#
# They are swapped in pairs, as the heads are: first columns 2 and 3, then 0 and 1. Heads have no
# order. What matters is only that each meets its own columns.
#
# ```python
# swapped_Z = torch.cat([heads[1](batch), heads[0](batch)], dim=-1)
# swapped_W = out_proj.weight[:, [2, 3, 0, 1]]
# torch.testing.assert_close(swapped_Z @ swapped_W.T + out_proj.bias, Y)
# ```
#
# </details>
#
# **3.** `MultiHeadAttention(..., num_kv_heads=1)` lets all heads share one set of keys and values.
# How many parameters does that save in `large`?
#
# <details><summary>Answer</summary>
#
# 7,168 of 16,448. The matrices of keys and values compute 8 numbers for each word instead of 64, so
# each of the two matrices needs 56 · 64 = 3,584 parameters less.
#
# ```python
# shared = MultiHeadAttention(
#     64, 64, context_length=32, dropout=0.0, num_heads=8, num_kv_heads=1
# )
# saved = sum(p.numel() for p in large.parameters()) - sum(p.numel() for p in shared.parameters())
# assert saved == 2 * 64 * 56 == 7168
# ```
#
# </details>
