"""A window of the studio used by keyboard alone."""

import json
from typing import Any

_MOST = 120  # presses of Tab from one control to another


class Keys:
    """Presses keys in a window, and knows what has the focus."""

    def __init__(self, page: Any):
        self.page = page
        self.press = page.keyboard.press
        self.type = page.keyboard.type

    def tab_to(self, what: str, *, back: bool = False, inside: Any = None) -> None:
        """Press Tab, or with `back` Shift+Tab, until what has the focus is one of these: a CSS
        selector, or the words on a control. `inside` is a frame of the window."""
        for _ in range(_MOST):
            self.press("Shift+Tab" if back else "Tab")
            if self.is_at(what, inside=inside):
                return
        raise AssertionError(f"no Tab leads to {what}")

    def is_at(self, what: str, *, inside: Any = None) -> bool:
        """Whether one of these has the focus."""
        script = f"""(() => {{
            const focused = document.activeElement;
            const words = focused.ariaLabel ?? focused.textContent.trim();
            const isSelector = {json.dumps(what)}.match(/^[#.]|\\[/) !== null;
            return isSelector ? focused.matches({json.dumps(what)}) : words === {json.dumps(what)};
        }})()"""
        return bool((inside or self.page).evaluate(script))

    def at(self) -> str:
        """What has the focus, as HTML without what is in it."""
        script = "document.activeElement.cloneNode(false).outerHTML"
        return str(self.page.evaluate(script))
