# %% [markdown]
# # 4. Gradient descent
#
# The next notebook has matrices that *learn*. This one shows what learning is: change the numbers
# of a model a little, again and again, until its error is small. The **gradient** says in which
# direction to change them.
#
# We begin with one number, then two, and look at every step. At the end 3,721 numbers learn what
# notebook 1 counted. You need school mathematics: straight lines, and the slope of a
# curve.
#
# (Sources: gradient descent, Augustin-Louis Cauchy 1847; momentum, Boris Polyak 1964; Adam,
# Diederik Kingma and Jimmy Ba [2014](https://arxiv.org/abs/1412.6980).)

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch
from pictures import AMBER, BLUE, INK, PURPLE, QUIET
from torch import nn

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)  # 16 digits, so that small differences can be seen

# %% [markdown]
# ## One weight
#
# A mole digs a tunnel. After each hour somebody measures the tunnel's length. We want a rule that
# predicts the length from the hours. The simplest is a straight line through zero:
#
# $$\text{length} \approx w \cdot \text{hours}$$
#
# $w$ is a **weight**, here a number that we may choose. (The weights of attention are something
# else: they are computed from scores.) How good is a choice? Take the differences between the rule
# and the measurements, and square them. Then too much and too little count alike. The mean of the
# squares is the **loss**, here the *mean squared error*:
#
# $$L(w) = \frac{1}{N} \sum_{i=1}^{N} (w\, x_i - y_i)^2$$

# %%
hours = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])  # x, (N,)
metres = torch.tensor([4.2, 6.3, 7.1, 9.4, 10.2, 12.3])  # y, (N,)


def loss_of(w: torch.Tensor) -> torch.Tensor:
    return (w * hours - metres).square().mean()


many = torch.linspace(-0.4, 5, 200)  # 200 numbers with equal distances
choices = torch.tensor([0.8, 2.2, 3.4])
losses = [loss_of(w).item() for w in choices]  # item makes a Python number of a tensor of one
print("loss:", " ".join(f"{loss:.1f}" for loss in losses))

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 2.9))
left.plot(hours, metres, "o", color=INK, label="measured")
right.plot(many, [loss_of(w) for w in many], color=QUIET)
for w, loss, colour in zip(choices.tolist(), losses, (AMBER, BLUE, PURPLE), strict=True):
    left.plot([0, 6.3], [0, w * 6.3], color=colour, label=f"w = {w}")
    right.plot(w, loss, "o", color=colour)
left.set(xlabel="hours", ylabel="metres", xlim=(0, 6.4), ylim=(0, 22))
left.legend()
right.set(xlabel="w", ylabel="loss L(w)", ylim=(0, 100))
plt.show()

# %% [markdown]
# The left picture shows three rules, the right one their losses. Each point of the curve is a whole
# rule, and the best one is at the bottom of the valley. Here we can see the bottom. The loss of a
# model with a million weights cannot be drawn, and nobody can try all values. But there is a way
# down without a picture: feel the slope under your feet, and step downhill.

# %%
assert losses[1] < losses[2] < losses[0]

# %% [markdown]
#
# ## The slope, in three ways
#
# We are at $w = 0.8$. How much does the loss change if $w$ changes a little?
#
# **By trying.** Go a tiny distance $h$ to the right and to the left, and compare:
#
# $$\frac{L(w + h) - L(w - h)}{2h}$$
#
# **By calculus.** The derivative of a square is twice what is inside, times the derivative of the
# inside:
#
# $$\frac{dL}{dw} = \frac{1}{N} \sum_{i=1}^{N} 2\,(w\, x_i - y_i)\, x_i$$
#
# **By torch.** With `requires_grad` torch notes what is computed from `w`. Then `backward` goes
# back through the computation with the rules of calculus, and writes the slope into `w.grad`. This
# is called *autograd*.

# %%
w = torch.tensor(0.8, requires_grad=True)
h = 1e-4

tried = (loss_of(w + h) - loss_of(w - h)) / (2 * h)
calculated = (2 * (w * hours - metres) * hours).mean()
loss_of(w).backward()

