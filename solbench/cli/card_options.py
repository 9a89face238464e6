"""Options of every command that runs code on a card."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
_OPTIONS = (
    click.option("--uuid", help="The card, on a GPU target.  [default: $GPU_LOCK_UUID, else the only card]"),
    click.option(
        "--transport", type=click.Choice(["ipc", "host"]), default="ipc", show_default=True,
        help="On a GPU: shared memory is device memory, or copied from the host; traces say so.",
    ),
    click.option(
        "--lock-dir", type=click.Path(path_type=Path), help="Folder of card locks.  [default: $GPU_LOCK_DIR]"
    ),
)  # fmt: skip


def card_options(command: Command) -> Command:
    """Adds ``uuid``, ``transport`` and ``lock_dir``: see :class:`solbench.evaluate.session.Session`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
