# %% [markdown]
# # 10. What did it learn?
#
# A trained model is a heap of numbers, and no single one tells what it is for. But every step of
# the computation can be seen. This notebook trains a small model and looks inside. Where do its
# heads look? Which of them matter? After which layer is the prediction made? Why did it expect this
# character? Does the model notice what repeats? Does it invent or recite?
#
# The page at the end shows most of this for a model of yours, without a line of code.

# %%
import contextlib
import io
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from pictures import AMBER, PURPLE, QUIET, heatmap

import minigpt
from minigpt import GPT, GPTConfig
from minigpt.generation.numpy_gpt import NumpyGPT

torch.set_num_threads(1)  # as in notebook 9
folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## A run
#
# A **run** is the result of a training: a folder with the model and all that belongs to it.
# `minigpt.train` is the Python function behind `train.py`. We set the size and the number of steps,
# so the training takes a few seconds. The tokens are characters, which are short enough for
# pictures. (What the training prints is left out here.)


# %%
def train(name: str, **settings) -> minigpt.Writer:
    """Train a small run on the fables and load it."""
    settings |= {"context_length": 64, "emb_dim": 64, "num_layers": 2, "batch_size": 8}
    settings |= {"seed": 0, "num_evals": 1, "precision": "float32"}
    silence = io.StringIO()
    with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
        run = minigpt.train("../data/fables.txt", out=folder / name, **settings)
    return minigpt.load(run)


RUN = None  # or a run of yours, such as "../runs/my"

writer = minigpt.load(RUN) if RUN else train("fables", tokenizer="char", num_heads=4, steps=250)
glass = writer.glass  # the model in numpy, with everything inside it visible
config = glass.config

# %% [markdown]
# The model is not built like the one of notebook 9, which was a `gpt2`. By default the package
# builds a `qwen3`: the parts of Qwen3, a family of open models. Other programs can run both, so
# either can be exported. These parts differ:
#
# | | `gpt2`, notebook 9 | `qwen3`, here |
# |---|---|---|
# | norm | mean 0 and variance 1 | RMSNorm: divide by the root of the mean square |
# | places | added to the embedding | rotary: each place turns queries and keys by its own angle |
# | queries and keys | as they are | RMSNorm in each head |
# | feed-forward | GELU | SwiGLU: a third matrix says how much of each number passes |
# | biases | yes | no |
#
# Two more things are done by `minigpt.train` itself. The head has a table of its own, unless a text
# is read ten times or more; in notebook 9 it was the embedding. And these two tables do not begin
# with random numbers but with counts from the text: tokens with similar neighbours get similar
# vectors, and the head begins with what often follows each token.

# %%
assert config.kind == "qwen3" and not config.tie_embeddings

# %% [markdown]
# This is what the run writes. In a few seconds it has learned some words:

# %% tags=["varies"]
written = writer.generate("The fox ", max_new_tokens=120, temperature=0.7, seed=1)
print(written)
assert written.startswith("The fox ") and " the " in written

# %% [markdown]
# ## Where do heads look?
#
# `minigpt.attention_maps` returns the attention weights of every head in every layer for a text, an
# array of shape `(num_layers, num_heads, T, T)`. A **layer** is a block of notebook 9. In the
# picture, 1.3 is head 3 of layer 1; both are counted from 0. A row shows where one token looks.

# %%
maps = minigpt.attention_maps(writer, "The fox saw.")
print(maps.weights.shape)

# %%
later = np.triu(np.full(maps.weights.shape[2:], np.nan), 1)  # nan for the squares of later tokens
figure, panels = plt.subplots(config.num_layers, config.num_heads, figsize=(9, 5))
for (layer, head), axes in np.ndenumerate(panels):
    weights = maps.weights[layer, head] + later  # (T, T)
    heatmap(axes, weights, maps.tokens, maps.tokens, f"{layer}.{head}", numbers=None)
    axes.tick_params(axis="x", rotation=0)