torch.testing.assert_close(tried, calculated)  # stops with an error if they differ
torch.testing.assert_close(w.grad, calculated)
print(f"slope at w = 0.8: {w.grad:.2f}")
assert w.grad < 0

# %% [markdown]
# All three ways find the same number. It is negative: to the right the loss falls. The rule for a
# step is
#
# $$w \leftarrow w - \eta\, \frac{dL}{dw}$$
#
# The minus sign makes it go downhill. $\eta$ (eta) is the **learning rate**. It says how far a step
# goes. Where the slope is steep, the step is long. Near the bottom it is short.

# %%
eta = 0.01
next_w = 0.8 - eta * w.grad.item()

figure, axes = plt.subplots(figsize=(4.6, 2.9))
axes.plot(many, [loss_of(w) for w in many], color=QUIET, label="loss L(w)")
tangent = torch.tensor([0.2, 1.6])
axes.plot(tangent, loss_of(w).item() + w.grad * (tangent - 0.8), color=AMBER, label="slope")
axes.plot([0.8, next_w], [loss_of(0.8), loss_of(next_w)], "o", color=PURPLE)
for place in (0.8, next_w):
    axes.plot([place, place], [0, loss_of(place)], ":", color=PURPLE, linewidth=1)
axes.annotate("", (next_w, 4), (0.8, 4), arrowprops={"arrowstyle": "->", "color": PURPLE})
axes.annotate("a step", (0.74, 4), color=PURPLE, ha="right", va="center")
axes.set(xlabel="w", ylim=(0, 60), xlim=(-0.2, 4.6))
axes.legend(loc="upper center")
plt.show()


# %%
def slope(w: float) -> float:
    """The derivative of the loss, by calculus."""
    return (2 * (w * hours - metres) * hours).mean().item()


def descend(w: float, learning_rate: float, steps: int) -> list[float]:
    """Where gradient descent goes from w: w itself, and the weight after each step."""
    path = [w]
    for _ in range(steps):
        w = w - learning_rate * slope(w)
        path.append(w)
    return path


rates = {"too small": 0.002, "good": 0.02, "too large": 0.068}
paths = {name: descend(0.8, rate, steps=8) for name, rate in rates.items()}

# %%
figure, panels = plt.subplots(1, 3, figsize=(7.6, 2.7), sharey=True)
for axes, (name, path) in zip(panels, paths.items(), strict=True):
    axes.plot(many, [loss_of(w) for w in many], color=QUIET, linewidth=1)
    axes.plot(path, [loss_of(w) for w in path], "o-", color=PURPLE, markersize=4, linewidth=1)
    axes.set(title=f"{name}: η = {rates[name]}", xlabel="w", ylim=(0, 100))
panels[0].set_ylabel("loss")
plt.show()

best = ((hours * metres).sum() / hours.square().sum()).item()  # where the slope is 0
assert abs(paths["good"][-1] - best) < 0.01
assert abs(paths["too small"][-1] - best) > 0.5 * abs(0.8 - best)
assert loss_of(paths["too large"][-1]) > loss_of(0.8)
print(f"after 8 steps with η = 0.02: w = {paths['good'][-1]:.3f}; the best is {best:.3f}")

# %% [markdown]
# Every panel shows eight steps. If the learning rate is too small, most of the way is still to go.
# With a good one $w$ arrives at the bottom. If it is too large, each step jumps over the valley and
# lands higher than before: the loss grows without end.
#
# Where is the limit? At the bottom the slope is 0, and it grows by $c = \frac{2}{N} \sum x_i^2$ for
# each unit to the right ($c$ is the second derivative, the *curvature*). So a step multiplies the
# distance to the bottom by $1 - \eta c$. The distance shrinks if this factor is between -1 and 1,
# that is, if $\eta < \frac{2}{c}$.

# %%
c = (2 * hours.square()).mean().item()
for name, path in paths.items():
    distances = np.array(path) - best
    np.testing.assert_allclose(distances[1:], (1 - rates[name] * c) * distances[:-1], atol=1e-9)

print(f"the limit is η = {2 / c:.3f}")
assert rates["good"] < 2 / c < rates["too large"]

