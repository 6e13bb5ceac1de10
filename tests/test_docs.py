"""The links of the documents and notebooks lead somewhere, and files that are named exist."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = (".", "docs", "notebooks", "data/base")
PAGES = sorted(page for folder in FOLDERS for page in ROOT.glob(f"{folder}/*.md"))
NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))
NOT_THERE = "minigpt/page/views/mine.js"  # a reader is to write it
PICTURES = sorted(ROOT.glob("docs/*.svg")) + sorted(ROOT.glob("docs/*.png"))


def text_of(page: Path) -> str:
    """Without blocks of code, in which nothing is a link."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    return re.sub(r"^```.*?^```|^ {4}.*?$|`[^`\n]+`", "", text, flags=re.S | re.M)


def links(page: Path) -> list[str]:
    """The targets of links and pictures that are not on the web."""
    found = re.findall(r"\]\(\s*([^)\s]+)\s*\)", text_of(page))
    return [target for target in found if not re.match(r"\w+:", target)]


def anchors(page: Path) -> set[str]:
    """The headings, as GitHub names them in addresses."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def test_a_link_leads_to_a_file_and_a_heading_of_it() -> None:
    for page in [*PAGES, *NOTEBOOKS]:
        for target in links(page):
            name, _, anchor = target.partition("#")
            place = (page.parent / name).resolve() if name else page
            assert place.exists(), (page.name, target)
            assert place.is_relative_to(ROOT), (page.name, target)
            assert not anchor or anchor in anchors(place), (page.name, target)


def test_links_were_found() -> None:
    assert {"docs/README.md", "notebooks/README.md"} <= set(links(ROOT / "README.md"))
    assert sum(len(links(notebook)) for notebook in NOTEBOOKS) > 0


def test_the_index_names_every_page_and_every_picture_is_shown() -> None:
    index = {target.partition("#")[0] for target in links(ROOT / "docs/README.md")}
    assert {page.name for page in ROOT.glob("docs/*.md")} - {"README.md"} <= index
    shown = {Path(target).name for page in [*PAGES, *NOTEBOOKS] for target in links(page)}
    assert {picture.name for picture in PICTURES} <= shown


def test_the_files_that_how_the_pieces_fit_names_exist() -> None:
    text = (ROOT / "docs/pieces.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`([\w./]+(?:/|\.py))`", text))
    known = [str(path) for path in (ROOT / "minigpt").rglob("*") if path.suffix in ("", ".py")]
    assert len(names) > 30
    for name in names:
        is_there = any(path.endswith(f"/{name.rstrip('/')}") for path in known)
        assert is_there or (ROOT / name).exists(), name


def test_what_is_to_be_read_first_is_read_in_a_sitting() -> None:
    text = (ROOT / "docs/pieces.md").read_text(encoding="utf-8")
    section = text.partition("## Read these")[2].partition("\n## ")[0]
    files = re.findall(r"^\d\. \[([\w/]+\.py)\]", section, re.M)
    lines = [len((ROOT / "minigpt" / file).read_text("utf-8").splitlines()) for file in files]
    assert len(files) == 7 and sum(lines) <= 2000


def test_the_files_of_code_that_documents_name_exist() -> None:
    folders = ("minigpt", "benchmarks", "tests", "notebooks", "docs", "data")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
    known = [f"/{path.relative_to(ROOT).as_posix()}" for path in [*files, *ROOT.glob("*.py")]]
    found = 0
    for page in PAGES:
        if page.name == "CHANGELOG.md":  # it tells of earlier versions too
            continue
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
        for name in set(re.findall(r"`([\w./]+\.(?:py|js))\b", text)) - {NOT_THERE}:
            found += 1
            assert any(path.endswith(f"/{name}") for path in known), (page.name, name)
    assert found > 60


def test_the_table_of_tests_has_a_row_for_every_part_of_what_a_change_must_pass() -> None:
    parts = re.findall(r"make ([\w-]+)", (ROOT / ".ci/run").read_text(encoding="utf-8"))
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `make ([\w-]+)", table, re.M))
    assert len(parts) >= 5
    assert set(parts) - {"chromium"} <= rows
