"""Makes the page of a comparison: two models on the same text, in one HTML file.

All of it is written here, in HTML; the script says the chances of a piece that is pointed at.
"""

from html import escape

from ..generation.comparison import Bits, Comparison, Guess, Passage, Place, Written
from ..generation.results import percent
from .build import COMPARISON, bundle, filled, policy, stylesheet

SIDES = ("first", "second")  # as the style calls them
LEVELS = ((1.0, "little"), (3.0, "more"), (6.0, "most"))  # from so many bits on
_END = "¶ "  # stands for the end of a document


def comparison_page(comparison: Comparison) -> str:
    """The page as HTML."""
    script = bundle(COMPARISON)
    style = stylesheet(("base", "comparison"))

    first, second = (escape(side.name) for side in comparison.sides)
    parts = {
        "policy": policy(script, style),
        "style": style,
        "script": script,
        "title": f"{first} beside {second}",
        "heading": f"{first} beside {second}",
        "about": _about(comparison),
        "figures": _figures(comparison),
        "verdict": escape(comparison.verdict()),
        "legend": _legend(comparison),
        "hint": _hint(comparison),
        "text": "".join(map(_passage, comparison.passages)),
        "first": first,
        "second": second,
        "places": _places(comparison),
        "written": "".join(_written(comparison, written) for written in comparison.written),
    }
    return filled("comparison.html", parts)


def level(bits: Bits) -> tuple[int, int] | None:
    """Who expected a piece more, 0 or 1, and how clearly, from 0 to 2; None if nobody did."""
    difference = bits[1] - bits[0]
    reached = [number for number, (least, _) in enumerate(LEVELS) if abs(difference) >= least]
    return (int(difference < 0), reached[-1]) if reached else None


def _classes(bits: Bits) -> str:
    """How the style marks a piece."""
    found = level(bits)
    if found is None:
        return ""
    side, reached = found
    return f' class="{SIDES[side]} {LEVELS[reached][1]}"'


def _about(comparison: Comparison) -> str:
    about = f"On {comparison.text}: {comparison.characters:,} characters."
    return escape(" ".join([about, *comparison.warnings()]))


def _figures(comparison: Comparison) -> str:
    head = "".join(
        f'<th scope="col">{name}</th>'
        for name in ("model", "bits/byte", "nats/token", "tokens", "context", "seconds")
    )
    rows = []
    for side in comparison.sides:
        cells = (
            f"{side.bits_per_byte:.4f}",
            f"{side.loss:.4f}",
            f"{side.tokens:,}",
            f"{side.context_length:,}",
            f"{side.seconds:.1f}",
        )
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row">{escape(side.title())}</th>{row}</tr>')
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _legend(comparison: Comparison) -> str:
    how = ("a solid line", "a dotted line")
    rows = []
    for style, line, side in zip(SIDES, how, comparison.sides, strict=True):
        swatches = " ".join(
            f'<span class="{style} {name}">&nbsp;{words}&nbsp;</span>'
            for (_, name), words in zip(LEVELS, ("2 times", "8 times", "64 times"), strict=True)
        )
        rows.append(
            f"<li>{escape(side.name)} found it likelier, at least {swatches} ({line} below)</li>"
        )
    return "".join(rows)


def _hint(comparison: Comparison) -> str:
    hint = "Point at a piece of the text, tap it, or use the arrow keys, to read how likely it was."
    if not comparison.is_whole:
        hint += f" These are {len(comparison.passages)} passages from all over the text."
    return hint


def _passage(passage: Passage) -> str:
    pieces = []
    for text, bits in passage.pieces:
        shown = escape(text) if text else _END
        end = "" if text else " data-end"
        if bits is None:
            pieces.append(f"<b{end}>{shown}</b>")
        else:
            values = f' data-bits="{bits[0]:.2f} {bits[1]:.2f}"'
            pieces.append(f"<b{_classes(bits)}{values}{end}>{shown}</b>")
    return f"<p>{''.join(pieces)}</p>"


def _places(comparison: Comparison) -> str:
    if not comparison.places:
        return "<li>They differ nowhere by more than half a bit.</li>"
    return "".join(_place(comparison, place) for place in comparison.places)


def _place(comparison: Comparison, place: Place) -> str:
    text = escape(place.text) if place.text else _END
    where = f"…{escape(place.before)}<b{_classes(place.bits)}>{text}</b>{escape(place.after)}…"
    rows = []
    for side, probability, guesses in zip(
        comparison.sides, place.probabilities, place.instead, strict=True
    ):
        row = f"{escape(side.name)}: {escape(percent(probability))} likely"
        if guesses:
            row += f"; it expected {' '.join(map(_guess, guesses))}"
        rows.append(f"<p>{row}</p>")
    return f'<li><p class="where">{where}</p>{"".join(rows)}</li>'


def _guess(guess: Guess) -> str:
    return f'<span class="token">{escape(guess.text)}</span> {escape(percent(guess.probability))}'


def _written(comparison: Comparison, written: Written) -> str:
    texts = []
    for side, text, seconds in zip(comparison.sides, written.texts, written.seconds, strict=True):
        head = f'<h4>{escape(side.name)} <span class="quiet">{seconds:.1f} seconds</span></h4>'
        begun = f'<span class="quiet">{escape(written.prompt)}</span>{escape(text)}'
        texts.append(f"<div>{head}<blockquote>{begun}</blockquote></div>")
    head = f'<h3>“{escape(written.prompt)}” <span class="quiet">seed {written.seed}</span></h3>'
    return f'<div class="pair">{head}{"".join(texts)}</div>'
