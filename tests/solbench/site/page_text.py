"""The text of a page as a reader without scripts has it: a block element a line, a row of a table or a list of links
on one line, code as it is; DIGEST and SIZE for those of objects and files; no buttons."""

from __future__ import annotations

import re
from html.parser import HTMLParser

BLOCKS = {
    "article", "dd", "details", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "h1", "h2", "h3",
    "h4", "header", "legend", "li", "main", "nav", "noscript", "ol", "p", "pre", "section", "summary", "svg", "table",
    "title", "tr", "ul",
}  # fmt: skip
VOID = {"br", "hr", "img", "input", "link", "meta", "wbr"}
MARKS = {"title": "title: ", "h1": "# ", "h2": "## ", "h3": "### ", "h4": "#### ", "li": "- ", "summary": "> "}
MARKS |= {"svg": "drawing: "}
# What stands on one line, and what is between its parts.
ROWS = {"tr": " | ", "nav": " · ", "svg": " · "}
PARTS = {"th", "td", "li", "text", "title", "desc"}
DIGEST = re.compile(r"(blake3:)?\b[0-9a-f]{64}\b|\b[0-9a-f]{2}/[0-9a-f]{62}\b|\b[0-9a-f]{12}…")
# Of an object or a file: it changes with the file's every word, and would do so on other pages too.
SIZE = re.compile(r"(?<=DIGEST )(\| )?[0-9.]+ [kM]?B\b|(?<=CSV )[0-9.]+ [kM]?B\b|(?<=JSON )[0-9.]+ [kM]?B\b")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self.line = ""
        self.open: list[str] = []
        self.unseen = 0

    def row(self) -> str | None:
        """What separates the parts of the row that the reader is in."""
        return next((ROWS[tag] for tag in self.open if tag in ROWS), None)

    def end(self) -> None:
        if "pre" in self.open:
            self.lines += [f"    {line}".rstrip() for line in self.line.strip("\n").split("\n")]
        else:
            words = " ".join(self.line.split()).rstrip("|· ")
            if words and words + " " not in MARKS.values():
                self.lines.append(words)
        self.line = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "br":
            self.line += " / "
        if tag in VOID:
            return
        # The title of a part of a drawing is seen by who points at it only.
        tip = tag == "title" and "svg" in self.open and "id" not in values
        if self.unseen or tip or (tag == "button" and "hidden" in values) or tag == "script":
            self.unseen += 1
            return
        if tag in BLOCKS and tag != "dd" and self.row() is None:
            self.end()
            self.line = MARKS.get(tag, "")
        if tag == "sub":
            self.line += "_"
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Shapes have no text."""

    def handle_endtag(self, tag: str) -> None:
        if self.unseen:
            self.unseen -= 1
            return
        separator = self.row()
        if separator and tag in PARTS:
            self.line = self.line.rstrip() + separator
        elif tag == "dt":
            self.line = self.line.rstrip() + ": "
        elif tag in BLOCKS and (separator is None or tag in ROWS):
            self.end()
        closed = self.open.pop()
        assert closed == tag, f"</{tag}> closes {closed}"

    def handle_data(self, data: str) -> None:
        if not self.unseen:
            self.line += data


def page_text(page: str) -> str:
    """Of a page of markup; its elements are closed, as ``html_check`` makes sure of."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    reader.end()
    return SIZE.sub(r"\g<1>SIZE", DIGEST.sub("DIGEST", "\n".join(reader.lines))) + "\n"
