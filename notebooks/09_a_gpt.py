# %% [markdown]
# # 6. A GPT out of it
#
# We have the layer in the middle. What is missing is what stands around it: a way from text to
# vectors, a way from vectors to a guess, and a way to learn from wrong guesses. In this notebook
# you build a whole GPT, train it on a book of fables for some seconds, and let it write.

# %%
from collections import OrderedDict

import matplotlib.pyplot as plt
import torch
from pictures import BLUE, PURPLE, QUIET
from torch import nn

from minigpt import GPT, GPTConfig
from minigpt.attention import MultiHeadAttention
from minigpt.generation.sampler import filtered, keep_top_k, keep_top_p

torch.set_num_threads(1)  # products as small as ours are fastest on one core

# %% [markdown]
# ## From text to numbers
#
# The book is one long text. The simplest tokens are its characters: each different character gets
# an id. (`train.py` uses longer pieces, such as whole words, but the rest is the same.)

# %%
with open("../data/fables.txt", encoding="utf-8") as file:
    text = file.read()

characters = sorted(set(text))
vocab_size = len(characters)
id_of = {character: i for i, character in enumerate(characters)}


def encode(text: str) -> list[int]:
    return [id_of[character] for character in text]


def decode(ids: list[int]) -> str:
    return "".join(characters[i] for i in ids)


assert decode(encode(text)) == text
print(f"{len(text):,} characters, {vocab_size} different ones")
print(text[:26], "->", encode(text[:26]))

# %% [markdown]
# ## What the model has to guess
#
# A window of the text is the input. The **targets** are the same window, one place further on: at
# each place, the character that follows. So a window of 12 characters is 12 exercises at once,
# and that works because attention never looks ahead.

# %%
ids = torch.tensor(encode(text))
train_ids, validation_ids = ids[: int(0.9 * len(ids))], ids[int(0.9 * len(ids)) :]

window, targets = train_ids[4:16], train_ids[5:17]  # (T,) each
for i in (0, 1, 2, 11):
    print(f"after {decode(window[: i + 1].tolist())!r:16} comes {characters[targets[i]]!r}")


# %%
def draw_batch(ids: torch.Tensor, b: int, T: int) -> tuple[torch.Tensor, torch.Tensor]:
    """b windows from random places, and their targets: (b, T) each."""
    starts = torch.randint(len(ids) - T, (b, 1))
    windows = ids[starts + torch.arange(T + 1)]  # (b, T + 1)
    return windows[:, :-1], windows[:, 1:]


# %% [markdown]
# The last tenth of the book is kept aside: **validation** text, which the model never learns
# from. It shows whether a model has understood something, or only knows its book by heart.
#
# ## The parts of a block
#
# A GPT is a stack of **blocks**. Each block does two things: attention, where words get something
# from each other, and a **feed-forward** network, where each word thinks for itself. The latter
# is two matrices with a bend in between:
#
# $$\operatorname{ff}(x) = W_\text{out}\, \operatorname{gelu}(W_\text{in}\, x + b_\text{in}) +
# b_\text{out}$$
#
# Without the bend two matrices would be no more than one. GELU lets positive numbers through and
# holds most of the negative ones back:

# %%
numbers = torch.linspace(-4, 4, 161)
plt.figure(figsize=(3.6, 2))
plt.plot(numbers, nn.functional.gelu(numbers))
plt.title("gelu(x)")
plt.show()

# %% [markdown]
# Two tricks make deep stacks trainable. First, a block *adds* its result to what came in. So
# there is a stream from the first vector to the last, the **residual stream**, and every block
# adds a little to it. Second, before each part the vectors are **normalised**: shifted and scaled
# to mean 0 and variance 1, then multiplied by a learned weight $g$ and moved by a learned bias
# $b$.
#
# $$\operatorname{norm}(x) =
# g\,\frac{x - \operatorname{mean}(x)}{\sqrt{\operatorname{var}(x)}} + b$$

# %%
x = 5 + 3 * torch.randn(2, 8, 64)  # (b, T, d)
mean, variance = x.mean(dim=-1, keepdim=True), x.var(dim=-1, keepdim=True, correction=0)
torch.testing.assert_close((x - mean) / variance.sqrt(), nn.LayerNorm(64)(x), atol=1e-4, rtol=0)

