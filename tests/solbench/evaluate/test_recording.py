from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from solbench.errors import InputError, UndecidedError
from solbench.evaluate.recording import Key, Writer, read_header, read_set
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


def omission(workload: str) -> Omission:
    return Omission(definition="d", workload=workload, workload_digest=DIGEST, solution="s", reason="budget")


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
        partial = writer.partial
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
    with pytest.raises(InputError, match=rf"set\.jsonl: {next(iter(change))}: differs"):
        Writer(path, header(**change))
    assert len(read_set(path)[1]) == 2


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    with Writer(path, header()), pytest.raises(UndecidedError, match="another process"):
        Writer(path, header())


def test_a_record_is_written_once(tmp_path: Path) -> None:
    with Writer(tmp_path / "set.jsonl", header()) as writer:
        writer.add("P/d", trace("a"))
        with pytest.raises(Exception, match="second record of P/d/a/s"):
            writer.add("P/d", omission("a"))


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
