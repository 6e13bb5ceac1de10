"""Web pages to the text of their main part."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.data.documents.tags import tags_and_text

from ..texts import documents, refusal, write
from .reading import left_out, report_of


def text_of(folder: Path, body: str, head: str = "") -> str:
    """The text of a page; empty if there is none."""
    page = f"<!DOCTYPE html><html><head>{head}<title>Title</title></head><body>{body}</body></html>"
    return "".join(documents(write(folder / "a.html", page)))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<h1>One</h1><p>two\n  <b>th</b>ree<p>four", "One\n\ntwo three\n\nfour"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<ul><li>a<li>b <ul><li>c</ul></ul>d", "- a\n- b\n- c\n\nd"),
        ("<table><tr><td>a<td>b<tr><th>c<td>d</table>", "a\tb\nc\td"),
        ("<table><tr><td><p>a<p>b</td></tr></table>", "a\n\nb"),
        ("<pre>a\n  b</pre>c", "a\n  b\n\nc"),
        (
            "&lt;a&gt; &eacute;&#233;&#xe9;&nbsp;&amp;amp; &nonsense; &",
            "<a> ééé &amp; &nonsense; &",
        ),
        ("a<!-- <p>no</p> -->b<script>if (a < b) '<p>no'</script>c<style>p {}</style>", "abc"),
        ("a<!-->b<!--->c<!--[if mso]><p>no<![endif]-->d", "abcd"),
        ("<p title='a > b'>c</p>1 < 2 <3", "c\n\n1 < 2 <3"),
        ("soft\u00adhyphen zero\u200bwidth", "softhyphen zerowidth"),
        ("<dl><dt>a<dd>b</dl>", "a\n\nb"),
        ("<div HIDDEN>no</div><p STYLE='DISPLAY: NONE'>no</p>yes", "yes"),
        ("<div hidden>no</div><p style='display: none'>no</p>yes", "yes"),
        ("<h1>Title<a class='headerlink' href='#a'>¶</a></h1>", "Title"),
        ("text<sup class='footnote-ref'><a href='#1'>1</a></sup>.", "text."),
        ("a<sup><a href='n.html#1'>1</a></sup> b<sup>[<a href='#2'>2</a>]</sup>.", "a b."),
        ("a<a href='#n'>[12]</a><a class='footnote' href='#f'><sup>*</sup></a> b", "a b"),
        (
            "10<sup>2</sup> <a href='#c'>Chapter 2</a> of <a href='/1984'>[3]</a>",
            "102 Chapter 2 of [3]",
        ),
        ("<h2>Files<a href='#files'>#</a></h2>", "Files"),
        ("<p>He said <q>no <q lang=de>way</q></q>.", "He said “no ‘way’”."),
        ("<p>He said <q>no", "He said “no”"),
        ("a<noembed>no</noembed>b<NOFRAMES><p>no</NOFRAMES>c", "abc"),
        ("a<div class='Footnotes'>Note</div><OL CLASS='References'><li>Note</ol>b", "a\n\nb"),
        ("a<DIV ROLE=Navigation>no</DIV>b", "a\n\nb"),
        ("a<div class='footnotes'><p id='n'><a href='#1'>[1]</a> Note</p></div>b", "a\n\nb"),
    ],
)
def test_tags_become_paragraphs_and_lines(body: str, text: str, tmp_path: Path) -> None:
    assert text_of(tmp_path, body) == text


LINKS = "".join(f"<li><a href='/{n}'>Section {n}</a></li>" for n in range(9))
STORY = "<p>A fox saw a crow on a branch. It had a piece of cheese in its beak.</p>" * 5


@pytest.mark.parametrize(
    "frame",
    [
        "<nav><p>Menu</p></nav>{}<footer>Imprint</footer>",
        "<header>My site</header><main>{}</main><div>Other stories</div>",
        "<div class='sidebar'><p>Around</p></div><article>{}</article>",
        "<div class='nav-menu'><span>Home</span></div>{}<div id='footer'>(c)</div>",
        "<div role='navigation'>Home</div><div role='main'>{}</div><div role='contentinfo'></div>",
        "<div class='navheader'>Chapter 7. Crows</div>{}<div class='navfooter'>Chapter 8</div>",
        "<p>Next: <a rel='next' href='2'>2</a>, read after this one</p>{}",
        "<ul class='docnav top'><li>The book of birds</li></ul>{}",
        "<div class='nav-panel'><p>Next: Crows, Up: Birds</p></div>{}",
        f"<ul>{LINKS}</ul>{{}}",
        "{}<div id='comments'><p>First!</p></div><div class='related-posts'><p>More</p></div>",
        f"{{}}<h2>Contents</h2><ul>{LINKS}</ul>",
        "<div class='sphinxsidebar'><p>Contents</p></div><div class='body'>{}</div>",
    ],
)
def test_what_is_around_the_main_part_is_left_out(frame: str, tmp_path: Path) -> None:
    """By tags, by roles, by the names of classes, or as links alone."""
    story = "\n\n".join(["A fox saw a crow on a branch. It had a piece of cheese in its beak."] * 5)
    assert text_of(tmp_path, frame.format(STORY)) == story
    assert sum(left_out(tmp_path / "a.html").values()) >= 1


def test_a_page_of_project_gutenberg_is_the_book_within(tmp_path: Path) -> None:
    """Each of its books, if it holds several."""
    begin = "<p>The Project Gutenberg eBook of Crows</p><p>*** START OF THE PROJECT GUTENBERG"
    end = "<p>*** END OF THE PROJECT GUTENBERG EBOOK CROWS ***</p><p>Licence</p>"
    end += "<p>Subscribe to our newsletter to hear about new eBooks.</p>"
    body = f"{begin} EBOOK CROWS ***</p><h2>One</h2><p>A crow.</p>{end}"
    assert text_of(tmp_path, body) == "One\n\nA crow."
    assert left_out(tmp_path / "a.html") == {"Project Gutenberg's header and licence": 1}
    page = f"<html>{body}<p>Between.</p>{body.replace('crow.', 'fox.')}"
    books = ["One\n\nA crow.", "Between.", "One\n\nA fox."]
    assert documents(write(tmp_path / "b.html", page)) == books


@pytest.mark.parametrize(
    "page",
    [
        "<html><head><meta charset=utf-8><body><p>a</p><p>b</p></body></html>",
        "<html><head><title>no</title><p>a</p><p>b</p></html>",
        "<html><head>a<p>b</html>",
        "<html><p>a</p><style>p {}<p>b</p></html>",
        "<html><title><p>a</p><p>b</p></html>",
        "<html><p>a</p><!-- no<p>b</p></html>",
        "<html><table><tr><td>a<p>b",
        "<html><table><tr><td><table><tr><td>a<tr><td>b",
    ],
)
def test_a_tag_that_is_never_closed_does_not_cost_the_text(page: str, tmp_path: Path) -> None:
    assert documents(write(tmp_path / "a.html", page)) == ["a\n\nb"]


@pytest.mark.parametrize(("name", "text"), [("cp-850", "é"), ("us-ascii", "é"), ("x-odd", "é")])
def test_a_page_may_misspell_its_encoding(name: str, text: str, tmp_path: Path) -> None:
    page = f"<html><meta charset={name}><p>{text * 3}"
    encoding = "cp850" if name == "cp-850" else "utf-8"
    assert documents(write(tmp_path / "a.html", page.encode(encoding))) == [text * 3]


def test_the_name_of_a_class_does_not_cost_the_text(tmp_path: Path) -> None:
    for name in ("menu", "with-sidebar", "content-with-nav", "toc"):
        text = text_of(tmp_path, f"<div class='{name}'>{STORY}</div><p>The end.</p>")
        assert text.startswith("A fox")


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "cp1251", "utf-16"])
def test_a_page_is_in_the_encoding_that_it_names(encoding: str, tmp_path: Path) -> None:
    text = "Привет" if encoding == "cp1251" else "déjà"
    page = f"<html><meta charset={encoding}><p>{text}</p></html>".encode(encoding)
    assert documents(write(tmp_path / "a.html", page)) == [text]


def test_a_page_that_names_none_may_be_in_windows_1252(tmp_path: Path) -> None:
    file = write(tmp_path / "a.html", "<html><p>déjà</p></html>".encode("cp1252"))
    assert documents(file) == ["déjà"]
    assert "Windows-1252" in report_of(file).notes[0]


def test_a_page_is_known_by_its_content_or_by_its_name_and_tags(tmp_path: Path) -> None:
    for name in ("a.txt", "a"):
        assert documents(write(tmp_path / name, " <!-- c --><!doctype HTML><p>a</p>")) == ["a"]
    assert documents(write(tmp_path / "a.htm", "<h1>a</h1>b")) == ["a\n\nb"]
    assert documents(write(tmp_path / "b.html", "1 < 2, no tags")) == ["1 < 2, no tags"]
    assert documents(write(tmp_path / "c.txt", "text about <p>")) == ["text about <p>"]


@given(page=st.text(st.sampled_from(list("<>/!-\"'= apb\n&;[]"))))
@settings(max_examples=300, deadline=None)
def test_no_page_is_too_odd(page: str) -> None:
    for part in tags_and_text(page):
        assert isinstance(part, str) or part.name


@pytest.mark.parametrize(
    "bomb",
    ["<", "<a ", "<a b='", '<a b="', "<!--", "<![CDATA[", "<script", "<script>", "</p", "<p", "<a>",
     "<a b='c'", "&#", "&#9", "<a b=''", "</a>", "<p>", "<li>", "<table><tr>", "<b><p>", "<a\n="],
)  # fmt: skip
def test_a_damaged_page_is_read_in_time_that_grows_with_its_length(
    bomb: str, tmp_path: Path
) -> None:
    """If it grew with its square, this would take minutes."""
    page = "<html>" + bomb * (60_000 // len(bomb))
    file = write(tmp_path / "a.html", page)
    try:
        documents(file)
    except ValueError as error:
        assert "there is no text" in str(error) or "tags inside one another" in str(error)


def test_ten_thousand_nested_tags_are_refused_unless_the_limit_is_raised(tmp_path: Path) -> None:
    file = write(tmp_path / "a.html", "<html>" + "<div>" * 10_000 + "deep")
    assert "more than 1,000 tags inside one another" in refusal(file)
    assert documents(file, raise_limits=20) == ["deep"]