# %% [markdown]
# The whole block, then, is two lines:
#
# $$x \leftarrow x + \operatorname{attention}(\operatorname{norm}(x)), \qquad
# x \leftarrow x + \operatorname{ff}(\operatorname{norm}(x))$$


# %%
class Block(nn.Module):
    def __init__(self, d: int, num_heads: int, context_length: int):
        super().__init__()
        self.attention_norm = nn.LayerNorm(d, eps=1e-6)
        self.attention = MultiHeadAttention(d, d, context_length, 0.0, num_heads, qkv_bias=True)
        self.feed_forward_norm = nn.LayerNorm(d, eps=1e-6)
        W_in, W_out = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)  # four times as wide inside
        parts = {"W_in": W_in, "gelu": nn.GELU("tanh"), "out_proj": W_out}
        self.feed_forward = nn.Sequential(OrderedDict(parts))

    def forward(self, x):  # (b, T, d) -> (b, T, d)
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


# %% [markdown]
# ## Embeddings, and where a word stands
#
# Each id has its embedding, a row of a table with `vocab_size` rows. There is a second table,
# with a row for each *place*: the **position embedding**. For attention does not know about
# order. Shuffle the words, and without a mask you get the same context vectors, shuffled:

# %%
layer = MultiHeadAttention(64, 64, 8, dropout=0.0, num_heads=4, causal=False)
order = torch.randperm(8)
torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order])

# %% [markdown]
# With a position added to each word, "fox" in the second place is another vector than "fox" in
# the fifth.
#
# ## The model
#
# Embeddings, blocks, a last norm, and the **head** (no attention head; the same word for another
# thing). The head compares the final vector with the embedding of every token. That gives a score
# for each token that could come next. These scores are called **logits**.
#
# $$x_t = E_{\text{token}}[\text{id}_t] + E_{\text{position}}[t], \qquad
# \text{logits}_t = E_{\text{token}}\, \operatorname{norm}\big(\text{blocks}(x)_t\big)$$


# %%
class TinyGPT(nn.Module):
    def __init__(self, vocab_size, context_length, d, num_layers, num_heads):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d)
        self.position_embedding = nn.Embedding(context_length, d)
        blocks = [Block(d, num_heads, context_length) for _ in range(num_layers)]
        self.blocks = nn.Sequential(*blocks)
        self.final_norm = nn.LayerNorm(d, eps=1e-6)
        self.head = nn.Linear(d, vocab_size, bias=False)
        self.head.weight = self.token_embedding.weight  # one table for both ends

    def forward(self, ids):  # (b, T) -> (b, T, vocab_size)
        positions = torch.arange(ids.shape[1])
        x = self.token_embedding(ids) + self.position_embedding(positions)  # (b, T, d)
        x = self.blocks(x)  # (b, T, d)
        return self.head(self.final_norm(x))


# %% [markdown]
# These forty lines are the package's `GPT` in the architecture `gpt2`. It has the same names
# inside, so its numbers can be put into ours, and the logits must agree. (The package's other
# architecture is that of Qwen3, a family of open models. It has better parts in the same places.)

# %%
context_length, b = 32, 16
torch.manual_seed(0)
theirs = GPT(
    GPTConfig(
        vocab_size=vocab_size,
        architecture="gpt2",
        context_length=context_length,
        emb_dim=64,
        num_layers=2,
        num_heads=4,
    )
)
model = TinyGPT(vocab_size, context_length, d=64, num_layers=2, num_heads=4)
model.load_state_dict(theirs.state_dict())

inputs, targets = draw_batch(train_ids, b, context_length)  # (b, T) each
torch.testing.assert_close(model(inputs), theirs(inputs), atol=1e-5, rtol=1e-4)
print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters")

# %% [markdown]
# ## How wrong is a guess?
#
# Softmax makes probabilities of the logits. The **loss** of a guess is the negative logarithm of
# the probability that the right token got. If it got 1, the loss is 0. The less it got, the
# larger the loss. The mean over all places is called *cross-entropy*.
#
# $$\text{loss} = -\frac{1}{bT} \sum_{\text{places}} \ln p(\text{right token})$$


