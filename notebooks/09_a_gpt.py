# %% [markdown]
# # 9. A GPT around the attention layer
#
# We have the attention layer. Three things are missing: a way from text to vectors, a way from
# vectors to a prediction, and a way to learn from wrong predictions. In this notebook you build a
# whole GPT, train it on a book of fables for about ten seconds, and let it write.
#
# The order of the steps follows Andrej Karpathy's lecture
# ["Let's build GPT"](https://www.youtube.com/watch?v=kCc8FmEb1nY): characters as tokens, windows
# with their targets, the loss before training, then blocks. The layer, `MultiHeadAttention`, is
# that of Sebastian Raschka's book
# ["Build a Large Language Model (From Scratch)"](https://github.com/rasbt/LLMs-from-scratch).
# The block comes from ["Attention Is All You Need"](https://arxiv.org/abs/1706.03762), but its norm
# is where GPT-2 has it.

# %%
from collections import OrderedDict

import matplotlib.pyplot as plt
import torch
from pictures import AMBER, BLUE, PURPLE, QUIET
from torch import nn

from minigpt import GPT, GPTConfig
from minigpt.attention import MultiHeadAttention
from minigpt.generation.sampler import filtered, keep_top_k, keep_top_p

torch.set_num_threads(1)  # products as small as ours are fastest on one core

# %% [markdown]
# ## From text to numbers
#
# The book is one long text. The simplest tokens are its characters: each different character gets
# an id, a number from 0 on. (`train.py` uses longer pieces, such as whole words. The rest is the
# same.)

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
# ## What the model has to predict
#
# The input is a **window**, a short piece of the text. Its **targets** are the characters that
# follow each of its places: the same window, moved by one place. So a window of 12 characters is 12
# exercises at once. This works because attention never looks ahead.

# %%
ids = torch.tensor(encode(text))
train_ids, validation_ids = ids[: int(0.9 * len(ids))], ids[int(0.9 * len(ids)) :]

window, targets = train_ids[4:16], train_ids[5:17]  # (T,) each
for i in (0, 1, 2, 11):
    print(f"after {decode(window[: i + 1].tolist())!r:16} comes {characters[targets[i]]!r}")
assert torch.equal(targets[:-1], window[1:])


# %%
def draw_batch(ids: torch.Tensor, b: int, T: int) -> tuple[torch.Tensor, torch.Tensor]:
    """b windows from random places, and their targets: (b, T) each."""
    starts = torch.randint(len(ids) - T, (b, 1))
    windows = ids[starts + torch.arange(T + 1)]  # (b, T + 1)
    return windows[:, :-1], windows[:, 1:]


# %% [markdown]
# From here on $b$ is the number of windows in a batch, and $T$ is their length. `starts` has one
# column and `torch.arange(T + 1)` one row. Their sum is a table: the places of each window.
#
# The last tenth of the book is set aside as **validation** text (the held-out text of notebook 1),
# from which the model never learns. It shows whether a model has learned something general or only
# knows its book by heart.
#
# ## The parts of a block
#
# A GPT is a stack of **blocks**. Each block has two parts. In attention, tokens read from each
# other. In a **feed-forward** network, each token is processed by itself. That network is two
# matrices with the function GELU between them ($\beta_\text{in}$ and $\beta_\text{out}$ are
# learned biases):
#
# $$\operatorname{ff}(x) = W_\text{out}\, \operatorname{gelu}(W_\text{in}\, x +
# \beta_\text{in}) + \beta_\text{out}$$
#
# Without GELU the two matrices could be multiplied into one. GELU hardly changes large positive
# numbers and brings negative ones near 0:

# %%
numbers = torch.linspace(-4, 4, 161)
plt.figure(figsize=(3.6, 2))
plt.plot(numbers, nn.functional.gelu(numbers))
plt.title("gelu(x)")
plt.show()
assert -0.2 < nn.functional.gelu(numbers).min() < 0

