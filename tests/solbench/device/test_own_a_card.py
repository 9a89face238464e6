"""docs/own-a-card.md and constraints-rocm.txt name what is there."""

from __future__ import annotations

import re
from pathlib import Path

from device_fakes import ROOT

from solbench.cli.device import device


def pins(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {name.lower(): version for name, version in (line.split("==") for line in lines)}


def test_both_environments_agree_but_for_pytorch() -> None:
    locked, measuring = pins(ROOT / "constraints.txt"), pins(ROOT / "constraints-rocm.txt")
    assert len(measuring) > 10
    assert {name for name in measuring if locked.get(name) != measuring[name]} == {"torch"}


def test_every_command_of_the_page_exists() -> None:
    text = (ROOT / "docs" / "own-a-card.md").read_text()
    named = set(re.findall(r"solbench device (\w+)", text))
    assert named == set(device.commands)
