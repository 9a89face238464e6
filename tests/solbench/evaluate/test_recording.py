from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from solbench.errors import InputError, UndecidedError
from solbench.evaluate.merging import BUDGET, Key
from solbench.evaluate.recording import Appender, Writer, read_header, read_set
from solbench.model.trace import Omission, SetHeader, Trace

DIGEST = "blake3:" + "0" * 64


def header(**changes: Any) -> SetHeader:
    fields = {
        "schema": "solbench.measurement-set.v1",
        "target": "cpu",
        "protocol": {"name": "quick", "processes": 1, "samples": 5, "max_call_s": 0.25, "isolation": ["rlimits"]},
        "harness": DIGEST,
        "environment": {"torch": "2"},
        "device": {"model": "x", "floors": {"c": 1}},
        "floor_s": 1e-6,
        "clocks": "unlocked",
    }
    return SetHeader.load({**fields, **changes}, "test")


def trace(workload: str) -> Trace:
    fields = {
        "schema": "solbench.trace.v1", "definition": "d", "workload": workload, "workload_digest": DIGEST,
        "solution": "s", "solution_digest": DIGEST, "target": "cpu", "status": "TIMEOUT", "reason": "x", "log": "é\n",
    }  # fmt: skip
    return Trace.load(fields, "test")


def omission(workload: str, reason: str = "slow") -> Omission:
    return Omission(definition="d", workload=workload, workload_digest=DIGEST, solution="s", reason=reason)


def write(path: Path) -> None:
    with Writer(path, header()) as writer:
        writer.add("P/d", trace("a"))
        writer.add("P/d", omission("b"))
        writer.complete()


def test_write_and_read(tmp_path: Path) -> None:
    path = tmp_path / "cpu" / "set.jsonl"
    write(path)
    assert [json.loads(line)["record"] for line in path.read_text().splitlines()] == [
        "header", "trace", "omission", "footer",
    ]  # fmt: skip
    assert read_header(path) == header()
    assert read_set(path) == (header(), [("P/d", trace("a")), ("P/d", omission("b"))])
    assert list(path.parent.iterdir()) == [path]


def test_resume_drops_a_torn_line_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    with Writer(path, header()) as writer:
        writer.add("P/d", trace("a"))
        partial = writer.path
    whole = partial.read_bytes()
    for torn in (b'{"record":"tra', b"{", b'{"record":"trace"}'):
        partial.write_bytes(whole + torn)
        # The floors are measured anew at every start; that is no other machine.
        with Writer(path, header(device={"model": "x", "floors": {"c": 2}})) as writer:
            assert writer.finished == {Key("P/d", "a", "s")}
            assert writer.header == header()
        assert partial.read_bytes() == whole
    with Writer(path, header()) as writer:
        writer.add("P/d", trace("b"))
        writer.complete()
    assert [record.workload for _, record in read_set(path)[1]] == ["a", "b"]