# %% [markdown]
# ## Two weights: a landscape
#
# Even the best line through zero is not good, because the mole had dug there before: at hour 0 the
# tunnel already had a length. So add a second weight, $b$, the length at hour 0:
#
# $$\text{length} \approx w \cdot \text{hours} + b$$
#
# Now the loss depends on two numbers. It is a landscape, with a height for every place $(w, b)$. We
# draw it as a map, with lines of equal height. There are two slopes at each place: how much the
# loss changes if only $w$ changes, and how much if only $b$ does. These two numbers together are
# the **gradient**:
#
# $$\nabla L = \left( \frac{\partial L}{\partial w},\; \frac{\partial L}{\partial b} \right)
# = \frac{2}{N} \sum_{i=1}^{N} (w\, x_i + b - y_i) \cdot (x_i,\; 1)$$
#
# We compute it in the same three ways:


# %%
def line_loss(weights: torch.Tensor) -> torch.Tensor:
    """The loss of the line with weights (w, b)."""
    w, b = weights
    return (w * hours + b - metres).square().mean()


def line_gradient(weights: torch.Tensor) -> torch.Tensor:
    """By calculus, (2,): the two slopes."""
    w, b = weights
    errors = w * hours + b - metres  # (N,)
    return torch.stack([(2 * errors * hours).mean(), (2 * errors).mean()])


def by_trying(loss, weights: torch.Tensor, h: float = 1e-4) -> torch.Tensor:
    """The gradient by trying, shaped like the weights: each one a little more, a little less."""
    slopes = torch.zeros_like(weights)
    for i in range(len(weights)):
        little = torch.zeros_like(weights)
        little[i] = h
        slopes[i] = (loss(weights + little) - loss(weights - little)) / (2 * h)
    return slopes


start = torch.tensor([0.1, 7.0], requires_grad=True)
line_loss(start).backward()
torch.testing.assert_close(start.grad, line_gradient(start))
torch.testing.assert_close(start.grad, by_trying(line_loss, start.detach()))
print("gradient at the start:", start.grad.numpy().round(2))

# %% [markdown]
# (`detach` returns the numbers without autograd's notes.)
#
# By trying, a model with a million weights would need two million evaluations for one step.
# `backward` needs one pass back through the computation for *all* weights. Without it such models
# could not be trained.
#
# Now the descent. In each step both weights change at once, $(w, b) \leftarrow (w, b) - \eta \nabla
# L$:


# %%
def gradient_descent(weights: torch.Tensor, steps: int, learning_rate: float) -> torch.Tensor:
    """The way down, (steps + 1, 2)."""
    path = [weights]
    for _ in range(steps):
        weights = weights - learning_rate * line_gradient(weights)
        path.append(weights)
    return torch.stack(path)


plain = gradient_descent(start.detach(), steps=40, learning_rate=0.055)


def draw_map(axes) -> None:
    """Lines of equal loss; each next one is 1.8 times as high."""
    ws, bs = torch.linspace(-0.1, 3.1, 120), torch.linspace(-0.5, 8, 120)
    heights = [[line_loss(torch.stack([w, b])).item() for w in ws] for b in bs]
    axes.contour(ws, bs, heights, levels=0.25 * 1.8 ** np.arange(10), colors=QUIET, linewidths=0.6)
    axes.set(xlabel="w", ylabel="b")


slope_by_fit, start_by_fit = np.polyfit(hours, metres, deg=1)  # numpy's best line
bottom = torch.tensor([slope_by_fit, start_by_fit])

figure, axes = plt.subplots(figsize=(5.4, 3.6))
draw_map(axes)
axes.plot(*plain.T, "o-", color=PURPLE, markersize=3, linewidth=1)
axes.plot(*bottom, "*", color=AMBER, markersize=12)
axes.annotate("start", plain[0], xytext=(-2, 7), textcoords="offset points", color=PURPLE)
axes.annotate("bottom", bottom, xytext=(-44, -14), textcoords="offset points", color=AMBER)
plt.show()

