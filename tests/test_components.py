"""What docs/components.md shows works: its Python runs as it stands, assertions included."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent / "docs/components.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("code", PYTHON)
def test_the_examples_run(code: str) -> None:
    exec(code, {"__name__": "example"})


def test_the_examples_were_found() -> None:
    assert len(PYTHON) == 3 and all("assert" in code for code in PYTHON)
