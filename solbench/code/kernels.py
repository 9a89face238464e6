"""What a code object declares of each kernel: its descriptor, and the metadata note.

Formats: "User Guide for AMDGPU Backend" of LLVM: Code Object V3 and later metadata (note type 32, ``amdhsa.kernels``),
and Kernel Descriptor (64 bytes at ``<name>.kd``). Bit positions are those of GFX10 to GFX12.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from solbench.code import msgpack
from solbench.device import elf
from solbench.errors import InputError

NT_AMDGPU_METADATA = 32
DESCRIPTOR_BYTES = 64
MAX_KERNELS = 4096
# Of one kernel: a million instructions of mean size.
MAX_CODE_BYTES = 8 << 20
# Registers that one step of the descriptor's VGPR field stands for, by wave size; what is allocated is coarser.
VGPR_FIELD_STEP = {32: 8, 64: 4}


@dataclass(frozen=True)
class Argument:
    """One kernel argument: bytes from the start of the kernel's segment, bytes, and LLVM's ``value_kind``."""

    offset: int
    size: int
    kind: str


@dataclass(frozen=True)
class Descriptor:
    """The 64 bytes that the card's command processor reads. ``entry``: address of the first instruction."""

    lds_bytes: int
    scratch_bytes: int
    arguments_bytes: int
    entry: int
    vgpr_steps: int
    wave_size: int
    wgp_mode: bool
    dynamic_stack: bool