# %% [markdown]
# The valley is long and narrow. Across it the slope is steep, so the first steps jump from side to
# side. Along it the ground is nearly flat, so the steps become tiny, and after 40 of them
# more than four tenths of the way are left. A larger learning rate would help along the valley, but
# across it the steps would go over the limit.
#
# After enough steps it arrives at the line that numpy's `polyfit` computes directly:

# %%
way = plain[:, 1] - bottom[1]  # (41,): how far b is from the bottom
assert way[40] > 0.4 * way[0]
crossings = (plain[1:6, 0] - plain[:5, 0]).sign()
assert crossings.abs().sum() == 5 and crossings.unique().numel() == 2  # left and right

patient = gradient_descent(start.detach(), steps=2000, learning_rate=0.055)
torch.testing.assert_close(patient[-1], bottom)
w, b = patient[-1].tolist()
print(f"after 2,000 steps: length = {w:.2f} · hours + {b:.2f}, loss {line_loss(patient[-1]):.3f}")
print(f"best line through zero:  {best:.2f} · hours, loss {loss_of(best):.3f}")
assert line_loss(patient[-1]) < 0.1 * loss_of(best)

# %% [markdown]
# ## Two better ways to step
#
# **Momentum**: think of a heavy ball that rolls down. It keeps nine tenths of its speed $v$ and
# adds the new gradient $g$. Steps to and fro cancel out, and steps that go the same way add up:
#
# $$v \leftarrow 0.9\, v + g, \qquad \text{weights} \leftarrow \text{weights} - \eta\, v$$
#
# **Adam**: give each weight its own step size. Keep two running means for each weight, $m$ of its
# gradients and $s$ of their squares, and divide $m$ by the root of $s$:
#
# $$m \leftarrow 0.9\, m + 0.1\, g, \qquad s \leftarrow 0.999\, s + 0.001\, g^2, \qquad
# \text{weights} \leftarrow \text{weights} - \eta\, \frac{\hat m}{\sqrt{\hat s}}$$
#
# If the gradients of a weight are always the same, $m / \sqrt s$ is 1 or -1, however small they
# are. So a weight on flat ground moves as fast as one on a slope. If its gradients change their
# sign all the time, $m$ is near 0, and the weight stays where it is. (Both means begin at 0, so at
# first they are too close to 0. The hats mark the correction: $\hat m = m / (1 - 0.9^t)$ after $t$
# steps, $\hat s = s / (1 - 0.999^t)$.)
#
# Both are in torch, under `torch.optim`. We write them by hand, and the paths must be the same.


# %%
def momentum(weights: torch.Tensor, steps: int, learning_rate: float) -> torch.Tensor:
    v = torch.zeros_like(weights)
    path = [weights]
    for _ in range(steps):
        v = 0.9 * v + line_gradient(weights)
        weights = weights - learning_rate * v
        path.append(weights)
    return torch.stack(path)  # (steps + 1, 2)


def adam(weights: torch.Tensor, steps: int, learning_rate: float) -> torch.Tensor:
    m = torch.zeros_like(weights)
    s = torch.zeros_like(weights)
    path = [weights]
    for t in range(1, steps + 1):
        g = line_gradient(weights)
        m = 0.9 * m + 0.1 * g
        s = 0.999 * s + 0.001 * g.square()
        m_hat = m / (1 - 0.9**t)
        s_hat = s / (1 - 0.999**t)
        weights = weights - learning_rate * m_hat / (s_hat.sqrt() + 1e-8)  # never divides by 0
        path.append(weights)
    return torch.stack(path)  # (steps + 1, 2)


def by_optimizer(kind, steps: int, **settings) -> torch.Tensor:
    """The path of one of torch's optimizers."""
    weights = start.detach().clone().requires_grad_()  # a copy, because the optimizer changes it
    optimizer = kind([weights], **settings)
    path = [weights.detach().clone()]
    for _ in range(steps):
        optimizer.zero_grad()  # backward adds to what is in grad, so make that 0
        line_loss(weights).backward()  # the gradient
        optimizer.step()  # a change of the weights
        path.append(weights.detach().clone())
    return torch.stack(path)  # (steps + 1, 2)


