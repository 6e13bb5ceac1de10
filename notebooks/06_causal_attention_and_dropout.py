# %% [markdown]
# # 6. Causal attention and dropout
#
# A GPT learns to predict: after each word of a text, which word comes next? If attention lets a
# word look at *later* words, the model can look up the answer, and it learns nothing. So later
# words are hidden. Attention that only looks back is called **causal**.
#
# This notebook first shows what leaks if nothing is hidden. Then it hides later words in two ways,
# and shows a mistake that is easily made with one of them. At the end some weights are hidden at
# random; that is dropout.
#
# (The six words, the class `CausalAttention` and the seeds 123 and 789 are those of chapter 3 of
# Sebastian Raschka's book
# [Build a Large Language Model (From Scratch)](https://github.com/rasbt/LLMs-from-scratch).)

# %%
import matplotlib.pyplot as plt
import torch
from pictures import AMBER, BLUE, INK, PURPLE, heatmap
from torch import nn

from minigpt.attention import (
    CausalAttention,
    SelfAttentionV2,
    attention_scores,
    attention_weights,
    causal_mask,
    scaled_dot_product_attention,
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
)  # (T, d_in) = (6, 3)
T = len(x)

torch.manual_seed(789)
layer = SelfAttentionV2(d_in=3, d_out=2)  # three random matrices, as in notebook 5
Q, K, V = (W(x).detach() for W in (layer.W_query, layer.W_key, layer.W_value))  # (T, d_out) each

# %% [markdown]
# (`detach` says that we want the numbers only. Nothing is trained here, so no gradients are
# needed.)
#
# ## What leaks
#
# Change one word, and see which context vectors move. Here we replace the last word, "step":


# %%
def attend(x: torch.Tensor) -> torch.Tensor:
    """Attention as in notebook 5, without a mask: (T, d_in) -> (T, d_out)."""
    return layer(x).detach()


another = torch.tensor([0.9, -0.9, 0.9])  # (d_in,): the vector of another word

changed = x.clone()
changed[-1] = another  # instead of "step"
moved = (attend(changed) - attend(x)).abs().sum(dim=-1)  # (T,): how far each context vector moved
moved

# %% [markdown]
# All of them moved. Even the context vector of the first word, "Your", depends on the last word.
# Now replace each word in turn, and draw how far that moves each context vector:


# %%
def leaks(attend) -> torch.Tensor:
    """Entry [i, j]: how far context vector i moves when word j is replaced, (T, T)."""
    moved = torch.zeros(T, T)
    for j in range(T):
        changed = x.clone()
        changed[j] = another
        moved[:, j] = (attend(changed) - attend(x)).abs().sum(dim=-1)
    return moved


def draw_leaks(axes, attend, title: str) -> None:
    """Draw the leaks as squares, and a line between the present and the future."""
    moved = leaks(attend)
    heatmap(axes, moved, words, words, title, most=moved.max().item())
    stairs = torch.arange(T + 1)
    axes.step(stairs, stairs, where="post", color=AMBER, linewidth=3)
    axes.set_xlabel("replacing this word …")


figure, axes = plt.subplots(figsize=(3.9, 3.6))
draw_leaks(axes, attend, "without a mask")
axes.set_ylabel("… moves this context vector")
plt.show()

# %% [markdown]
# Every number above the amber stairs is a leak: there a later word moves an earlier context
# vector. Without a mask, all 15 numbers above the stairs are leaks.

# %%
later = torch.ones(T, T).triu(1).bool()  # (T, T): True above the diagonal, where j > i

assert (moved > 0).all()
assert (leaks(attend)[later] > 0.01).sum() == 15

# %% [markdown]
# ## First way to hide: after the softmax
#
# Set the weights of later words to 0. Then a row no longer adds up to 1, so divide it by its sum.
# Let $M$ be a matrix with ones on and below the diagonal, and zeros above it:
#
# $$A'_{ij} = \frac{A_{ij} M_{ij}}{\sum_r A_{ir} M_{ir}}$$

# %%
A = attention_weights(Q, K)  # (T, T): softmax(Q Kᵀ / √d_k), as in notebook 5
M = torch.ones(T, T).tril()  # (T, T)
zeroed = A * M  # (T, T)
causal = zeroed / zeroed.sum(dim=-1, keepdim=True)  # A', (T, T)

torch.testing.assert_close(causal.sum(dim=-1), torch.ones(T))

