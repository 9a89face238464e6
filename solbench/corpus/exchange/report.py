"""What an import or export says at its end: a line a note, then what was written."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from solbench.corpus.exchange.notes import Carried


def as_json(carried: Carried, output: Path) -> str:
    """One JSON object: output, problems, solutions, traces, notes."""
    return json.dumps({"output": str(output), **asdict(carried)}, indent=2)


def as_text(carried: Carried, output: Path) -> str:
    """A line a note (``loss``, ``warning`` or ``UNSUPPORTED``, where, what), and one with the counts."""
    words = {"loss": "loss       ", "warning": "warning    ", "unsupported": "UNSUPPORTED"}
    lines = [f"{words[note.kind]}  {note.where}: {note.what}" for note in carried.notes]
    counts = Counter(note.kind for note in carried.notes)
    lines.append(
        f"{output}: {len(carried.problems)} problems, {len(carried.solutions)} solutions, {carried.traces} traces; "
        f"{counts['loss']} losses, {counts['warning']} warnings, {counts['unsupported']} unsupported"
    )
    return "\n".join(lines)
