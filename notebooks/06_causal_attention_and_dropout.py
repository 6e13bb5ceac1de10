# %% [markdown]
# # 4. Causal attention and dropout
#
# A GPT learns by guessing: after each word of a text, which word comes next? If attention lets a
# word look at *later* words, the answer is in plain sight, and nothing is learned. So later words
# are hidden. Attention that only looks back is called **causal**.
#
# This notebook first shows what leaks if nothing is hidden, then hides it in two ways. One of
# them has a trap. In the end some weights are hidden at random; that is dropout.

# %%
import matplotlib.pyplot as plt
import torch
from pictures import BLUE, PURPLE, QUIET, heatmap
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
# (`detach` says that we want the numbers only, without gradients.)
#
# ## What leaks
#
# Change one word, and see which context vectors change. Here we replace the last word, "step":


# %%
def attend(x: torch.Tensor) -> torch.Tensor:
    """Attention as in notebook 5, without a mask: (T, d_in) -> (T, d_out)."""
    return layer(x).detach()


changed = x.clone()
changed[-1] = torch.tensor([-0.6, 0.1, 0.9])  # another word instead of "step"
(attend(changed) - attend(x)).abs().sum(dim=-1)  # (T,): how much each context vector moved

# %% [markdown]
# All of them moved, that of "Your" included. The first word knows what the last one is. Now
# change each word in turn, and draw a picture of it:


# %%
def leaks(attend) -> torch.Tensor:
    """Entry [i, j]: how much context vector i moves when word j changes, (T, T)."""
    moved = torch.zeros(T, T)
    for j in range(T):
        changed = x.clone()
        changed[j] = torch.tensor([-0.6, 0.1, 0.9])
        moved[:, j] = (attend(changed) - attend(x)).abs().sum(dim=-1)
    return moved


def draw_leaks(axes, attend, title: str) -> None:
    moved = leaks(attend)
    heatmap(axes, moved, words, words, title, numbers=".3f", most=moved.max().item())
    stairs = torch.arange(T + 1)
    axes.step(stairs, stairs, where="post", color=QUIET, linewidth=1)  # above this line: the future
    axes.set_xlabel("changing this word …")


figure, axes = plt.subplots(figsize=(3.9, 3.6))
draw_leaks(axes, attend, "without a mask")
axes.set_ylabel("… moves this context vector")
plt.show()

# %% [markdown]
# Everything above the line is a leak: there, a later word changes an earlier context vector.

# %% [markdown]
# ## First way to hide: after the softmax
#
# Set the weights of later words to 0. Then a row does not add up to 1 any more, so divide it by
# its sum. With $M$ a matrix of ones on and below the diagonal, and zeros above:
#
# $$A'_{ij} = \frac{A_{ij} M_{ij}}{\sum_r A_{ir} M_{ir}}$$

# %%
A = attention_weights(Q, K)  # (T, T): softmax(Q Kᵀ / √d_k), as in notebook 5
M = torch.ones(T, T).tril()  # (T, T)
zeroed = A * M
causal = zeroed / zeroed.sum(dim=-1, keepdim=True)  # A'

# %%
figure, panels = plt.subplots(1, 3, figsize=(7.8, 2.9))
heatmap(panels[0], A, words, words, "weights A")
heatmap(panels[1], zeroed.masked_fill(M == 0, torch.nan), (), words, "later words zeroed")
heatmap(panels[2], causal.masked_fill(M == 0, torch.nan), (), words, "rows divided by their sums")
plt.show()

# %% [markdown]
# ## Second way: before the softmax
#
# Notebook 2 had a neater way to forbid a word: a score of $-\infty$, since $e^{-\infty} = 0$. The
# softmax then divides by the right sum by itself:
#
# $$A' = \operatorname{softmax}\!\left(\frac{S'}{\sqrt{d_k}}\right), \qquad
# S'_{ij} = \begin{cases} S_{ij} & j \le i \\ -\infty & j > i \end{cases}$$

# %%
S = attention_scores(Q, K)  # (T, T)
masked = S.masked_fill(M == 0, -torch.inf)  # S'
again = (masked / K.shape[-1] ** 0.5).softmax(dim=-1)  # A'

torch.testing.assert_close(again, causal)
masked

# %% [markdown]
# Both ways give the same weights. In the first, the softmax divides by the sum of *all*
# exponentials, and then we divide by what the allowed words got of it. The sum of all cancels,
# and the sum over the allowed words is left. That is what the second way computes.
#
# The package goes the second way. Its mask is `True` where looking is forbidden:

# %%
mask = causal_mask(T)  # (T, T): True above the diagonal
assert torch.equal(mask, M == 0)
torch.testing.assert_close(attention_weights(Q, K, mask=mask), causal)

# %% [markdown]
# ## The trap
#
# Why not leave out the division in the first way? Then rows add up to less than 1. That is bad,
# but there is something worse. Look at who moves when a word is changed. (Random matrices make
# all weights nearly equal. Here the queries are 8 times as long, so that the weights differ, as
# they do in a trained model.)


# %%
def weights_of(x: torch.Tensor, mask=None) -> torch.Tensor:
    return attention_weights(8 * layer.W_query(x), layer.W_key(x), mask=mask).detach()


def zeroed_after(x: torch.Tensor) -> torch.Tensor:
    return (weights_of(x) * M) @ layer.W_value(x).detach()  # and not divided


def masked_before(x: torch.Tensor) -> torch.Tensor:
    return weights_of(x, mask) @ layer.W_value(x).detach()


figure, panels = plt.subplots(1, 2, figsize=(7, 3.5))
draw_leaks(panels[0], zeroed_after, "zeroed after the softmax, not divided")
draw_leaks(panels[1], masked_before, "masked before the softmax")
panels[0].set_ylabel("… moves this context vector")
plt.show()