# %%
figure, panels = plt.subplots(1, 3, figsize=(7.8, 2.9))
heatmap(panels[0], A, words, words, "weights A")
heatmap(panels[1], zeroed.masked_fill(M == 0, torch.nan), (), words, "later words zeroed")
heatmap(panels[2], causal.masked_fill(M == 0, torch.nan), (), words, "rows divided by their sums")
plt.show()

# %% [markdown]
# ## Second way: before the softmax
#
# Notebook 2 forbade a word with a score of $-\infty$, since $e^{-\infty} = 0$. The softmax then
# divides by the right sum by itself:
#
# $$A' = \operatorname{softmax}\!\left(\frac{S'}{\sqrt{d_k}}\right), \qquad
# S'_{ij} = \begin{cases} S_{ij} & j \le i \\ -\infty & j > i \end{cases}$$

# %%
S = attention_scores(Q, K)  # (T, T)
masked = S.masked_fill(M == 0, -torch.inf)  # S', (T, T)
again = (masked / K.shape[-1] ** 0.5).softmax(dim=-1)  # A', (T, T)

torch.testing.assert_close(again, causal)
masked

# %% [markdown]
# Both ways give the same weights. In the first way, the softmax divides every exponential of a row
# by the sum of all six. When we then divide by the sum of the allowed weights, the sum of all six
# cancels. What is left is each allowed exponential, divided by the sum of the allowed exponentials.
# The second way computes just that.
#
# The package does it in the second way. Its mask is `True` where looking is forbidden:

# %%
mask = causal_mask(T)  # (T, T): True above the diagonal
assert torch.equal(mask, later)
torch.testing.assert_close(attention_weights(Q, K, mask=mask), causal)

# %% [markdown]
# ## A mistake that is easily made
#
# What if we leave out the division in the first way? The rows then add up to less than 1. A worse
# problem shows in the picture of the leaks. (Random matrices make all weights nearly equal. So we
# multiply the queries by 8. That makes the weights more different, as training would.)


# %%
def weights_of(x: torch.Tensor, mask=None) -> torch.Tensor:
    """Attention weights of queries that are 8 times as long, (T, T)."""
    return attention_weights(8 * layer.W_query(x), layer.W_key(x), mask=mask).detach()


def zeroed_after(x: torch.Tensor) -> torch.Tensor:
    """The first way without the division: (T, d_in) -> (T, d_out)."""
    return (weights_of(x) * M) @ layer.W_value(x).detach()


def masked_before(x: torch.Tensor) -> torch.Tensor:
    """The second way: (T, d_in) -> (T, d_out)."""
    return weights_of(x, mask) @ layer.W_value(x).detach()


figure, panels = plt.subplots(1, 2, figsize=(7, 3.5))
draw_leaks(panels[0], zeroed_after, "zeroed after the softmax, not divided")
draw_leaks(panels[1], masked_before, "masked before the softmax")
panels[0].set_ylabel("… moves this context vector")
plt.show()

print(f"smallest leak on the left: {leaks(zeroed_after)[later].min():.4f}")
print(f"largest leak on the right: {leaks(masked_before)[later].max():.4f}")

# %% [markdown]
# On the left every later word still leaks, although its weight is 0. The softmax had divided by a
# sum that includes the later words. A later word with a high score makes this sum larger, and so
# makes the weights of all other words smaller. On the right all numbers above the stairs are 0.

# %%
assert (leaks(zeroed_after)[later] > 0.01).all()
assert (leaks(masked_before)[later] == 0).all()

# %% [markdown]
# ## Decoders keep the mask, encoders drop it
#
# A model that writes needs the mask: when it predicts a word, the later words do not exist yet.
# Such a model is called a **decoder**. Every GPT is one.
#
# Some models only read. Such a model gets a finished text, a mail for example, and says whether it
# is spam. It may look in both directions, so it has no mask. It is called an **encoder**. BERT is
# the best known one.
#
# The translator in [Attention Is All You Need](https://arxiv.org/abs/1706.03762) has both. Its
# encoder reads the sentence. Its decoder writes the translation, and looks at the encoder's
# vectors by cross-attention (notebook 5).
#
# In the attention itself, the mask is the only difference. No words come after the last one, so its
# row is the same in both:

# %%
encoder = attention_weights(Q, K)  # (T, T): every word looks at all six
decoder = attention_weights(Q, K, mask=mask)  # (T, T): at itself and at earlier words

assert (encoder > 0).all()
assert (decoder[later] == 0).all() and (decoder[~later] > 0).all()
torch.testing.assert_close(encoder[-1], decoder[-1])