rolling = momentum(start.detach(), steps=40, learning_rate=0.02)
adapted = adam(start.detach(), steps=40, learning_rate=0.3)

SGD, Adam = torch.optim.SGD, torch.optim.Adam  # SGD is gradient descent; the S comes at the end
torch.testing.assert_close(by_optimizer(SGD, 40, lr=0.055), plain)
torch.testing.assert_close(by_optimizer(SGD, 40, lr=0.02, momentum=0.9), rolling)
torch.testing.assert_close(by_optimizer(Adam, 40, lr=0.3), adapted)

# %%
figure, panels = plt.subplots(1, 3, figsize=(7.8, 3), sharey=True)
ways = {"gradient descent": plain, "with momentum": rolling, "Adam": adapted}
for axes, (name, path) in zip(panels, ways.items(), strict=True):
    draw_map(axes)
    axes.plot(*path.T, "o-", color=PURPLE, markersize=2.5, linewidth=1)
    axes.plot(*bottom, "*", color=AMBER, markersize=10)
    axes.set(title=name, ylabel="b" if axes is panels[0] else "")
plt.show()

left_to_go = {name: (path[-1] - bottom).norm().item() for name, path in ways.items()}
print("distance from the bottom after 40 steps:")
print("\n".join(f"  {name:17} {distance:.2f}" for name, distance in left_to_go.items()))
assert max(left_to_go["with momentum"], left_to_go["Adam"]) < left_to_go["gradient descent"] / 2

# %% [markdown]
# All three took 40 steps. Momentum and Adam are near the bottom. They have run a little past it, as
# a heavy ball does.

# %%
assert rolling[-1, 1] < bottom[1] and adapted[-1, 1] < bottom[1] < plain[-1, 1]

# %% [markdown]
# ## From lengths to probabilities
#
# A language model does not predict a length. It predicts a probability for each character. It
# computes a number of any size for each character: the **logits** $z$. The **softmax** turns them
# into probabilities, as in notebook 2. Its loss is the cost of notebook 1, here in nats: minus the
# logarithm of the probability of the character $k$ that really came.
#
# $$p_i = \frac{e^{z_i}}{\sum_j e^{z_j}}, \qquad L = -\ln p_k = -z_k + \ln \sum_j e^{z_j}$$
#
# Take the derivative with respect to each $z_i$. That of the last term is $e^{z_i}$ divided by the
# sum, which is $p_i$ again. That of the first term is -1 for the right character, and 0 for the
# others:
#
# $$\frac{\partial L}{\partial z_i} = p_i - y_i, \qquad y_i = 1 \text{ for } i = k,
# \text{ otherwise } 0$$
#
# This is all: *what was predicted minus what came*.

# %%
z = torch.tensor([0.5, 1.0, -0.3], requires_grad=True)  # logits of "a", "b", "c"
right = 2  # "c" came


def cost(z: torch.Tensor) -> torch.Tensor:
    return -z.softmax(dim=0)[right].log()


p = z.softmax(dim=0).detach()
y = nn.functional.one_hot(torch.tensor(right), 3)  # [0, 0, 1]: 1 at the right one, 0 elsewhere
cost(z).backward()

torch.testing.assert_close(z.grad, p - y)
torch.testing.assert_close(z.grad, by_trying(cost, z.detach()))
print("predicted:", p.numpy().round(2), "  gradient:", z.grad.numpy().round(2))

# %% [markdown]
# A step downhill subtracts the gradient. So the logit of "c" goes up, in proportion to how far its
# probability was below 1. The others go down, each in proportion to its probability. If the
# prediction was perfect, nothing changes.
#
# ## A table that learns to count
#
# In notebook 1 a table with one die for each character cost 3.28 bits on the held-out text. (On the
# training text, which we use here, it happens to cost 3.28 bits, too.) There we counted. Now let a
# table of logits learn the same from the book. The logits are its weights, one row for each
# character, all 0 at the start. That is 61 fair dice.
#
# `cross_entropy` is torch's function for the mean of $-\ln p_k$ over all places of the text. It
# takes logits and the **ids** of the right characters, that is, their numbers. (`index_put_` with
# `accumulate` adds 1 to the table for each pair of neighbours: it counts.)