# %% [markdown]
# On the left later words still leak, although their weights are 0. They hide in the sum that the
# softmax divided by: a later word with a high score takes weight from all others, and the others
# show it. On the right nothing is above the line.

# %%
later = causal_mask(T)
assert (leaks(zeroed_after)[later] > 0).all()
assert (leaks(masked_before)[later] == 0).all()

# %% [markdown]
# ## Dropout
#
# A model can learn to rely on a single word too much. **Dropout** works against it: in training,
# each weight is set to 0 with probability $p$, at random, anew in every step. Then no weight can
# be counted on.
#
# But now sums are smaller. To make up for that, the weights that are left are multiplied by
# $\frac{1}{1-p}$:
#
# $$\tilde A_{ij} = \begin{cases} 0 & \text{with probability } p \\
# \dfrac{A_{ij}}{1 - p} & \text{otherwise} \end{cases}$$

# %%
p = 0.5
torch.manual_seed(4)
kept = torch.rand(T, T) >= p  # (T, T): True with probability 1 - p
dropped = causal * kept / (1 - p)  # Ã

figure, panels = plt.subplots(1, 2, figsize=(7, 3.3))
heatmap(panels[0], causal.masked_fill(mask, torch.nan), words, words, "causal weights")
heatmap(panels[1], dropped.masked_fill(mask, torch.nan), words, words, "after dropout, p = 0.5")
plt.show()

# %% [markdown]
# No row adds up to 1 any more. The row of "Your" adds up to 2, and the next draw may leave it
# nothing. But *on average* nothing changes, and that is what the factor is for:
#
# $$\mathbb{E}\big[\tilde A_{ij}\big] = p \cdot 0 + (1 - p) \cdot \frac{A_{ij}}{1 - p} = A_{ij}$$
#
# Draw many times, and watch the mean of one weight, that of "Your" in the row of "step":

# %%
torch.manual_seed(0)
draws = nn.functional.dropout(causal.expand(5000, T, T), p)  # (5000, T, T), torch's own dropout
count = torch.arange(1, 5001)
running = draws[:, 5, 0].cumsum(dim=0) / count  # the mean of the first 1, 2, 3, ... draws
torch.testing.assert_close(draws.mean(dim=0), causal, atol=0.05, rtol=0)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 2.5))
left.plot(count, running)
left.axhline(causal[5, 0].item(), color=PURPLE, linewidth=1)
left.annotate("without dropout", (250, causal[5, 0] - 0.04), color=PURPLE)
left.set(xscale="log", xlabel="draws", ylabel="mean of one weight", ylim=(0, 0.42))
right.hist(draws[:, 5].sum(dim=-1), bins=30, color=BLUE)
right.axvline(1, color=PURPLE, linewidth=1)
right.set(xlabel="sum of a row, in each draw", yticks=[])
plt.show()

# %% [markdown]
# Once training is over, nothing is dropped: who writes a text wants all the words. A layer of
# torch has a switch for that, `layer.train()` and `layer.eval()`.

# %% [markdown]
# ## The class
#
# Matrices, mask and dropout together, for a batch of texts. What is new is `transpose(-2, -1)`.
# It swaps the last two dimensions, so that the `b` in front stays where it is.


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
        S = Q @ K.transpose(-2, -1)  # (b, T, T)
        S = S.masked_fill(self.mask[:T, :T], -torch.inf)
        A = (S / K.shape[-1] ** 0.5).softmax(dim=-1)  # (b, T, T)
        return self.dropout(A) @ V  # (b, T, T) @ (b, T, d_out) -> (b, T, d_out)


# %% [markdown]
# The **context length** is the longest text it can read. The mask is made once, for that length,
# and a shorter text uses its corner. `register_buffer` keeps a tensor with the layer that is not
# learned.
#
# It is the package's `CausalAttention`:

# %%
batch = torch.stack([x, x])  # (b, T, d_in): two texts, here the same one twice

torch.manual_seed(123)
ours = Attention(d_in=3, d_out=2, context_length=6, dropout=0.0)
torch.manual_seed(123)
theirs = CausalAttention(d_in=3, d_out=2, context_length=6, dropout=0.0)

torch.testing.assert_close(ours(batch), theirs(batch))
first_row = torch.tensor([-0.4519, 0.2216])  # known from courses that use the same seed
torch.testing.assert_close(theirs(batch)[0, 0], first_row, atol=5.1e-5, rtol=0)
theirs(batch)[0].detach()

# %% [markdown]
# With dropout the two still agree, as long as both draw the same random numbers:

# %%
ours.dropout.p = theirs.dropout = 0.5
torch.manual_seed(7)
noisy = ours(batch)
torch.manual_seed(7)
torch.testing.assert_close(noisy, theirs(batch))
assert not torch.equal(noisy[0], noisy[1])  # the same text twice: each draw is its own

ours.eval(), theirs.eval()
torch.testing.assert_close(ours(batch), theirs(batch))
expected = scaled_dot_product_attention(
    theirs.W_query(x), theirs.W_key(x), theirs.W_value(x), mask=mask
)
torch.testing.assert_close(theirs(batch)[1], expected)

# %% [markdown]
# ## Try
#
# - Make a mask that lets a word look at itself and at the two words before it only. (Hint:
#   `torch.tril` and `torch.triu` take a number.) Draw its leaks.
# - What happens if a mask forbids a whole row? Compute it, and say why from the formula of the
#   softmax.
# - Leave out the factor $\frac{1}{1-p}$ in the dropout. What is the mean of the row sums? What
#   would a model see that was trained like that and then used without dropout?