# %% [markdown]
# Two tricks make deep stacks trainable. First, each part *adds* its result to its input. So the
# embedding of a token goes through the whole stack, and every block adds to it. This growing sum is
# the **residual stream**. Second, before each part the vectors are **normalised**. For each vector
# $x$ of $d$ numbers, $\operatorname{E}[x]$ is the mean of these numbers, and
# $\operatorname{Var}[x]$ their variance: the mean of the squared distances from that mean. The norm
# moves and scales the numbers to mean 0 and variance 1. Then it multiplies by learned weights
# $\gamma$ and adds learned biases $\beta$:
#
# $$\operatorname{norm}(x) =
# \gamma\,\frac{x - \operatorname{E}[x]}{\sqrt{\operatorname{Var}[x]}} + \beta$$
#
# In torch, `correction=0` divides by $d$; by default `var` divides by $d - 1$. (The `eps` of
# `nn.LayerNorm` is a small number added to the variance, so nothing is divided by 0.)

# %%
x = 5 + 3 * torch.randn(2, 8, 64)  # (b, T, d)
mean = x.mean(dim=-1, keepdim=True)  # (b, T, 1)
variance = x.var(dim=-1, keepdim=True, correction=0)  # (b, T, 1)
torch.testing.assert_close((x - mean) / variance.sqrt(), nn.LayerNorm(64)(x), atol=1e-4, rtol=0)

# %% [markdown]
# The whole block is then two lines:
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
# ## Embeddings of tokens and of places
#
# Each id has its embedding, a row of a table with `vocab_size` rows. A second table has a row for
# each *place*: the **position embedding**. It is needed because attention does not know the order
# of the tokens. If they are shuffled, attention without a mask computes the same context vectors,
# shuffled in the same way:

# %%
layer = MultiHeadAttention(64, 64, 8, dropout=0.0, num_heads=4, causal=False)
order = torch.randperm(8)
torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order])

# %% [markdown]
# When the row of its place is added, an "e" in the second place has another vector than an "e" in
# the fifth.
#
# ## The model
#
# A GPT has embeddings, blocks, a last norm, and the **head**. (This is not an attention head; the
# word has two meanings.) The head compares the final vector with the embedding of every token. The
# results are the logits of the next token (notebook 4): one number for each token.
#
# $$x_t = W_{\text{token}}[\text{id}_t] + W_{\text{position}}[t], \qquad
# \text{logits}_t = W_{\text{token}}\, \operatorname{norm}\big(\text{blocks}(x)_t\big)$$


# %%
class TinyGPT(nn.Module):
    def __init__(self, vocab_size, context_length, d, num_layers, num_heads, block=Block):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d)
        self.position_embedding = nn.Embedding(context_length, d)
        blocks = [block(d, num_heads, context_length) for _ in range(num_layers)]
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
# `Block` and `TinyGPT` together are the package's `GPT` with the architecture `gpt2`. The package
# uses the same names inside, so its weights fit into our model, and the logits must be equal. (By
# default the package builds another architecture, that of Qwen3, a family of open models. It has
# newer parts in the same places; notebook 10 lists them.)

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
# ## How wrong is a prediction?
#
# Softmax turns the logits into probabilities. The **loss** at a place is the negative logarithm of
# the probability of the right token. If that is 1, the loss is 0. The smaller the probability, the
# larger the loss. The mean over all places is the cross-entropy of notebook 1.
#
# $$\text{loss} = -\frac{1}{bT} \sum_{\text{places}} \ln p(\text{right token})$$
#
# Two functions pick out the right tokens' probabilities. `unsqueeze(-1)` adds a last dimension of
# size 1 to the targets: `(b, T)` becomes `(b, T, 1)`. `gather(-1, …)` then takes, at every place,
# the number with that index from the last dimension:

