"""A bound can be recomputed anywhere: neither PyTorch nor NumPy, and nothing of solbench."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from bound_programs import Build
from solar import einsum, hardware
from solar.bound import bound
b = Build()
x, w = b.input("x", 64, 64), b.input("w", 64, 64)
assert bound(b.program(b.einsum("ij,jk->ik", x, w)), hardware.load("gfx1200"))["t_sol_s"] > 0
assert hardware.__file__.endswith("hardware.py"), hardware.__file__
print(" ".join(sorted({name.partition(".")[0] for name in sys.modules} & {"torch", "numpy", "solbench", "opt_einsum"})))
"""


def test_neither_torch_nor_numpy_is_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
