"""The tables of a page as CSV and JSON files beside it, read from the cells that the page shows.

A table that names itself (``data-table``) inside its own ``.scroll`` box gets both files and, below the box, links with
their size and digest. What a file says is taken from the finished page, so the three can never differ.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import unescape
from typing import Any, Final

from solbench import canonical
from solbench.errors import SolbenchError
from solbench.site import text

SCHEMA: Final = "solbench.table.v1"
# Text that begins with one of these may be run by a spreadsheet; also in the full width that some of them fold.
RUN_BY_SPREADSHEETS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

# What the templates write: quoted attributes, everything in them and in the text escaped.
_TABLE = re.compile(r'<table(?: [^<>]*)? data-table="([^"]*)"[^<>]*>(.*?)</table>\n</div>\n', re.DOTALL)
_TOKEN = re.compile(r'<(/?)([a-z0-9]+)((?:\s+[a-z-]+(?:="[^"]*")?)*)\s*/?>|([^<]+)')
_ATTRIBUTE = re.compile(r'([a-z-]+)="([^"]*)"')
_SPACES = re.compile(r"[ \t\n\r]+")
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?\Z")
_OBJECT = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{62})\Z")
_APART: Final = frozenset({"small", "br", "li", "p", "div", "dd", "dt"})


@dataclass(frozen=True)
class Column:
    """``unit`` of the exact values, "" for none or for text."""

    name: str
    numeric: bool
    unit: str


@dataclass(frozen=True)
class Shown:
    """A cell: its text as shown, its exact value as the page spells it ("" for none), the object it links to or ""."""

    text: str
    value: str
    object: str


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Shown, ...], ...]


@dataclass(frozen=True)
class File:
    """A file beside a page, as the page names it."""

    form: str
    href: str
    digest: str
    short: str
    size: str


@dataclass
class _Cell:
    attributes: dict[str, str]
    words: list[str] = field(default_factory=list)
    # What it links to: (title, digest of the object).
    objects: list[tuple[str, str]] = field(default_factory=list)


def publish(
    page: str, path: str, release: str, links: Callable[[str, list[File]], str]
) -> tuple[str, dict[str, bytes]]:
    """The page at ``path`` with links to its tables' files, and these files by path.

    ``release``: digest of the release that they come from; ``links`` renders the links of one table.
    :class:`SolbenchError` where a table cannot be read or two of them have one name.
    """
    files: dict[str, bytes] = {}
    stem = path.removesuffix(".html")

    def put(match: re.Match[str]) -> str:
        table = read(match[1], match[2])
        described = []
        for form, data in (("csv", as_csv(table)), ("json", as_json(table, path, release))):
            name = f"{stem}.{table.name}.{form}"
            if name in files:
                raise SolbenchError(f"site: {path}: two tables are named {table.name!r}")
            files[name] = data
            digest = canonical.digest(data)
            size = text.quantity(len(data), "B")
            described.append(File(form.upper(), name.rpartition("/")[2], digest, text.short_digest(digest), size))
        return match[0] + links(table.name, described)

    result, count = _TABLE.subn(put, page)
    if count != page.count(' data-table="'):
        raise SolbenchError(f"site: {path}: a table with data-table is not the last thing in a .scroll box of its own")
    return result, files


def read(name: str, content: str) -> Table:
    """A table from what stands between its tags; a foot is not part of it."""
    if not _NAME.match(name):
        raise SolbenchError(f"site: a table is named {name!r}; use lower-case words joined by hyphens")
    rows = list(_rows(content.partition("<tfoot>")[0]))
    if not rows:
        raise SolbenchError(f"site: table {name!r} has no head")
    columns: list[Column] = []
    for cell in rows[0]:
        numeric = cell.attributes.get("data-type") == "number"
        wanted = unescape(cell.attributes.get("data-name", "")) or _joined(cell)
        columns.append(Column(_distinct(wanted, columns), numeric, unescape(cell.attributes.get("data-unit", ""))))
    for row in rows[1:]:
        if len(row) != len(columns):
            raise SolbenchError(f"site: table {name!r} has a row of {len(row)} cells under {len(columns)} heads")
    cells = (tuple(_shown(cell, column) for cell, column in zip(row, columns)) for row in rows[1:])
    return Table(name, tuple(columns), tuple(cells))


def as_csv(table: Table) -> bytes:
    """RFC 4180 in UTF-8. A numeric column is two: the exact value, and the text as shown.

    Text that a spreadsheet might run gets an apostrophe in front; numbers stay numbers.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    head: list[str] = []
    for column in table.columns:
        if column.numeric:
            head.append(f"{column.name} [{column.unit}]" if column.unit else column.name)
        head.append(f"{column.name}, shown" if column.numeric else column.name)
    writer.writerow(map(harmless, head))
    for row in table.rows:
        fields = []
        for column, cell in zip(table.columns, row):
            fields += [cell.value, harmless(cell.text)] if column.numeric else [harmless(cell.text)]
        writer.writerow(fields)
    return out.getvalue().encode()


