"""`minigpt attention`: the picture that it leaves, and what it refuses."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from minigpt import AttentionMaps, cli
from minigpt.cli.attention import picture


def call(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    status = cli.main(["attention", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


def some_maps(tokens: list[str], layers: int = 1, heads: int = 1) -> AttentionMaps:
    T = len(tokens)
    return AttentionMaps(tuple(tokens), torch.ones(layers, heads, T, T).tril() / T)


def texts(figure: object) -> list[str]:
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text)]  # type: ignore[attr-defined]


def test_the_command_writes_a_png_and_prints_where(
    tiny_run: Path, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(capsys, tiny_run, "the fox")[:2] == (0, "attention.png\n")
    first = (workplace / "attention.png").read_bytes()
    assert first.startswith(b"\x89PNG") and len(first) > 5000
    assert call(capsys, tiny_run, "a crow")[:2] == (0, "attention-2.png\n")
    assert (workplace / "attention.png").read_bytes() == first
    assert (
        call(capsys, tiny_run, "$x^$ é", "--out", "own.svg", "--layer", "0", "--head", "1")[0] == 0
    )
    assert b"<svg" in (workplace / "own.svg").read_bytes()
    assert {"attention.png", "attention-2.png", "own.svg"} <= {f.name for f in workplace.iterdir()}


def test_what_cannot_be_drawn_is_refused_in_one_line(
    tiny_run: Path, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (workplace / "mine.png").write_text("a photo")
    before = set(workplace.iterdir())
    for arguments, words in {
        ("runs/none", "the fox"): "no such run: runs/none",
        (tiny_run, ""): "the text is empty",
        (tiny_run, "x y z " * 20): "tokens; this model looks at 16 at most",
        (tiny_run, "fox", "--layer", "1"): "layer must be between 0 and 0, got 1",
        (tiny_run, "fox", "--head", "2"): "head must be between 0 and 1, got 2",
        (tiny_run, "fox", "--head", "-1"): "head must be at least 0, got -1",
        (tiny_run, "fox", "--out", "mine.png"): "mine.png exists; choose another --out",
        (tiny_run, "fox", "--out", "no/a.png"): "no such folder: no",
        (tiny_run, "fox", "--out", "fox.jpg"): "ends in .png, .svg or .pdf, got fox.jpg",
    }.items():
        status, out, err = call(capsys, *arguments)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith("error: ") and words in err
    assert set(workplace.iterdir()) == before
    assert (workplace / "mine.png").read_text() == "a photo"


def test_without_matplotlib_it_says_how_to_get_it(
    tiny_run: Path,
    monkeypatch: pytest.MonkeyPatch,
    workplace: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, out, err = call(capsys, tiny_run, "the fox")
    assert (status, out) == (2, "") and "pip install matplotlib" in err


def test_every_head_has_a_panel_and_every_token_a_label() -> None:
    tokens = ["the", "␣fox", "$x^$", "↵", "extraordinarily"]
    found = texts(picture(some_maps(tokens, 2, 3), range(2), range(3), "a title"))
    for layer in range(2):
        for head in range(3):
            assert f"layer {layer}, head {head}" in found
    for token in tokens[:-1]:
        assert found.count(token) == 6 + 2  # below each panel, and left of each row of panels
    assert "extraordina…" in found and "a title" in found


@pytest.mark.parametrize("T", [1, 5, 40])
def test_labels_do_not_overlap_nor_leave_the_page(T: int) -> None:
    tokens = ["Wonder␣", "MMMMMMMMMM", "i"] * 20
    figure = picture(some_maps(tokens[:T], 2, 2), range(2), range(2), "Attention weights of fables")
    figure.draw_without_rendering()
    page = figure.bbox
    boxes = [text.get_window_extent() for axes in figure.axes for text in axes.texts]
    assert len(boxes) == T * 6
    for i, box in enumerate(boxes):
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1
        assert not any(box.overlaps(other) for other in boxes[:i])


def test_a_text_too_long_for_labels_is_drawn_without_them() -> None:
    figure = picture(some_maps(["a"] * 400, 30, 2), range(30), range(2), "long")
    assert not any(text == "a" for text in texts(figure))
    assert max(figure.get_size_inches()) * 120 < 1 << 16


def test_help_needs_neither_torch_nor_matplotlib() -> None:
    code = (
        "import sys; from minigpt.cli import main as cli\n"
        "try: cli.main(['attention', '--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert not {'torch', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
