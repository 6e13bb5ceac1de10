# %% [markdown]
# # 7. What did it learn?
#
# A trained model is a heap of numbers. Nobody wrote them, so nobody can say what they are for.
# But everything that happens between them can be seen. This notebook trains a small run and looks
# inside: where do its heads look, which of them matter, when does it make up its mind, and does
# it invent or recite?
#
# The page, at the end, shows all of this for a model of yours, without a line of code.

# %%
import contextlib
import io
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from pictures import PURPLE, QUIET, heatmap

import minigpt

torch.set_num_threads(1)  # as in notebook 9

# %% [markdown]
# ## A run
#
# A **run** is what a training leaves: a folder with the model and all that belongs to it.
# `minigpt.train` is `train.py` from Python. We fix its size and its steps, to be done in some ten
# seconds, and let it read characters, which are short enough to fit into pictures. (What it
# prints is put aside here.)

# %%
RUN = None  # or one of yours, such as "../runs/my"

if RUN is None:
    RUN = Path(tempfile.mkdtemp()) / "fables"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        minigpt.train(
            "../data/fables.txt",
            out=RUN,
            tokenizer="char",
            context_length=64,
            emb_dim=64,
            num_layers=2,
            num_heads=4,
            batch_size=8,
            steps=400,
            num_evals=1,
            seed=0,
        )

writer = minigpt.load(RUN)
glass = writer.glass  # the model in numpy, nothing inside it hidden
config = glass.config
print(writer.generate("The fox ", max_new_tokens=120, temperature=0.7, seed=1))

# %% [markdown]
# ## Where do heads look?
#
# `minigpt.attention_maps` gives the attention weights of every head in every layer for a text, a
# tensor of shape `(num_layers, num_heads, T, T)`. A **layer** is a block of notebook 9. In
# the picture 1.3 is head 3 of layer 1; both are counted from 0. A row shows where one character
# looks.

# %%
text = "The fox saw the crow."
maps = minigpt.attention_maps(writer, text)
print(maps.weights.shape)

# %%
later = np.triu(np.full(maps.weights.shape[2:], np.nan), 1)  # nan for the squares of later tokens
figure, panels = plt.subplots(config.num_layers, config.num_heads, figsize=(7.6, 4.2))
for (layer, head), axes in np.ndenumerate(panels):
    heatmap(axes, maps.weights[layer, head] + later, title=f"{layer}.{head}", numbers=None)
    axes.set_yticks(np.arange(len(maps.tokens)) + 0.5, maps.tokens, fontsize=5)
plt.show()

# %% [markdown]
# They are the weights of notebook 7. To be sure, compute those of the first layer with the torch
# model: embeddings, norm, attention.

# %%
ids = writer.tokenizer.encode(text)
block = writer.model.blocks[0]
with torch.no_grad():
    x = writer.model.token_embedding(torch.tensor([ids]))  # (1, T, d); nothing else in this model
    update, weights = block.attention.forward_with_weights(block.attention_norm(x))
torch.testing.assert_close(weights[0].numpy(), maps.weights[0], atol=1e-4, rtol=1e-3)

# %% [markdown]
# ## A name for each head
#
# Pictures tempt one to see things. So measure. How much weight does a head give, on average, to
# the token itself, to the one before, to the very first? For comparison: a head that looks
# everywhere alike gives each of them the mean of $1/t$.

# %%
passage = Path("../data/fables.txt").read_text(encoding="utf-8")[-3000:-2936]
weights = minigpt.attention_maps(writer, passage).weights  # (num_layers, num_heads, T, T)
T = weights.shape[-1]
places = np.arange(1, T)  # from the second token on
looks = {
    "itself": weights[..., places, places].mean(axis=-1),  # (num_layers, num_heads) each
    "one before": weights[..., places, places - 1].mean(axis=-1),
    "two before": weights[..., places[1:], places[1:] - 2].mean(axis=-1),
    "the first": weights[..., places, 0].mean(axis=-1),
}
alike = (1 / (places + 1)).mean()

names = [
    f"{layer}.{head}" for layer in range(config.num_layers) for head in range(config.num_heads)
]
table = np.stack([look.flatten() for look in looks.values()], axis=1)  # (all heads, 4)
figure, axes = plt.subplots(figsize=(3.8, 4.4))
heatmap(axes, table, names, looks, "mean weight on …", most=0.6)
plt.show()
print(f"a head that looks everywhere alike: {alike:.2f}")
assert table.max() > 2 * alike

