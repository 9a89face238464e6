"""What one compiled kernel shows without being run: its resources, its instructions, and what its author can act on.

Pure standard library, so that a verifier derives the same from the same bytes. See docs/code-evidence.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from typing import Any

from solbench.code import agreement, assembly, kernels, loops, machine_code, mix, trips
from solbench.code.examined import Examined, Launch
from solbench.code.findings import Finding, finding, findings, limit_findings
from solbench.code.occupancy import occupancy
from solbench.device import codeobject
from solbench.errors import InputError

SCHEMA = "solbench.kernel.v1"
# Architectures whose machine code is read: their instructions and limits are the same.
GFX12 = ("gfx1200", "gfx1201")
_NOTHING = ("occupancy", "code", "loops", "mix", "waits")

__all__ = ["Launch", "evidence"]


def evidence(code: bytes, assembly_text: str, kernel: str, launch: Launch, target: str = "gfx1200") -> dict[str, Any]:
    """Evidence of the kernel named ``kernel`` in a code object and the assembly that it was made from.

    JSON values, schema ``solbench.kernel.v1``: ``resources`` as declared, ``occupancy``, ``code`` (instructions read
    from the code object itself, and whether the text agrees), ``loops``, ``mix``, ``waits``, ``findings``, and
    ``failures``: texts of the findings that keep the kernel from being launched on ``target``. Where text and code
    disagree, nothing is said of the program (``loops``, ``mix``, ``waits`` are null); code for an architecture that is
    not gfx12 has its ``resources`` alone.

    :class:`InputError` for bytes or text that are not what they should be, ``UnsupportedError`` for an architecture
    without a name.
    """
    where = f"kernel {kernel!r}"
    if launch.threads < 1 or launch.dynamic_lds_bytes < 0:
        raise InputError(where, f"launched with {launch.threads} threads and {launch.dynamic_lds_bytes} bytes of LDS")
    arch = codeobject.arch(code, where)
    held = kernels.read(code, where)
    if kernel not in held.kernels:
        raise InputError(where, f"not in the code object, which has {', '.join(sorted(held.kernels)) or 'none'}")
    declared = held.kernels[kernel]
    gates: list[Finding] = []
    if arch != target:
        gates.append(finding("architecture", "fails launch", f"compiled for {arch}, but the target is {target}"))
    for symbol in held.undefined:
        gates.append(finding("unresolved-symbol", "fails launch", f"the code object lacks the symbol {symbol!r}"))
    for difference in declared.disagreements():
        gates.append(finding("descriptor", "fails launch", f"note and kernel descriptor disagree: {difference}"))
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "kernel": kernel,
        "arch": arch,
        "target": target,
        "launch": {**asdict(launch), "dots": None if launch.dots is None else [list(dot) for dot in launch.dots]},
        "resources": _resources(declared, launch),
        **dict.fromkeys(_NOTHING),
    }
    if arch in GFX12:
        examined, compared, read = _examine(held, declared, assembly_text, launch, where)
        found |= read
        if compared.fault is None:
            found |= {"loops": _loops(examined), "mix": _mix(examined.mix), "waits": _waits(examined.function)}
            gates.extend(findings(examined))
        else:
            text = f"the assembly is not what the code object holds: {compared.fault}"
            gates.append(finding("agreement", "fails launch", text))
            gates.extend(replace(each, evidence=(), source=()) for each in limit_findings(examined))
    found["findings"] = [
        {**asdict(each), "evidence": list(each.evidence), "source": list(each.source)} for each in gates
    ]
    found["failures"] = [each.text for each in gates if each.severity == "fails launch"]
    return found


def _examine(
    held: kernels.CodeObject, kernel: kernels.Kernel, text: str, launch: Launch, where: str
) -> tuple[Examined, agreement.Agreement, dict[str, Any]]:
    function = assembly.function(text, kernel.name, where)
    decoded, unread = machine_code.decode(held.instructions(kernel, where))
    compared = agreement.compare(function, decoded, unread)
    flow = loops.flow(function, where)
    counts = trips.trip_counts(function, flow)
    counted = mix.mix(function, flow, counts)
    lds = kernel.lds_bytes + launch.dynamic_lds_bytes
    resident = occupancy(launch.threads, kernel.vgprs, lds, kernel.wave_size, kernel.descriptor.wgp_mode)
    examined = Examined(kernel, launch, function, flow, counts, counted, resident)
    return (
        examined,
        compared,
        {
            "occupancy": {**asdict(resident), "limited_by": list(resident.limited_by)},
            "code": {
                "bytes": kernel.code[1],
                "instructions": len(decoded),
                "encodings": dict(sorted(Counter(instruction.encoding for instruction in decoded).items())),
                "unread": [asdict(word) for word in unread],
                "matched": compared.matched,
                "padding": compared.padding,
                "fault": compared.fault,
                "calls": sum(i.mnemonic in ("s_swappc_b64", "s_call_b64") for i in function.instructions),
            },
        },
    )


def _resources(kernel: kernels.Kernel, launch: Launch) -> dict[str, Any]:
    return {
        "vgprs": kernel.vgprs,
        "sgprs": kernel.sgprs,
        "vgpr_spills": kernel.vgpr_spills,
        "sgpr_spills": kernel.sgpr_spills,
        "scratch_bytes": kernel.scratch_bytes,
        "dynamic_stack": kernel.descriptor.dynamic_stack,
        "lds_bytes": kernel.lds_bytes + launch.dynamic_lds_bytes,
        "lds_fixed_bytes": kernel.lds_bytes,
        "wave_size": kernel.wave_size,
        "wgp_mode": kernel.descriptor.wgp_mode,
        "max_threads": kernel.max_threads,
        "arguments_bytes": kernel.arguments_bytes,
        "arguments": [asdict(argument) for argument in kernel.arguments],
    }


def _loops(examined: Examined) -> list[dict[str, Any]]:
    """Loops by their headers' lines; ``engines`` are of one iteration, inner loops left out."""
    found: list[dict[str, Any]] = []
    for number, loop in enumerate(examined.flow.loops):
        body = tuple(examined.instructions(loop.blocks))
        header = next(examined.instructions([loop.header]))
        lines = sorted({instruction.source for instruction in body if instruction.source})
        found.append(
            {
                "line": header.line,
                "first_line": body[0].line,
                "last_line": body[-1].line,
                "depth": loop.depth,
                "parent": loop.parent,
                "trips": examined.trips[number],
                "instructions": len(body),
                "engines": dict(examined.mix.per_iteration[number]),
                "source": [f"{file}:{line}" for file, line in lines],
            }
        )
    return found


def _mix(counted: mix.Mix) -> dict[str, Any]:
    return {
        "engines": {name: asdict(count) for name, count in counted.engines.items()},
        "wmma": {name: asdict(count) for name, count in counted.wmma.items()},
        "widths": {
            name: {str(bits): asdict(count) for bits, count in by.items()} for name, by in counted.widths.items()
        },
        "mnemonics": dict(counted.mnemonics),
        "unknown": list(counted.unknown),
    }


def _waits(function: assembly.Function) -> dict[str, dict[str, int]]:
    """Waits for memory by counter: how many, and how many of them for all that is outstanding."""
    found: dict[str, dict[str, int]] = {}
    for instruction in function.instructions:
        name = instruction.mnemonic
        if name.startswith("s_wait_") and name.endswith("cnt"):
            counts = found.setdefault(name, {"written": 0, "for_all": 0})
            counts["written"] += 1
            counts["for_all"] += instruction.operands[:1] in (("0x0",), ("0",))
    return dict(sorted(found.items()))
