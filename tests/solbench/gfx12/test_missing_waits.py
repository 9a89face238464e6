"""Each wait of compiled kernels taken out, one by one: strict waits find it.

A wait is overwritten in the machine code by ``s_nop 0``. Those of loads straight before a barrier's signal are left in:
the compiler puts them there whether a load is open or not. Without strict waits nothing is found, and the results are
those of the intact program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from solbench.code import kernels
from solbench.gfx12 import triton_launch
from solbench.gfx12.launches import Launches
from solbench.gfx12.program import Program, load
from solbench.gfx12.run import Options
from solbench.gfx12.triton_launch import launching
from tests.solbench.gfx12.kernels import norms, products, reductions
from tests.solbench.gfx12.kernels.case import Case

WAITS = ("s_wait_loadcnt", "s_wait_dscnt", "s_wait_kmcnt", "s_wait_loadcnt_dscnt")
S_NOP = (0xBF800000).to_bytes(4, "little")
CASES = [
    pytest.param(reductions, "_softmax", "softmax_bf16", id="softmax"),
    pytest.param(norms, "_layernorm", "layernorm_f32", id="layernorm"),
    pytest.param(products, "_product", "product_bf16_ragged", id="product"),
]
Compile = Callable[[bytes, str | None, str, str], Program]


def waits_of(program: Program) -> list[int]:
    """Addresses of the waits that something depends on."""
    found = []
    for held, then in zip(program.instructions, program.instructions[1:], strict=False):
        if held.name in WAITS and (held.name, then.name) != ("s_wait_loadcnt", "s_barrier_signal"):
            found.append(held.address)
    return found


def without(number: int, taken: list[int]) -> Compile:
    """Loads a kernel without its wait of this number; its address goes to ``taken``."""

    def changed(code: bytes, text: str | None, kernel: str, where: str) -> Program:
        whole = load(code, text, kernel, where)
        waits = waits_of(whole)
        if number >= len(waits):
            return whole
        held = kernels.read(code, where)
        found = held.instructions(held.kernels[kernel], where)
        assert code.count(found) == 1
        place = code.index(found) + waits[number] - held.kernels[kernel].code[0]
        taken.append(waits[number])
        return load(code[:place] + S_NOP + code[place + 4 :], None, kernel, where)

    return changed


def ran(family: Any, kernel: str, case: Case, options: Options) -> tuple[torch.Tensor, Launches]:
    with launching(options) as launches:
        getattr(family, kernel).device_caches.clear()  # compiled kernels that were loaded whole
        result = case.run(**case.inputs(torch.Generator().manual_seed(1)))
        getattr(family, kernel).device_caches.clear()
    return result[0] if isinstance(result, tuple) else result, launches


@pytest.mark.slow
@pytest.mark.parametrize(("family", "kernel", "name"), CASES)
def test_waits_that_are_not_there_are_found(
    family: Any, kernel: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in family.CASES if case.name == name)
    whole, _ = ran(family, kernel, case, Options())
    found: list[int] = []
    while True:
        taken: list[int] = []
        monkeypatch.setattr(triton_launch, "load", without(len(found), taken))
        _, launches = ran(family, kernel, case, Options(strict_waits=True))
        if not taken:
            break
        kinds = {(finding.kind, finding.place.address > taken[0]) for finding in launches.findings}
        assert ("missing wait", True) in kinds, f"wait at {taken[0]:#x}"
        found += taken
        result, launches = ran(family, kernel, case, Options())
        assert torch.equal(result, whole) and not launches.findings
    assert len(found) >= 8


def test_a_wait_that_is_not_there_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    monkeypatch.setattr(triton_launch, "load", without(1, taken))
    case = next(case for case in reductions.CASES if case.name == "softmax_bf16")
    _, launches = ran(reductions, "_softmax", case, Options(strict_waits=True))
    assert "missing wait" in {finding.kind for finding in launches.findings} and len(taken) == 1
