"""Triton without a card: a driver that compiles for one and hands each launch to a function, and what host code may ask
``torch.cuda`` meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any


def triton_driver(
    arch: str,
    device: Mapping[str, Any],
    launcher: Callable[[Any, Any], Callable[..., None]],
    *,
    torch_device: str,
    number: int = 0,
    lds_bytes: int,
) -> Any:
    """What Triton asks a driver for: the target is ``arch``, ``device`` the card's properties, ``launcher`` is called
    with a kernel's source and metadata and returns what a launch calls.

    ``number`` of the device: Triton keeps compiled kernels apart by it. ``lds_bytes``: a kernel that needs more fails
    as it does on a card. Host code finds its tensors on ``torch_device``.
    """
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase

    properties = {
        "max_shared_mem": lds_bytes, "max_num_regs": 2**30, "multiprocessor_count": device["multiprocessors"],
        "warpSize": device["warp_size"], "sm_clock_rate": 0, "mem_clock_rate": 0, "mem_bus_width": 0,
    }  # fmt: skip

    class Driver(DriverBase):
        def __init__(self) -> None:
            self.utils = SimpleNamespace(
                get_device_properties=lambda index: properties,
                load_binary=lambda name, kernel, shared, index: (object(), object(), 0, 0, 2**20),
                unload_module=lambda module: None,
            )
            self.launcher_cls = launcher

        @classmethod
        def is_active(cls) -> bool:
            return True

        def map_python_to_cpp_type(self, ty: str) -> str:
            raise RuntimeError("no launcher is built here")

        def get_current_target(self) -> Any:
            return GPUTarget("hip", arch, device["warp_size"])

        def get_active_torch_device(self) -> Any:
            import torch

            return torch.device(torch_device)

        def get_benchmarker(self) -> Any:
            raise RuntimeError("nothing is timed here")

        def get_current_device(self) -> int:
            return number

        def set_current_device(self, index: int) -> None:
            pass

        def get_current_stream(self, index: int) -> int:
            return 0

    return Driver()


def torch_answers(device: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of ``torch.cuda`` by name that answer host code as the card would, before it launches; anything else
    fails as it does without a card."""
    properties = SimpleNamespace(
        name=device["name"], gcnArchName=device["arch"], multi_processor_count=device["multiprocessors"],
        warp_size=device["warp_size"], total_memory=device["memory_bytes"],
        major=device["major"], minor=device["minor"],
        shared_memory_per_block=device["lds_bytes"], L2_cache_size=device["l2_bytes"],
    )  # fmt: skip
    return {
        "get_device_properties": lambda *_, **__: properties,
        "get_device_name": lambda *_, **__: device["name"],
        "get_device_capability": lambda *_, **__: (device["major"], device["minor"]),
        "current_device": lambda: 0,
        "device_count": lambda: 1,
        "is_available": lambda: True,
        "synchronize": lambda *_, **__: None,
        "device": lambda *_, **__: contextlib.nullcontext(),
    }