@dataclass(frozen=True)
class Kernel:
    """One kernel. Registers a lane or a wave, bytes a lane (scratch) or a work-group (LDS); spills are None untold.

    ``code``: address and bytes of its instructions. ``lds_bytes`` is what the code object fixes: Triton adds its
    memory at the launch.
    """

    name: str
    vgprs: int
    sgprs: int
    lds_bytes: int
    scratch_bytes: int
    wave_size: int
    vgpr_spills: int | None
    sgpr_spills: int | None
    max_threads: int
    arguments_bytes: int
    arguments: tuple[Argument, ...]
    descriptor: Descriptor
    code: tuple[int, int]

    def disagreements(self) -> tuple[str, ...]:
        """What note and descriptor say differently: a compiler's never do."""
        step = VGPR_FIELD_STEP[self.descriptor.wave_size]
        steps = max(1, -(-self.vgprs // step))
        pairs = (
            ("LDS bytes", self.lds_bytes, self.descriptor.lds_bytes),
            ("scratch bytes", self.scratch_bytes, self.descriptor.scratch_bytes),
            ("argument bytes", self.arguments_bytes, self.descriptor.arguments_bytes),
            ("wave size", self.wave_size, self.descriptor.wave_size),
            (f"VGPRs in steps of {step}", steps, self.descriptor.vgpr_steps),
            ("entry", self.code[0], self.descriptor.entry),
        )
        return tuple(f"{what}: note {noted}, descriptor {held}" for what, noted, held in pairs if noted != held)


@dataclass(frozen=True)
class CodeObject:
    """A code object's kernels by name, its loaded sections, and the symbols that another file would have to bring."""

    kernels: Mapping[str, Kernel]
    sections: tuple[elf.Section, ...]
    undefined: tuple[str, ...]

    def instructions(self, kernel: Kernel, where: str) -> bytes:
        """The machine code of one kernel; :class:`InputError` also for more than :data:`MAX_CODE_BYTES`."""
        address, size = kernel.code
        if size > MAX_CODE_BYTES:
            raise InputError(where, f"{size} bytes of code, more than {MAX_CODE_BYTES}")
        return elf.loaded(self.sections, address, size, where)


def read(code: bytes, where: str) -> CodeObject:
    """All that a code object declares. :class:`InputError`, with ``where``, for anything that is not as described."""
    parts = elf.sections(code, where)
    symbols = elf.symbols(parts, where)
    places = {symbol.name: symbol for symbol in symbols if symbol.section != elf.UNDEFINED}
    undefined = sorted({s.name for s in symbols if s.section == elf.UNDEFINED and s.name})
    found: dict[str, Kernel] = {}
    for number, entry in enumerate(_noted(parts, where)):
        name = _field(entry, ".name", str, f"{where}: kernel {number} of the note")
        if name in found:
            raise InputError(where, f"two kernels named {name!r} in the note")
        found[name] = _kernel(entry, name, parts, places, where)
    return CodeObject(found, parts, tuple(undefined))


def _noted(parts: tuple[elf.Section, ...], where: str) -> list[Any]:
    contents = [n.content for n in elf.notes(parts, where) if (n.owner, n.kind) == ("AMDGPU", NT_AMDGPU_METADATA)]
    if len(contents) != 1:
        raise InputError(where, f"{len(contents)} AMDGPU metadata notes; a code object has one")
    metadata = msgpack.read(contents[0], where)
    kernels = metadata.get("amdhsa.kernels") if isinstance(metadata, dict) else None
    if not isinstance(kernels, list) or len(kernels) > MAX_KERNELS:
        raise InputError(where, f"its note lists no kernels, or more than {MAX_KERNELS}")
    return kernels


def _kernel(
    entry: dict[str, Any], name: str, parts: tuple[elf.Section, ...], places: Mapping[str, elf.Symbol], where: str
) -> Kernel:
    inside = f"{where}: kernel {name!r}"
    symbol = _field(entry, ".symbol", str, inside)
    for wanted in (name, symbol):
        if wanted not in places:
            raise InputError(inside, f"no symbol {wanted!r} in the code object")
    listed = entry.get(".args", [])
    if not isinstance(listed, list):
        raise InputError(inside, "its .args is wrong in the note")
    described = _descriptor(parts, places[symbol].address, inside)
    wave_size = _field(entry, ".wavefront_size", int, inside)
    if wave_size not in VGPR_FIELD_STEP:
        raise InputError(inside, f".wavefront_size is {wave_size}, which is neither 32 nor 64")
    return Kernel(
        name,
        _field(entry, ".vgpr_count", int, inside),
        _field(entry, ".sgpr_count", int, inside),
        _field(entry, ".group_segment_fixed_size", int, inside),
        _field(entry, ".private_segment_fixed_size", int, inside),
        wave_size,
        _field(entry, ".vgpr_spill_count", int, inside) if ".vgpr_spill_count" in entry else None,
        _field(entry, ".sgpr_spill_count", int, inside) if ".sgpr_spill_count" in entry else None,
        _field(entry, ".max_flat_workgroup_size", int, inside),
        _field(entry, ".kernarg_segment_size", int, inside),
        tuple(_argument(argument, inside) for argument in listed),
        described,
        (places[name].address, places[name].size),
    )


def _argument(entry: Any, where: str) -> Argument:
    inside = f"{where}: an argument"
    offset, size = _field(entry, ".offset", int, inside), _field(entry, ".size", int, inside)
    return Argument(offset, size, _field(entry, ".value_kind", str, inside))


def _descriptor(parts: tuple[elf.Section, ...], address: int, where: str) -> Descriptor:
    held = elf.loaded(parts, address, DESCRIPTOR_BYTES, where)
    lds, scratch, arguments = struct.unpack_from("<III", held, 0)
    (entry,) = struct.unpack_from("<q", held, 16)
    (resources,) = struct.unpack_from("<I", held, 48)
    (properties,) = struct.unpack_from("<H", held, 56)
    return Descriptor(
        lds,
        scratch,
        arguments,
        address + entry,
        (resources & 63) + 1,  # GRANULATED_WORKITEM_VGPR_COUNT
        32 if properties >> 10 & 1 else 64,  # ENABLE_WAVEFRONT_SIZE32
        bool(resources >> 29 & 1),  # WGP_MODE
        bool(properties >> 11 & 1),  # USES_DYNAMIC_STACK
    )


def _field(entry: Any, key: str, kind: type, where: str) -> Any:
    """One field that the format demands: text, or a number of 32 bits that is not negative."""
    value = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool) or (isinstance(value, int) and value >> 32):
        raise InputError(where, f"its {key} is missing or wrong in the note")
    return value