def test_a_torn_header_starts_again(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.with_name("set.jsonl.partial").write_bytes(b'{"record":"hea')
    write(path)
    assert len(read_set(path)[1]) == 2


def test_a_complete_set_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    write(path)
    before = path.read_bytes()
    with Writer(path, header()) as writer:
        assert len(writer.finished) == 2
        writer.complete()
    assert path.read_bytes() == before


@pytest.mark.parametrize("change", [{"target": "sm_90"}, {"environment": {"torch": "3"}}, {"device": {"model": "y"}}])
def test_another_header_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "set.jsonl"
    write(path)
    with pytest.raises(InputError, match=rf"set\.jsonl and now: {next(iter(change))}: differs"):
        Writer(path, header(**change))
    assert len(read_set(path)[1]) == 2 and list(tmp_path.iterdir()) == [path]


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    with Writer(path, header()), pytest.raises(UndecidedError, match="another process"):
        Writer(path, header())


def test_a_record_is_written_once(tmp_path: Path) -> None:
    with Writer(tmp_path / "set.jsonl", header()) as writer:
        writer.add("P/d", trace("a"))
        with pytest.raises(Exception, match="second record of P/d/a/s"):
            writer.add("P/d", omission("a"))


def test_what_had_no_time_is_attempted_again(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    with Writer(path, header()) as writer:
        writer.add("P/d", trace("a"))
        writer.add("P/d", omission("b", BUDGET))
        writer.complete()
    with Writer(path, header()) as writer:
        assert writer.finished == {Key("P/d", "a", "s")}
        writer.add("P/d", trace("b"))
        # Until the new one is complete the old set stands.
        assert read_set(path)[1][1] == ("P/d", omission("b", BUDGET))
        writer.complete()
    assert read_set(path)[1] == [("P/d", trace("a")), ("P/d", trace("b"))]


def card(uuid: str, floor_s: float = 1e-6, **fields: Any) -> SetHeader:
    device = {"model": "x", "uuid": uuid, "pci": "0000:03:00.0", "floors": {"c": floor_s}}
    return header(device={**device, **fields}, floor_s=floor_s)


def test_the_next_run_may_be_on_another_card(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    for uuid, floor_s, workload in (("B", 2e-6, "a"), ("A", 3e-6, "b"), ("B", 9e-6, "c")):
        with Writer(path, card(uuid, floor_s)) as writer:
            writer.add("P/d", trace(workload))
    with Writer(path, card("A")) as writer:
        writer.complete()
    found, records = read_set(path)
    assert found.device == {"model": "x"} and found.floor_s == 2e-6
    assert [(entry["uuid"], entry["floors"]) for entry in found.cards] == [("A", {"c": 3e-6}), ("B", {"c": 2e-6})]
    assert [record.card for _, record in records if isinstance(record, Trace)] == ["B", "A", "B"]
    with pytest.raises(InputError, match="device: differs"):
        Writer(path, card("A", model="y"))
    text = path.read_text()
    path.write_text(text.replace('"card":"A"', '"card":"C"'))
    with pytest.raises(InputError, match="line 3: card: is not among the cards"):
        read_set(path)


def test_parts_are_gathered_once(tmp_path: Path) -> None:
    """Also when a kill came between gathering and removing them, when a part ends in a torn line, and when a name
    reads like a pattern."""
    path = tmp_path / "set[1].jsonl"
    with Writer(path, card("A")) as writer:
        writer.add("P/d", trace("a"))
        for uuid, workload in (("A", "b"), ("B", "c")):
            with Appender(writer.part(uuid), card(uuid)) as part:
                part.add("P/d", trace(workload))
                part.append(b'{"record":"tra')
                if uuid == "A":
                    with pytest.raises(UndecidedError, match=r"part-A: another process"):
                        writer.gather()
        left = {file: file.read_bytes() for file in (writer.part("A"), writer.part("B"))}
        writer.gather()
        assert len(writer.finished) == 3 and not any(file.exists() for file in left)
    for file, data in left.items():
        file.write_bytes(data)
    with Writer(path, card("B")) as writer:
        assert {key.workload for key in writer.finished} == {"a", "b", "c"}
        writer.complete()
    assert [record.workload for _, record in read_set(path)[1]] == ["a", "b", "c"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_keeps_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    code = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from test_recording import header, trace, Writer
with Writer(Path({str(path)!r}), header()) as writer:
    writer.add("P/d", trace("a"))
    size = writer.path.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, size + 100))
    writer.add("P/d", trace("b"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "UndecidedError" in done.stderr and "set.jsonl.partial: cannot be written: File too large" in done.stderr
    data = path.with_name("set.jsonl.partial").read_bytes()
    assert data.endswith(b"\n") and data.count(b"\n") == 2


def test_traces_without_a_card_do_not_speak_of_one() -> None:
    assert "card" not in trace("a").as_dict() and "cards" not in header().as_dict()
    with pytest.raises(InputError, match="each needs a uuid of its own"):
        header(cards=[{"uuid": "A"}, {"uuid": "A"}])


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda lines: lines[:-1], "no footer"),
        (lambda lines: [lines[0], lines[1], lines[3]], "must count 1 records"),
        (lambda lines: [lines[0], lines[1], lines[1], lines[3]], "about the same"),
        (lambda lines: lines[1:], "line 1: must be the header"),
        (lambda lines: [lines[0], lines[1].replace("TIMEOUT", "PASSED"), *lines[2:]], "line 2: correctness"),
        (lambda lines: [lines[0], lines[1].replace('"problem"', '"issue"'), *lines[2:]], "line 2"),
        (lambda lines: [lines[0], "{}", *lines[2:]], "line 2"),
    ],
)
def test_a_broken_set_is_refused(tmp_path: Path, edit: Any, message: str) -> None:
    path = tmp_path / "set.jsonl"
    write(path)
    path.write_text("".join(line + "\n" for line in edit(path.read_text().splitlines())))
    with pytest.raises(InputError, match=message):
        read_set(path)


def test_a_torn_set_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    write(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="torn"):
        read_set(path)
