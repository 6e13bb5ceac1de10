"""The figures that were measured, and the pages that quote them.

docs/results.json keeps what benchmarks/results.py measured: for each section a command, machine,
date and figures. A page quotes a figure by a link to its section, such as
[1.21](docs/results.md#two-minutes-on-the-tales), and shows output of commands between two comments.
When a section is measured again, all pages are renewed. A test compares pages with results.json.
"""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "docs/results.json"
PAGE = ROOT / "docs/results.md"
QUOTING = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\[([^\]]+)\]\(((?:docs/)?results\.md)#([\w-]+)\)")
OUTPUT = re.compile(r"(<!-- results: ([\w-]+) -->\n).*?(<!-- end -->)", re.S)


@dataclass(frozen=True)
class Section:
    """What one command showed."""

    title: str  # the heading in docs/results.md, from which links are made
    command: str
    # What was measured -> the figure, as pages quote it. Names of the form "row | column" make a
    # table with these rows and columns.
    figures: dict[str, str]
    output: str = ""  # the lines of the command that pages show
    note: str = ""
    machine: str = ""
    date: str = ""

    @property
    def anchor(self) -> str:
        """The address of the heading within docs/results.md."""
        return re.sub(r"[^\w -]", "", self.title.lower()).replace(" ", "-")


# What is stored


def read() -> list[Section]:
    """The sections in the order of docs/results.md."""
    rows = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else []
    return [Section(**row) for row in rows]


def store(sections: list[Section], new: Section) -> list[Section]:
    """Put a section in the place of the one of that title, and its figures in all pages."""
    old = next((section for section in sections if section.title == new.title), None)
    if old is None:
        sections = [*sections, new]
    else:
        renew_quotations(old, new)
        sections = [new if section is old else section for section in sections]

    rows = [asdict(section) for section in sections]
    STORED.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return sections


def renew_quotations(old: Section, new: Section) -> None:
    """Where a page quotes a figure of the old section, let it quote the same one of the new. A
    quotation that can mean two, or one that was not measured again, stays, and is said."""

    def renewed(link: re.Match[str]) -> str:
        quoted, page, anchor = link.groups()
        if anchor != old.anchor:
            return link[0]
        meant = {new.figures.get(name) for name, figure in old.figures.items() if figure == quoted}
        if len(meant) != 1 or None in meant:
            print(f"write by hand what is quoted now: {link[0]}")
            return link[0]
        return f"[{meant.pop()}]({page}#{anchor})"

    for page in QUOTING:
        text = page.read_text(encoding="utf-8")
        page.write_text(LINK.sub(renewed, text), encoding="utf-8")


# The pages


def write_pages(sections: list[Section]) -> None:
    """docs/results.md, and the outputs of commands that other pages show."""
    PAGE.write_text(results_page(sections), encoding="utf-8")
    for page in QUOTING:
        if page != PAGE:
            text = page.read_text(encoding="utf-8")
            page.write_text(with_outputs(text, sections), encoding="utf-8")


def results_page(sections: list[Section]) -> str:
    """docs/results.md."""
    parts = [
        "# Results",
        "Every loss and speed that README and docs quote, with its command, machine and date.\n"
        "`benchmarks/results.py` measures them and writes this page. Losses are of text that the\n"
        "model never learned from. Times are of whole commands, with nothing prepared before. A\n"
        "figure with a range is a median with the lowest and the highest round.",
    ]
    for section in sections:
        parts.append(f"## {section.title}")
        parts.append(f"```sh\n{section.command}\n```")
        if section.figures:
            parts.append(table(section.figures))
        if section.output:
            parts.append(section.output)
        if section.note:
            parts.append(section.note)
        parts.append(f"{section.machine}, {section.date}.")
    return "\n\n".join(parts) + "\n"


def table(figures: dict[str, str]) -> str:
    """Figures as a table: a line for each or, if names say row and column, a line for each row."""
    if not all(" | " in name for name in figures):
        lines = [f"| {name} | {figure} |" for name, figure in figures.items()]
        return "\n".join(["| measured | |", "|---|---|", *lines])

    cells = [name.split(" | ") for name in figures]
    rows = dict.fromkeys(row for row, _ in cells)  # each once, in order
    columns = dict.fromkeys(column for _, column in cells)
    lines = [f"| | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    for row in rows:
        values = [figures.get(f"{row} | {column}", "") for column in columns]
        lines.append(f"| {row} | {' | '.join(values)} |")
    return "\n".join(lines)


def with_outputs(text: str, sections: list[Section]) -> str:
    """The text of a page with the stored outputs between its comments."""
    outputs = {section.anchor: section.output for section in sections}
    return OUTPUT.sub(lambda found: f"{found[1]}{outputs[found[2]]}\n{found[3]}", text)
