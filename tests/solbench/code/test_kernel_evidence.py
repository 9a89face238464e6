"""Evidence of a real kernel, the gates before a launch, and code objects that someone tampered with.

The kernel is objects/product.py: numbers follow from its source and from what the compiler wrote into its assembly.
"""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import pytest

from solbench.code import assembly, gathers, kernels, loops, mix, scalars
from solbench.code.evidence import Launch, evidence
from solbench.device import elf
from solbench.errors import InputError, UnsupportedError
from tests.test_imports import HEAVY, run_without

OBJECTS = Path(__file__).resolve().parent / "objects"
CODE = (OBJECTS / "product.hsaco").read_bytes()
TEXT = (OBJECTS / "product.s").read_text()
LAUNCH = Launch(32, 0, (("f16", "f16", "f32"),))


def rules(found: dict) -> list[str]:
    return [each["rule"] for each in found["findings"]]


def failed(code: bytes = CODE, text: str = TEXT, launch: Launch = LAUNCH, target: str = "gfx1200") -> list[str]:
    """Rules of the findings that keep the kernel from being launched; their texts are the failures."""
    found = evidence(code, text, "product", launch, target)
    gates = [each for each in found["findings"] if each["severity"] == "fails launch"]
    assert found["failures"] == [each["text"] for each in gates]
    return [each["rule"] for each in gates]


def at(code: bytes, name: str) -> int:
    """Where in the file the content of a section starts."""
    section = next(section for section in elf.sections(code, "x") if section.name == name)
    return code.index(section.content)


def patched(place: int, new: bytes) -> bytes:
    return CODE[:place] + new + CODE[place + len(new) :]


def test_the_whole_of_one_kernel() -> None:
    found = evidence(CODE, TEXT, "product", LAUNCH)
    assert json.loads(json.dumps(found)) == found
    assert found["schema"] == "solbench.kernel.v1"
    assert (found["arch"], found["failures"]) == ("gfx1200", [])
    assert not [each for each in found["findings"] if each["severity"] != "note"]
    # N / 16 products of 16 x 16 x 16, four in each of 16 iterations.
    assert found["mix"]["wmma"] == {"f16": {"written": 4, "run_at_most": 64}}
    (loop,) = found["loops"]
    assert (loop["trips"], loop["depth"], loop["parent"]) == (16, 1, None)
    assert loop["engines"]["wmma"] == 4
    assert loop["source"] == [f"product.py:{line}" for line in (15, 16, 17, 18)]
    # Two operands of 16 x 16 f16 in 32 lanes: 16 bytes a lane each, once per product.
    assert found["mix"]["widths"]["global_load"] == {"128": {"written": 8, "run_at_most": 128}}
    # 16 x 16 f32 in 32 lanes: 32 bytes a lane.
    stores = found["mix"]["widths"]["global_store"]
    assert sum(int(bits) * count["run_at_most"] for bits, count in stores.items()) == 32 * 8
    # .vgpr_count, .sgpr_count and "; Occupancy" of the assembly.
    assert (found["resources"]["vgprs"], found["resources"]["sgprs"]) == (47, 10)
    assert found["occupancy"]["waves_per_simd"] == 16
    assert found["resources"]["arguments"][0] == {"offset": 0, "size": 8, "kind": "global_buffer"}
    # "; codeLenInByte" of the assembly.
    assert found["code"]["bytes"] == int(TEXT.split("; codeLenInByte = ")[1].split()[0])
    assert found["code"]["fault"] is None and found["code"]["unread"] == []
    assert found["code"]["matched"] == found["code"]["instructions"] == sum(found["code"]["encodings"].values())
    assert found["mix"]["unknown"] == []
    assert found["waits"]["s_wait_loadcnt"] == {"written": 8, "for_all": 1}


def test_the_same_bytes_give_the_same_evidence() -> None:
    assert evidence(CODE, TEXT, "product", LAUNCH) == evidence(CODE, TEXT, "product", LAUNCH)


def test_the_verifier_needs_the_standard_library_alone() -> None:
    done = run_without(HEAVY, "import solbench.code.evidence")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("launch", "rule"),
    [
        (Launch(32, 65_536, None), None),
        (Launch(32, 65_537, None), "lds-limit"),
        (Launch(33, 0, None), "work-group-limit"),  # compiled for one warp of 32
    ],
)
def test_limits_of_a_launch(launch: Launch, rule: str | None) -> None:
    assert failed(launch=launch) == ([rule] if rule else [])


