"""What `minigpt attention` does: a picture of what every head of every layer looks at in a text."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .. import UserError
from ..attention import causal_mask
from ..config import AttentionConfig
from ..generation.attention_maps import AttentionMaps, attention_maps
from ..runs import load, replace

_HOW_TO_READ = "A row is a token: how much it looks at itself and at each token before it."
_INK, _LATER = "#333333", "#ececec"  # grey: later tokens, which no row may look at
_LONGEST_LABEL, _SMALLEST_LABEL = 12, 3.5  # in characters, in points
_MOST_LINES = 64  # tokens, up to which cells have lines between them
# For scripts that matplotlib's own font does not have; those that are installed are used.
_MORE_FONTS = {"Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "Arial Unicode MS"}


def draw_attention(run: str | Path, text: str, config: AttentionConfig) -> Path:
    """Draw the attention weights of a text; returns the picture's file.

    Args:
        run: anything that :func:`minigpt.load` takes.
        text: what the model reads.
        config: which layer and head, and where to.

    Raises:
        UserError: as :func:`attention_maps`; if there is no such layer or head, the file exists,
            or matplotlib is not installed.
    """
    out = Path(config.out) if config.out is not None else _free_file("attention", ".png")
    if out.exists() or out.is_symlink():
        raise UserError(f"{out} exists; choose another --out")
    if not out.parent.is_dir():
        raise UserError(f"no such folder: {out.parent}")
    maps = attention_maps(load(run), text)
    num_layers, num_heads = maps.weights.shape[:2]
    layers = _selected("layer", config.layer, num_layers)
    heads = _selected("head", config.head, num_heads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of characters that no font has, drawn as boxes
        figure = picture(
            maps, layers, heads, title=f"Attention weights of {Path(run).resolve().name}"
        )
        replace(out, lambda new: figure.savefig(new, format=out.suffix[1:], dpi=120))
    return out


def _free_file(stem: str, suffix: str) -> Path:
    """The first of stem, stem-2, stem-3, ... that does not exist."""
    file, number = Path(stem + suffix), 1
    while file.exists():
        number += 1
        file = Path(f"{stem}-{number}{suffix}")
    return file


def _selected(name: str, number: int | None, count: int) -> Sequence[int]:
    if number is None:
        return range(count)
    if number >= count:
        raise UserError(f"{name} must be between 0 and {count - 1}, got {number}")
    return [number]


@dataclass(frozen=True)
class _Page:
    """Where things stand, in inches: rows of square panels below a title, labels around them."""

    columns: int
    rows: int
    side: float  # of a panel
    margin: float  # for labels
    border = 0.3
    head = 0.6  # for the title of the page
    title = 0.3  # above a panel
    gap = 0.15  # between panels
    scale = 0.5  # for the scale of colours

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        width = self.margin + self.columns * (self.side + self.gap) + self.scale
        height = self.head + self.rows * (self.title + self.side + self.margin)
        return width + 2 * self.border, height + 2 * self.border

    def panel(self, i: int) -> tuple[float, float, float, float]:
        """Left, bottom, width and height of the i-th panel."""
        row, column = divmod(i, self.columns)
        left = self.border + self.margin + column * (self.side + self.gap)
        above = self.border + self.head + row * (self.title + self.side + self.margin) + self.title
        return left, self.size[1] - above - self.side, self.side, self.side

    def share(self, box: Sequence[float]) -> list[float]:
        """Inches as shares of the page, as matplotlib has them."""
        return [length / self.size[i % 2] for i, length in enumerate(box)]


def picture(maps: AttentionMaps, layers: Sequence[int], heads: Sequence[int], title: str) -> Any:
    """A matplotlib figure with a panel for each of `heads` of each of `layers`.

    A row of panels is a layer; the heads of one layer alone, or one head of all layers, form a
    square. A row of a panel is a token that looks, a column one that is looked at.

    Raises:
        UserError: if matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import PowerNorm
        from matplotlib.figure import Figure
        from matplotlib.font_manager import fontManager
    except ImportError:
        raise UserError("pictures need matplotlib: pip install matplotlib") from None
    panels = [(layer, head) for layer in layers for head in heads]
    labels = [_shortened(token) for token in maps.tokens]
    page, points = _plan_page(len(layers), len(heads), labels)
    colours = ScalarMappable(PowerNorm(0.5, 0, 1), "BuPu")  # square root: small weights show
    fonts = ["DejaVu Sans", *sorted(_MORE_FONTS & set(fontManager.get_font_names()))]
    with rc_context({"font.family": fonts, "text.color": _INK, "ytick.labelcolor": _INK}):
        figure: Any = Figure(figsize=page.size)
        left, top = page.border, page.size[1] - page.border
        figure.text(*page.share((left, top)), title, fontsize=12, va="top", parse_math=False)
        figure.text(*page.share((left, top - 0.25)), _HOW_TO_READ, fontsize=8.5, va="top")
        for i, (layer, head) in enumerate(panels):
            axes = figure.add_axes(page.share(page.panel(i)))
            axes.set_title(f"layer {layer}, head {head}", fontsize=9)
            _draw_panel(axes, maps.weights[layer, head], colours)
            _draw_labels(axes, labels, points, page.side, left=i % page.columns == 0)
        left, bottom, width, height = page.panel(page.columns - 1)
        bar = figure.add_axes(page.share((left + width + page.gap, bottom, 0.1, height)))
        figure.colorbar(colours, cax=bar, ticks=[0, 0.05, 0.2, 0.5, 1]).outline.set_visible(False)
        bar.tick_params(length=0, labelsize=8)
    return figure


