"""What the page copies where the browser gives it no clipboard, with a small document in node."""

from pathlib import Path
from typing import Any

from minigpt.page.build import WEB, code_of

from .in_node import Worker

# What is selected is what can be copied; the link was pressed, and has the focus.
COPIED = """async (code, text, isForbidden) => {
    let selected = "";
    let clipboard = "before";
    const inBody = [];
    const pressed = { focus: () => (document.activeElement = pressed) };
    const createElement = () => {
        const area = {
            select: () => {
                selected = area.value;
                document.activeElement = area;
            },
            remove: () => inBody.splice(inBody.indexOf(area), 1),
        };
        return area;
    };
    const execCommand = () => {
        if (isForbidden || !selected || !inBody.length) return false;
        clipboard = selected;
        return true;
    };
    const body = { append: (element) => inBody.push(element) };
    const document = { activeElement: pressed, body, createElement, execCommand };

    const writeText = () => Promise.reject(new Error("not allowed"));
    const made = new Function("document", "navigator", `${code}; return copied;`);
    const isCopied = await made(document, { clipboard: { writeText } })(text);
    return [isCopied, clipboard, inBody.length, document.activeElement === pressed];
}"""


def copied(folder: Path, *, is_forbidden: bool) -> list[Any]:
    """Whether a text was copied, what the clipboard holds then, how many elements are left over,
    and whether the focus is where it was."""
    worker = Worker(folder)
    found: list[Any] = worker.call(COPIED, code_of(WEB / "dom.js"), "#prompt=a", is_forbidden)
    worker.close()
    return found


def test_without_a_clipboard_the_text_is_selected_and_copied(tmp_path: Path) -> None:
    assert copied(tmp_path, is_forbidden=False) == [True, "#prompt=a", 0, True]


def test_what_cannot_be_copied_is_not_said_to_be(tmp_path: Path) -> None:
    assert copied(tmp_path, is_forbidden=True) == [False, "before", 0, True]
