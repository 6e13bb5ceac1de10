"""What the notebooks draw with: the style `minigpt.mplstyle`, its colours, and a heatmap."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import Normalize, PowerNorm

plt.style.use(Path(__file__).with_name("minigpt.mplstyle"))

INK, QUIET, BLUE, PURPLE, AMBER = "#333333", "#59636e", "#1f5fa8", "#8c2d8c", "#d08a2e"
FORBIDDEN = "#ececec"  # the squares that a mask forbids; their numbers are nan or -inf


def heatmap(axes, matrix, rows=(), columns=(), title="", *, signed=False, numbers=".2f", most=None):
    """Draw a matrix as squares, its rows from top to bottom, with a number in each square.

    Numbers from 0 to 1, such as weights, have the colours of the page; a square root makes small
    ones visible. `signed` numbers are purple above 0 and amber below. `most` is the size that has
    the strongest colour: by default the largest size in the matrix, but at least 1 if not `signed`.
    `numbers` is the format of the numbers; with None they are left out. A square whose number is
    nan or infinite is grey, as forbidden; nan is not written.
    """
    matrix = np.asarray(matrix, dtype=float)
    shown = np.where(np.isfinite(matrix), matrix, np.nan)
    least = 1e-9 if signed else 1
    most = most or max(np.nanmax(np.abs(shown)), least)
    scale = Normalize(-1.3 * most, 1.3 * most) if signed else PowerNorm(0.5, 0, most)
    colours = plt.get_cmap("PuOr" if signed else "BuPu")
    gap = min(1, 6 / len(matrix))  # between squares
    axes.pcolormesh(shown, cmap=colours, norm=scale, edgecolors="white", linewidth=gap)
    axes.set(facecolor=FORBIDDEN, aspect="equal", title=title)
    axes.set_xticks(
        np.arange(len(columns)) + 0.5, columns, parse_math=False, rotation=90 if len(columns) else 0
    )
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows, parse_math=False)
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if not numbers:
        return

    for (i, j), number in np.ndenumerate(matrix):
        if np.isnan(number):
            continue
        brightness = np.dot(colours(scale(number))[:3], (0.3, 0.59, 0.11))
        colour = INK if brightness > 0.5 or np.isinf(number) else "white"
        text = "-∞" if number == -np.inf else format(number, numbers)
        axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", size=7.5, color=colour)
