"""Small pieces of HTML that stand on a page by the thousand, written here because a template takes many times as long.

Everything that goes into one is made visible and escaped, as the templates do with what they print.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from solbench.site import text
from solbench.site.cells import Cell, Ref

if TYPE_CHECKING:
    from solbench.site.calls import Row
    from solbench.site.drawing import Drawing

# A longer text in a column of numbers is words, and is set as such.
LONGEST_NUMBER = 20


def value(cell: Cell) -> Markup:
    """A number or the words in its place, with the link to its object and its note."""
    classes = f"v state {_safe(cell.state)}" if cell.state else "v"
    words = _safe(cell.text)
    if cell.href:
        shown = f'<a class="{classes}" href="{_safe(cell.href)}" title="{_safe(cell.title)}">{words}</a>'
    elif cell.title:
        shown = f'<span class="{classes}" title="{_safe(cell.title)}">{words}</span>'
    else:
        shown = f'<span class="{classes}">{words}</span>'
    return Markup(f"{shown} <small>{_safe(cell.note)}</small>" if cell.note else shown)


def td(cell: Cell) -> Markup:
    """A cell of a table, sorted by the exact value; it stands for the record that ``cell`` names, if any."""
    kind = "words" if len(cell.text) > LONGEST_NUMBER else "num"
    record = f' data-record="{_safe(cell.record)}"' if cell.record else ""
    return Markup(f'<td class="{kind}" data-sort="{_safe(cell.sort)}"{record}>{value(cell)}</td>')


def word(cell: Cell) -> Markup:
    return Markup(f"<td>{value(cell)}</td>")


def copy(what: str, of: str) -> Markup:
    """A button that copies ``what``; ``of`` says to a screen reader what that is. Shown where scripts run."""
    label = _safe(f"Copy {of}")
    return Markup(
        f'<button type="button" class="copy" data-copy="{_safe(what)}" aria-label="{label}" hidden>copy</button>'
    )


def digest(ref: Ref) -> Markup:
    """The short form of an object's digest, a link to it, and a button that copies the whole."""
    link = f'<a href="{_safe(ref.href)}" title="{_safe(ref.digest)}"><code>{_safe(ref.short)}</code></a>'
    return Markup(f'<span class="hash">{link}{copy(ref.digest, f"the digest of {ref.label}")}</span>')


def highlighted(tokens: Iterable[tuple[str, str]]) -> Markup:
    """Source code from (CSS class or "", text)."""
    pieces = (f'<span class="{_safe(kind)}">{_safe(piece)}</span>' if kind else _safe(piece) for kind, piece in tokens)
    return Markup(f'<pre class="code" tabindex="0"><code>{"".join(pieces)}</code></pre>')


def boxes(drawing: Drawing) -> Markup:
    """The boxes of an operator graph as SVG, and what is written beside the heads of its wires."""
    lines: list[str] = []
    for box in drawing.boxes:
        lines.append(f'<g class="box {_safe(box.kind)}"><title>{_safe(box.title)}</title>')
        size = f'width="{box.width}" height="{box.height}" rx="{box.round}"/>'
        corners = [box.behind] if box.behind else []
        lines += [f'<rect x="{x}" y="{y}" {size}' for x, y in (*corners, (box.x, box.y))]
        for line in box.lines:
            lines.append(f'<text class="{line.style}" x="{line.x}" y="{line.y}">{_safe(line.words)}</text>')
        lines.append("</g>")
    for wire in drawing.wires:
        if wire.label:
            lines.append(f'<text class="slot {wire.side}" x="{wire.x}" y="{wire.y}">{_safe(wire.label)}</text>')
    return Markup("".join(f"{line}\n" for line in lines))


def operations(rows: Iterable[Row]) -> Markup:
    """The operations of an operator graph as rows of a table."""
    return Markup("".join(map(_operation, rows)))


def _operation(row: Row) -> str:
    op, times = _safe(row.op), f" {_safe(row.times)}" if row.times else ""
    cells = (
        f'<td class="num">{_safe(row.number)}</td><th scope="row"><code>{op}</code>{times}</th>',
        f'<td class="wide">{_safe(row.reads)}</td><td class="words">{_safe(row.constants)}</td>',
        f'<td class="words">{_safe(row.writes)}</td><td class="wide">{_safe(row.types)}</td>',
        f'<td class="words">{_safe(row.storage)}</td>',
    )
    return f"<tr>{''.join(cells)}</tr>\n"


# Addresses, digests and states come again and again.
@lru_cache(maxsize=1 << 14, typed=True)
def _safe(words: str) -> str:
    return str(escape(text.visible(words)))


# What the templates know them by.
PIECES = {
    "value": value, "td": td, "word": word, "copy": copy, "digest": digest, "highlighted": highlighted,
    "boxes": boxes, "operations_of": operations,
}  # fmt: skip
