"""The memo: what was put comes back; a torn or altered entry counts as absent."""

from __future__ import annotations

from solbench import memo


def test_put_and_get(tmp_path):
    m = memo.Memo(tmp_path / "memo")
    key = memo.key("graphs", "code", ["input"])
    assert m.get(key) is None
    m.put(key, {"graph": [1, 2.5, None]})
    assert m.get(key) == {"graph": [1, 2.5, None]}
    assert [p.name for p in (tmp_path / "memo").rglob(".put-*")] == []


def test_altered_entry_is_absent(tmp_path):
    m = memo.Memo(tmp_path)
    key = memo.key("f", "c", [])
    m.put(key, {"value": 1})
    path = next(p for p in tmp_path.rglob("*") if p.is_file())
    for data in (path.read_bytes().replace(b"1", b"2", 1)[:-1], path.read_bytes()[:-1], b"", b"\n{}"):
        path.write_bytes(data)
        assert m.get(key) is None


def test_keys_differ_by_function_code_and_inputs():
    keys = {memo.key(f, c, i) for f in ("a", "b") for c in ("x", "y") for i in ([], ["1"], ["1", "2"])}
    assert len(keys) == 12


def test_code_digest_sees_content_and_names_and_ignores_other_files(tmp_path):
    package = tmp_path / "p"
    package.mkdir()
    (package / "a.py").write_text("x = 1\n")
    first = memo.code_digest([package], ["torch 2"])
    (package / "a.pyc").write_bytes(b"noise")
    assert memo.code_digest([package], ["torch 2"]) == first
    assert memo.code_digest([package], ["torch 3"]) != first
    (package / "a.py").write_text("x = 2\n")
    second = memo.code_digest([package], ["torch 2"])
    (package / "a.py").rename(package / "b.py")
    assert len({first, second, memo.code_digest([package], ["torch 2"])}) == 3