def as_json(table: Table, page: str, release: str) -> bytes:
    """Canonical JSON. A cell of a text column is its text; a numeric one is its value or null, its text as shown, and
    the digest of the object that it comes from, or null."""

    def cell(column: Column, shown: Shown) -> Any:
        if not column.numeric:
            return shown.text
        value = None if not shown.value else float(shown.value) if re.search(r"[.e]", shown.value) else int(shown.value)
        return {"value": value, "text": shown.text, "object": shown.object or None}

    return canonical.dumps(
        {
            "schema": SCHEMA,
            "release": release,
            "page": page,
            "table": table.name,
            "columns": [
                {"name": c.name, "type": "number" if c.numeric else "text", "unit": c.unit or None}
                for c in table.columns
            ],
            "rows": [[cell(c, shown) for c, shown in zip(table.columns, row)] for row in table.rows],
        }
    )


def harmless(shown: str) -> str:
    """``shown`` as a field of text that no spreadsheet runs; undone by leaving off one leading apostrophe."""
    return f"'{shown}" if shown.startswith((*RUN_BY_SPREADSHEETS, "'")) else shown


def _rows(content: str) -> Iterator[list[_Cell]]:
    row: list[_Cell] = []
    cell: _Cell | None = None
    skipped = ""  # the tag whose content is not read
    for closing, tag, attributes, words in _TOKEN.findall(content):
        if skipped:
            if closing and tag == skipped:
                skipped = ""
        elif tag in ("th", "td"):
            cell = None if closing else _Cell(dict(_ATTRIBUTE.findall(attributes)))
            if cell is not None:
                row.append(cell)
        elif tag == "tr" and closing:
            yield row
            row = []
        elif cell is None:
            continue
        elif words:
            cell.words.append(words)
        elif tag in _APART:
            cell.words.append(" ")
        elif tag == "sub" and not closing:
            cell.words.append("_")
        elif tag == "button" and not closing:
            skipped = tag
        elif tag == "a" and not closing:
            skipped = _link(cell, dict(_ATTRIBUTE.findall(attributes)))


def _link(cell: _Cell, attributes: dict[str, str]) -> str:
    """Note the object that a link leads to; a link that shows the short form of a digest stands for the whole."""
    found = _OBJECT.search(attributes.get("href", ""))
    if found is not None:
        cell.objects.append((attributes.get("title", ""), f"blake3:{found[1]}{found[2]}"))
    if canonical.is_digest(attributes.get("title")):
        cell.words.append(attributes["title"])
        return "a"
    return ""


def _joined(cell: _Cell) -> str:
    return _SPACES.sub(" ", unescape("".join(cell.words))).strip(" ")


def _shown(cell: _Cell, column: Column) -> Shown:
    words = _joined(cell)
    spelt = unescape(cell.attributes["data-sort"]) if "data-sort" in cell.attributes else "".join(words.split())
    # Of a range's ends, the object of the one that the cell sorts by.
    first = next((digest for title, digest in cell.objects if title.startswith(f"{spelt} in ")), "")
    source = first or (cell.objects[0][1] if cell.objects else "")
    return Shown(words, spelt if column.numeric and _NUMBER.match(spelt) else "", source)


def _distinct(wanted: str, taken: list[Column]) -> str:
    """``wanted``, with a number where another column has that name."""
    names = {column.name for column in taken}
    number = 2
    name = wanted
    while name in names:
        name, number = f"{wanted} ({number})", number + 1
    return name
