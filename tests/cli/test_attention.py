"""`minigpt attention`: the picture that it leaves, and what it refuses."""

import sys
from pathlib import Path

import numpy as np
import pytest

from minigpt import AttentionMaps
from minigpt.cli.attention import picture

from .conftest import Type, assert_refused


def some_maps(tokens: list[str], layers: int = 1, heads: int = 1) -> AttentionMaps:
    T = len(tokens)
    return AttentionMaps(tuple(tokens), np.tril(np.ones((layers, heads, T, T), np.float32)) / T)


def test_the_command_writes_a_picture_and_prints_where(
    tiny_run: Path, workplace: Path, type_: Type
) -> None:
    assert type_("attention", tiny_run, "the fox")[:2] == (0, "attention.png\n")
    first = Path("attention.png").read_bytes()
    assert first.startswith(b"\x89PNG") and len(first) > 5000
    assert type_("attention", tiny_run, "a crow")[:2] == (0, "attention-2.png\n")
    assert Path("attention.png").read_bytes() == first
    options = ["--out", "own.svg", "--layer", "0", "--head", "1"]
    assert type_("attention", tiny_run, "$x^$ é", *options)[:2] == (0, "own.svg\n")
    assert b"<svg" in Path("own.svg").read_bytes()


def test_what_cannot_be_drawn_is_refused(
    tiny_run: Path, workplace: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("mine.png").write_text("a photo")
    before = set(workplace.iterdir())
    for arguments, words in {
        ("runs/none", "the fox"): "no such run: runs/none",
        (tiny_run, ""): "the text is empty",
        (tiny_run, "x y z " * 20): "tokens; this model reads at most 16",
        (tiny_run, "fox", "--layer", "1"): "layer must be between 0 and 0, got 1",
        (tiny_run, "fox", "--head", "2"): "head must be between 0 and 1, got 2",
        (tiny_run, "fox", "--out", "mine.png"): "mine.png exists; choose another --out",
        (tiny_run, "fox", "--out", "no/a.png"): "no such folder: no",
    }.items():
        assert_refused(type_("attention", *arguments), words)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert_refused(type_("attention", tiny_run, "fox"), "pip install matplotlib")
    assert set(workplace.iterdir()) == before
    assert Path("mine.png").read_text() == "a photo"


def test_every_head_has_a_panel_and_every_token_a_label() -> None:
    tokens = ["the", "␣fox", "$x^$", "↵", "extraordinarily"]
    figure = picture(some_maps(tokens, 2, 3), range(2), range(3), "a title")
    panels = [axes for axes in figure.axes if axes.images and axes.get_title()]
    assert [axes.get_title() for axes in panels] == [
        f"layer {layer}, head {head}" for layer in range(2) for head in range(3)
    ]
    labels = [*tokens[:-1], "extraordina…"]
    for i, axes in enumerate(panels):
        assert [label.get_text() for label in axes.get_xticklabels()] == labels
        left = [label.get_text() for label in axes.get_yticklabels()]
        assert left == (labels if i % 3 == 0 else [])
    assert "a title" in [text.get_text() for text in figure.texts]


def test_a_panel_shows_the_weights_and_hides_the_later_tokens() -> None:
    weights = np.tril(np.random.default_rng(0).random((1, 1, 4, 4), np.float32))
    maps = AttentionMaps(("a", "b", "c", "d"), weights)
    (image,) = picture(maps, [0], [0], "").axes[0].images
    shown = image.get_array().filled(-1.0)
    np.testing.assert_array_equal(shown, weights[0, 0] - np.triu(np.ones((4, 4)), 1))


@pytest.mark.parametrize("T", [1, 5, 40])
def test_labels_do_not_overlap_nor_leave_the_page(T: int) -> None:
    tokens = ["Wonder␣", "MMMMMMMMMM", "i"] * 20
    figure = picture(some_maps(tokens[:T], 2, 2), range(2), range(2), "Attention weights of fables")
    figure.draw_without_rendering()
    page = figure.bbox
    ticks = [[*axes.get_xticklabels(), *axes.get_yticklabels()] for axes in figure.axes]
    boxes = [label.get_window_extent() for labels in ticks for label in labels if label.get_text()]
    for i, box in enumerate(boxes):
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1
        assert not any(box.overlaps(other) for other in boxes[:i])


def test_a_text_too_long_for_labels_is_drawn_without_them() -> None:
    figure = picture(some_maps(["a"] * 400, 30, 2), range(30), range(2), "long")
    assert not any(axes.get_xticklabels() for axes in figure.axes if axes.images)
    assert max(figure.get_size_inches()) * 120 < 1 << 16
