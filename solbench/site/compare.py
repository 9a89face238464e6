"""The page Compare: what changed since an earlier release, where the site was rendered beside one.

The comparison is that of ``solbench release diff``; here is only how it is laid out. It names the two releases by what
they say of themselves, never by where they lay, so that the page depends on their content alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from solbench.site import text
from solbench.site.cells import Cell, missing, number
from solbench.site.links import Links
from solbench.site.records import Book

if TYPE_CHECKING:
    from solbench.release.diff import Change, Diff, Field, Side, StageDiff

# So many lines of a table, and so many names of a list, stand on the page.
MOST_ROWS: Final = 200
MOST_NAMES: Final = 50
_LONGEST: Final = 120
_LABELS: Final = {
    "s": "S", "s_low": "low end of S", "s_high": "high end of S", "t_k_s": "T_k", "t_b_s": "T_b", "t_sol_s": "T_SOL",
}  # fmt: skip


def since(earlier: str, store_root: Path) -> Diff:
    """What changed from ``earlier``, a bundle or a store, to the release below ``store_root``."""
    # Here, for the site's pipeline stage names no earlier release and rests on none of this.
    from solbench.release.diff import diff
    from solbench.release.reading import from_store, opened

    with opened(earlier, store_root.parent) as old:
        return diff(old, from_store(store_root, str(store_root)))


def compare_page(book: Book, links: Links) -> dict[str, Any]:
    name = book.release.value.name
    return {
        "since": None if book.since is None else _since(links, book.since),
        "diff_command": f"solbench release diff OLD release/{name}.zip --json",
        "site_command": "solbench site --compare-with OLD",
    }


def _since(links: Links, found: Diff) -> dict[str, Any]:
    changes = [(stage.stage, change) for stage in found.stages for change in stage.changed]
    readable = [(stage, change) for stage, change in changes if not change.absent]
    by_kind: dict[str, list[tuple[str, Change]]] = {"score": [], "entry": [], "bound": [], "": []}
    for stage, change in readable:
        same_kind = change.old.kind == change.new.kind
        by_kind[change.new.kind if same_kind and change.new.kind in by_kind else ""].append((stage, change))
    compared, total = found.compared
    return {
        "earlier": _name(found.a),
        "differs": found.differs,
        "facts": _facts(found),
        "roots": [{"who": who, "root": side.root or ""} for who, side in (("earlier", found.a), ("this", found.b))],
        "compared": f"{text.grouped(compared)} of {text.grouped(total)}",
        "stages": [_stage(stage) for stage in found.stages],
        "entries": _table(by_kind["entry"], _by_field("s"), lambda change: _scored(links, change)),
        "scores": _table(by_kind["score"], _by_field("s"), lambda change: _scored(links, change)),
        "bounds": _table(by_kind["bound"], _by_field("t_sol_s"), lambda change: _bound(links, change)),
        "others": _table(by_kind[""], None, _other),
        "names": [listed for stage in found.stages for listed in _names(stage)],
    }


def _name(side: Side) -> str:
    return "of an unknown name" if side.release is None else str(side.release["name"])


def _facts(found: Diff) -> list[dict[str, str]]:
    """What both roots say of themselves, line by line."""
    from solbench.release.diff import target_words

    a, b = found.a.release, found.b.release
    if a is None or b is None:
        return []
    rows = [(name, _plain(a[name]), _plain(b[name])) for name in ("name", "corpora", "problems", "workloads")]
    targets = [{target["target"]: target_words(target) for target in release["targets"]} for release in (a, b)]
    for name in sorted(targets[0].keys() | targets[1].keys()):
        rows.append((f"target {name}", targets[0].get(name, "none"), targets[1].get(name, "none")))
    return [{"name": name, "old": old, "new": new} for name, old, new in rows]


def _stage(stage: StageDiff) -> dict[str, str]:
    counts = {name: text.grouped(len(getattr(stage, name))) for name in ("added", "removed", "moved", "changed")}
    compared = f"{text.grouped(stage.compared)} of {counts['changed']}"
    return {"stage": stage.stage, **counts, "compared": compared, "same": text.grouped(stage.same)}


def _table(
    changes: Sequence[tuple[str, Change]],
    order: Callable[[Change], tuple[float, str]] | None,
    row: Callable[[Change], dict[str, Any]],
) -> dict[str, Any]:
    """The first of the changes as rows, and how many of how many these are."""
    ordered = sorted(changes, key=lambda one: order(one[1])) if order is not None else list(changes)
    rows = [{"stage": stage, **row(change)} for stage, change in ordered[:MOST_ROWS]]
    return {
        "rows": rows,
        "count": f"{text.grouped(len(rows))} of {text.grouped(len(ordered))}",
        "cut": len(rows) < len(ordered),
        "any": bool(ordered),
    }


def _by_field(name: str) -> Callable[[Change], tuple[float, str]]:
    """Order: a value that came or went first, then the largest factor either way, then by name."""

    def key(change: Change) -> tuple[float, str]:
        field = next((field for field in change.fields if field.name == name), None)
        if field is None:
            return 0.0, change.name
        ratio = field.ratio
        return -max(ratio, 1 / ratio) if ratio is not None and ratio > 0 else -math.inf, change.name

    return key


def _scored(links: Links, change: Change) -> dict[str, Any]:
    """A score or an entry: S and T_k, old and new, and in words whatever else differs."""
    return {
        **_where(links, change.name),
        "values": [_pair(links, change, "s", text.score), _pair(links, change, "t_k_s", _seconds)],
        "also": _words(field for field in change.fields if field.name not in ("s", "t_k_s")),
    }


def _bound(links: Links, change: Change) -> dict[str, Any]:
    return {
        **_where(links, change.name),
        "values": [_pair(links, change, "t_sol_s", _seconds)],
        "also": _words(field for field in change.fields if field.name != "t_sol_s"),
    }


def _other(change: Change) -> dict[str, Any]:
    return {"name": change.name, "also": _words(change.fields)}


def _where(links: Links, name: str) -> dict[str, str]:
    """Parts of the logical name ``<problem>/<uuid>@<target>[/<solution>]``, or of an entry's, ``<target>/<entry>``."""
    workload, separator, rest = name.rpartition("@")
    target, _, solution = (rest if separator else name).partition("/")
    problem, _, uuid = workload.rpartition("/")
    known = ("problem", problem) in links.paths
    return {
        "problem": problem,
        "uuid": uuid,
        "href": links.page("problem", problem) if known else "",
        "target": target,
        "solution": solution,
    }


