"""What measuring on this machine's cards needs, what is there, and what to do about the rest."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from solbench.device import clocks, evidence, locks, native
from solbench.device.card import OVERRIDE, Card, Driver, drivers, foreign
from solbench.errors import SolbenchError

Verdict = Literal["ok", "note", "undecided", "unsupported"]
EXIT = {"ok": 0, "note": 0, "undecided": 3, "unsupported": 4}
_HIDING = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")


@dataclass(frozen=True)
class Finding:
    """``where``: a file, a variable, a card. ``do``: what to do; empty where nothing needs to be done."""

    verdict: Verdict
    where: str
    what: str
    do: str = ""


def examine(
    environment: Mapping[str, str], lock_option: Path | None = None, *, devices: Path = Path("/dev")
) -> list[Finding]:
    """Every finding, in the order in which one would repair. Nothing is changed."""
    found, absent = drivers()
    cards = [(driver, card) for driver in found for card in driver.cards()]
    findings = [Finding("note", missing.platform, missing.why) for missing in absent]
    if not cards:
        findings.append(Finding("unsupported", "cards", "no GPU that can be measured", "install what is missing above"))
    if any(card.platform == "rocm" for _, card in cards) or (devices / "kfd").exists():
        findings += _nodes(devices)
    findings += _variables(environment)
    findings += _runtimes({card.platform for _, card in cards})
    folder = None
    try:
        folder = locks.directory(lock_option, environment)
        findings.append(Finding("ok", str(folder), "lock folder"))
    except SolbenchError as error:
        where, _, rule = str(error).partition(": ")
        findings.append(Finding("undecided", where, rule, "see docs/own-a-card.md"))
    for driver, card in cards:
        findings += _card(driver, card)
        if folder is not None:
            findings += _left_behind(folder, card)
    return findings


def exit_code(findings: list[Finding]) -> int:
    return max(EXIT[finding.verdict] for finding in findings)


def _nodes(devices: Path) -> Iterator[Finding]:
    for node in [devices / "kfd", *sorted((devices / "dri").glob("renderD*"))]:
        if not node.exists():
            yield Finding(
                "unsupported", str(node), "not there", "load the amdgpu driver, or pass the node into the container"
            )
        elif not os.access(node, os.R_OK | os.W_OK):
            yield Finding(
                "undecided", str(node), "not readable and writable for this user",
                "sudo usermod -aG render,video $USER, then log in again",
            )  # fmt: skip
        else:
            yield Finding("ok", str(node), "readable and writable")


def _variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    if environment.get(OVERRIDE):
        yield Finding("undecided", OVERRIDE, "makes ROCm run code of another architecture", "unset it")
    for name in _HIDING:
        if environment.get(name):
            yield Finding(
                "note", f"{name}={environment[name]}", "hides or renumbers cards; they are found by PCI address"
            )


def _runtimes(platforms: set[str]) -> Iterator[Finding]:
    for platform in sorted(platforms):
        try:
            library = native.locate(platform)
            native.Runtime(platform, library)
        except SolbenchError as error:
            where, _, what = str(error).partition(": ")
            yield Finding("undecided", where, what, "see docs/own-a-card.md")
        else:
            yield Finding("ok", str(library), f"{platform} runtime")


def _card(driver: Driver, card: Card) -> Iterator[Finding]:
    yield Finding("ok", card.uuid, f"{card.name}, {card.arch}, {card.pci}")
    try:
        seen = driver.observe(card)
    except SolbenchError as error:
        yield Finding("undecided", card.uuid, str(error), "see the kernel log")
        return
    if seen.processes is None:
        yield Finding("note", card.uuid, "its processes cannot be listed here")
    for process in foreign(seen, {os.getpid()}):
        verdict: Verdict = "undecided" if process.compute else "note"
        use, do = ("computes", "end it before measuring") if process.compute else ("draws; times will vary more", "")
        yield Finding(verdict, card.uuid, f"{process.name} (pid {process.pid}) {use}", do)
    planned = clocks.plan(driver, card)
    if planned.set is None:
        yield Finding("note", card.uuid, f"measurements will be labelled unlocked: {planned.why}")
    elif os.geteuid() != 0:  # amdsmi itself asks for it, whoever may write the file in sysfs
        what = f"measurements will be labelled unlocked: only root may set {planned.set}"
        yield Finding("note", card.uuid, what, "run `solbench device lock` as root, see docs/own-a-card.md")
    else:
        yield Finding("ok", card.uuid, f"level {planned.found}; {planned.set} can be set")


def _left_behind(folder: Path, card: Card) -> Iterator[Finding]:
    path = str(evidence.evidence_path(folder, card.uuid))
    try:
        left = evidence.read(folder, card.uuid)
    except SolbenchError as error:
        yield Finding("undecided", path, str(error).removeprefix(f"{path}: "))
        return
    if left is None:
        return
    who = f"pid {left.owner.pid} ({left.owner.command})"
    if locks.is_held(locks.ownership(folder, card.uuid)):
        yield Finding("note", card.uuid, f"owned by {who}")
    else:
        yield Finding("undecided", path, f"left by {who}: {left.state}", f"solbench device recover --uuid {card.uuid}")
