"""A number of seconds as an option."""

from __future__ import annotations

from typing import Any

import click

DAY_S = 86_400.0


class Seconds(click.FloatRange):
    """At least ``min_s`` and at most a day: what is endless, or no number, is no limit to set."""

    def __init__(self, min_s: float = 0.1) -> None:
        super().__init__(min=min_s, max=DAY_S)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value!r} is not a number", param, ctx)
        return number