plt.show()

# %% [markdown]
# These are the weights of notebook 7. To be sure, compute those of the first layer with the torch
# model: embeddings, norm, attention.

# %%
ids = writer.tokenizer.encode("The fox saw.")
block = writer.model.blocks[0]
with torch.no_grad():
    x = writer.model.token_embedding(torch.tensor([ids]))  # (1, T, d)
    _, weights = block.attention.forward_with_weights(block.attention_norm(x))
torch.testing.assert_close(weights[0].numpy(), maps.weights[0], atol=1e-4, rtol=1e-3)

# %% [markdown]
# ## A name for each head
#
# It is easy to see things in pictures that are not there. So measure. How much weight does a head
# put, on average, on the token itself, on the one before, on the very first? Compare with a head
# that looks everywhere alike: it puts $1/t$ on each of $t$ tokens. The last line of the output is
# the mean of $1/t$ over the places.
#
# One sentence is not enough for an average. We take 100 passages of 64 characters from the text
# that was set aside for validation.


# %%
def passages_of(writer: minigpt.Writer) -> np.ndarray:
    """100 passages from all over the validation text, (100, T)."""
    _, validation = writer.read_text()
    text = "".join(piece.text for piece in validation.pieces())
    ids = np.array(writer.tokenizer.encode(text))
    T = writer.glass.config.context_length
    starts = np.linspace(0, len(ids) - T, 100).astype(int)
    return ids[starts[:, None] + np.arange(T)]


def look_inside(glass: NumpyGPT, ids: np.ndarray, heads_off=()) -> tuple[np.ndarray, np.ndarray]:
    """For tokens (b, T): the residual stream after the embedding and after each layer,
    (num_layers + 1, b, T, d), and the attention weights, (num_layers, b, num_heads, T, T)."""
    streams, weights = zip(*glass.streams(ids, heads_off=heads_off), strict=True)
    return np.stack(streams), np.stack(weights[1:])


passages = passages_of(writer)
streams, attention = look_inside(glass, passages)
weights = attention.mean(axis=1)  # (num_layers, num_heads, T, T), the mean of 100 passages

# %%
T = config.context_length
places = np.arange(1, T)  # from the second token on
looks = {
    "itself": weights[..., places, places].mean(axis=-1),  # (num_layers, num_heads) each
    "one before": weights[..., places, places - 1].mean(axis=-1),
    "two before": weights[..., places[1:], places[1:] - 2].mean(axis=-1),
    "the first": weights[..., places, 0].mean(axis=-1),
}
alike = (1 / (places + 1)).mean()

names = [f"{layer}.{head}" for layer, head in np.ndindex(config.num_layers, config.num_heads)]
table = np.stack([look.flatten() for look in looks.values()], axis=1)  # (all heads, 4)
figure, axes = plt.subplots(figsize=(3.8, 4.4))
heatmap(axes, table, names, looks, "mean weight on …", most=0.6)
plt.show()
print(f"a head that looks everywhere alike: {alike:.2f}")

# %% [markdown]
# Even after so little training, heads differ. Of these four places, all eight heads look most at
# the token before: the last characters tell most about how a word goes on. The head that looks
# there most puts more than four times as much weight on it as a head that looks everywhere alike.
# Researchers call such a head a *previous-token head*. No head here looks much at the first token.

# %%
assert (table.argmax(axis=1) == 1).all()
assert table[:, 1].max() > 4 * alike
assert (table[:, 3] < alike).all()

# %% [markdown]
# ## Which heads matter?
#
# A weight says where a head looks. It does not say whether the model uses what the head finds. To
# know that, switch the head off. In notebook 7 the output of an attention layer was a sum of one
# vector from each head. To switch a head off is to leave its vector out. The same happens if its
# columns of the output projection are set to zero:


# %%
def logits_without(heads_off) -> np.ndarray:
    """The logits after each token of the passages, (100, T, vocab_size), without these heads."""
    streams, _ = look_inside(glass, passages, heads_off)
    return glass.logits(streams[-1])


