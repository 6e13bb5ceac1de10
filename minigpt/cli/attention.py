"""`minigpt attention`: a picture of what every head of every layer looks at in a text."""

import argparse
import itertools
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import UserError
from .options import Parser
from .terminal import write

if TYPE_CHECKING:
    from ..generation.attention_maps import AttentionMaps

_HOW_TO_READ = "A row is a token: how much it looks at itself and at each token before it."
_INK, _LATER = "#333333", "#ececec"  # grey: later tokens, which no row may look at
_LONGEST_LABEL, _SMALLEST_LABEL = 12, 3.5  # in characters, in points
# For scripts that matplotlib's own font does not have; those that are installed are used.
_MORE_FONTS = {"Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "Arial Unicode MS"}


def options(parser: Parser) -> None:
    parser.add_argument("run", help="a run, or a model such as hf:gpt2")
    parser.add_argument("text", help="a text of some 5 to 40 tokens")
    for name in ("layer", "head"):
        help_ = f"this {name} only, counted from 0"
        parser.add_argument(f"--{name}", type=int, metavar="N", help=help_)
    out = "the picture: .png, .svg or .pdf (default: attention.png, or attention-2.png, ...)"
    parser.add_argument("--out", metavar="FILE", type=Path, help=out)


def run(given: argparse.Namespace) -> None:
    """Draw the attention weights of a text; print the picture's name."""
    names = (f"attention{f'-{i}' if i > 1 else ''}.png" for i in itertools.count(1))
    out = given.out or next(file for file in map(Path, names) if not file.exists())
    if out.suffix not in (".png", ".svg", ".pdf"):
        raise UserError(f"out must be a name that ends in .png, .svg or .pdf, got {out}")
    if out.exists() or out.is_symlink():
        raise UserError(f"{out} exists; choose another --out")
    if not out.parent.is_dir():
        raise UserError(f"no such folder: {out.parent}")
    from .. import runs
    from ..generation.attention_maps import attention_maps

    maps = attention_maps(runs.load(given.run), given.text)
    num_layers, num_heads = maps.weights.shape[:2]
    layers = _selected("layer", given.layer, num_layers)
    heads = _selected("head", given.head, num_heads)
    title = f"Attention weights of {runs.model_name(given.run)}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of characters that no font has, drawn as boxes
        figure = picture(maps, layers, heads, title)
        runs.replace(out, lambda new: figure.savefig(new, format=out.suffix[1:], dpi=120))
    write(str(out))


def _selected(name: str, number: int | None, count: int) -> Sequence[int]:
    if number is None:
        return range(count)
    if not 0 <= number < count:
        raise UserError(f"{name} must be between 0 and {count - 1}, got {number}")
    return [number]


def picture(maps: "AttentionMaps", layers: Sequence[int], heads: Sequence[int], title: str) -> Any:
    """A matplotlib figure with a row of panels for each of `layers`, a panel for each of `heads`;
    the heads of one layer alone, or one head of all layers, form a square."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.font_manager import fontManager
    except ImportError:
        raise UserError("pictures need matplotlib: pip install matplotlib") from None
    panels = [(layer, head) for layer in layers for head in heads]
    is_table = len(layers) > 1 and len(heads) > 1
    columns = len(heads) if is_table else math.ceil(len(panels) ** 0.5)
    rows = math.ceil(len(panels) / columns)
    T, most = len(maps.tokens), _LONGEST_LABEL
    labels = [t if len(t) <= most else t[: most - 1] + "…" for t in maps.tokens]
    side = min(max(2.2, 4.2 / columns, T * 9 / 72), 80 / max(rows, columns))  # of a panel, inches
    points = min(9.0, 0.85 * 72 * side / T)  # of a label
    margin = 0.65 * points / 72 * max(map(len, labels)) + 0.1  # inches; a letter is about so wide
    width = 0.3 + margin + columns * (side + 0.15) + 0.8
    height = 1.2 + rows * (side + margin + 0.3)
    fonts = ["DejaVu Sans", *sorted(_MORE_FONTS & set(fontManager.get_font_names()))]
    look: Any = {"font.family": fonts, "text.color": _INK}
    with rc_context(look | {"xtick.labelcolor": _INK, "ytick.labelcolor": _INK}):
        figure: Any = Figure(figsize=(width, height))
        figure.text(0.3 / width, 1 - 0.3 / height, title, fontsize=12, va="top", parse_math=False)
        figure.text(0.3 / width, 1 - 0.55 / height, _HOW_TO_READ, fontsize=8.5, va="top")
        grid = figure.subplots(rows, columns, squeeze=False)
        figure.subplots_adjust(
            left=(0.3 + margin) / width, right=1 - 0.95 / width, wspace=0.15 / side,
            bottom=(0.3 + margin) / height, top=1 - 1.2 / height, hspace=(margin + 0.3) / side,
        )  # fmt: skip
        for axes, panel in itertools.zip_longest(grid.flat, panels):
            if panel is None:  # the last row may have room for more
                axes.set_axis_off()
                continue
            layer, head = panel
            image = _draw_panel(axes, maps.weights[layer, head])
            axes.set_title(f"layer {layer}, head {head}", fontsize=9)
            if points >= _SMALLEST_LABEL:
                style = {"fontsize": points, "parse_math": False}
                axes.set_xticks(range(T), labels, rotation=90, **style)
                if axes in grid[:, 0]:
                    axes.set_yticks(range(T), labels, **style)
        bar = grid[0, -1].inset_axes((1 + 0.15 / side, 0, 0.1 / side, 1))
        figure.colorbar(image, cax=bar, ticks=[0, 0.05, 0.2, 0.5, 1]).outline.set_visible(False)
        bar.tick_params(length=0, labelsize=8)
    return figure


def _draw_panel(axes: Any, weights: Any) -> Any:
    """The weights ``(T, T)`` of one head, the later tokens left out."""
    import numpy as np
    from matplotlib.colors import PowerNorm

    seen = np.where(np.tri(len(weights), dtype=bool), weights, np.nan)
    scale = PowerNorm(0.5, 0, 1)  # square root: small weights show
    image = axes.imshow(seen, cmap="BuPu", norm=scale, interpolation="nearest")
    axes.set(xticks=[], yticks=[], facecolor=_LATER)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image