def test_the_wrong_architecture() -> None:
    other = patched(48, struct.pack("<I", 0x4E))  # EF_AMDGPU_MACH of gfx1201
    assert failed(other, target="gfx1201") == []
    assert failed(other) == ["architecture"]
    older = evidence(patched(48, struct.pack("<I", 0x41)), TEXT, "product", LAUNCH)  # gfx1100: other machine code
    assert older["failures"] == ["compiled for gfx1100, but the target is gfx1200"]
    assert older["mix"] is None and older["code"] is None and older["resources"]["vgprs"] == 47
    with pytest.raises(UnsupportedError, match="unknown AMDGPU architecture"):
        evidence(patched(48, struct.pack("<I", 0xFE)), TEXT, "product", LAUNCH)


def test_an_unresolved_symbol() -> None:
    # The second entry of .symtab, an absolute symbol of the compiler's: its section becomes none.
    place = at(CODE, ".symtab") + 24 + 6
    assert CODE[place : place + 2] == b"\xf1\xff"
    found = evidence(patched(place, b"\0\0"), TEXT, "product", LAUNCH)
    assert found["failures"] == ["the code object lacks the symbol 'amdgpu.max_num_vgpr'"]


@pytest.mark.parametrize(
    ("offset", "said"),
    [(0, "LDS bytes: note 0, descriptor 1"), (4, "scratch bytes: note 0, descriptor 1"), (48, "VGPRs in steps of 8")],
)
def test_a_descriptor_that_the_note_contradicts(offset: int, said: str) -> None:
    code = patched(at(CODE, ".rodata") + offset, b"\x01")
    found = evidence(code, TEXT, "product", LAUNCH)
    assert [text for text in found["failures"] if said in text]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("v_wmma_f32_16x16x16_f16 v[1:8], v[15:18]", "v_fma_f32 v1, v15, v19, v1 ;"),
        ("v_lshrrev_b32_e32 v13, 1, v0", "v_lshrrev_b32_e64 v13, 1, v0"),
        ("\ts_endpgm\n", "\ts_nop 0\n\ts_endpgm\n"),
        ("\tv_mov_b32_e32 v7, v1\n", ""),
        ("\ts_cbranch_scc1 .LBB0_1\n", "\ts_cbranch_scc1 .LBB0_9\n.LBB0_9:\n"),
        ("\tv_mov_b32_e32 v7, v1\n", "\t.long 0x7e0e0301\n"),
    ],
)  # fmt: skip
def test_assembly_that_is_not_of_this_code(old: str, new: str) -> None:
    assert old in TEXT
    assert "agreement" in failed(text=TEXT.replace(old, new, 1))


def test_code_that_is_not_of_this_assembly() -> None:
    start = at(CODE, ".text")
    for place, word, said in ((0, 0xFFFFFFFF, "no gfx12 encoding"), (8, 0x7E00FE00, "no such opcode")):
        found = evidence(patched(start + place, struct.pack("<I", word)), TEXT, "product", LAUNCH)
        assert said in found["code"]["fault"]
        assert found["code"]["unread"][0]["offset"] == place
        assert found["code"]["unread"][0]["word"] == word


@pytest.mark.parametrize(
    ("code", "text", "kernel", "launch", "said"),
    [
        (b"", TEXT, "product", LAUNCH, "not an ELF file"),
        (CODE[:3000], TEXT, "product", LAUNCH, "ends early"),
        (CODE, TEXT, "other", LAUNCH, "not in the code object, which has product"),
        (CODE, "", "product", LAUNCH, "0 functions 'product' in the assembly"),
        (CODE, TEXT + "product:\n", "product", LAUNCH, "2 functions 'product'"),
        (CODE, "product:\n", "product", LAUNCH, "no instruction"),
        (CODE, TEXT.replace("\n.LBB0_1:", "\n.LBB0_7:"), "product", LAUNCH, "branches to no instruction"),
        (CODE, TEXT, "product", Launch(0, 0, None), "0 threads"),
        (CODE, TEXT, "product", Launch(32, -1, None), "-1 bytes of LDS"),
    ],
)
def test_what_cannot_be_examined(code: bytes, text: str, kernel: str, launch: Launch, said: str) -> None:
    with pytest.raises(InputError, match=said):
        evidence(code, text, kernel, launch)