# %% [markdown]
# ## Dropout
#
# A model can learn to rely on a single word too much. **Dropout** works against that. In training,
# each weight is set to 0 with probability $p$. The choice is random and new in every step, so the
# model cannot rely on any single weight.
#
# This makes the sums smaller. To make up for it, the weights that are left are multiplied by
# $\frac{1}{1-p}$:
#
# $$\tilde A_{ij} = \begin{cases} 0 & \text{with probability } p \\
# \dfrac{A_{ij}}{1 - p} & \text{otherwise} \end{cases}$$

# %%
p = 0.5
torch.manual_seed(4)
kept = torch.rand(T, T) >= p  # (T, T): True with probability 1 - p
dropped = causal * kept / (1 - p)  # Ã, (T, T)

figure, panels = plt.subplots(1, 2, figsize=(7, 3.3))
heatmap(panels[0], causal.masked_fill(mask, torch.nan), words, words, "causal weights")
heatmap(panels[1], dropped.masked_fill(mask, torch.nan), words, words, "after dropout, p = 0.5")
plt.show()

# %% [markdown]
# No row adds up to 1 any more. The row of "Your" adds up to 2. In another draw it may add up to 0.
# But *on average* nothing changes. That is the purpose of the factor. The mean over infinitely many
# draws is called the **expected value**, $\mathbb{E}$. To compute it, multiply each possible result
# by its probability and add the products:
#
# $$\mathbb{E}\big[\tilde A_{ij}\big] = p \cdot 0 + (1 - p) \cdot \frac{A_{ij}}{1 - p} = A_{ij}$$
#
# Draw many times, and watch the mean of one weight, that of "Your" in the row of "step". Watch
# also the sum of that row:

# %%
sums = dropped.sum(dim=-1)  # (T,)
assert ((sums - 1).abs() > 0.01).all() and sums[0] == 2

torch.manual_seed(0)
copies = causal.expand(5000, T, T)  # (5000, T, T)
draws = nn.functional.dropout(copies, p)  # (5000, T, T): torch's own dropout
count = torch.arange(1, 5001)
running = draws[:, 5, 0].cumsum(dim=0) / count  # (5000,): the mean of the first 1, 2, 3, ... draws

row = draws[:, 5]  # (5000, T): the row of "step" in each draw
number_kept = (row > 0).sum(dim=-1)  # (5000,): how many of its six weights are left

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 2.6))
left.plot(count, running)
left.axhline(causal[5, 0].item(), color=PURPLE, linewidth=1)
left.annotate("without dropout", (250, causal[5, 0] - 0.04), color=PURPLE)
left.set(xscale="log", xlabel="draws", ylabel="mean of one weight", ylim=(0, 0.42))

edges = (torch.arange(8) - 0.5) / 3  # a bar around each multiple of a third
heights, _, bars = right.hist(row.sum(dim=-1), bins=edges, color=BLUE, rwidth=0.85)
right.bar_label(bars, [f"{n} kept" for n in range(7)], color=INK, fontsize=7.5)
right.set(xlabel="sum of the row of “step”", ylabel="draws", ylim=(0, 1800))
plt.show()

# %% [markdown]
# After 5,000 draws the mean differs from the weight by less than 0.01. On the right there is one
# bar for each number of weights that are left, from none to all six. All six weights are about
# $\frac{1}{6}$, and those that are left are doubled, so each one adds about $\frac{1}{3}$. The sum
# varies between 0 and 2, and its mean is 1.

# %%
assert abs(running[-1] - causal[5, 0]) < 0.01
torch.testing.assert_close(torch.tensor(heights).long(), number_kept.bincount())  # one bar each
assert row.sum(dim=-1).min() == 0 and abs(row.sum(dim=-1).max() - 2) < 1e-5
assert abs(row.sum(dim=-1).mean() - 1) < 0.02

# %% [markdown]
# After the training nothing is dropped: when a model writes, it should use all the words. A layer
# of torch has a switch for that: `layer.train()` turns dropout on, `layer.eval()` turns it off.

# %% [markdown]
# ## The class
#
# The class puts matrices, mask and dropout together. It works on a batch of `b` texts.
# `transpose(-2, -1)` swaps the last two dimensions only, so the dimension `b` stays in front.