def _pair(links: Links, change: Change, name: str, shown: Callable[[float], str]) -> dict[str, Cell]:
    """One number of an artifact, old, new and their ratio. The new one links to its object: this release holds it."""
    field = next((field for field in change.fields if field.name == name), None)
    if field is None:
        return {"old": missing("same"), "new": missing("same"), "ratio": missing("—")}
    old, new = (value if _is_number(value) else None for value in (field.old, field.new))
    ratio = field.ratio
    return {
        "old": missing("none") if old is None else Cell(shown(old), sort=text.exact(old)),
        "new": missing("none") if new is None else number(links, new, shown(new), change.new),
        "ratio": missing("—") if ratio is None else Cell(text.ratio(ratio), sort=text.exact(ratio)),
    }


def _seconds(value: float) -> str:
    return text.quantity(value, "s")


def _words(fields: Iterable[Field]) -> str:
    return "; ".join(f"{_LABELS.get(field.name, field.name)} {_values(field)}" for field in fields)


def _values(field: Field) -> str:
    shown: Callable[[Any], str] = _plain
    if field.name in ("s", "s_low", "s_high"):
        shown = text.score
    elif field.name in ("t_k_s", "t_b_s", "t_sol_s"):
        shown = _seconds
    old, new = (shown(value) if _is_number(value) else _plain(value) for value in (field.old, field.new))
    return f"{old} → {new}" if old != new else f"{_plain(repr(field.old))} → {_plain(repr(field.new))}"


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int):
        return text.grouped(value)
    if isinstance(value, (list, tuple)):
        return text.listed(map(_plain, value)) or "none"
    shown = str(value)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _names(stage: StageDiff) -> list[dict[str, Any]]:
    """What came, went and moved in a stage, each as one list. What is named by its hash is counted by kind."""
    from solbench.release.diff import named_by_hash

    found = []
    for word, names in (("added", stage.added), ("removed", stage.removed)):
        hashed = Counter(n.partition("/")[0] for n in names if stage.stage == "code" and named_by_hash(n))
        plain = [name for name in names if stage.stage != "code" or not named_by_hash(name)]
        counted = [f"{text.grouped(count)} × {kind}" for kind, count in sorted(hashed.items())]
        found.append(_list(stage.stage, word, plain, len(names), counted))
    moved = [f"{old} → {new}" for old, new in stage.moved]
    found.append(_list(stage.stage, "moved to another name", moved, len(moved), []))
    also = [change.name for change in stage.changed if change.absent]
    found.append(_list(stage.stage, "changed, and its earlier content is not here", also, len(also), []))
    return [one for one in found if one is not None]


def _list(stage: str, word: str, names: Sequence[str], total: int, counted: list[str]) -> dict[str, Any] | None:
    if not total:
        return None
    shown = list(names[:MOST_NAMES])
    return {
        "title": f"{stage}: {text.grouped(total)} {word}",
        "names": shown,
        "counted": text.listed(counted),
        "cut": f"{text.grouped(len(shown))} of {text.grouped(len(names))}" if len(shown) < len(names) else "",
    }