# %%
def loss_of(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    probabilities = model(inputs).softmax(dim=-1)  # (b, T, vocab_size)
    right = probabilities.gather(-1, targets.unsqueeze(-1))  # (b, T, 1): of the right tokens
    return -right.log().mean()


first_loss = loss_of(model, inputs, targets)
torch.testing.assert_close(first_loss, theirs.loss(inputs, targets), atol=1e-5, rtol=1e-4)

# %% [markdown]
# What should the loss be *before* any training? The model knows nothing, so every character
# should be about equally likely, with probability $1 / \text{vocab\_size}$. Then the loss is
#
# $$-\ln \frac{1}{\text{vocab\_size}} = \ln(\text{vocab\_size})$$
#
# It is a good test. A higher loss means that the model starts with wrong convictions.

# %%
expected = torch.tensor(vocab_size).log()
print(f"loss {first_loss:.3f}, ln({vocab_size}) = {expected:.3f}")
torch.testing.assert_close(first_loss, expected, atol=0.1, rtol=0)

# %% [markdown]
# ## Can it learn at all?
#
# The next test: learn one single batch by heart. If that fails, something is broken, and no
# amount of text will help.


# %%
def train(model, batches, lr: float) -> list[float]:
    """A step for each batch; the losses."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    losses = []
    for i, (inputs, targets) in enumerate(batches):
        optimizer.param_groups[0]["lr"] = lr * (1 - i / len(batches))  # ever smaller steps
        loss = loss_of(model, inputs, targets)
        optimizer.zero_grad()
        loss.backward()  # gradients
        optimizer.step()  # a small change of every parameter
        losses.append(loss.item())
    return losses


by_heart = TinyGPT(vocab_size, context_length, d=64, num_layers=2, num_heads=4)
by_heart.load_state_dict(theirs.state_dict())
overfitted = train(by_heart, [(inputs[:4], targets[:4])] * 100, lr=5e-3)
assert overfitted[-1] < 0.2
print(f"after 100 steps on the same four windows: loss {overfitted[-1]:.2f}")

# %% [markdown]
# It works: the loss goes to almost 0. (Not quite to 0, for at the very beginning of a window
# nobody can know what follows.) Of course this model has learned four windows, and nothing about
# English.

# %% [markdown]
# ## Training
#
# Now a new batch in every step, from the whole book. 600 steps take some ten seconds. That is
# very little; a useful model wants minutes. But watch what even ten seconds do.

# %%
torch.manual_seed(1)
batches = [draw_batch(train_ids, b, context_length) for _ in range(600)]
losses = train(model, batches, lr=6e-3)

with torch.no_grad():
    held_out = [draw_batch(validation_ids, b, context_length) for _ in range(20)]
    validation = torch.stack([loss_of(model, *batch) for batch in held_out]).mean().item()
assert validation < 2.5
print(f"validation loss {validation:.2f}, that is {validation / 0.6931:.2f} bits a character")

# %%
figure, axes = plt.subplots(figsize=(6, 2.8))
axes.plot(losses, linewidth=0.8, label="training")
axes.plot(overfitted, color=QUIET, linewidth=1, label="the same four windows")
axes.axhline(expected.item(), color=PURPLE, linewidth=1)
axes.annotate("knows nothing", (600, expected + 0.08), color=PURPLE, ha="right")
axes.plot(600, validation, "o", color=PURPLE, clip_on=False, label="validation")
axes.set(xlabel="step", ylabel="loss", xlim=(0, 600), ylim=(0, 4.6))
axes.legend(loc="lower left", bbox_to_anchor=(0.3, 0.08))
plt.show()

# %% [markdown]
# The loss is in *nats*, units of the natural logarithm. Divided by $\ln 2 \approx 0.69$ it is in
# *bits*, as `train.py` reports it: so many yes-or-no questions are open for each character.

# %% [markdown]
# ## What comes next?
#
# Give it the beginning of a sentence, and look at the probabilities after the last character:


# %%
@torch.no_grad()
def next_logits(ids: list[int]) -> torch.Tensor:
    """The logits of the character that follows, (vocab_size,)."""
    return model(torch.tensor([ids[-context_length:]]))[0, -1]


logits = next_logits(encode("The fox said to th"))
assert characters[logits.argmax()] == "e"


def bars(axes, logits: torch.Tensor, title: str, shown: torch.Tensor) -> None:
    """The probabilities of the tokens `shown`; those with a logit of -inf have none."""
    probabilities = logits.softmax(dim=-1)[shown]
    axes.bar(range(len(shown)), probabilities, 0.7, color=BLUE)
    axes.set_xticks(range(len(shown)), [characters[i].replace(" ", "␣") for i in shown])
    axes.set(title=title, ylim=(0, 1))
    left_out = (probabilities == 0).nonzero().flatten()
    axes.plot(left_out, torch.full_like(left_out, 0.03, dtype=torch.float), "x", color=QUIET)


logits = next_logits(encode("The old fox wa"))
shown = logits.argsort(descending=True)[:12]  # the twelve likeliest
figure, axes = plt.subplots(figsize=(5, 2.2))
bars(axes, logits, "after “The old fox wa”", shown)
plt.show()

# %% [markdown]
# Always taking the likeliest character makes dull loops. So one *draws*, by these probabilities.
# But then an unlikely character comes from time to time, and one wrong letter spoils a word.
# Three knobs help.
#
# **Temperature** $\tau$ divides the logits before the softmax:
#
# $$p_i = \operatorname{softmax}(\text{logits} / \tau)_i$$
#
# Below 1 the likely ones become likelier still. Above 1 all become more equal.

# %%
figure, panels = plt.subplots(1, 3, figsize=(7.6, 2.2), sharey=True)
for axes, temperature in zip(panels, (0.5, 1.0, 2.0), strict=True):
    bars(axes, logits / temperature, f"temperature {temperature}", shown)
    ours, packages = logits / temperature, filtered(logits.numpy(), temperature)
    torch.testing.assert_close(ours, torch.from_numpy(packages))
plt.show()


# %% [markdown]
# **Top-k** keeps the $k$ likeliest tokens. **Top-p** keeps the fewest that together have
# probability $p$: few where the model is sure, many where it is not. Both give the others a logit
# of $-\infty$. You know that one: probability 0.


# %%
def top_k(logits: torch.Tensor, k: int) -> torch.Tensor:
    smallest_kept = logits.sort(descending=True).values[k - 1]
    return logits.masked_fill(logits < smallest_kept, -torch.inf)


def top_p(logits: torch.Tensor, p: float) -> torch.Tensor:
    sorted_logits, order = logits.sort(descending=True)
    probabilities = sorted_logits.softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # of all the likelier ones together
    return logits.index_fill(0, order[before >= p], -torch.inf)


figure, panels = plt.subplots(1, 3, figsize=(7.6, 2.2), sharey=True)
bars(panels[0], logits, "all", shown)
bars(panels[1], top_k(logits, 3), "top-k, k = 3", shown)
bars(panels[2], top_p(logits, 0.8), "top-p, p = 0.8", shown)
plt.show()

torch.testing.assert_close(top_k(logits, 3), torch.from_numpy(keep_top_k(logits.numpy(), 3)))
torch.testing.assert_close(top_p(logits, 0.8), torch.from_numpy(keep_top_p(logits.numpy(), 0.8)))

# %% [markdown]
# ## It writes
#
# Draw a character, put it at the end of the text, and ask again. That is all.


# %%
def write(prompt: str, count: int, temperature: float = 1.0, p: float = 1.0) -> str:
    ids = encode(prompt)
    for _ in range(count):
        logits = top_p(next_logits(ids) / temperature, p)
        ids.append(torch.multinomial(logits.softmax(dim=-1), 1).item())  # a draw
    return decode(ids)


torch.manual_seed(2)
for temperature, p in ((0.1, 1.0), (0.8, 0.9), (1.5, 1.0)):
    print(f"--- temperature {temperature}, top-p {p}\n{write('The fox ', 160, temperature, p)}\n")

# %% [markdown]
# Cold, it repeats itself. Hot, it falls apart. In between there are words, half words, and the
# rhythm of sentences, after ten seconds, from a model that did not know at first that letters
# form words.
#
# ## Two commands
#
# You know now what happens inside these two:
#
#     python train.py my.txt --minutes 5
#     python generate.py "The fox" --temperature 0.8 --top-p 0.9
#
# They use the same ideas, with better parts: longer tokens, blocks like Qwen3's, a larger model
# planned for your machine, an optimizer that learns more from each step, and an engine that
# writes without computing the past again. What such a model has learned, and how one can see it,
# is notebook 10.
#
# ## Try
#
# - Train five times as long: 3,000 steps. How low does the validation loss get, and what does it
#   write? What if you double `d`?
# - Take the position embedding out of `TinyGPT` and train again. Is the loss much higher? (The
#   mask lets a little order through. How?)
# - Read another text instead of the fables, your own. Which prompt would you give it?