projection = writer.model.blocks[1].attention.out_proj.weight
columns = slice(2 * config.head_size, 3 * config.head_size)  # of head 2
with torch.no_grad():
    kept = projection[:, columns].clone()
    projection[:, columns] = 0
    by_hand = writer.model(torch.from_numpy(passages)).numpy()
    projection[:, columns] = kept

np.testing.assert_allclose(logits_without([(1, 2)]), by_hand, atol=1e-3)

# %% [markdown]
# Now switch off each head in turn. How much worse are the predictions? The picture shows how much
# the loss (notebook 9) rises, in bits a character. (`np.take_along_axis` is numpy's `gather`.)


# %%
def bits(logits: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """-log2 of the probability of each token but the first, (b, T - 1): logits (b, T, vocab_size)
    predict tokens (b, T)."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))  # (b, T, vocab_size)
    right = np.take_along_axis(log_p[:, :-1], ids[:, 1:, None], axis=-1)  # (b, T - 1, 1)
    return -right[..., 0] / np.log(2)


whole = bits(logits_without([]), passages).mean(axis=1)  # (100,)
rises = np.zeros((config.num_layers, config.num_heads, 100))
for layer, head in np.ndindex(config.num_layers, config.num_heads):
    rises[layer, head] = bits(logits_without([(layer, head)]), passages).mean(axis=1) - whole
rise = rises.mean(axis=-1)  # (num_layers, num_heads)

heads = [f"head {head}" for head in range(config.num_heads)]
layers = [f"layer {layer}" for layer in range(config.num_layers)]
figure, axes = plt.subplots(figsize=(4.4, 2.4))
heatmap(axes, rise, layers, heads, "bits lost without this head", signed=True)
axes.tick_params(axis="x", rotation=0)
plt.show()

print(f"with all heads: {whole.mean():.2f} bits a character")

# %% [markdown]
# Is the order the same in every passage? Take the head that matters most on average, and count in
# how many of the 100 passages it matters most. Then do the same for the second:

# %% tags=["varies"]
average_order = (-rise).flatten().argsort()  # (all heads,)
orders = (-rises).reshape(-1, 100).argsort(axis=0)  # (all heads, 100)
same_first, same_second = (orders == average_order[:, None]).mean(axis=1)[:2]
print(f"first on average:  {names[average_order[0]]}, first in {same_first:.0%} of the passages")
print(f"second on average: {names[average_order[1]]}, second in {same_second:.0%} of the passages")

assert names[average_order[0]] == "0.3" and same_first > 0.7
assert same_second < 0.6
back = looks["one before"]
assert back[1, 2] > 0.9 * back[0, 3] and rise[1, 2] < rise[0, 3] / 2

# %% [markdown]
# Head 0.3 matters most, in nearly all passages. Which head is second differs from passage to
# passage, so one passage is not enough to tell. The mean weights do not tell either: head 1.2 puts
# as much weight on the token before as 0.3, but losing it costs less than half as much.

# %% [markdown]
# ## When is the prediction made?
#
# In notebook 9 every block added to the residual stream, and the head read the final vector. But
# the head can read the stream earlier: after the embedding, after the first block, and so on. This
# is the **logit lens**. It shows what the model would predict if it stopped there.

# %%
text = "The fox saw the crow."
ids = np.array(writer.tokenizer.encode(text))
lens = glass.logits(look_inside(glass, ids[None])[0])[:, 0]  # (num_layers + 1, T, vocab_size)
with torch.no_grad():  # after the last layer it is the model's prediction
    answer = writer.model(torch.from_numpy(ids)[None])[0].numpy()  # (T, vocab_size)
np.testing.assert_allclose(lens[-1], answer, atol=1e-3)

probabilities = np.exp(lens - lens.max(axis=-1, keepdims=True))
probabilities /= probabilities.sum(axis=-1, keepdims=True)  # (num_layers + 1, T, vocab_size)

figure, axes = plt.subplots(figsize=(7.6, 1.9))
rows = ["embedding", *(f"after {layer}" for layer in layers)]
certain = probabilities.max(axis=-1)  # (num_layers + 1, T)
below = text.replace(" ", "␣")
heatmap(axes, certain, rows, below, "likeliest next token", numbers=None, most=5)
for (row, t), token in np.ndenumerate(probabilities.argmax(axis=-1)):
    right = t + 1 < len(ids) and token == ids[t + 1]
    shown = writer.tokenizer.decode([int(token)]).replace(" ", "␣").replace("\n", "↵")
    style = {"color": PURPLE, "weight": "bold"} if right else {"color": QUIET}
    axes.text(t + 0.5, row + 0.5, shown, ha="center", va="center", fontsize=9, **style)
axes.tick_params(axis="x", rotation=0)
plt.show()

# %% [markdown]
# The bottom line is the text that is read. The squares show which token each row predicts next,
# darker where it is more certain. Bold predictions are right.
#
# The first row predicts without any block. It sees one character at a time, so it can only know
# which character often follows which. The head's table began with such counts. So compare this row
# with a table of counts, over the 100 passages. And which share of each row's predictions is right?

# %%
training, _ = writer.read_text()
learned = "".join(piece.text for piece in training.pieces())
read = np.array(writer.tokenizer.encode(learned))
counts = np.zeros((config.vocab_size, config.vocab_size))
np.add.at(counts, (read[:-1], read[1:]), 1)  # how often each token follows each other
usual = counts.argmax(axis=1)  # (vocab_size,), what most often follows

predicted = glass.logits(streams).argmax(axis=-1)  # (num_layers + 1, 100, T)
right = (predicted[:, :, :-1] == passages[:, 1:]).mean(axis=(1, 2))  # (num_layers + 1,)
as_counted = (predicted[0] == usual[passages]).mean()
itself = (predicted[0] == passages).mean()

for row, share in zip(rows, right, strict=True):
    print(f"{row:14} right: {share:.2f}")
print(f"the embedding row predicts the most frequent successor: {as_counted:.2f}")
print(f"the embedding row predicts the token itself: {itself:.2f}")

assert right[0] < right[1] < right[2]
assert as_counted > 0.6 and itself < 0.15

# %% [markdown]
# Before the first block, most predictions are simply the most frequent successor. Few are the token
# itself. After each layer more predictions are right, because attention brings in the characters
# before.

# %% [markdown]
# ## Why this character?
#
# The residual stream is a sum: the embedding, and what each head and each feed-forward layer adds.
# The logit of a token is its dot product with a row of the output layer, once the final norm has
# divided the stream by its length. So if we keep this length as it is, every part of the sum adds a
# number of its own to the logit. This is called **direct logit attribution**. `writer.explain`
# computes it, and centres the logit: it subtracts the mean logit of all tokens. Layers and heads
# are counted from 1 in its names, as in the page: 1.4 is the head that is 0.3 above.
#
# It also asks two other questions. How likely is the token without one head? And how likely is it
# if no later character may look at an earlier one, in any layer?
#
# Why is there a space after "The fox saw the"?

# %%
place = len("The fox saw the")  # of the space; one character is one token
why = writer.explain(text, place)

figure, panels = plt.subplots(1, 3, figsize=(9, 2.8), width_ratios=(1, 1, 1.3))
parts, adds = zip(*why.parts.items(), strict=True)
head_names, without = zip(*why.heads.items(), strict=True)
panels[0].barh(parts, adds, color=[PURPLE if added > 0 else AMBER for added in adds])
panels[0].set_title("adds to the logit")
panels[1].barh(head_names, without, color=QUIET)
panels[1].axvline(why.probability, color=PURPLE)
panels[1].set(title="probability without a head", xlim=(0, 1))
for axes in panels[:2]:
    axes.invert_yaxis()

earlier = list(why.words)[:-1]
bits_changed = [why.words[i] for i in earlier]
panels[2].bar(earlier, bits_changed, color=[PURPLE if b > 0 else AMBER for b in bits_changed])
panels[2].set_xticks(earlier, [text[i].replace(" ", "␣") for i in earlier])
panels[2].set_title("bits gained if nobody looks at it")
plt.show()

print(f"the parts add up to {sum(adds):.3f}, the centred logit is {why.logit:.3f}")
np.testing.assert_allclose(sum(adds), why.logit, atol=1e-3)
centred = answer[place - 1] - answer[place - 1].mean()  # (vocab_size,), from the torch model
np.testing.assert_allclose(why.logit, centred[ids[place]], atol=1e-3)

# %% [markdown]
# The embedding alone, the letter e, adds most: a space often follows an e. The vertical line in the
# middle is the probability with all heads. Without head 1.4, the one that matters most above,
# little is left of it. But on the left this head does not raise the logit: it acts through others,
# because later layers read what it wrote. On the right is what it found: if nobody looks at the h,
# the model does not know that the word was "the".
#
# So none of these numbers is *the* cause. [The page](../docs/page.md) lists what they do not tell.

# %%
assert max(why.parts, key=why.parts.get) == "embedding"
assert why.heads["1.4"] < why.probability / 3 and why.parts["1.4"] < 1
assert min(why.words, key=why.words.get) == text.index("h", 10) and min(why.words.values()) < -2

# %% [markdown]
# ## Does it notice repetition?
#
# Write random characters, then the same ones again. Nobody can predict the first half. The second
# half is easy for a reader who looks back: find where this character last was, and predict what
# came after it. A head that looks at *what followed the same token last time* is called an
# **induction head**
# (["In-context Learning and Induction Heads"](https://arxiv.org/abs/2209.11895)).


# %%
def halves(glass: NumpyGPT, heads_off=()) -> tuple[float, float, np.ndarray]:
    """Read 100 random texts, each written twice: the bits a token in the first and in the second
    half, and the mean attention weights of the second half, (num_layers, num_heads, half, T)."""
    rng = np.random.default_rng(0)
    half = glass.config.context_length // 2
    ids = np.tile(rng.integers(0, glass.config.vocab_size - 1, (100, half)), 2)  # (100, T)
    streams, attention = look_inside(glass, ids, heads_off)
    losses = bits(glass.logits(streams[-1]), ids).mean(axis=0)  # (T - 1,)
    return losses[: half - 1].mean(), losses[half:].mean(), attention.mean(axis=1)[..., half:, :]


def weight_back(weights: np.ndarray, by: int) -> np.ndarray:
    """The mean weight of the second half on the tokens so far back, (num_layers, num_heads)."""
    half = np.arange(weights.shape[-2])
    return weights[..., half, len(half) + half - by].mean(axis=-1)


first_half, second_half, weights = halves(glass)
induction = weight_back(weights, T // 2 - 1)  # on what followed last time
print(f"first half: {first_half:.1f} bits, second half: {second_half:.1f} bits")
print(f"largest mean weight on what followed last time: {induction.max():.2f}")
characters = config.vocab_size - 1
print(f"{np.log2(characters):.1f} bits name one of {characters} characters")

assert config.vocab_size == len(set(Path("../data/fables.txt").read_text(encoding="utf-8"))) + 1
assert min(first_half, second_half) > np.log2(config.vocab_size)
assert second_half > 0.95 * first_half and induction.max() < 0.1

# %% [markdown]
# (The book has 61 different characters. The model's 62nd token marks the end of a text and was left
# out here.)
#
# Both halves cost more bits than the fair die of notebook 1: the model expects English, and it is
# wrong. It does not notice the repetition. The second half is as hard as the first, and no head
# looks much at what followed last time. There is no induction head here.

# %% [markdown]
# ## Two heads that a run is given
#
# By default the tokens of `train.py` are pieces of words. Then a model need not find induction by
# itself: `minigpt.train` sets two heads before the training begins
# ([induction.py](../minigpt/recipe/induction.py)).
#
# - Head 0 of layer 0 looks one token back and notes in each vector which token it found there.
# - Head 0 of layer 1 looks for vectors whose note names the current token. They are the tokens that
#   followed it before. It raises the logits of these tokens.
#
# Together they are called an *induction circuit*. (Models of characters get none, because what
# followed a character once says little.) How does training change it? Train one run for one step
# and another for 100. This time measure on real text: in 100 passages, at every token that occurred
# before in its passage.


# %%
def weight_on_followers(attention: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, float]:
    """The mean weight of each head on all tokens that followed the current one before,
    (num_layers, num_heads); and that of a head that looks everywhere alike."""
    T = ids.shape[1]
    same = ids[:, :, None] == ids[:, None, :]  # (b, T, T)
    follows = np.zeros_like(same)
    follows[:, :, 1:] = same[:, :, :-1]  # the token before is the same as the current one
    follows &= np.tri(T, dtype=bool)  # none that comes later
    at = follows.any(axis=-1)  # (b, T): places with such a token
    on_followers = (attention * follows[:, None]).sum(axis=-1)  # (num_layers, b, num_heads, T)
    alike = follows.sum(axis=-1) / np.arange(1, T + 1)  # (b, T)
    return on_followers.swapaxes(1, 2)[..., at].mean(axis=-1), alike[at].mean()


def given_heads(steps: int) -> dict:
    """Train a run with pieces of words; what its two given heads do in 100 passages."""
    run = train(f"pieces-{steps}", tokenizer="bpe", vocab_size=512, num_heads=2, steps=steps)
    ids = passages_of(run)  # (100, T)
    streams, attention = look_inside(run.glass, ids)
    with_all = bits(run.glass.logits(streams[-1]), ids).mean()
    lost = []
    for layer in (0, 1):
        streams, _ = look_inside(run.glass, ids, [(layer, 0)])
        lost.append(bits(run.glass.logits(streams[-1]), ids).mean() - with_all)

    on_previous = attention[..., places, places - 1].mean(axis=(1, -1))  # (num_layers, num_heads)
    on_followers, alike = weight_on_followers(attention, ids)
    print(f"steps: {steps}, loss: {with_all:.2f} bits a token")
    back, followed = on_previous[0, 0], on_followers[1, 0]
    print(f"  0.0 puts {back:.2f} on the token before; without it {lost[0]:.2f} bits are lost")
    print(f"  1.0 puts {followed:.2f} on what followed; without it {lost[1]:.2f} bits are lost")
    print(f"  everywhere alike would be {alike:.2f} on what followed")
    return {"back": back, "followed": followed, "lost": lost}


at_first = given_heads(steps=1)
trained = given_heads(steps=100)

assert at_first["back"] > 0.4 and at_first["followed"] > 0.5  # as they were set
assert trained["back"] > 0.3 and trained["lost"][0] > 0.2  # kept, and needed
assert trained["followed"] < 0.3 and trained["lost"][1] < 0.05  # almost unlearned

# %% [markdown]
# At first both heads look where they were set to look, though the predictions hardly depend on
# them. After 100 steps the first one still looks back, and the model needs it. The second is almost
# unlearned: its weight on what followed has fallen to a fraction, and next to nothing is lost
# without it. So the given heads are only a start. Training changes their weights like all others,
# and in so short a training on this text it made little use of the second head. Where a text
# repeats itself more, the circuit gains more: with it the loss on Python sources was 14% lower
# after the same number of steps, in an earlier version ([decisions](../docs/decisions.md)).

# %% [markdown]
# ## A head that training found by itself
#
# Does training ever find such heads without help? Make a text in which nothing else helps: one
# random word of 8 to 16 tokens in each window, repeated to the window's end. There are 32 different
# tokens, so a random one costs $\log_2 32 = 5$ bits. The matrices of a new `minigpt.GPT` are
# random; only `minigpt.train` sets heads. We train with the optimizer of notebook 9, on batches of
# 32 windows, until the mean of ten steps is at most 3.2 bits a token.

# %%
SIZE = 32  # of a window, and number of different tokens


def repeated_words(b: int) -> torch.Tensor:
    """Random words of 8 to 16 tokens, each repeated to the end, (b, SIZE + 1)."""
    lengths = torch.randint(8, 17, (b, 1))
    words = torch.randint(SIZE, (b, 16))
    return words.gather(1, torch.arange(SIZE + 1) % lengths)


torch.manual_seed(1)
shape = GPTConfig(vocab_size=SIZE, context_length=SIZE, emb_dim=32, num_layers=2, num_heads=2)
model = GPT(shape)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
costs = []  # bits a token, step by step
while len(costs) < 1000 and (len(costs) < 10 or np.mean(costs[-10:]) > 3.2):
    words = repeated_words(32)
    loss = model.loss(words[:, :-1], words[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    costs.append(loss.item() / np.log(2))

# %% [markdown]
# Now the same test as before: random tokens, written twice. Which head of layer 0 looks one back?
# Which head of layer 1 looks at what followed last time? What is lost without them?

# %% tags=["varies"]
weights_by_name = {name: weight.numpy() for name, weight in model.state_dict().items()}
del weights_by_name["head.weight"]  # the same table as the embedding
found = NumpyGPT(shape, weights_by_name)

first_half, second_half, weights = halves(found)
previous, induction = weight_back(weights, 1), weight_back(weights, SIZE // 2 - 1)
looks_back, follows = previous[0].argmax(), induction[1].argmax()
print(f"{len(costs)} steps; first half: {first_half:.1f} bits, second half: {second_half:.1f} bits")
print(f"weight of each head on the token before:\n{previous.round(2)}")
print(f"weight of each head on what followed last time:\n{induction.round(2)}")

without = [halves(found, [head])[1] for head in ((0, looks_back), (1, follows))]
print(f"second half without head 0.{looks_back}: {without[0]:.1f} bits")
print(f"second half without head 1.{follows}: {without[1]:.1f} bits")

assert np.mean(costs[150:200]) > 4.5  # little has happened
assert second_half < first_half / 2
assert previous[0, looks_back] > 0.2 and induction[1, follows] > 0.4
assert min(without) > second_half + 0.8

figure, panels = plt.subplots(1, 3, figsize=(9, 2.8), width_ratios=(1.4, 1, 1))
panels[0].plot(costs, linewidth=0.8)
panels[0].set(xlabel="step", ylabel="bits a token", title="words that repeat", ylim=(0, 5.5))
heatmap(panels[1], weights[0, looks_back], title=f"0.{looks_back}", numbers=None)
heatmap(panels[2], weights[1, follows], title=f"1.{follows}", numbers=None)
for axes in panels[1:]:
    axes.set(xlabel="looks at", ylabel="second half")
plt.show()

# %% [markdown]
# For about 200 steps little happens. Then the loss begins to fall, because heads have formed that
# work together. Heads of layer 0 look one token back. Heads of layer 1 look at what followed
# the current token last time: the right picture's diagonal is 15 tokens back, and a word here has
# 16. The second half now costs less than half as much as the first. Without one of these heads it
# costs more again.
#
# So yes, these are induction heads, and nobody set them. Training found the circuit, starting from
# random numbers, on a text of nothing but repetition. How soon depends on luck: with
# `torch.manual_seed(0)` the loss had not fallen after 500 steps.

# %% [markdown]
# ## Does it invent, or recite?
#
# A model that has read a short text too often knows it by heart. So look for the longest piece of
# what it writes that occurs word for word in the text it learned from. For comparison, do the same
# with a text by somebody else, from `tales.txt`, which this model never saw.


# %% tags=["varies"]
def longest_copy(text: str, source: str) -> str:
    """The longest piece of `text` that occurs in `source`."""
    start = 0  # of the longest so far
    length = 0
    for i in range(len(text)):
        while i + length < len(text) and text[i : i + length + 1] in source:
            start = i
            length += 1
    return text[start : start + length]


tale = Path("../data/tales.txt").read_text(encoding="utf-8")[:500]
written = writer.generate("The ", max_new_tokens=500, temperature=0.7, seed=2)
print("written:", repr(longest_copy(written, learned)))
print("a tale: ", repr(longest_copy(tale, learned)))

assert longest_copy(learned[1000:1100], learned) == learned[1000:1100]
assert len(longest_copy(written, learned)) < 30 and len(longest_copy(tale, learned)) < 30

# %% [markdown]
# Both share a few words with the fables, as any two English texts do. Nothing longer was copied.
# `train.py` works against reciting: it limits how often a text is read, and keeps the weights with
# the lowest validation loss.
#
# How much would be copied if it did? Count the characters in pieces of 30 or more that occur in the
# training text. Shorter ones are phrases that many people write. `writer.copied` does this for any
# text. Here are a sentence of our own and sixty characters that the model learned from:

# %%
ours = "We made this sentence up today. "
theirs = learned[-1060:-1000]
copied = writer.copied(ours + theirs)
print(copied)
assert copied.longest == longest_copy(ours + theirs, learned)
assert copied.share == len(copied.longest) / len(ours + theirs)

# %% [markdown]
# The line ends with a better comparison than our tale: the fables that were set aside for
# validation. They are new to the model and in the same style. What they share with the rest shows
# how much is alike without any reciting. Without a text, `writer.copied()` takes eight texts that
# the model writes. `train.py` prints that line at the end of a training, and
# `minigpt evaluate runs/my --copied` at any time.

# %%
of_its_own = writer.copied()
print(of_its_own)
assert of_its_own.share < 0.05

# %% [markdown]
# ## The page
#
# Most of these views are in one HTML file that holds a model of yours and runs it in the browser:
#
#     minigpt page runs/my --open
#
# ![The page: a text with tinted words, and beside it the likeliest next
# tokens](../docs/page-light.png)
#
# Click a word to see what else could have come. Choose another, and the text goes on from there.
# Switch heads off. Follow one query through the equation of notebook 5. You now know what every
# number on it means.
#
# ## Try
#
# **1.** Train a run for five minutes with `train.py`, and set `RUN` to its folder. Which head
# matters most there? (The assertions say what is true of our run; delete those that fail for
# yours.)
#
# <details><summary>Answer</summary>
#
# If its tokens are pieces of words, look at head 0.0, which was given. After 600 steps of a run
# like ours, it put 0.60 of its weight on the token before. Without it 1.4 bits a token were lost,
# without any other head at most 0.13.
#
# </details>
#
# **2.** Switch off *all* heads of layer 0, then all of layer 1. Which layer matters more? Is it the
# sum of its heads?
#
# <details><summary>Answer</summary>
#
# Without the heads of layer 0 we lost 0.71 bits a character; the losses without one of them add up
# to 0.61. For layer 1 the two figures are 0.41 and 0.31. Heads of a layer do similar work: if one
# is off, the others partly replace it. If all are off, none is left to do that.
#
# </details>
#
# **3.** Train 2,000 steps on the first ten fables only: `minigpt.train` accepts a list of texts.
# Does the model recite?
#
# <details><summary>Answer</summary>
#
# Ours did not. In four texts of 500 characters the longest copy had 16 characters, although the
# model had read its fables almost a hundred times. `minigpt.train` knows how often a text will be
# read. Here it chose one table for embedding and head, a dropout of 0.3 and more weight decay,
# which all make it harder to learn a text by heart.
#
# </details>
