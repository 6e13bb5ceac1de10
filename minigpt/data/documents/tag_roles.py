"""What a tag of a page is for, as its name, role, classes and id say: navigation, notes, or what a
letter cites. page.py asks it.
"""

import re

from .tags import Tag

_FRAME = {"nav": "navigation", "aside": "asides", "footer": "page footers", "dialog": "navigation"}
_ROLES = {
    "navigation": "navigation", "banner": "page headers", "contentinfo": "page footers",
    "search": "navigation", "complementary": "asides", "menu": "navigation",
    "menubar": "navigation", "toolbar": "navigation", "dialog": "navigation",
    "doc-noteref": "marks of notes", "doc-backlink": "marks of notes", "doc-toc": "navigation",
    "doc-endnotes": "notes", "doc-footnote": "notes",
}  # fmt: skip
_BOOK = {  # epub:type
    "noteref": "marks of notes", "backlink": "marks of notes", "footnote": "notes",
    "footnotes": "notes", "endnote": "notes", "endnotes": "notes", "rearnote": "notes",
    "rearnotes": "notes", "pagebreak": "page numbers", "toc": "tables of contents",
    "landmarks": "tables of contents", "page-list": "tables of contents",
    "loi": "tables of contents", "lot": "tables of contents", "titlepage": "title pages",
    "halftitlepage": "title pages", "imprint": "imprints", "colophon": "imprints",
    "copyright-page": "imprints", "cover": "covers",
}  # fmt: skip
_NAVIGATION = re.compile(
    r"(?:(?:main|site|page|doc|top|left|right|global|primary|secondary|mobile|sphinx|md|wy|rst|related)"
    r"[-_]?)?(?:nav|navheader|navfooter|navbar|navbox|navigation|menu|sidebar|sidenav|breadcrumbs?|footer|pagination|"
    r"pager|toc|tableofcontents|table-of-contents|localtoc|searchbox|related|share|sharing|social|"
    r"cookies?|cookie-banner|banner|newsletter|headerlink|header-link|anchor-link|anchorjs-link|"
    r"skip-link|skiplink|mw-editsection|mw-jump-link|catlinks|printfooter|noprint|linenos|linenodiv|"
    r"viewcode-link|viewcode-back|prev-next|prev-next-area|edit-this-page|copybtn|toctree-wrapper|"
    r"comments|comments-area|comments-section|commentlist|respond|disqus_thread|related-?posts|"
    r"jp-relatedposts|sharedaddy|pg-header|pg-footer|pgheader|pg-boilerplate|pg-machine-header|pg-start-separator|visually-hidden|"
    r"sr-only|screen-reader-text)(?:[-_](?:wrapper|container|links?|menu|bar|list|inner|content|panel))?"
)
_NEVER_AROUND = {"html", "body", "main", "article", "h1", "h2", "h3"}
_NOTE = re.compile(r"foot-?note-?(ref|reference|marker|link)|note-?ref|fnref|pginternal-note")
_NOTES = {"footnotes", "footnote", "endnotes", "endnote", "reflist"}  # classes of notes


def why_left_out(tag: Tag, *, is_paragraph: bool, is_in_main: bool, has_frame: bool) -> str:
    """Why the content of a tag is certainly left out; empty if it is read. A page with a frame has
    headers, footers and navigation around its main part."""
    attributes = tag.attributes
    if not attributes and tag.name not in _FRAME and tag.name != "header":
        return ""
    for kind in attributes.get("epub:type", "").lower().split():
        if kind in _BOOK:
            return _BOOK[kind]
    role = attributes.get("role", "").lower()
    if role in _ROLES:
        return _ROLES[role]

    classes = attributes.get("class", "").lower()
    if is_paragraph and not _NOTES.isdisjoint(classes.split()):
        return "notes"
    if tag.name == "ol" and "references" in classes.split():
        return "notes"
    names = f"{classes} {attributes.get('id', '').lower()}"
    is_mark = tag.name in ("a", "sup", "span") and _NOTE.search(names) is not None
    if is_mark:
        return "marks of notes"
    if "hidden" in attributes and attributes["hidden"].lower() != "until-found":
        return "hidden parts"
    if "display:none" in attributes.get("style", "").replace(" ", "").lower():
        return "hidden parts"
    if not has_frame:
        return ""
    if tag.name == "header" and not is_in_main:
        return "page headers"
    return _FRAME.get(tag.name, "")


def cites(tag: Tag) -> bool:
    """Whether a tag is around what a letter cites of another one, as mailers write it. Quotations
    that the writer made are not marked in this way."""
    attributes = tag.attributes
    if tag.name != "blockquote":
        return attributes.get("name") == "quote"
    is_typed = attributes.get("type", "").lower() == "cite"
    is_named = "quote" in attributes.get("class", "").lower() or is_typed
    return is_named or "border-left:" in attributes.get("style", "").lower().replace(" ", "")


def signs(tag: Tag) -> bool:
    """Whether a tag is around the signature of a letter, as mailers write it."""
    names = f"{tag.attributes.get('class', '')} {tag.attributes.get('id', '')}"
    return tag.name in ("div", "span", "table") and "signature" in names.lower()


def looks_like_navigation(tag: Tag) -> bool:
    """Whether the name of its class says that a tag holds what is around the text."""
    if not tag.attributes or tag.name in _NEVER_AROUND:
        return False
    names = [*tag.attributes.get("class", "").split(), tag.attributes.get("id", "")]
    return any(_NAVIGATION.fullmatch(name.lower()) for name in names[:20] if name)