# %%
table = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])  # (T, vocab_size)
right_tokens = torch.tensor([0, 2])  # (T,)
gathered = table.gather(-1, right_tokens.unsqueeze(-1))  # (T, 1)
print(gathered)
assert torch.equal(gathered, torch.tensor([[0.7], [0.8]]))


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
# This is a good test of a new model. If its loss is much higher, it gives wrong characters a high
# probability before it has learned anything.

# %%
expected = torch.tensor(vocab_size).log()
print(f"loss {first_loss:.3f}, ln({vocab_size}) = {expected:.3f}")
torch.testing.assert_close(first_loss, expected, atol=0.1, rtol=0)

# %% [markdown]
# ## Can it learn at all?
#
# The next test: learn one single batch by heart. If that fails, something is broken, and more text
# will not help.
#
# The learning rate rises over the first 50 steps. At first the optimizer has seen too few gradients
# to know their usual size, and large steps would throw the model to a place that chance decides.


# %%
def train(model, batches, lr: float) -> list[float]:
    """Make a step for each batch; return the losses."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    losses = []
    for i, (inputs, targets) in enumerate(batches):
        warmup = min(1, (i + 1) / 50)  # first ever larger steps
        optimizer.param_groups[0]["lr"] = lr * warmup * (1 - i / len(batches))  # then ever smaller
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
# It works: the loss falls to almost 0. This model has learned four windows and no English.
#
# ## Training
#
# Now each step gets a new batch from anywhere in the training text. 600 steps take about ten
# seconds. A useful model needs minutes, but ten seconds already make a difference.

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
axes.annotate("every character equally likely", (600, expected + 0.08), color=PURPLE, ha="right")
axes.plot(600, validation, "o", color=PURPLE, clip_on=False, label="validation")
axes.set(xlabel="step", ylabel="loss", xlim=(0, 600), ylim=(0, 4.6))
axes.legend(loc="lower left", bbox_to_anchor=(0.3, 0.08))
plt.show()

# %% [markdown]
# The loss is in *nats*, units of the natural logarithm. Divided by $\ln 2 \approx 0.69$ it is in
# *bits*, as `train.py` reports it: how many yes-or-no questions are still open for each character.
#
# ## Are the two tricks needed?
#
# Try it. Here are two more blocks, one without the residual stream and one without the norms:


# %%
class WithoutResidual(Block):
    def forward(self, x):  # (b, T, d) -> (b, T, d)
        x = self.attention(self.attention_norm(x))
        return self.feed_forward(self.feed_forward_norm(x))


class WithoutNorm(Block):
    def forward(self, x):  # (b, T, d) -> (b, T, d)
        x = x + self.attention(x)
        return x + self.feed_forward(x)


# %% [markdown]
# We stack four of each, 32 wide. All three models begin with the same weights and see the same 200
# batches of 8 windows. We measure three things:
#
# - the mean loss of the last 20 steps;
# - before training, the size of the gradient of each layer's query matrix on the first batch: the
#   square root of the mean of its squared numbers;
# - after training, how alike the vectors of different places are when the head reads them: the mean
#   cosine of the angles between them, which is 1 if all point in the same direction.


# %%
@torch.no_grad()
def likeness(model: TinyGPT, ids: torch.Tensor) -> float:
    """The mean cosine of the vectors that the head reads, for tokens (b, T)."""
    x = model.token_embedding(ids) + model.position_embedding(torch.arange(ids.shape[1]))
    x = model.final_norm(model.blocks(x)).flatten(0, 1)  # (b T, d)
    x = nn.functional.normalize(x, dim=-1)  # of length 1
    return (x @ x.T).mean().item()


# %%
config = GPTConfig(
    vocab_size=vocab_size,
    architecture="gpt2",
    context_length=context_length,
    emb_dim=32,
    num_layers=4,
    num_heads=4,
)
torch.manual_seed(0)
start = GPT(config).state_dict()
same_batches = [draw_batch(train_ids, 8, context_length) for _ in range(200)]

gradients, loss_after, alike = {}, {}, {}
variants = {"both": Block, "no residual": WithoutResidual, "no norm": WithoutNorm}
for name, block in variants.items():
    small = TinyGPT(vocab_size, context_length, d=32, num_layers=4, num_heads=4, block=block)
    small.load_state_dict(start)
    loss_of(small, *same_batches[0]).backward()
    queries = [layer.attention.W_query.weight.grad for layer in small.blocks]  # (d, d) each
    gradients[name] = [gradient.square().mean().sqrt().item() for gradient in queries]
    loss_after[name] = sum(train(small, same_batches, lr=2e-3)[-20:]) / 20
    alike[name] = likeness(small, same_batches[0][0])

share = torch.bincount(train_ids) / len(train_ids)  # (vocab_size,)
counting = -(share * share.log()).nansum().item()  # the loss of these shares as predictions
for name, loss in loss_after.items():
    print(f"{name:12} loss {loss:.2f}, mean cosine {alike[name]:.1f}")
print(f"always predicting each character's share of the text: {counting:.2f}")

assert loss_after["both"] < loss_after["no norm"] < counting - 0.2
assert abs(loss_after["no residual"] - counting) < 0.05
assert alike["no residual"] > 0.95 and max(alike["both"], alike["no norm"]) < 0.8
assert min(gradients["both"]) > 10_000 * max(gradients["no norm"])
assert min(gradients["no residual"]) > 0.1 * max(gradients["both"])

# %%
figure, axes = plt.subplots(figsize=(5, 2.6))
for (name, sizes), colour in zip(gradients.items(), (BLUE, PURPLE, AMBER), strict=True):
    axes.semilogy(range(4), sizes, "o-", color=colour, label=name)
axes.set(xlabel="layer", title="size of the queries' gradients before training", xticks=range(4))
axes.legend(loc="center right")
plt.show()

# %% [markdown]
# Without the residual stream the model learns only how frequent each character is: its loss is the
# same as if it always predicted these shares. Its gradients are about as large as with both tricks.
# But its final vectors nearly all point in the same direction, so the head cannot tell one place
# from another. Every layer mixes the places and replaces its input by the mixture.
#
# Without the norms, the gradients of the query matrices are more than ten thousand times smaller.
# The model begins with small numbers, and an attention score multiplies several of them. Yet the
# loss is only a little higher, because our optimizer, AdamW, divides each gradient by its usual
# size, as Adam does in notebook 4. With so few layers that is enough. With the norms, no layer
# depends on the size of its input.

# %% [markdown]
# ## What comes next?
#
# Read the beginning of a sentence, and show the probabilities after its last character:


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
axes.set_ylabel("probability")
plt.show()

# %% [markdown]
# If a model always writes the likeliest character, the text soon repeats itself. So one *draws*
# characters with these probabilities. But then an unlikely character comes from time to time, and
# one wrong letter spoils a word. Three settings help.
#
# **Temperature** $\tau$ divides the logits before the softmax:
#
# $$p_i = \operatorname{softmax}(\text{logits} / \tau)_i$$
#
# Below 1 favours likely characters, above 1 evens them out.

# %%
figure, panels = plt.subplots(1, 3, figsize=(7.6, 2.2), sharey=True)
for axes, temperature in zip(panels, (0.5, 1.0, 2.0), strict=True):
    ours = logits / temperature
    bars(axes, ours, f"temperature {temperature}", shown)
    torch.testing.assert_close(ours, torch.from_numpy(filtered(logits.numpy(), temperature)))
plt.show()

likeliest = [(logits / temperature).softmax(dim=-1).max() for temperature in (0.5, 1.0, 2.0)]
assert likeliest[0] > likeliest[1] > likeliest[2]


# %% [markdown]
# **Top-k** keeps the $k$ likeliest tokens. **Top-p** keeps the likeliest tokens until their
# probabilities add up to at least $p$: few where the model is sure, many where it is not. Both set
# the logits of all others to $-\infty$, and softmax makes their probability 0, as with the mask of
# notebook 6. (A small × marks a token that was left out.)


# %%
def top_k(logits: torch.Tensor, k: int) -> torch.Tensor:
    smallest_kept = logits.sort(descending=True).values[k - 1]
    return logits.masked_fill(logits < smallest_kept, -torch.inf)


def top_p(logits: torch.Tensor, p: float) -> torch.Tensor:
    sorted_logits, order = logits.sort(descending=True)
    probabilities = sorted_logits.softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # of all likelier ones together
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
# Draw a character, append it to the text, and ask again. That is all.


# %% tags=["varies"]
def write(prompt: str, count: int, temperature: float = 1.0, p: float = 1.0) -> str:
    ids = encode(prompt)
    for _ in range(count):
        logits = top_p(next_logits(ids) / temperature, p)
        ids.append(torch.multinomial(logits.softmax(dim=-1), 1).item())  # a draw
    return decode(ids)


torch.manual_seed(2)
in_book = set(text.split())
different, real = [], []  # words in each text; the share of them that are in the book
for temperature, p in ((0.1, 1.0), (0.8, 0.9), (1.5, 1.0)):
    written = write("The fox ", 160, temperature, p)
    words = written.split()
    different.append(len(set(words)))
    real.append(sum(word in in_book for word in words) / len(words))
    print(f"--- temperature {temperature}, top-p {p}\n{written}\n")

assert different[0] < 0.7 * different[1]  # it repeats itself
assert real[2] < real[1]  # its words fall apart

# %% [markdown]
# At a low temperature it repeats itself. At a high one the words fall apart. In between there are
# words, half words, and the rhythm of sentences. Ten seconds ago this model did not know that
# letters form words.
#
# ## Two commands
#
# You know now what happens inside these two:
#
#     python train.py my.txt --minutes 5
#     python generate.py "The fox" --temperature 0.8 --top-p 0.9
#
# They do the same with better parts: longer tokens, the parts of Qwen3, a larger model planned for
# your machine, an optimizer that learns more from each step, and an engine that does not compute
# the past again for each new token. Notebook 10 shows what such a model has learned.
#
# ## Try
#
# **1.** Train five times as long: 3,000 steps. How low does the validation loss get, and what does
# the model write? What if you double `d` instead?
#
# <details><summary>Answer</summary>
#
# After 3,000 steps our validation loss was 1.50 instead of 1.83, and most words were real ones:
# "When the pige was a grast the carter and put you in the first." With `d=128` it was 1.75 after
# 600 steps. But such a step takes twice as long, and 1,200 steps of the smaller model led to 1.66
# in the same time: a larger model needs more time to be worth its size.
#
# </details>
#
# **2.** Remove the position embedding from `TinyGPT` and train again. Is the loss much higher? The
# mask lets a little order through. How?
#
# <details><summary>Answer</summary>
#
# Our validation loss was 2.08 instead of 1.83. One layer alone would not see the order of the
# earlier characters: their weighted mean is the same in any order. But with the mask the first
# place attends to one character, the second to two, and so on. So the first layer's context vectors
# depend on how many characters came before, and the next layer can tell early places from late
# ones.
#
# </details>
#
# **3.** Multiply all matrices of the three small models by 10 before you train them. Which still
# learn?
#
# <details><summary>Answer</summary>
#
# The same two: 2.56 with both tricks, 3.05 without the residual stream, 2.54 without the norms. So
# at this size the norms are no help to the loss, even from such a start. In large models with many
# layers the vectors grow or shrink from layer to layer, and without norms they soon leave the range
# in which gradients are of use.
#
# </details>
#
# **4.** Read a text of your own instead of the fables. Which prompt suits it?
#
# <details><summary>Answer</summary>
#
# One that could occur in it: a name that occurs often, or the beginning of a typical sentence. All
# its characters must occur in the text, because `encode` knows no others.
#
# </details>