# %%
with open("../data/fables.txt", encoding="utf-8") as file:
    text = file.read()

characters = sorted(set(text))
V = len(characters)
id_of = {character: i for i, character in enumerate(characters)}
ids = torch.tensor([id_of[character] for character in text[: int(0.9 * len(text))]])
before, after = ids[:-1], ids[1:]  # (N,) each

counts = torch.zeros(V, V)
counts.index_put_((before, after), torch.ones(len(after)), accumulate=True)
row_sizes = counts.sum(dim=1, keepdim=True)  # (V, 1): how often each character came before
shares = counts / row_sizes  # (V, V): what notebook 1 counted

table = torch.zeros(V, V, requires_grad=True)  # logits
loss = nn.functional.cross_entropy(table[before], after)  # (N, V) logits, (N,) right characters
loss.backward()
print(f"{table.numel():,} weights, loss at the start {loss:.2f} nats, ln(61) = {np.log(61):.2f}")
assert table.numel() == 3721
torch.testing.assert_close(loss.detach(), torch.tensor(61.0).log())

# %% [markdown]
# What is the gradient here? Each place of the text adds its $p - y$ to the row of the character
# before it, divided by the number of places $N$. Row $r$ receives $n_r$ of them, and the mean of
# their $y$ is exactly the share that was *counted*. So the gradient of a row is
#
# $$\frac{n_r}{N}\, \big(p_r - \text{share}_r\big)$$
#
# It is 0 only where the predicted probabilities are equal to the counted ones.

# %%
N = len(after)
p = table.softmax(dim=1).detach()
torch.testing.assert_close(table.grad, row_sizes / N * (p - shares))

# %% [markdown]
# Now 1,000 steps with plain gradient descent, and 1,000 with Adam. (The loss over all places can be
# written with the counts, which is quicker: a pair that occurs 900 times is computed once.)


# %%
def loss_of_table(table: torch.Tensor) -> torch.Tensor:
    """The same cross-entropy, from the counts."""
    return -(counts * table.log_softmax(dim=1)).sum() / N


torch.testing.assert_close(loss_of_table(table), loss)


def learn(kind, **settings) -> tuple[torch.Tensor, list[float]]:
    """A table after 1,000 steps, as probabilities (V, V), and the loss in bits before each step."""
    table = torch.zeros(V, V, requires_grad=True)
    optimizer = kind([table], **settings)
    losses = []
    for _ in range(1000):
        loss = loss_of_table(table)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item() / np.log(2))  # nats to bits
    return table.softmax(dim=1).detach(), losses


slow, slow_losses = learn(SGD, lr=10)
fast, fast_losses = learn(Adam, lr=0.1)

counted = -(counts[counts > 0] * shares[counts > 0].log2()).sum().item() / N
torch.testing.assert_close(fast, shares, atol=0.001, rtol=0)  # every probability
assert round(counted, 2) == 3.28
assert counted < fast_losses[-1] < counted + 0.001
print(f"counted {counted:.3f} bits; learned {fast_losses[-1]:.3f} bits with Adam, ", end="")
print(f"{slow_losses[-1]:.3f} with plain gradient descent")

# %%
slow_errors = (slow - shares).abs().max(dim=1).values  # (V,): the largest error in each row
fast_errors = (fast - shares).abs().max(dim=1).values

figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3))
left.plot(slow_losses, color=AMBER, label="gradient descent")
left.plot(fast_losses, color=BLUE, label="Adam")
left.axhline(counted, color=PURPLE, linewidth=1, linestyle="--", label="counted")
left.set(xlabel="step", ylabel="bits per character", xlim=(-10, 400), ylim=(3, 6))
left.legend()
right.loglog(row_sizes.flatten(), slow_errors, "o", color=AMBER, markersize=4)
right.loglog(row_sizes.flatten(), fast_errors, "o", color=BLUE, markersize=4)
right.set(xlabel="how often the character occurs", title="largest error in the row of a character")
plt.show()