def test_hostile_bytes_end_in_one_line() -> None:
    """Cut anywhere or with any bytes changed: evidence, or an error that a user can read."""
    draw = random.Random(6)
    for number in range(400):
        code = bytearray(CODE)
        for _ in range(draw.choice((1, 1, 4, 32))):
            # The text is the same for every byte of code; headers, notes and symbols are what is read.
            place = draw.choice((draw.randrange(0, 0x700), draw.randrange(0x700, len(code))))
            code[place] = draw.randrange(256)
        cut = bytes(code[: draw.randrange(len(code))] if number % 4 == 0 else code)
        try:
            json.dumps(evidence(cut, TEXT, "product", LAUNCH))
        except (InputError, UnsupportedError) as error:
            assert "\n" not in str(error)


def test_a_note_without_a_field() -> None:
    place = CODE.index(b".vgpr_count")
    with pytest.raises(InputError, match=r"its \.vgpr_count is missing or wrong"):
        kernels.read(patched(place, b".vgpr_counT"), "x")


@pytest.mark.parametrize(("field", "value"), [(".args", 5), (".args", {"a": 1}), (".vgpr_count", 1 << 60)])
def test_a_note_with_another_kind_of_field(monkeypatch: pytest.MonkeyPatch, field: str, value: object) -> None:
    read = kernels.msgpack.read

    def changed(content: bytes, where: str) -> object:
        note = read(content, where)
        note["amdhsa.kernels"][0][field] = value
        return note

    monkeypatch.setattr(kernels.msgpack, "read", changed)
    with pytest.raises(InputError, match=rf"its \{field} is (missing or )?wrong in the note"):
        evidence(CODE, TEXT, "product", LAUNCH)


def test_more_code_than_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    size = evidence(CODE, TEXT, "product", LAUNCH)["code"]["bytes"]
    monkeypatch.setattr(kernels, "MAX_CODE_BYTES", size)
    assert failed() == []
    monkeypatch.setattr(kernels, "MAX_CODE_BYTES", size - 1)
    with pytest.raises(InputError, match="bytes of code, more than"):
        evidence(CODE, TEXT, "product", LAUNCH)


def test_more_instructions_in_loops_than_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    (loop,) = evidence(CODE, TEXT, "product", LAUNCH)["loops"]
    monkeypatch.setattr(loops, "MAX_LOOPED", loop["instructions"])
    assert failed() == []
    monkeypatch.setattr(loops, "MAX_LOOPED", loop["instructions"] - 1)
    with pytest.raises(InputError, match="loops within loops of more than"):
        evidence(CODE, TEXT, "product", LAUNCH)


def test_a_source_line_of_thousands_of_digits() -> None:
    text = TEXT.replace("\tproduct:\n", "product:\n").replace("\nproduct:", "\nproduct:\n\t.loc\t1 " + "9" * 5000, 1)
    assert text != TEXT and failed(text=text) == []


def test_registers_that_no_card_has() -> None:
    assert len(scalars.registers("s[0:999]")) == 128 and scalars.registers("s[4:5]") == ("s4", "s5")
    assert len(gathers.registers("v[0:999]")) == 256 and gathers.registers("v[4:5]") == {"v4", "v5"}


def test_more_runs_than_json_can_hold() -> None:
    trip = 1 << 18
    text = "k:\n.A:\n.B:\n.C:\n\ts_nop 0\n" + "".join(f"\ts_cbranch_scc1 .{name}\n" for name in "CBA") + "\ts_endpgm\n"
    nested = text.replace(".B:\n", "\ts_nop 0\n.B:\n").replace(".C:\n", "\ts_nop 0\n.C:\n")
    function = assembly.function(nested, "k", "x")
    flow = loops.flow(function, "x")
    assert [loop.depth for loop in flow.loops] == [1, 2, 3]
    hints = mix.mix(function, flow, (trip, 1, 1)).engines["hint"]
    assert hints == mix.Count(3, 3 * trip)
    assert mix.mix(function, flow, (trip,) * 3).engines["hint"] == mix.Count(3, None)  # 2**54 and more