# %% [markdown]
# Even after so little training, heads differ. Most look at the last characters, for these decide
# how a word goes on. Researchers call a head that looks one token back a *previous-token head*.

# %% [markdown]
# ## Which heads matter?
#
# A weight says where a head looks, not whether anybody cares. The test is to take the head away.
# In notebook 7 the output of a layer was a sum, one vector from each head. Switching a head off
# means leaving out its vector, so set its columns of the output projection to zero:

# %%
tokens = np.array(writer.tokenizer.encode(passage))  # (T,)


def logits_without(heads_off) -> np.ndarray:
    """The logits after each token, (T, vocab_size), with these heads switched off."""
    return glass.logits(glass.record(tokens, heads_off).residual[-1])


projection = writer.model.blocks[1].attention.out_proj.weight
columns = slice(2 * config.head_size, 3 * config.head_size)  # of head 2
with torch.no_grad():
    kept = projection[:, columns].clone()
    projection[:, columns] = 0
    by_hand = writer.model(torch.from_numpy(tokens)[None])[0].numpy()
    projection[:, columns] = kept

np.testing.assert_allclose(logits_without([(1, 2)]), by_hand, atol=1e-3)

# %% [markdown]
# Now switch off each head in turn. How much worse does the model guess? Take the loss of notebook
# 6 and print by how much it rises, in bits a character:


