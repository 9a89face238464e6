"""What an import or export says at its end: a line a note, then what was written."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from solbench.corpus.exchange.notes import Carried


def as_json(carried: Carried, output: Path) -> str:
    """One JSON object: output, problems, solutions, traces, notes."""
    return json.dumps({"output": str(output), **asdict(carried)}, indent=2)


def as_text(carried: Carried, output: Path) -> str:
    """A line a note (``loss`` or ``UNSUPPORTED``, where, what), and one with the counts."""
    words = {"loss": "loss       ", "unsupported": "UNSUPPORTED"}
    lines = [f"{words[note.kind]}  {note.where}: {note.what}" for note in carried.notes]
    losses = sum(note.kind == "loss" for note in carried.notes)
    lines.append(
        f"{output}: {len(carried.problems)} problems, {len(carried.solutions)} solutions, {carried.traces} traces; "
        f"{losses} losses, {len(carried.notes) - losses} unsupported"
    )
    return "\n".join(lines)