def _plan_page(layers: int, heads: int, labels: Sequence[str]) -> tuple[_Page, float]:
    """The page, and the size of a label in points."""
    panels = layers * heads
    columns = heads if layers > 1 and heads > 1 else math.ceil(panels**0.5)
    rows = math.ceil(panels / columns)
    largest = 80 / max(rows, columns)  # inches; for a picture of some 10,000 pixels
    side = min(max(2.2, 4.2 / columns, len(labels) * 9 / 72), largest)  # 9 points a token
    points = min(9.0, 0.85 * 72 * side / len(labels))
    margin = 0.65 * points / 72 * max(map(len, labels)) + 0.1  # a letter is about so wide
    return _Page(columns, rows, side, margin), points


def _draw_panel(axes: Any, weights: Tensor, colours: Any) -> None:
    """The weights ``(T, T)`` of one head, the later tokens left out."""
    T = len(weights)
    seen = weights.masked_fill(causal_mask(T), torch.nan).numpy()
    axes.imshow(seen, cmap=colours.cmap, norm=colours.norm, interpolation="nearest")
    if T <= _MOST_LINES:
        between = [i - 0.5 for i in range(1, T)]
        axes.hlines(between, -0.5, T - 0.5, "white", linewidth=0.5)
        axes.vlines(between, -0.5, T - 0.5, "white", linewidth=0.5)
    axes.set(xticks=[], yticks=[], facecolor=_LATER)
    axes.spines[:].set_visible(False)


def _draw_labels(axes: Any, labels: Sequence[str], points: float, side: float, left: bool) -> None:
    """The tokens below a panel and, where asked for, on its left; none too small to be read."""
    if points < _SMALLEST_LABEL:
        return
    T, style = len(labels), {"fontsize": points, "parse_math": False}
    away = T * 3 / 72 / side  # 3 points, in cells
    for i, label in enumerate(labels):
        axes.text(i, T - 0.5 + away, label, rotation=90, ha="center", va="top", **style)
        if left:
            axes.text(-0.5 - away, i, label, ha="right", va="center", **style)


def _shortened(label: str) -> str:
    return label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"
