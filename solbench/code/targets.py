"""Cards that code is compiled for here, and what host code may ask of them.

Radeon RX 9060 XT: 32 compute units, 16 GiB, 4 MiB of level 2, 64 KiB of LDS a work-group (AMD's product page and
rocminfo). HIP counts work-group processors of two compute units each, as RDNA's runtime runs in WGP mode.
"""

from __future__ import annotations

from typing import Any, Final

from solbench.errors import UnsupportedError

DEVICES: Final[dict[str, dict[str, Any]]] = {
    "gfx1200": {
        "name": "AMD Radeon RX 9060 XT", "arch": "gfx1200", "major": 12, "minor": 0, "warp_size": 32,
        "multiprocessors": 16, "memory_bytes": 16 << 30, "l2_bytes": 4 << 20, "lds_bytes": 64 << 10,
    },
}  # fmt: skip


def device(target: str) -> dict[str, Any]:
    """What a host may ask of the card named ``target``; :class:`UnsupportedError` for another."""
    if target not in DEVICES:
        raise UnsupportedError(f"--target {target}: code is examined for {', '.join(DEVICES)}")
    return DEVICES[target]
