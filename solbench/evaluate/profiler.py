"""PyTorch's profiler around one call, in the worker. Standard library, and torch when it is asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

_MAX_ROWS, _MAX_NAME = 60, 160


def profiled(call: Callable[[], Any], synchronize: Callable[[], None]) -> dict[str, Any]:
    """Seconds of one call, and rows of name, whether it is a kernel, and seconds of its own on host and card, the
    largest first."""
    import torch

    host = torch.autograd.DeviceType.CPU
    with torch.profiler.profile(activities=torch.profiler.supported_activities()) as profile:
        start = time.perf_counter()
        call()
        synchronize()
        seconds = time.perf_counter() - start
    rows = []
    for event in profile.key_averages():
        kernel = event.device_type != host
        rows.append(
            [event.key[:_MAX_NAME], kernel, event.self_cpu_time_total / 1e6, event.self_device_time_total / 1e6]
        )
    rows.sort(key=lambda row: -max(row[2], row[3]))
    return {"call_s": seconds, "rows": rows[:_MAX_ROWS]}
