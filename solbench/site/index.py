"""The first page: what was found, how to check and rebuild it, where it comes from, and all that the release holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from solbench.site import text
from solbench.site.cells import ref
from solbench.site.code import tools
from solbench.site.corpus import problem_row
from solbench.site.links import Links
from solbench.site.records import Book
from solbench.site.target import target_headline

# Of an environment, what is named in one line.
_SOFTWARE = ("torch", "triton", "cuda", "hip", "python", "compiler")


@dataclass(frozen=True)
class Download:
    """A file of the site, as the first page offers it. ``href`` is relative to the site."""

    name: str
    href: str
    digest: str
    short: str
    size: str

    @classmethod
    def of(cls, path: str, digest: str, size: int) -> Download:
        return cls(path, path, digest, text.short_digest(digest), text.quantity(size, "B"))


def index_page(book: Book, links: Links, downloads: Sequence[Download]) -> dict[str, Any]:
    """``downloads``: the tables of the other pages."""
    release = book.release.value
    return {
        "counts": {
            "problems": text.plural(release.problems, "problem"),
            "workloads": text.plural(release.workloads, "workload"),
            "targets": text.plural(len(release.targets), "target"),
            "corpora": text.listed(release.corpora),
        },
        "targets": [target_headline(book, links, target) for target in book.targets],
        "columns": [{"name": target.name, "timed": target.state.state == "timed"} for target in book.targets],
        "rows": [problem_row(book, links, problem) for problem in book.problems],
        "sections": [
            {"stage": stage, "count": text.grouped(count), "ref": ref(links, f"section {stage}", descriptor)}
            for stage, descriptor, count in book.sections
        ],
        "problems_total": len(book.problems),
        "downloads": downloads,
        "provenance": _provenance(book, links),
    }


def _provenance(book: Book, links: Links) -> list[dict[str, Any]]:
    """Where the release's parts come from: (what, where, objects that say so)."""
    found = [*_sources(book), *_measured(book, links), *_compiled(book)]
    predicates = [w.attestation.value.get("predicate") for _, w in book.workloads() if w.attestation is not None]
    paths = sorted({str(one["path"]) for one in predicates if isinstance(one, dict) and "path" in one})
    if paths:
        found.append({"what": "operator graphs", "where": f"traced by path {text.listed(paths)}", "refs": []})
    for target in book.targets:
        if target.hardware is not None:
            machine = ref(links, f"machine model of {target.name}", target.hardware.descriptor)
            words = str(target.hardware.value["device"])
            found.append({"what": f"bounds on {target.name}", "where": f"machine model of {words}", "refs": [machine]})
    return found


def _sources(book: Book) -> list[dict[str, Any]]:
    """Corpora by the project and revision that their problems name."""
    counts: dict[tuple[str, str], int] = {}
    for problem in book.problems:
        source = problem.record.value.source
        words = f"{source.project}, revision {source.revision}" if source is not None else "written here"
        counts[problem.corpus, words] = counts.get((problem.corpus, words), 0) + 1
    return [
        {"what": f"problems of {corpus}", "where": f"{words}: {text.plural(count, 'problem')}", "refs": []}
        for (corpus, words), count in counts.items()
    ]


def _measured(book: Book, links: Links) -> list[dict[str, Any]]:
    found = []
    for target in book.targets:
        for measured in target.sets:
            header = measured.header.value
            software = text.listed(
                f"{name} {header.environment[name]}" for name in _SOFTWARE if name in header.environment
            )
            found.append(
                {
                    "what": f"times on {target.name}",
                    "where": f"{header.device.get('model') or header.device.get('name') or 'a device'}, {software}, "
                    f"harness {text.short_digest(header.harness)}",
                    "refs": [ref(links, "measurement set", measured.header.descriptor)],
                }
            )
    return found


def _compiled(book: Book) -> list[dict[str, Any]]:
    found = []
    for target in book.targets:
        records = [record for _, workload in book.workloads() for record in workload.code.get(target.name, ())]
        if records:
            found.append({"what": f"code for {target.name}", "where": f"compiled by {tools(records)}", "refs": []})
    return found