q, e = id_of["q"], id_of["e"]
assert slow_errors[e] < 0.001 and slow_errors[q] > 0.5
assert fast_errors.max() < 0.001

# %% [markdown]
# With Adam each of the 3,721 probabilities differs from the counted one by less than a thousandth.
# Nobody told the table to count. Going downhill on the loss was enough.
#
# The right picture shows the 61 rows. Plain gradient descent has learned the rows of common
# characters well. In the row of the rare "q" a probability is still wrong by more than 0.5: the
# gradient of a row is multiplied by $n_r / N$, which is tiny for a rare character. In Adam's
# division this factor cancels. That is one reason why nearly all language models are trained with
# Adam or one of its relatives.
#
# ## What is it good for?
#
# A table can be counted, so there was no need to learn it. But gradient descent does not care what
# a weight means. It needs a loss, and a computation through which `backward` can go. In the next
# notebook the weights say which words look at which. No one could count those, but they can be
# learned, with the same three lines: `zero_grad`, `backward`, `step`.
#
# There is one difference. A long text has too many places to use all of them in each step. So one
# draws a few places at random, a **batch**, and computes *their* gradient. On average it points in
# the same direction. That is *stochastic* gradient descent, the S in `SGD`.
#
# ## Try
#
# **1.** Fit the line through zero with $\eta = \frac{1}{c}$. How many steps does it need? Why?
#
# <details><summary>Answer</summary>
#
# One. Each step multiplies the distance to the bottom by $1 - \eta c$, which is 0 now. With more
# weights it is not so easy: each direction in the landscape has its own curvature $c$, and there is
# only one $\eta$.
#
# ```python
# assert abs(descend(0.8, 1 / c, steps=1)[-1] - best) < 1e-9
# ```
#
# </details>
#
# **2.** Measure the hours from the middle: subtract 3.5 from `hours`. How many steps does plain
# gradient descent need now?
#
# <details><summary>Answer</summary>
#
# Ten are enough. The lines of equal loss are now rounder ellipses, with their axes along $w$ and
# $b$. (The bottom is at another $b$, the length in the middle.) The curvatures are 5.8 and 2
# instead of 32 and 0.4, so a much larger learning rate is below the limit, such as 0.25. A GPT
# normalises its vectors for the same reason (notebook 9).
#
# ```python
# centred = hours - hours.mean()
# w, b = torch.tensor(0.1), torch.tensor(7.0)
# for _ in range(10):
#     errors = w * centred + b - metres  # (N,)
#     w = w - 0.25 * (2 * errors * centred).mean()
#     b = b - 0.25 * (2 * errors).mean()
#
# assert abs(w - bottom[0]) < 0.01 and abs(b - metres.mean()) < 0.01
# ```
#
# </details>
#
# **3.** Let the table learn with Adam from batches of 500 places, drawn at random in each step.
# Does it still get to the counted probabilities?
#
# <details><summary>Answer</summary>
#
# Nearly. The loss falls almost as fast at first. Then it stays at about 3.31 bits, because each
# batch pulls in a slightly different direction. The rows of rare characters are still quite wrong,
# since few batches contain them. If the learning rate falls from 0.1 to 0 during the 1,000 steps,
# the loss ends at about 3.29 bits. That is why trainings let their learning rate fall.
#
# ```python
# def learn_from_batches(falling: bool) -> float:
#     """The loss over the whole text, in bits, after 1,000 steps."""
#     torch.manual_seed(0)
#     table = torch.zeros(V, V, requires_grad=True)
#     optimizer = Adam([table], lr=0.1)
#     for step in range(1000):
#         if falling:
#             optimizer.param_groups[0]["lr"] = 0.1 * (1 - step / 1000)
#         places = torch.randint(N, (500,))
#         loss = nn.functional.cross_entropy(table[before[places]], after[places])
#         optimizer.zero_grad()
#         loss.backward()
#         optimizer.step()
#     return loss_of_table(table).item() / np.log(2)
#
# trembling = learn_from_batches(falling=False)
# settled = learn_from_batches(falling=True)
# assert counted + 0.01 < trembling < counted + 0.05
# assert counted < settled < counted + 0.01
# ```
#
# </details>
