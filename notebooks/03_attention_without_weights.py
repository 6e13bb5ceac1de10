# %% [markdown]
# # 2. Attention without weights to learn
#
# In notebook 2 an average became a weighted sum, and the weights came from scores. The scores
# were made up. Now they come from the words themselves: **a word looks at the words that are like
# it.**
#
# Three steps make a new vector for each word: scores, weights, context vectors. They are the same
# in every GPT, the kind of language model that you will have built by notebook 9. Only the scores
# become cleverer, in notebook 5.

# %%
import matplotlib.pyplot as plt
import torch
from pictures import BLUE, INK, PURPLE, QUIET, heatmap

from minigpt.attention import attention_scores, simple_self_attention

# %% [markdown]
# ## Six words
#
# Each word is a vector of three numbers. In a language model such a vector is called an
# **embedding**. The numbers here are given; a model would learn them. (Books and courses on
# attention often use these six, so you can compare.)

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
journey, one = x[1], x[4]  # (d,), (d,)
by_hand = (journey * one).sum()  # Σ xₖ yₖ
torch.testing.assert_close(by_hand, journey.dot(one))
print(f"journey · one    = {by_hand:.4f}")
print(f"journey · starts = {journey.dot(x[2]):.4f}")

# %% [markdown]
# The picture shows what it measures. Two arrows in the same direction have a large dot product,
# two at a right angle have 0, and opposite ones have a negative one. Long arrows make it larger.

# %%
figure, panels = plt.subplots(1, 4, figsize=(7.4, 2.2), sharex=True, sharey=True)
a = torch.tensor([1.0, 0.3])
others = [[0.9, 0.5], [-0.3, 1.0], [-0.9, -0.4], [1.8, 1.0]]
for axes, b in zip(panels, map(torch.tensor, others), strict=True):
    for vector, colour in ((a, BLUE), (b, PURPLE)):
        axes.annotate("", vector.tolist(), (0, 0), arrowprops={"arrowstyle": "->", "color": colour})
    axes.set(title=f"dot product {a.dot(b):.2f}", aspect="equal", xlim=(-1.1, 2), ylim=(-0.6, 1.2))
    axes.plot(0, 0, "o", color=INK, markersize=3)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
plt.show()

# %% [markdown]
# ## Step 1: attention scores
#
# Take the second word, "journey". It is the one that looks, so we call it the **query**. Its
# **attention scores** are its dot products with all words, itself included. The Greek letter ω
# (omega) often stands for them:
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
# Scores become weights: positive numbers with a sum of 1. Dividing by the sum would do that here,
# but only because all of these scores are positive. Softmax always does it:
#
# $$\alpha_{2j} = \frac{e^{\omega_{2j}}}{\sum_{r} e^{\omega_{2r}}}$$

# %%
plain = scores_2 / scores_2.sum()  # (T,)
weights_2 = scores_2.exp() / scores_2.exp().sum()  # (T,): α₂ⱼ

print("divided by the sum:", plain)
print("softmax:           ", weights_2)

# %% [markdown]
# Subtract 1 from every score. Who is liked more, and by how much, has not changed at all. But the
# plain division gives negative weights now. Softmax does not even notice: every exponential is
# divided by the same $e$, since $e^{\omega - 1} = e^{\omega} / e$, and that $e$ cancels.

# %%
lower = scores_2 - 1
print("divided by the sum:", lower / lower.sum())
torch.testing.assert_close(lower.softmax(dim=0), weights_2)

# %% [markdown]
# This also cures a weakness of our softmax by hand. $e^{1000}$ is more than a computer's number
# can hold. So torch's softmax first subtracts the largest score from all.

# %%
large = torch.tensor([1000.0, 999.0])
print("by hand:", large.exp() / large.exp().sum(), "(nan: not a number)")
print("torch:  ", large.softmax(dim=0))

# %% [markdown]
# ## Step 3: the context vector
#
# Add up the words, each times its weight. The result $z_2$ is the **context vector** of
# "journey": what the text says, as far as it matters to this word.
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
# Every word takes its turn as the query. All dot products of all words are one product of
# matrices, where $X^\top$ is $X$ with rows and columns swapped (`x.T`):
#
# $$S = X X^\top, \qquad A = \operatorname{softmax}(S) \text{ (row by row)}, \qquad Z = A X$$
#
# Watch the shapes. The $d$ in the middle disappears, and a square of all pairs is left.

# %%
scores = x @ x.T  # S: (T, d) @ (d, T) -> (T, T)
weights = scores.softmax(dim=-1)  # A: (T, T); dim=-1 is the last one, so each row adds up to 1
context = weights @ x  # Z: (T, T) @ (T, d) -> (T, d)

torch.testing.assert_close(context[1], context_2)
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
# not, because each row is divided by a sum of its own.
#
# The package has these three lines as functions:

# %%
torch.testing.assert_close(attention_scores(x, x), scores)
torch.testing.assert_close(simple_self_attention(x), context)

# %% [markdown]
# It is called **self**-attention because queries and the words they look at come from the same
# text.

# %% [markdown]
# ## What is wrong with it
#
# Look at the columns of the weights. Nearly everyone looks most at "journey" and "starts". Is
# that because these words matter? No: their vectors are the longest. A dot product rewards
# length.

# %%
lengths = (x * x).sum(dim=-1).sqrt()  # (T,): the length of each vector
looked_at = weights.mean(dim=0)  # (T,): the mean weight that a word receives

figure, axes = plt.subplots(figsize=(5, 2.6))
axes.plot(lengths, looked_at, "o", color=PURPLE)
right_of = {"xytext": (6, 4), "textcoords": "offset points", "color": QUIET}
below = {"xytext": (6, -10), "textcoords": "offset points", "color": QUIET}
for word, place in zip(words, zip(lengths, looked_at, strict=True), strict=True):
    axes.annotate(word, place, **(below if word == "starts" else right_of))
axes.set(xlabel="length of its vector", ylabel="mean weight received", xlim=(0.6, 1.4))
assert torch.corrcoef(torch.stack([lengths, looked_at]))[0, 1] > 0.9  # nearly on a line
plt.show()

# %% [markdown]
# There are more limits:
#
# - A word looks for its like, and is itself the most like itself. But "reach" in notebook 2
#   should look for *things*, not for other words of reaching.
# - The rule is fixed. Nothing in it can be learned from a text.
# - A word is found by the same vector that is handed over in the sum. What a word is found by and
#   what it has to say could be different things.
#
# Three small matrices mend all of this. They are the subject of notebook 5.

# %% [markdown]
# ## Try
#
# - Multiply `x` by 4 before the three steps. What do the weights look like, and why? And by 0.1?
# - Make the vector of "with" three times as long. Who looks at it then?
# - Change the order of the words. How do the weights change, and the context vectors? (Does this
#   kind of attention know about order?)
