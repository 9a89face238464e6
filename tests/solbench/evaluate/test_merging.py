from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner
from test_recording import card, header, omission, trace

from solbench.cli import run
from solbench.evaluate.merging import BUDGET, Record
from solbench.evaluate.recording import Writer, read_set
from solbench.model.trace import SetHeader


def write(path: Path, head: SetHeader, *records: Record) -> Path:
    with Writer(path, head) as writer:
        for record in records:
            writer.add("P/d", record)
        writer.complete()
    return path


def merge(*arguments: object) -> tuple[int, str]:
    """Exit code and the last line of stderr of the command."""
    runner = CliRunner()
    with runner.isolation() as (_, err, _):
        code = run(["measurements", "merge", *map(str, arguments)])
        return code, err.getvalue().decode().strip().rpartition("\n")[2]


def test_sets_of_several_cards(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", card("A", 2e-6), trace("a"), trace("c"), omission("e", BUDGET))
    b = write(tmp_path / "b.jsonl", card("B", 3e-6), trace("b"), trace("e"), omission("d"))
    for name, order in (("c", (a, b)), ("d", (b, a))):
        assert merge(*order, "--out", tmp_path / f"{name}.jsonl") == (0, "")
    found, records = read_set(tmp_path / "c.jsonl")
    assert [entry["uuid"] for entry in found.cards] == ["A", "B"] and found.floor_s == 2e-6
    cards = [(record.workload, getattr(record, "card", None)) for _, record in records]
    assert cards == [("a", "A"), ("b", "B"), ("c", "A"), ("d", None), ("e", "B")]
    assert (tmp_path / "c.jsonl").read_bytes() == (tmp_path / "d.jsonl").read_bytes()
    # Once more changes nothing, also into one of the sets themselves.
    assert merge(tmp_path / "c.jsonl", a, "--out", tmp_path / "c.jsonl") == (0, "")
    assert (tmp_path / "c.jsonl").read_bytes() == (tmp_path / "d.jsonl").read_bytes()


def test_sets_of_one_cpu(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", header(), trace("a"))
    b = write(tmp_path / "b.jsonl", header(), trace("a"), trace("b"))
    assert merge(a, b, "--out", tmp_path / "c.jsonl") == (0, "")
    found, records = read_set(tmp_path / "c.jsonl")
    assert found == header() and [record.workload for _, record in records] == ["a", "b"]


def test_what_cannot_be_one_set_is_refused(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", header(), trace("a"))
    other = trace("a").model_copy(update={"reason": "y"})
    for name, head, record, said in (
        ("target", header(target="sm_90"), trace("b"), "b.jsonl and {a}: target: differs"),
        ("device", header(device={"model": "y"}), trace("b"), "b.jsonl and {a}: device: differs"),
        ("conflict", header(), other, "b.jsonl: line 2, {a}: line 2: two different records of P/d/a/s"),
        ("omitted", header(), omission("a"), "b.jsonl: line 2, {a}: line 2: two different records of P/d/a/s"),
    ):
        (tmp_path / name).mkdir()
        b = write(tmp_path / name / "b.jsonl", head, record)
        code, line = merge(a, b, "--out", tmp_path / name / "c.jsonl")
        assert code == 2 and said.format(a=a) in line
        assert list(b.parent.iterdir()) == [b]
    code, line = merge(a, tmp_path / "conflict" / "b.jsonl", "--out", tmp_path / "target" / "b.jsonl")
    assert code == 2 and "is there already, and is none of the sets to merge" in line
    with Writer(tmp_path / "open.jsonl", header()) as writer:
        writer.add("P/d", trace("b"))
    code, line = merge(a, tmp_path / "open.jsonl.partial", "--out", tmp_path / "c.jsonl")
    assert code == 2 and "has no footer; the set is not complete" in line
    assert merge(a, tmp_path / "none.jsonl", "--out", tmp_path / "c.jsonl")[0] == 2
