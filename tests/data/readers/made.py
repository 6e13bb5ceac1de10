"""Small documents of each kind, made by hand."""

import io
import json
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0"
CHAPTER = "The fox asked the crow for bread, and the crow said no. " * 30


def zipped(files: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file of these files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def zstandard(data: bytes) -> bytes:
    """Data packed with zstandard."""
    return zstd.compress(data)


def word(body: str, **more: str | bytes) -> bytes:
    """A .docx with this body, in German: styles are known by their names, not by their ids."""
    styles = "".join(
        f'<w:style w:styleId="berschrift{n}"><w:name w:val="heading {n}"/></w:style>'
        for n in range(1, 7)
    )
    styles += '<w:style w:styleId="Verz1"><w:name w:val="toc 1"/></w:style>'
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    return zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": f'<R><Relationship Type="{relation}" Target="word/document.xml"/></R>',
            "word/document.xml": f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>',
            "word/styles.xml": f'<w:styles xmlns:w="{W}">{styles}</w:styles>',
            **more,
        }
    )


def p(text: str, style: str = "") -> str:
    """A paragraph of Word's, in two runs."""
    half = len(text) // 2
    runs = "".join(
        f'<w:r><w:t xml:space="preserve">{escape(part)}</w:t></w:r>'
        for part in (text[:half], text[half:])
    )
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}{runs}</w:p>"


def opendocument(body: str, styles: str = "", **more: str) -> bytes:
    """An .odt with this body, styles and further parts."""
    content = (
        f'<o:document-content xmlns:o="{OFFICE}" xmlns:t="{TEXT}" xmlns:table="{TABLE}">'
        f"{styles}<o:body><o:text>{body}</o:text></o:body></o:document-content>"
    )
    mimetype = "application/vnd.oasis.opendocument.text"
    return zipped({"mimetype": mimetype, "content.xml": content, **more})


def epub(pages: Mapping[str, str], spine: Iterable[str], **more: str | bytes) -> bytes:
    """An e-book with these pages, of which those of the spine are read."""
    items = "".join(
        f'<item id="{name}" href="text/{name}.xhtml" media-type="application/xhtml+xml"'
        f"{' properties=' + repr('nav') if name == 'nav' else ''}/>"
        for name in pages
    )
    order = "".join(f'<itemref idref="{name}"/>' for name in spine)
    head = (
        '<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "xhtml11.dtd">'
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops">'
        "<head><title>T</title></head>"
    )
    texts = {f"OEBPS/text/{name}.xhtml": f"{head}{body}</html>" for name, body in pages.items()}
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": "<container><rootfiles>"
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
            "OEBPS/book.opf": f"<package><manifest>{items}</manifest><spine>{order}</spine>"
            "</package>",
            **texts,
            **more,
        }
    )


def notebook(*cells: tuple[str, str]) -> str:
    """A Jupyter notebook of cells: their kinds and texts."""
    made = [
        {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}
        for kind, text in cells
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def pdf(
    *pages: Iterable[str],
    outline: Iterable[tuple[int, str]] = (),
    more: str = "",
    at_top: Sequence[str] = (),
) -> bytes:
    """A PDF of pages of lines, with an outline of (page number, title); `more` goes into its
    catalog. `at_top` are operators for each page, which begin at its top."""
    objects: list[str] = ["", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    numbers = []  # of the pages
    for number, lines in enumerate(pages):
        top = f"BT /F1 10 Tf 550 785 Td {at_top[number]} ET " if at_top else ""
        shown = "".join(f"({_escaped(line)}) Tj 0 -14 Td " for line in lines)
        stream = f"{top}BT /F1 10 Tf 50 {750 if at_top else 780} Td {shown}ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {len(objects)} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        numbers.append(len(objects))

    entries = list(outline)
    first = len(objects) + 2
    if entries:
        last = first + len(entries) - 1
        objects.append(f"<< /First {first} 0 R /Last {last} 0 R /Count {len(entries)} >>")
        more += f" /Outlines {first - 1} 0 R"
    for place, (page, title) in enumerate(entries, start=first):
        following = f"/Next {place + 1} 0 R" if place < first + len(entries) - 1 else ""
        objects.append(
            f"<< /Title ({_escaped(title)}) /Parent {first - 1} 0 R {following} "
            f"/Dest [{numbers[page]} 0 R /Fit] >>"
        )

    kids = " ".join(f"{number} 0 R" for number in numbers)
    objects[0] = f"<< /Type /Catalog /Pages 2 0 R{more} >>"
    objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(numbers)} >>"
    return pdf_of(objects)


def pdf_in_font(*pages: str, told: Mapping[str, str]) -> bytes:
    """A PDF of pages of operators in a font that has a sign for each character, by its code, and
    tells what those of `told` stand for."""
    letters = "".join(
        f"<{ord(sign):04x}> <{text.encode('utf-16-be').hex()}>\n" for sign, text in told.items()
    )
    to_unicode = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n"
        "1 begincodespacerange <0000> <FFFF> endcodespacerange\n"
        f"{len(told)} beginbfchar\n{letters}endbfchar endcmap end end"
    )
    system = "<< /Registry (Adobe) /Ordering (Identity) /Supplement 0 >>"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "",
        f"<< /Length {len(to_unicode)} >>\nstream\n{to_unicode}\nendstream",
        "<< /Type /FontDescriptor /FontName /F /Flags 4 /FontBBox [0 -200 1000 800] >>",
        f"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /F /CIDSystemInfo {system} "
        "/FontDescriptor 4 0 R /DW 500 >>",
        "<< /Type /Font /Subtype /Type0 /BaseFont /F /Encoding /Identity-H "
        "/DescendantFonts [5 0 R] /ToUnicode 3 0 R >>",
    ]
    kids = []
    for operators in pages:
        stream = f"BT /F1 10 Tf 14 TL 50 750 Td {operators} ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {len(objects)} 0 R "
            "/Resources << /Font << /F1 6 0 R >> /Properties << /P0 << /ActualText (fi) >> >> >> >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    return pdf_of(objects)


def shown(text: str) -> str:
    """The operator that shows the signs of a text in such a font."""
    return f"<{text.encode('utf-16-be').hex()}> Tj "


def scan() -> bytes:
    """A PDF of one page, which is a picture."""
    picture = (
        "<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /Length 0 >>\nstream\n\nendstream"
    )
    page = (
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 5 0 R "
        "/Resources << /XObject << /I 4 0 R >> >> >>"
    )
    return pdf_of(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            page,
            picture,
            "<< /Length 5 >>\nstream\n/I Do\nendstream",
        ]
    )


def pdf_of(objects: Iterable[str]) -> bytes:
    """A PDF of these objects, of which the first is the catalog."""
    data = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode("latin1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(places) + 1
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    return data + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def parquet(columns: Mapping[str, list[Any]]) -> bytes:
    """A parquet file of these columns."""
    import pyarrow
    from pyarrow import parquet as pq

    packed = io.BytesIO()
    pq.write_table(pyarrow.table(dict(columns)), packed)
    return packed.getvalue()