# %%
class Attention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):  # (b, T, d_in) -> (b, T, d_out)
        T = x.shape[1]
        Q, K, V = self.W_query(x), self.W_key(x), self.W_value(x)  # (b, T, d_out) each
        S = Q @ K.transpose(-2, -1)  # (b, T, d_out) @ (b, d_out, T) -> (b, T, T)
        S = S.masked_fill(self.mask[:T, :T], -torch.inf)
        A = (S / K.shape[-1] ** 0.5).softmax(dim=-1)  # (b, T, T)
        return self.dropout(A) @ V  # (b, T, T) @ (b, T, d_out) -> (b, T, d_out)


# %% [markdown]
# The **context length** is the number of tokens in the longest text that the layer can read. The
# mask is made once, for that length. For a shorter text, its upper left corner is used.
# `register_buffer` stores the mask with the layer. Training changes a layer's parameters (here its
# three matrices), but not its buffers.
#
# The class computes the same as the package's `CausalAttention`. The book prints the same numbers
# for this seed:

# %%
batch = torch.stack([x, x])  # (b, T, d_in): two texts, here the same one twice

torch.manual_seed(123)
ours = Attention(d_in=3, d_out=2, context_length=6, dropout=0.0)
torch.manual_seed(123)
theirs = CausalAttention(d_in=3, d_out=2, context_length=6, dropout=0.0)

torch.testing.assert_close(ours(batch), theirs(batch))
in_the_book = torch.tensor([-0.4519, 0.2216])  # the first row
torch.testing.assert_close(theirs(batch)[0, 0], in_the_book, atol=5.1e-5, rtol=0)
theirs(batch)[0].detach()

# %% [markdown]
# With dropout the two classes still agree, if both draw the same random numbers. The two texts of
# the batch are the same, but their results differ: other weights are dropped in each.

# %%
ours.dropout.p = theirs.dropout = 0.5
torch.manual_seed(7)
noisy = ours(batch)
torch.manual_seed(7)
torch.testing.assert_close(noisy, theirs(batch))
assert not torch.equal(noisy[0], noisy[1])

# %% [markdown]
# After `eval()` nothing is random. Both classes then compute the same as the package's function
# without dropout:

# %%
ours.eval()
theirs.eval()
torch.testing.assert_close(ours(batch), theirs(batch))

expected = scaled_dot_product_attention(
    theirs.W_query(x), theirs.W_key(x), theirs.W_value(x), mask=mask
)
torch.testing.assert_close(theirs(batch)[1], expected)

# %% [markdown]
# ## Try
#
# **1.** Make a mask that lets a word look only at itself and at the two words before it. (Hint:
# `tril` and `triu` take a number.) Draw the leaks.
#
# <details><summary>Answer</summary>
#
# `triu(-2)` keeps the diagonal, the two diagonals below it, and everything above. `tril()` then
# removes everything above the diagonal. The picture shows a band: a context vector moves only if
# its own word or one of the two before it is replaced. Models for long texts use such a *sliding
# window*.
#
# ```python
# window = torch.ones(T, T).triu(-2).tril() == 0  # (T, T): True where looking is forbidden
#
# def through_window(x: torch.Tensor) -> torch.Tensor:
#     return weights_of(x, window) @ layer.W_value(x).detach()
#
# figure, axes = plt.subplots(figsize=(3.9, 3.6))
# draw_leaks(axes, through_window, "a window of three words")
# assert (leaks(through_window)[window] == 0).all()
# assert (leaks(through_window)[~window] > 0).all()
# ```
#
# </details>
#
# **2.** What happens if a mask forbids a whole row? Compute it, and explain it by the formula of
# the softmax.
#
# <details><summary>Answer</summary>
#
# The row becomes `nan`, "not a number". All its exponentials are 0, so their sum is 0, too, and
# $\frac{0}{0}$ is not defined. Every word must be allowed to look at one word at least. With the
# causal mask it is: at itself.
#
# ```python
# nothing = mask.clone()
# nothing[2] = True  # "starts" may look nowhere
# weights = attention_weights(Q, K, mask=nothing)
# assert weights[2].isnan().all() and not weights[3].isnan().any()
# ```
#
# </details>
#
# **3.** Leave out the factor $\frac{1}{1-p}$ in the dropout. What is the mean of the row sums?
# Imagine a model that is trained in this way and then used without dropout. What changes for it?
#
# <details><summary>Answer</summary>
#
# The mean is $1 - p$, here 0.5. Without dropout, the rows add up to 1 again. So the context
# vectors are about twice as long as those that the next layer saw in training, and it has not
# learned to handle them.
#
# ```python
# without_factor = causal * (torch.rand(5000, T, T) >= p)
# assert abs(without_factor.sum(dim=-1).mean() - 0.5) < 0.02
# ```
#
# </details>
