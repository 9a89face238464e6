"""Programs of code objects: addresses, targets, functions, and what is refused."""

from __future__ import annotations

import pytest

from solbench.errors import InputError, UnsupportedError
from solbench.gfx12.launch import Launch, check
from solbench.gfx12.operands import parse
from solbench.gfx12.program import load
from tests.solbench.gfx12.assembled import TOOLS
from tests.solbench.gfx12.small_kernels import code_of, program_of

pytestmark = pytest.mark.skipif(None in TOOLS.values(), reason="llvm-mc-22, ld.lld-22 or llvm-objdump-22 is missing")
LOOP = """s_mov_b32 s2, 3
again:
s_sub_co_i32 s2, s2, 1
s_cmp_lg_u32 s2, 0
s_cbranch_scc1 again
"""


def test_addresses_follow_each_other_and_branches_lead_to_instructions() -> None:
    program = program_of(LOOP)
    names = [held.name for held in program.instructions]
    assert names[:4] == ["s_mov_b32", "s_sub_co_i32", "s_cmp_lg_u32", "s_cbranch_scc1"] and names[4] == "s_endpgm"
    for one, other in zip(program.instructions, program.instructions[1:], strict=False):
        assert one.address + one.size == other.address
    assert program.instructions[3].target == program.instructions[1].address
    assert program.instructions[0].address == program.kernel.descriptor.entry
    assert program.numbers[program.instructions[2].address] == 2


def test_text_and_code_have_to_agree() -> None:
    code = code_of(LOOP)
    text = "small:\n" + LOOP + "s_endpgm\n"
    assert len(load(code, text, "small", "t").instructions) == 5
    for wrong in (text.replace("s_cmp_lg", "s_cmp_eq"), text.replace("again:\n", "").replace("s_cmp", "again:\ns_cmp")):
        with pytest.raises(InputError, match="differ"):
            load(code, wrong, "small", "t")


def test_a_symbol_in_the_text_is_the_number_in_the_code() -> None:
    body = "s_getpc_b64 s[2:3]\ns_add_co_u32 s2, s2, small@rel32@lo+4\ns_add_co_ci_u32 s3, s3, small@rel32@hi+12\n"
    code = code_of(body)
    by_text = load(code, "small:\n" + body + "s_endpgm\n", "small", "t").instructions
    by_code = load(code, None, "small", "t").instructions
    assert [parse(held.operations[0].operands[2]).value for held in by_text[1:3]] == [
        int(parse(held.operations[0].operands[2]).value) & 0xFFFFFFFF for held in by_code[1:3]
    ]


def test_inlined_code_is_placed_where_its_author_called_it() -> None:
    text = (
        '.file 1 "a/lib.h"\n.file 2 "k.hip"\nsmall:\n'
        ".loc 1 7 3 ; a/lib.h:7:3 @[ b/mid.h:9:1 @[ k.hip:45:3 ] ]\ns_mov_b32 s2, 3\nagain:\n"
        ".loc 2 50 1 ; k.hip:50:1\ns_sub_co_i32 s2, s2, 1\ns_cmp_lg_u32 s2, 0\ns_cbranch_scc1 again\ns_endpgm\n"
    )
    held = load(code_of(LOOP), text, "small", "t").instructions
    assert held[0].source == ("k.hip", 45) and held[1].source == ("k.hip", 50)


def test_refusals() -> None:
    with pytest.raises(InputError, match="no kernel 'other'"):
        load(code_of(""), None, "other", "t")
    with pytest.raises(UnsupportedError, match="denormals"):
        load(code_of("", denormals=0), None, "small", "t")
    with pytest.raises(InputError, match="ELF"):
        load(b"MZ" + bytes(100), None, "small", "t")


@pytest.mark.parametrize("place", [0x14, 0x28, 0x3C])
def test_a_damaged_code_object_is_an_input_error(place: int) -> None:
    code = bytearray(code_of(LOOP))
    code[place : place + 4] = b"\xff\xff\xff\x7f"
    try:
        load(bytes(code), None, "small", "t")
    except (InputError, UnsupportedError):
        return


@pytest.mark.parametrize(
    ("launch", "what"),
    [
        (Launch((1, 1, 1), (2048, 1, 1), b""), "2048 threads"),
        (Launch((1, 1, 1), (0, 1, 1), b""), "a launch of"),
        (Launch((1, 1, 1), (32, 1, 1), bytes(100)), "100 bytes of arguments"),
        (Launch((1, 1, 1), (32, 1, 1), b"", 70_000), "of LDS"),
    ],
)
def test_launches_that_no_card_takes(launch: Launch, what: str) -> None:
    with pytest.raises(InputError, match=what):
        check(program_of(""), launch)
