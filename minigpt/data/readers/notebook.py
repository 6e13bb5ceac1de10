"""A Jupyter notebook: the text of its Markdown cells."""

import re
from collections.abc import Iterator
from typing import Any

from .content import Content
from .document import Document, Report, Unreadable, without_invisible

_BEGINS = re.compile(r"\s*\{\s*\"(cells|metadata|nbformat)")
_TEXT = ("markdown", "heading")
_PICTURE = re.compile(r"!\[[^\]\[]*+\]\((?:attachment|data):[^)\[]*+\)")


def is_notebook(content: Content) -> bool:
    """Whether a content begins as a notebook does."""
    if _BEGINS.match(content.beginning) is None:
        return False
    return content.name.endswith(".ipynb") or '"cell_type"' in content.beginning


def read_notebook(content: Content, report: Report) -> Iterator[Document]:
    """One document: the text cells of a notebook, as they were typed."""
    notebook = content.data
    if notebook is None:
        raise Unreadable(content.source, "it is not JSON in UTF-8")

    texts = []
    for cell in _cells(notebook):
        kind = cell.get("cell_type")
        if kind not in _TEXT:
            report.leave_out("cells of code" if kind == "code" else "other cells")
            continue
        text = without_invisible(_PICTURE.sub("", _source(cell))).strip()
        if text:
            texts.append(text)
        else:
            report.leave_out("cells without text")

    if texts:
        yield Document("\n\n".join(texts), content.source)


def _cells(notebook: Any) -> list[dict[str, Any]]:
    """The cells of a notebook, also in the format before 2015, which had them in worksheets."""
    if not isinstance(notebook, dict):
        return []
    sheets = notebook.get("worksheets") if "worksheets" in notebook else [notebook]
    if not isinstance(sheets, list):
        return []
    lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
    cells = [cell for cells in lists if isinstance(cells, list) for cell in cells]
    return [cell if isinstance(cell, dict) else {} for cell in cells]


def _source(cell: dict[str, Any]) -> str:
    """The text of a cell: a string, or a list of lines."""
    source = cell.get("source")
    if isinstance(source, str):
        return source
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return ""