# %%
def bits(logits: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """-log2 of the probability of each token but the first, given those before it, (T - 1,)."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return -log_p[np.arange(len(ids) - 1), ids[1:]] / np.log(2)


whole = bits(logits_without([]), tokens).mean()
rise = np.zeros((config.num_layers, config.num_heads))
for layer, head in np.ndindex(rise.shape):
    rise[layer, head] = bits(logits_without([(layer, head)]), tokens).mean() - whole

heads = [f"head {head}" for head in range(config.num_heads)]
layers = [f"layer {layer}" for layer in range(config.num_layers)]
figure, axes = plt.subplots(figsize=(4.4, 2.4))
heatmap(axes, rise, layers, heads, "bits lost without this head", signed=True)
plt.show()
print(f"with all heads: {whole:.2f} bits a character")
assert rise.max() > 0

# %% [markdown]
# Some heads are worth a lot, others next to nothing: the model hardly misses them. Compare with
# the table of names. Is it the head with the sharpest look that matters most?

# %% [markdown]
# ## When does it make up its mind?
#
# In notebook 9 every block adds to the residual stream, and the head reads the final vector. But
# one can let it read the stream earlier: after the embedding, after the first block, and so on.
# This is the **logit lens**. It shows what the model would say if it stopped there.

# %%
record = glass.record(np.array(ids))
lens = glass.logits(record.residual)  # (num_layers + 1, T, vocab_size)
with torch.no_grad():  # after the last layer it is simply the model's answer
    np.testing.assert_allclose(lens[-1], writer.model(torch.tensor([ids]))[0].numpy(), atol=1e-3)

probabilities = np.exp(lens - lens.max(axis=-1, keepdims=True))
probabilities /= probabilities.sum(axis=-1, keepdims=True)  # (num_layers + 1, T, vocab_size)
best = probabilities.argmax(axis=-1)  # (num_layers + 1, T)

figure, axes = plt.subplots(figsize=(7.6, 1.9))
rows = ["embedding", *(f"after layer {layer}" for layer in range(config.num_layers))]
certain = probabilities.max(axis=-1)
heatmap(axes, certain, rows, maps.tokens, numbers=None, most=5)
axes.set_title("likeliest next token")
for (row, t), token in np.ndenumerate(best):
    right = t + 1 < len(ids) and token == ids[t + 1]
    shown = writer.tokenizer.decode([int(token)]).replace(" ", "␣").replace("\n", "↵")
    style = {"color": PURPLE, "weight": "bold"} if right else {"color": QUIET}
    axes.text(t + 0.5, row + 0.5, shown, ha="center", va="center", fontsize=9, **style)
axes.tick_params(axis="x", rotation=0)
plt.show()

# %% [markdown]
# Below stands what is read. The squares show what is guessed to follow, darker where the model is
# more certain; bold guesses are right. From the embedding alone the guess is the character
# itself: the head compares a vector with the embeddings of all tokens, and nothing is more like
# it than itself. The blocks have to turn what was read into what comes next.

# %% [markdown]
# ## Does it notice repetition?
#
# Write random characters, then the same ones again. Nobody can guess the first half. Whoever
# looks back finds the second half easy: search the last time this character stood here, and say
# what came after it. A head that looks at *what followed the same token last time* is called an
# **induction head**.

# %%
rng = np.random.default_rng(0)
half = config.context_length // 2
repeated = [
    np.tile(rng.integers(0, config.vocab_size - 1, half), 2) for _ in range(20)
]  # (T,) each
second = np.arange(half, 2 * half)

losses = np.mean([bits(glass(ids[None])[0], ids) for ids in repeated], axis=0)  # (T - 1,)
attention = np.mean([glass.record(ids).attention for ids in repeated], axis=0)
induction = attention[:, :, second, second - half + 1].mean(axis=-1)  # (num_layers, num_heads)

first_half, second_half = losses[: half - 1].mean(), losses[half:].mean()
print(f"first half: {first_half:.1f} bits, second half: {second_half:.1f} bits")
print("mean weight on what followed last time:")
print(induction.round(2))

# %% [markdown]
# Both halves need more bits than the 6 that it takes to name one of 62 characters. The model
# expects English, and it is wrong. And it does not notice the repetition: the second half is as
# hard as the first, and no head looks much at what followed last time.
#
# Ten seconds are too short for that. It takes two layers that work together: a head that looks
# one token back, and a later one that searches for what it found. Models learn it rather
# suddenly, and not early. A run of four minutes on the tales, which we tried, had no such head
# either. Large models have many.

# %% [markdown]
# ## Does it invent, or recite?
#
# A model that has read a short text too often knows it by heart. So look for the longest stretch
# of what it writes that stands word for word in the text it read. As a yardstick, the same for a
# text by somebody else, from `tales.txt`, which this model never saw.


# %%
def longest_copy(text: str, source: str) -> str:
    """The longest piece of `text` that stands in `source`."""
    start, length = 0, 0  # of the longest so far
    for i in range(len(text)):
        while i + length < len(text) and text[i : i + length + 1] in source:
            start, length = i, length + 1
    return text[start : start + length]


training, _ = writer.read_text()  # what the run learned from
learned = "".join(piece.text for piece in training.pieces())
tale = Path("../data/tales.txt").read_text(encoding="utf-8")[:500]
written = writer.generate("The ", max_new_tokens=500, temperature=0.7, seed=2)

assert longest_copy(learned[1000:1100], learned) == learned[1000:1100]
assert len(longest_copy(written, learned)) < 40
print("written:  ", repr(longest_copy(written, learned)))
print("yardstick:", repr(longest_copy(tale, learned)))

# %% [markdown]
# Both share some words with the fables, as any two English texts do. Nothing longer was copied.
# `train.py` ends most trainings of short texts before the model begins to recite.
#
# How much would be copied if it did recite? Count the characters that lie in such a stretch of 30
# or more. Shorter ones are phrases that many people write. `writer.copied` does this for any
# text. Give it a sentence of our own and sixty characters that the model learned from:

# %%
ours = "We made this sentence up today. "
theirs = learned[-1060:-1000]
copied = writer.copied(ours + theirs)
print(copied)
assert copied.longest == longest_copy(ours + theirs, learned)
assert copied.share == len(copied.longest) / len(ours + theirs)

# %% [markdown]
# The line ends with a better yardstick than our tale: the fables that were set aside to validate
# on. They are new writing in the same style, so what they share with the rest is no recitation.
# Without a text, `writer.copied()` takes eight texts that the model writes. `train.py` prints that
# line at the end of a training, and `minigpt evaluate runs/my --copied` at any time.

# %%
print(writer.copied())

# %% [markdown]
# ## The page
#
# All these views exist as one HTML file that holds a model of yours and runs it in the browser:
#
#     minigpt page runs/my --open
#
# ![The page: a text with tinted words, and beside it the likeliest next
# tokens](../docs/page-light.png)
#
# Click a word to see what else could have come. Choose another, and the text goes on from there.
# Switch heads off. Read one query through the equation of notebook 5. You know now what every
# number on it means.

# %% [markdown]
# ## Try
#
# - Train a run for five minutes with `train.py`, and set `RUN` to its folder. (The pictures with
#   characters grow wide; choose a shorter text.) Which head matters most there? Is there an
#   induction head?
# - Switch off *all* heads of layer 0, then all of layer 1. Which layer is worth more? Is it the
#   sum of its heads?
# - Train with `max_epochs=100` on ten fables only. How long is the longest copy then?
