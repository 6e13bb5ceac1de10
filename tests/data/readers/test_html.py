"""Web pages to the text of their main part."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.data.readers.html_tags import tags_and_text

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


@pytest.mark.parametrize(
    ("name", "text"), [("cp-850", "é"), ("us-ascii", "é"), ("x-odd", "é"), ("punycode", "é")]
)
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
@settings(max_examples=100, deadline=None)
def test_no_page_is_too_odd(page: str) -> None:
    for part in tags_and_text(page):
        assert isinstance(part, str) or part.name


def test_ten_thousand_nested_tags_are_refused_unless_the_limit_is_raised(tmp_path: Path) -> None:
    file = write(tmp_path / "a.html", "<html>" + "<div>" * 10_000 + "deep")
    assert "more than 1,000 tags inside one another" in refusal(file)
    assert documents(file, raise_limits=20) == ["deep"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("a<span class='footnote-ref'>(see below)</span>b<sup id='fnref:1'>x</sup>c", "abc"),
        ("a<p class='footnote-ref'>b</p>", "a\n\nb"),
        ("as in <a href='#x'>Part</a>, <a href='b.html#x'>12</a>", "as in Part, 12"),
        ("a<sup>1</sup>b<sup><b>2</b></sup> <sup><a href='#n'>see</a></sup>", "a1b2 see"),
        ("a<a href='#n'>[nb 3]</a><a href='#n'>[a]</a><a href='#n'>***</a>", "a"),
        ("year of <a href='#n'>[1234]</a><a href='#n'>****</a>", "year of [1234]****"),
        ("a<br/><br>b<hr>c<hr/>d", "a\nb\n\nc\n\nd"),
        ("a<b/>c<p/>d<div/>e", "ac\n\nd\n\ne"),
        ("<pre>\n  a\n\n  b \n</pre><pre>  </pre>", "  a\n\n  b"),
        ("<ul><li><pre>a\nb</pre></ul>", "a\nb"),
        ("<ul><li><p>a<p>b</ul>", "- a\n- b"),
        ("<ul><li><h3>a</h3>b<li><table><tr><td>c</table></ul>", "a\n\n- b\n\nc"),
        ("<ol><li>a<dl><dt>b</dl>c</ol>", "- a\n\nb\n\n- c"),
        ("<table><tr><td><ul><li>a<li>b</ul><td>c</table>", "- a - b\tc"),
        ("<table><tr><td>a<tr><td>b<td>c</table>", "a\n\nb\tc"),
        ("<table><tr><td>a<td><td>c<td></table>", "a\t\tc"),
        ("<td>a<td>b", "a\n\nb"),
        ("<p>a</p>b</p>c", "a\n\nb\n\nc"),
        ("<i>a<p>b</i>c", "a\n\nb\n\nc"),
        ("</div>a</b>b", "ab"),
        ("<svg><title>no</title><text>no</text></svg><math>no</math>a", "a"),
        ("a<select><option>no</select>", "a"),
        ("<button>no</button><textarea><p>no</textarea>a<iframe>no</iframe>b", "ab"),
        ("<ruby>漢<rp>(<rt>kan<rp>)</ruby>字", "漢字"),
        ("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>字", "漢字"),
        ("<div hidden='until-found'>a</div><div aria-hidden=true>b</div>", "a\n\nb"),
        ("<p data-x='>' title=\"a 'b\">c</p>", "c"),
        ("<p title=a>b>c", "b>c"),
        ("a<![CDATA[<b>]]>b<?php no ?>c<!no>d", "a<b>bcd"),
        ("<dialog>no</dialog>a<div role='doc-endnotes'>no</div>b", "a\n\nb"),
        ("a<section epub:type='landmarks x'>no</section>b", "a\n\nb"),
        (
            "a<ul class='references'><li>b</ul><ol class='x references'><li>no</ol>c",
            "a\n\n- b\n\nc",
        ),
        ("<p>a <q>b</q> <q>c <q>d</q> e</q>", "a “b” “c ‘d’ e”"),
        ("&#9999999999;&#x110000;&amp;lt;", "\ufffd\ufffd&lt;"),
        ("a\n\n   b\t\tc&nbsp;&nbsp;d", "a b c d"),
    ],
)
def test_further_tags_become_paragraphs_and_lines(body: str, text: str, tmp_path: Path) -> None:
    assert text_of(tmp_path, body) == text


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("nav", "navigation"), ("aside", "asides"), ("footer", "page footers"),
        ("dialog", "navigation"), ("header", "page headers"),
    ],
)  # fmt: skip
def test_what_a_tag_around_the_main_part_holds_is_counted_under_its_name(
    name: str, what: str, tmp_path: Path
) -> None:
    assert text_of(tmp_path, f"<{name}>no</{name}>{STORY}").startswith("A fox")
    assert left_out(tmp_path / "a.html") == {what: 1}


def test_the_header_of_an_article_is_its_own(tmp_path: Path) -> None:
    for around in ("article", "main"):
        text = text_of(tmp_path, f"<{around}><header><h1>Crows</h1></header>{STORY}</{around}>")
        assert text.startswith("Crows\n\nA fox")


@pytest.mark.parametrize(
    ("role", "what"),
    [
        ("banner", "page headers"), ("contentinfo", "page footers"), ("search", "navigation"),
        ("complementary", "asides"), ("menubar", "navigation"), ("doc-toc", "navigation"),
        ("doc-footnote", "notes"), ("doc-noteref", "marks of notes"),
    ],
)  # fmt: skip
def test_what_a_role_says_is_left_out(role: str, what: str, tmp_path: Path) -> None:
    assert text_of(tmp_path, f"{STORY}<div role='{role}'>no</div>").startswith("A fox")
    assert left_out(tmp_path / "a.html") == {what: 1}


def test_names_of_classes_that_only_sound_like_navigation_do_not_cost_the_text(
    tmp_path: Path,
) -> None:
    end = "<div class='{}'><p>The end of it.</p></div>"
    for name in ("navigator", "my-menu", "tocsin", "menu-card", "footers"):
        assert text_of(tmp_path, STORY + end.format(name)).endswith("The end of it.")
    for name in ("site-nav", "menu-list", "x breadcrumbs", "SIDEBAR", "toc_wrapper", "page_nav"):
        assert text_of(tmp_path, STORY + end.format(name)).endswith("its beak.")
    body = f"<h2 class='toc'>Crows</h2><span class='navbar'>no</span>{STORY}"
    assert text_of(tmp_path, body).startswith("Crows\n\nA fox")


def test_a_paragraph_is_of_links_if_it_is_short_and_more_than_six_tenths_are(
    tmp_path: Path,
) -> None:
    for link, rest, stays in ((6, 4, True), (7, 3, False), (0, 9, True)):
        body = f"{STORY}<p><a href=x>{'x' * link}</a>{'y' * rest}</p>"
        assert text_of(tmp_path, body).endswith("y" * rest) == stays, link
    long = f"{STORY}<p><a href=x>{'x' * 200}</a></p><h3><a href=x>Crows</a></h3>"
    assert text_of(tmp_path, long).endswith(f"{'x' * 200}\n\nCrows")
    assert not text_of(tmp_path, f"{STORY}<p><a href=x>{'x' * 199}</a></p>").endswith("x")
    assert text_of(tmp_path, f"{STORY}<pre><a href=x>code</a></pre>").endswith("code")
    assert text_of(tmp_path, f"{STORY}<p><a name=x>anchor</a></p>").endswith("anchor")


@pytest.mark.parametrize(("share", "is_all"), [(19, True), (21, False)])
def test_a_main_part_with_a_fifth_of_the_text_is_the_text(
    share: int, is_all: bool, tmp_path: Path
) -> None:
    body = f"<main><p>{'m' * share}</p></main><p>{'x' * (100 - share)}</p>"
    assert text_of(tmp_path, body).endswith("x") == is_all
    guessed = f"<p>{'m' * share}</p><div class=sidebar><p>{'x' * (100 - share)}</p></div>"
    assert text_of(tmp_path, guessed).endswith("x") == is_all


def test_a_heading_of_contents_goes_with_its_entries_in_several_languages(tmp_path: Path) -> None:
    for name in ("Contents", "INHALTSVERZEICHNIS", "Inhalt", "Table des matières", "Índice"):
        body = f"{STORY}<h2>{name}</h2><ul>{LINKS}</ul><p>After.</p>"
        assert text_of(tmp_path, body).endswith("its beak.\n\nAfter."), name
    kept = text_of(tmp_path, f"{STORY}<h2>Contents</h2><p>of my pocket</p>")
    assert kept.endswith("Contents\n\nof my pocket")


def test_attributes_are_read_in_any_form() -> None:
    def attributes(tag: str) -> dict[str, str]:
        (found,) = tags_and_text(tag)
        assert not isinstance(found, str)
        return found.attributes

    assert attributes("<a HREF = 'x y' b=\"c>\" d=e&amp;f g=>") == {
        "href": "x y", "b": "c>", "d": "e&f", "g": "",
    }  # fmt: skip
    assert attributes("<a x=1 x=2 hidden>") == {"x": "1", "hidden": ""}
    assert attributes("</a x=1>") == {}
    assert attributes(f"<a {'n' * 200}=1>") == {"n" * 100: "1"}
    (long,) = tags_and_text(f"<{'A' * 200}/>")
    assert not isinstance(long, str)
    assert (long.name, long.is_closed, long.is_end) == ("a" * 100, True, False)


def test_a_quote_that_is_never_closed_or_is_no_value_is_none() -> None:
    def shown(page: str) -> str:
        return "".join(part for part in tags_and_text(page) if isinstance(part, str))

    assert shown("<a b='c>d") == "d"
    assert shown("<a b'c>d'>e") == "d'>e"
    assert shown(f"<a b={' ' * 18}'>'>c") == "c"
    assert shown("a <b c") == "a "
    assert shown("a < b <1> </") == "a < b <1> </"


def test_a_script_takes_the_rest_of_the_page_and_others_what_is_up_to_the_next_tag() -> None:
    def shown(page: str) -> str:
        return "".join(part for part in tags_and_text(page) if isinstance(part, str))

    assert shown("a<script>b</SCRIPT x>c") == "ac"
    assert shown("a<script>b<p>c") == "a"
    assert shown("a<style>b<p>c<style>d<p>e") == "ace"
    assert shown("a<style/>b<p>c") == "abc"
    assert shown("a<title>b</titles>c") == "ac"
