"""Bundles that must be refused, each with its stable code. Numbers in comments: the case that a test is for."""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sample_release
from sample_release import forge_root, reseal, rewrite

from solbench import canonical
from solbench.errors import InputError
from solbench.release import archive, shares, source
from solbench.release.source import Limits
from solbench.release.verify import Result, verify

SCALE = "DEMO/unit/scale"


def codes(result: Result) -> list[str]:
    return [error.code for error in result.errors]


def refused(result: Result, code: str, exit_code: int = 1) -> None:
    assert code in codes(result), codes(result)
    assert result.exit_code == exit_code, result.errors


def an_object(folder: Path, stage: str, name: str) -> Path:
    release = canonical.loads((folder / "release.json").read_bytes())
    section = json.loads(object_path(folder, release["sections"][stage]["digest"]).read_bytes())
    return object_path(folder, section["entries"][name]["digest"])


def sections_of(folder: Path) -> dict[str, dict[str, Any]]:
    release = canonical.loads((folder / "release.json").read_bytes())
    return {
        stage: json.loads(object_path(folder, reference["digest"]).read_bytes())["entries"]
        for stage, reference in release["sections"].items()
    }


def object_path(folder: Path, digest: str) -> Path:
    text = digest.removeprefix("blake3:")
    return folder / "objects" / text[:2] / text[2:]


# -- the untouched sample


def test_the_sample_itself_is_verified_in_both_forms(sample: Path) -> None:
    results = [verify(sample / name) for name in ("sample.zip", "sample")]
    assert [result.exit_code for result in results] == [0, 0]
    assert results[0].root == results[1].root
    assert [level.state for level in results[0].levels] == ["verified"] * 9 + ["skipped"]


# -- objects of the file system (15-28)


def replace_with(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def test_a_symbolic_link_to_the_right_bytes(folder: Path, tmp_path: Path) -> None:  # 15
    (tmp_path / "outside").write_bytes((folder / "release.json").read_bytes())
    replace_with(folder / "release.json", lambda path: path.symlink_to(tmp_path / "outside"))
    refused(verify(folder), "fs-symlink")


def test_a_symbolic_link_inside(folder: Path) -> None:  # 16
    (folder / "site" / "again.html").symlink_to("index.html")
    refused(verify(folder), "fs-symlink")


def test_a_linked_folder_is_not_entered(folder: Path, tmp_path: Path) -> None:
    (folder / "site" / "assets").rename(tmp_path / "assets")
    (folder / "site" / "assets").symlink_to(tmp_path / "assets")
    result = verify(folder)
    refused(result, "fs-symlink")
    refused(result, "missing-file")


def test_the_bundle_itself_may_be_a_link(folder: Path, archive_file: Path, tmp_path: Path) -> None:  # 18
    for number, target in enumerate((folder, archive_file)):
        link = tmp_path / f"link{number}"
        link.symlink_to(target)
        assert verify(link).exit_code == 0


def test_a_fifo_does_not_block(folder: Path) -> None:  # 19
    replace_with(folder / "site" / "index.html", os.mkfifo)
    refused(verify(folder), "fs-type")


def test_a_socket(folder: Path) -> None:  # 20
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(folder / "site")
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        refused(verify(folder), "fs-type")


def test_devices_are_not_read() -> None:
    refused(verify(Path("/dev/zero")), "fs-type")


def test_a_hard_link_is_just_a_file(folder: Path, tmp_path: Path) -> None:  # 21
    os.link(folder / "release.json", tmp_path / "second name")
    assert verify(folder).exit_code == 0


def test_a_sparse_giant_is_not_read(folder: Path) -> None:  # 22
    path = an_object(folder, "corpus", SCALE)
    with path.open("r+b") as file:
        file.truncate(8 << 40)
    result = verify(folder)
    refused(result, "limit-object")
    refused(result, "size-mismatch")
    assert result.bytes < 1 << 20


def test_a_manifest_beyond_the_limit_is_not_parsed(folder: Path) -> None:  # 62
    with (folder / "release.json").open("r+b") as file:
        file.truncate(2 << 30)
    refused(verify(folder), "limit-manifest", 3)
    refused(verify(folder, limits=Limits(manifest_bytes=64)), "limit-manifest", 3)


def test_other_limits(folder: Path, archive_file: Path) -> None:
    for path in (folder, archive_file):
        refused(verify(path, limits=Limits(files=10)), "limit-files", 3 if path == archive_file else 1)
        refused(verify(path, limits=Limits(object_bytes=500)), "limit-object", 3)
        refused(verify(path, limits=Limits(total_bytes=9000)), "limit-total", 3)


def test_an_unreadable_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # 23
    victim = an_object(folder, "corpus", SCALE)
    original = os.open

    def refuse(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if path == victim.name:
            raise PermissionError(errno.EACCES, "Permission denied")
        return original(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", refuse)
    refused(verify(folder), "io-error", 3)


@pytest.mark.parametrize("change", [b"longer than it was before" * 9, b"short"])
def test_a_file_that_changes_while_it_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: bytes
) -> None:  # 24
    victim = folder / "site" / "assets" / "site.css"
    original = source.DirectorySource.chunks

    def chunks(self: source.DirectorySource, name: str) -> Any:
        if name == "site/assets/site.css":
            victim.write_bytes(change)
        return original(self, name)

    monkeypatch.setattr(source.DirectorySource, "chunks", chunks)
    refused(verify(folder), "io-changed", 3)


def test_a_file_that_shrinks_between_two_reads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = os.read
    monkeypatch.setattr(os, "read", lambda handle, size: original(handle, size // 2) if size < 200 else b"")
    refused(verify(folder), "io-changed", 3)


def test_an_object_that_nobody_refers_to(folder: Path) -> None:  # 26
    sample_release.add_object(folder, b'{"kind":"trace","schema":"solbench.trace.v1"}')
    reseal(folder)
    result = verify(folder)
    refused(result, "extra-object")
    assert codes(result) == ["extra-object"]


@pytest.mark.parametrize("name", ["notes.txt", ".DS_Store", ".dvc", "release.json~", "objects/x"])  # 27, 28
def test_an_extra_file(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"x")
    reseal(folder)
    refused(verify(folder), "extra-file")


def test_an_empty_directory(folder: Path) -> None:
    (folder / "site" / "empty").mkdir()
    refused(verify(folder), "extra-file")


def test_a_page_that_site_json_does_not_know(folder: Path) -> None:
    (folder / "site" / "extra.html").write_bytes(b"x")
    reseal(folder)
    assert codes(verify(folder)) == ["extra-file"]


def test_a_page_that_is_gone(folder: Path) -> None:
    (folder / "site" / "index.html").unlink()
    reseal(folder)
    assert codes(verify(folder)) == ["missing-file"]


@pytest.mark.parametrize("name", ["release.json", "provenance.json", "SHA256SUMS", "B3SUMS"])
def test_a_file_that_every_bundle_has(folder: Path, name: str) -> None:
    (folder / name).unlink()
    refused(verify(folder), "missing-file")


# -- objects and digests (29-43)


def damage(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = an_object(folder, "timings", f"cpu/full/{SCALE}/w1/eager")
        path.write_bytes(change(path.read_bytes()))
        reseal(folder)

    return apply


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda data: bytes([data[0] ^ 1]) + data[1:], "digest-mismatch"),  # 29
        (lambda data: data[:-1], "size-mismatch"),  # 30
        (lambda data: data + b"\n", "size-mismatch"),  # 31
        (lambda data: b"", "size-mismatch"),  # 32
    ],
)
def test_a_damaged_object(folder: Path, change: Callable[[bytes], bytes], code: str) -> None:
    damage(change)(folder)
    result = verify(folder)
    refused(result, code)
    refused(result, "digest-mismatch")
    assert "extra-object" not in codes(result)


def test_a_missing_object(folder: Path) -> None:  # 33
    an_object(folder, "scores", "cpu/eager").unlink()
    reseal(folder)
    result = verify(folder)
    refused(result, "missing-object")
    missing = [error for error in result.errors if error.code == "missing-object"]
    assert [error.expected for error in missing] == ["entry"]


def test_two_objects_swapped(folder: Path) -> None:  # 34
    first, second = an_object(folder, "scores", "cpu/eager"), an_object(folder, "scores", "cpu/fast")
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    reseal(folder)
    assert codes(verify(folder)).count("digest-mismatch") == 2


def test_an_object_under_the_wrong_two_digits(folder: Path) -> None:  # 35
    path = an_object(folder, "scores", "cpu/eager")
    wrong = path.parent.parent / ("00" if path.parent.name != "00" else "01")
    wrong.mkdir(exist_ok=True)
    path.rename(wrong / path.name)
    reseal(folder)
    result = verify(folder)
    refused(result, "object-path")
    refused(result, "missing-object")


def reference_change(**fields: object) -> Callable[[Any], Any]:
    def change(section: Any) -> Any:
        entry = next(iter(section["entries"].values()))
        entry.update(fields)
        return section

    return change


def forge_section(folder: Path, change: Callable[[Any], Any]) -> None:
    """A section with a changed reference under a root that names it rightly."""
    release = canonical.loads((folder / "release.json").read_bytes())
    reference = release["sections"]["scores"]
    section = canonical.loads(object_path(folder, reference["digest"]).read_bytes())
    value = change(section)
    data = value if isinstance(value, bytes) else canonical.dumps(value)
    object_path(folder, reference["digest"]).unlink()
    added = sample_release.add_object(folder, data)
    reference |= {"digest": added.digest, "size": added.size}
    forge_root(folder, canonical.dumps(release))


@pytest.mark.parametrize(
    ("fields", "code", "exit_code"),
    [
        ({"digest": "md5:" + "0" * 32}, "algorithm", 1),  # 38
        ({"digest": "sha256:" + "0" * 64}, "algorithm", 1),
        ({"digest": "crc32:00000000"}, "algorithm", 1),
        ({"digest": "blake3:" + "A" * 64}, "digest-format", 1),  # 36
        ({"digest": "blake3:" + "a" * 32}, "digest-format", 1),  # 40
        ({"digest": "blake3:" + "a" * 128}, "digest-format", 1),
        ({"digest": "0" * 64}, "digest-format", 1),
        ({"size": -1}, "size-format", 1),  # 41
        ({"size": "12"}, "size-format", 1),
        ({"size": 1.5}, "size-format", 1),
        ({"size": float(2**60)}, "size-format", 1),
        ({"size": True}, "size-format", 1),
        ({"size": None}, "size-format", 1),
        ({"kind": ""}, "media-type", 1),
        ({"kind": "spell"}, "media-type", 1),  # 52
        ({"kind": "trace"}, "media-type", 1),  # 53
        ({"size": 7}, "size-mismatch", 1),
    ],
)
def test_a_bad_reference(folder: Path, fields: dict[str, object], code: str, exit_code: int) -> None:
    forge_section(folder, reference_change(**fields))
    refused(verify(folder), code, exit_code)


def test_an_unknown_algorithm(folder: Path) -> None:
    forge_section(folder, reference_change(digest="kangaroo12:" + "0" * 64))
    result = verify(folder)
    assert "algorithm-unknown" in codes(result)
    # The contract of a section is broken as well or not; it is never verified.
    assert result.exit_code in (1, 4)


def test_a_reference_without_size(folder: Path) -> None:
    def change(section: Any) -> Any:
        del next(iter(section["entries"].values()))["size"]
        return section

    forge_section(folder, change)
    refused(verify(folder), "schema")


@pytest.mark.parametrize("name", ["B3SUMS", "SHA256SUMS"])
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda d: d.replace(b"release.json", b"release.jsoN"), "missing-entry"),
        (lambda d: (b"1" if d[:1] != b"1" else b"2") + d[1:], "digest-mismatch"),  # 39
        (lambda d: d[:-1], "missing-entry"),
        (lambda d: d + d.splitlines(keepends=True)[0], "duplicate-entry"),  # 50
        (lambda d: b"".join(reversed(d.splitlines(keepends=True))), "unsorted"),  # 51
        (lambda d: d.replace(b"\n", b"\r\n"), "missing-entry"),
        (lambda d: d.upper(), "digest-format"),
        (lambda d: b"", "missing-entry"),
        (lambda d: d + b"# a comment\n", "digest-format"),
        (lambda d: d + b"tail", "sums-format"),
        (lambda d: d + b"0" * 64 + b"  zzz\n", "missing-file"),
    ],
)
def test_a_checksum_file_that_is_not_ours(folder: Path, name: str, change: Callable[[bytes], bytes], code: str) -> None:
    path = folder / name
    path.write_bytes(change(path.read_bytes()))
    refused(verify(folder), code)


def test_a_keyed_hash_in_place_of_the_plain_one(folder: Path) -> None:  # 43
    from blake3 import blake3

    path = an_object(folder, "scores", "cpu/eager")
    keyed = blake3(path.read_bytes(), key=b"k" * 32).hexdigest()
    target = folder / "objects" / keyed[:2] / keyed[2:]
    target.parent.mkdir(exist_ok=True)
    path.rename(target)
    reseal(folder)
    refused(verify(folder), "digest-mismatch")


# -- manifests (44-62)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda d: d.replace(b'"entries"', b'"kind":"section","entries"'), "json-duplicate-key"),  # 44
        (lambda d: b"\xef\xbb\xbf" + d, "json-encoding"),  # 46
        (lambda d: d.decode().encode("utf-16"), "json-encoding"),
        (lambda d: d.replace(b"section", b"secti\xff"), "json-encoding"),
        (lambda d: d.replace(b'"scores"', b'"\\ud800"'), "json-encoding"),
        (lambda d: d + b"{}", "json-syntax"),  # 47
        (lambda d: d + b"// comment", "json-syntax"),
        (lambda d: d.replace(b"}", b",}"), "json-syntax"),
        (lambda d: d.replace(b",", b", "), "json-canonical"),  # 49
        (lambda d: d + b"\n", "json-canonical"),
        (lambda d: d.replace(b"scores", b"\\u0073cores"), "json-canonical"),
        (lambda d: b"[" * 100_000, "limit-depth"),
        (lambda d: b"[]", "media-type"),
    ],
)
def test_a_manifest_that_is_not_canonical_json(folder: Path, change: Callable[[bytes], bytes], code: str) -> None:
    forge_section(folder, lambda section: change(canonical.dumps(section)))
    refused(verify(folder), code)


def test_more_code_than_is_examined(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = sum((sample_release.OBJECTS / f"product.{suffix}").stat().st_size for suffix in ("hsaco", "s"))
    monkeypatch.setattr("solbench.release.code.MAX_EXAMINED_BYTES", size)
    assert verify(folder).exit_code == 0
    monkeypatch.setattr("solbench.release.code.MAX_EXAMINED_BYTES", size - 1)
    refused(verify(folder), "limit-total", 3)


def changed(**fields: object) -> Callable[[Any], Any]:
    return lambda value: {**value, **fields}


def an_item(**fields: object) -> Callable[[Any], Any]:
    def change(value: Any) -> Any:
        value["items"][-1] |= fields
        return value

    return change


def fewer_registers(value: Any) -> Any:
    return {**value, "evidence": {**value["evidence"], "resources": {**value["evidence"]["resources"], "vgprs": 8}}}


def without_its_end(data: bytes) -> bytes:
    """s_nop in the place of s_endpgm, as the ISA writes both."""
    assert data.count(b"\x00\x00\xb0\xbf") >= 1
    return data.replace(b"\x00\x00\xb0\xbf", b"\x00\x00\x80\xbf", 1)


CODE_OBJECT, ASSEMBLY = (
    f"{kind}/{canonical.digest((sample_release.OBJECTS / name).read_bytes()).removeprefix('blake3:')}"
    for kind, name in (("code-object", "product.hsaco"), ("assembly", "product.s"))
)
KERNEL = "the only kernel"


def an_output(**fields: Any) -> Callable[[Any], Any]:
    """Of a verdict: other fields of its only check."""

    def change(value: Any) -> Any:
        checks = value["correctness"]["checks"]
        return {**value, "correctness": {**value["correctness"], "checks": [{**checks[0], **fields}]}}

    return change


def a_size(**fields: Any) -> Callable[[Any], Any]:
    """Of a verdict: other fields of the first size that it ran at."""

    def change(value: Any) -> Any:
        first, *rest = value["emulation"]["instances"]
        return {**value, "emulation": {**value["emulation"], "instances": [{**first, **fields}, *rest]}}

    return change


def a_count(**fields: Any) -> Callable[[Any], Any]:
    """Of a verdict: other fields of what the first size executed."""

    def change(value: Any) -> Any:
        executed = value["emulation"]["instances"][0]["executed"]
        return a_size(executed={**executed, **fields})(value)

    return change


@pytest.mark.parametrize(
    ("stage", "name", "change", "code", "exit_code"),
    [
        ("corpus", SCALE, changed(extra=1), "schema", 1),  # 52
        ("corpus", SCALE, changed(schema="solbench.definition.v2"), "version", 4),
        ("corpus", SCALE, changed(schema="solbench.solution.v1"), "media-type", 1),
        ("corpus", SCALE, changed(kind="solution"), "media-type", 1),
        ("corpus", SCALE, changed(reference="def ran(x): pass"), "schema", 1),
        ("corpus", SCALE, lambda v: {k: e for k, e in v.items() if k != "role"}, "schema", 1),
        ("corpus", f"{SCALE}/solutions/fast", changed(name="slow"), "cross-ref", 1),
        ("corpus", f"{SCALE}/solutions/fast", changed(sources=[]), "schema", 1),
        ("workloads", f"{SCALE}/w1", changed(axes={"n": 7}), "cross-ref", 1),
        ("workloads", f"{SCALE}/w1", changed(problem="DEMO/unit/add"), "cross-ref", 1),
        ("graphs", f"{SCALE}/w1", changed(outputs=[["y", "z"]]), "schema", 1),
        ("einsums", f"{SCALE}/w1/graph", changed(outputs=[["y", "z"]]), "schema", 1),
        ("einsums", f"{SCALE}/w1/graph", changed(more={}), "schema", 1),
        ("einsums", f"{SCALE}/w1/attestation", changed(subject=[]), "cross-ref", 1),
        ("einsums", f"{SCALE}/w1/attestation", changed(predicate={"verdict": "failed", "seeds": [1]}), "schema", 1),
        ("einsums", f"{SCALE}/w1/attestation", changed(predicate={"verdict": "passed", "seeds": []}), "schema", 1),
        ("bounds", "hardware/cpu", changed(name="other"), "cross-ref", 1),
        ("bounds", "hardware/cpu", changed(engines={}), "schema", 1),
        ("bounds", f"{SCALE}/w1@cpu", changed(target="gfx1200"), "cross-ref", 1),
        ("bounds", f"{SCALE}/w1@cpu", changed(rejected_formats=["float16"]), "cross-ref", 1),
        ("bounds", f"{SCALE}/w1@cpu", changed(reason="both"), "schema", 1),
        ("code", f"{SCALE}/w1/fast@gfx1200", changed(workload="w2"), "cross-ref", 1),
        ("code", f"{SCALE}/w1/fast@gfx1200", changed(target="gfx1201"), "cross-ref", 1),
        ("code", f"{SCALE}/w1/fast@gfx1200", changed(launches=[]), "schema", 1),
        ("code", f"{SCALE}/w1/fast@gfx1200", changed(reason="none"), "schema", 1),
        (
            "code",
            f"{SCALE}/w1/fast@gfx1200",
            changed(status="RUNTIME_ERROR", reason="product: would not launch: no"),
            "evidence-mismatch",
            1,
        ),
        ("code", KERNEL, changed(kernel="produce"), "cross-ref", 1),
        ("code", KERNEL, changed(launch={"threads": 2048, "dynamic_lds_bytes": 0, "dots": []}), "evidence-mismatch", 1),
        ("code", KERNEL, fewer_registers, "evidence-mismatch", 1),
        ("code", KERNEL, lambda v: changed(evidence={**v["evidence"], "findings": [1]})(v), "evidence-mismatch", 1),
        ("code", CODE_OBJECT, without_its_end, "evidence-mismatch", 1),
        ("code", CODE_OBJECT, lambda data: data[:3000], "evidence-mismatch", 1),
        ("code", ASSEMBLY, lambda data: data.replace(b"v_wmma", b"v_womm", 1), "evidence-mismatch", 1),
        ("verdicts", f"{SCALE}/w1/fast@gfx1200", changed(workload="w2"), "cross-ref", 1),
        ("verdicts", f"{SCALE}/w1/fast@gfx1200", changed(target="cpu"), "cross-ref", 1),
        ("verdicts", f"{SCALE}/w1/fast@gfx1200", changed(timing={"method": "hip_event"}), "schema", 1),
        ("verdicts", f"{SCALE}/w1/fast@gfx1200", changed(correctness=None), "schema", 1),
        ("verdicts", f"{SCALE}/w1/fast@gfx1200", changed(emulation=None), "schema", 1),
        ("verdicts", f"{SCALE}/w1/fast@gfx1200", changed(log="found"), "schema", 1),
        ("verdicts", f"{SCALE}/w1/fast@gfx1200", an_output(output="z"), "cross-ref", 1),
        ("verdicts", f"{SCALE}/w1/fast@gfx1200", an_output(compared=0), "cross-ref", 1),
        ("verdicts", f"{SCALE}/w1/fast@gfx1200", an_output(mismatched=9), "cross-ref", 1),
        ("verdicts", f"{SCALE}/w1/fast@gfx1200", a_size(axes={"n": 64}), "cross-ref", 1),
        ("verdicts", f"{SCALE}/w1/fast@gfx1200", a_count(instructions=1), "cross-ref", 1),
        ("verdicts", f"{SCALE}/w1/fast@gfx1200", a_count(seconds=0.1), "schema", 1),
        ("verdicts", f"{SCALE}/w2/fast@gfx1200", changed(status="PASSED", log="", reason=None), "schema", 1),
        ("verdicts", f"{SCALE}/w2/fast@gfx1200", changed(reason=None), "schema", 1),
        ("timings", f"cpu/full/{SCALE}/w1/eager", changed(status="FINE"), "schema", 1),
        ("timings", f"cpu/full/{SCALE}/w1/eager", changed(status="TIMEOUT", reason="slow"), "schema", 1),
        ("timings", f"cpu/full/{SCALE}/w1/eager", changed(solution="fast"), "cross-ref", 1),
        ("timings", f"cpu/full/{SCALE}/w1/eager", changed(definition="add"), "cross-ref", 1),
        ("timings", f"cpu/full/{SCALE}/w1/eager", changed(target="gfx1200"), "cross-ref", 1),
        ("timings", "cpu/full/header", changed(clocks="wound"), "schema", 1),
        ("scores", f"{SCALE}/w1@cpu/eager", changed(s=0.75), "score-mismatch", 1),  # 59
        ("scores", f"{SCALE}/w1@cpu/eager", changed(s_high=0.9), "score-mismatch", 1),
        # Equal to Python, not to JSON: a truth value in place of a number, and the reverse.
        ("scores", f"{SCALE}/w1@cpu/eager", changed(launch_bound=0), "schema", 1),
        ("scores", "cpu/fast", changed(audit=False), "schema", 1),
        ("readiness", "cpu/full", changed(total=True), "schema", 1),
        ("scores", f"{SCALE}/w1@cpu/eager", changed(t_sol_s=1e-9), "score-mismatch", 1),
        ("scores", f"{SCALE}/w2@cpu/fast", changed(state="scored", s=1.0, reason=None), "score-mismatch", 1),
        ("scores", "cpu/fast", changed(s=0.99), "score-mismatch", 1),
        ("scores", "cpu/fast", changed(failed=0, scored=2), "count-mismatch", 1),
        ("scores", "cpu/fast", changed(problem_total=1), "count-mismatch", 1),
        ("scores", "cpu/eager", changed(geometric_mean_speedup=2.0), "score-mismatch", 1),
        ("scores", f"{SCALE}/w1@cpu/eager", changed(trust="reproduced on another card"), "score-mismatch", 1),
        ("scores", "cpu/eager", changed(trust={"imported": 3}), "score-mismatch", 1),
        ("readiness", "gfx1200/static", an_item(reason=None, evidence=None), "readiness-mismatch", 1),
        ("readiness", "gfx1200/static", an_item(workload="w3"), "cross-ref", 1),
        ("readiness", "gfx1200/static", changed(ready=7), "schema", 1),
        ("readiness", "gfx1200/static", changed(target="cpu"), "cross-ref", 1),
        ("readiness", "cpu/full", an_item(instance="blake3:" + "4" * 64), "cross-ref", 1),
        ("readiness", "cpu/full", changed(level="canary"), "cross-ref", 1),
        ("readiness", "cpu/full", changed(place=None), "schema", 1),
    ],
)
def test_an_artifact_whose_hashes_fit_but_not_its_content(
    folder: Path, stage: str, name: str, change: Callable[[Any], Any], code: str, exit_code: int
) -> None:
    if name == KERNEL:
        (name,) = (entry for entry in sections_of(folder)["code"] if entry.startswith("kernel/"))
    rewrite(folder, stage, name, change)
    refused(verify(folder), code, exit_code)


@pytest.mark.parametrize(
    ("stage", "name", "change"),
    [
        ("corpus", SCALE, changed(reference="def ran(x): pass")),
        ("scores", f"{SCALE}/w1@cpu/eager", changed(launch_bound=0)),
        ("scores", "cpu/fast", lambda value: [value]),
        ("timings", "cpu/full/header", changed(clocks="wound")),
    ],
)
@pytest.mark.parametrize("processors", [1, 2, 4])
def test_contracts_that_are_put_off_for_several_processes_find_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch, processors: int, stage: str, name: str, change: Callable[[Any], Any]
) -> None:
    """As of a bundle of thousands of objects."""
    rewrite(folder, stage, name, change)
    at_once = verify(folder)
    monkeypatch.setattr("solbench.release.levels._MANY", 1)
    monkeypatch.setattr("solbench.release.shares.FEWEST", 1)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(processors)))
    put_off: list[int] = []
    over = shares.over
    monkeypatch.setattr(
        "solbench.release.shares.over", lambda items, *rest: put_off.append(len(items)) or over(items, *rest)
    )
    assert verify(folder).as_dict() == at_once.as_dict()
    assert at_once.exit_code == 1 and bool(put_off) == (processors > 1)


def test_rewriting_nothing_changes_nothing(folder: Path) -> None:
    """The forger's tool itself makes no bundle bad."""
    before = verify(folder).root
    rewrite(folder, "scores", "cpu/eager", lambda value: value)
    result = verify(folder)
    assert (result.exit_code, result.root) == (0, before)


def test_faster_samples_do_not_fit_the_score(folder: Path) -> None:
    def faster(value: Any) -> Any:
        for samples in value["timing"]["candidate"]:
            samples["event_s"] = [time * 0.9 for time in samples["event_s"]]
        return value

    rewrite(folder, "timings", f"cpu/full/{SCALE}/w1/fast", faster)
    refused(verify(folder), "score-mismatch")


def test_a_bound_that_its_graph_does_not_give(folder: Path) -> None:
    def lower(value: Any) -> Any:
        value["result"]["t_sol_s"] *= 0.5
        return value

    # On the target without times, so that no score depends on it.
    rewrite(folder, "bounds", f"{SCALE}/w1@gfx1200", lower)
    result = verify(folder)
    assert codes(result) == ["bound-mismatch"]
    assert result.errors[0].path.endswith(": t_sol_s")


def test_an_attestation_of_another_graph(folder: Path) -> None:
    other = json.loads(an_object(folder, "einsums", f"{SCALE}/w2/attestation").read_bytes())
    rewrite(folder, "einsums", f"{SCALE}/w1/attestation", lambda value: other)
    result = verify(folder)
    assert "cross-ref" in codes(result)
    assert any(error.path.endswith("subject einsum-graph") for error in result.errors)


def test_a_graph_of_other_work(folder: Path) -> None:
    """The bound is derived from the graph, so a graph with half the data gives another bound."""

    def smaller(value: Any) -> Any:
        for tensor in value["tensors"].values():
            tensor["shape"] = [tensor["shape"][0] // 2]
        return value

    rewrite(folder, "einsums", f"{SCALE}/w2/graph", smaller)
    assert verify(folder).exit_code == 1


def test_a_machine_model_that_contradicts_its_published_figure(folder: Path) -> None:
    def faster(value: Any) -> Any:
        value["memory"]["published_bytes_per_s"] *= 2
        return value

    rewrite(folder, "bounds", "hardware/gfx1200", faster)
    refused(verify(folder), "schema")


def test_a_bound_withdrawn_without_reason(folder: Path) -> None:
    rewrite(folder, "bounds", f"{SCALE}/w1@gfx1200", changed(result=None, reason="too hard"))
    result = verify(folder)
    refused(result, "bound-mismatch")
    refused(result, "count-mismatch")


def section_edit(folder: Path, stage: str, edit: Callable[[dict[str, Any]], object]) -> None:
    release = canonical.loads((folder / "release.json").read_bytes())
    reference = release["sections"][stage]
    section = canonical.loads(object_path(folder, reference["digest"]).read_bytes())
    before = {entry["digest"] for entry in section["entries"].values()}
    edit(section["entries"])
    for digest in before - {entry["digest"] for entry in section["entries"].values()}:
        object_path(folder, digest).unlink()
    object_path(folder, reference["digest"]).unlink()
    added = sample_release.add_object(folder, canonical.dumps(section))
    reference |= {"digest": added.digest, "size": added.size}
    forge_root(folder, canonical.dumps(release))


@pytest.mark.parametrize(
    ("stage", "edit", "code"),
    [
        ("scores", lambda e: e.pop("cpu/fast"), "count-mismatch"),
        ("scores", lambda e: e.update({"cpu/ghost": e["cpu/fast"]}), "cross-ref"),  # 60
        ("scores", lambda e: e.update({f"{SCALE}/w9@cpu/fast": e[f"{SCALE}/w1@cpu/fast"]}), "cross-ref"),
        ("bounds", lambda e: e.pop(f"{SCALE}/w1@gfx1200"), "cross-ref"),
        ("graphs", lambda e: e.pop(f"{SCALE}/w1"), "cross-ref"),
        ("timings", lambda e: e.pop(f"cpu/full/{SCALE}/w1/eager"), "missing-object"),
        ("corpus", lambda e: e.pop(f"{SCALE}/solutions/fast"), "cross-ref"),
        ("workloads", lambda e: e.pop("DEMO/unit/add/w1"), "cross-ref"),
    ],
)
def test_a_section_with_a_row_more_or_less(
    folder: Path, stage: str, edit: Callable[[dict[str, Any]], None], code: str
) -> None:
    section_edit(folder, stage, edit)
    result = verify(folder)
    assert result.exit_code == 1
    assert {code, "missing-object"} & set(codes(result)), codes(result)


@pytest.mark.parametrize("gone", [("graph", "attestation"), ("attestation",)])
def test_a_graph_whose_ir_or_attestation_was_taken_away(folder: Path, gone: tuple[str, ...]) -> None:
    """Together with every word about it: the bounds say that there is none."""
    fields: dict[str, object] = {"attestation": None}
    if "graph" in gone:
        fields |= {"graph": None, "result": None, "reason": "no operator graph"}
    for target in ("cpu", "gfx1200"):
        rewrite(folder, "bounds", f"{SCALE}/w1@{target}", changed(**fields))
    section_edit(folder, "einsums", lambda entries: [entries.pop(f"{SCALE}/w1/{name}") for name in gone])
    result = verify(folder)
    assert [(one.code, one.path) for one in result.errors] == [("cross-ref", f"einsums: {SCALE}/w1/{gone[0]}")]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"workloads": 4}, "count-mismatch"),
        ({"problems": 1}, "count-mismatch"),
        ({"corpora": ["DEMO", "MORE"]}, "count-mismatch"),
        ({"targets": []}, "count-mismatch"),
        ({"sections": {}}, "extra-object"),
        ({"name": "bad name"}, "schema"),
        ({"schema": "solbench.release.v9"}, "version"),
    ],
)
def test_a_release_object_that_does_not_count_right(folder: Path, fields: dict[str, object], code: str) -> None:
    release = canonical.loads((folder / "release.json").read_bytes())
    forge_root(folder, canonical.dumps({**release, **fields}))
    refused(verify(folder), code, 4 if code == "version" else 1)


def test_a_section_of_another_stage(folder: Path) -> None:
    release = canonical.loads((folder / "release.json").read_bytes())
    sections = release["sections"]
    sections["graphs"], sections["einsums"] = sections["einsums"], sections["graphs"]
    forge_root(folder, canonical.dumps(release))
    refused(verify(folder), "cross-ref")


def test_a_reference_repeated_a_thousand_times_is_visited_once(folder: Path) -> None:  # 55
    section_edit(
        folder, "scores", lambda entries: entries.update({f"cpu/copy{i}": entries["cpu/fast"] for i in range(1000)})
    )
    result = verify(folder)
    assert result.exit_code == 1
    assert len(result.errors) == 1000 and result.more_errors == 0


def test_more_errors_than_are_kept_are_counted(folder: Path) -> None:
    section_edit(
        folder, "scores", lambda entries: entries.update({f"cpu/copy{i}": entries["cpu/fast"] for i in range(1234)})
    )
    result = verify(folder)
    assert (len(result.errors), result.more_errors, result.exit_code) == (1000, 234, 1)


def test_roots(folder: Path) -> None:  # 56, 57
    root = verify(folder).root
    assert root is not None
    assert verify(folder, root).matches_expected is True
    assert verify(folder, root.removeprefix("blake3:")).exit_code == 0
    result = verify(folder, "blake3:" + "0" * 64)
    assert (result.matches_expected, codes(result), result.exit_code) == (False, ["root-mismatch"], 1)
    for question in ("sha256:" + "0" * 64, "0" * 63, "", root.upper()):
        with pytest.raises(InputError, match="expect-root"):
            verify(folder, question)


@pytest.mark.parametrize("name", ["site.json", "provenance.json"])
def test_what_stands_beside_the_root_names_it(folder: Path, name: str) -> None:
    path = folder / name
    root = verify(folder).root
    assert root is not None
    digits = root.removeprefix("blake3:").encode()
    path.write_bytes(path.read_bytes().replace(digits, b"0" * 64))
    reseal(folder)
    assert codes(verify(folder)) == ["root-mismatch"]


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("site.json", {"schema": "solbench.site.v1"}, "schema"),
        ("site.json", [], "schema"),
        ("provenance.json", {}, "schema"),
        ("provenance.json", {"_type": "https://in-toto.io/Statement/v1", "subject": [7]}, "root-mismatch"),
    ],
)
def test_what_stands_beside_the_root_has_a_form(folder: Path, name: str, value: object, code: str) -> None:
    (folder / name).write_bytes(canonical.dumps(value))
    reseal(folder)
    refused(verify(folder), code)


def test_a_later_site_format(folder: Path) -> None:
    path = folder / "site.json"
    path.write_bytes(path.read_bytes().replace(b"solbench.site.v1", b"solbench.site.v2"))
    reseal(folder)
    refused(verify(folder), "version", 4)


def test_yaml_has_no_place_in_a_bundle(folder: Path) -> None:  # 61
    (folder / "objects.yaml").write_bytes(b"a: &a [x]\nb: *a\n")
    reseal(folder)
    refused(verify(folder), "extra-file")


# -- archives (63-70)


def test_another_zip_of_the_same_files(folder: Path, tmp_path: Path) -> None:
    files = sorted((p for p in folder.rglob("*") if p.is_file()), key=lambda p: p.relative_to(folder).as_posix())
    for method, code, exit_code in (
        (zipfile.ZIP_STORED, "archive-structure", 1),
        (zipfile.ZIP_DEFLATED, "unsupported", 4),
    ):
        path = tmp_path / f"other{method}.zip"
        with zipfile.ZipFile(path, "w", method) as file:
            for member in files:
                file.write(member, member.relative_to(folder).as_posix())
        refused(verify(path), code, exit_code)


def test_an_encrypted_member(archive_file: Path) -> None:  # 70
    data = bytearray(archive_file.read_bytes())
    first_entry = struct.unpack_from("<I", data, len(data) - 6)[0]
    data[6] |= 1
    data[first_entry + 8] |= 1
    archive_file.write_bytes(data)
    refused(verify(archive_file), "unsupported", 4)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d[:-1],  # 69
        lambda d: d[: len(d) // 2],
        lambda d: d + b"\0",
        lambda d: d + d,
        lambda d: b"\0" + d,
        lambda d: d[:4] + d[5:],
        lambda d: d[:-22],
        lambda d: d[-22:],
        lambda d: b"",
        lambda d: b"PK\x03\x04",
        lambda d: archive.end_record(0, 0, 0) + d,
        lambda d: d[:-2] + b"\x04\x00" + b"note",
        lambda d: b"#!/bin/sh\n" + d,
    ],
)
def test_an_archive_with_a_byte_more_or_less(archive_file: Path, change: Callable[[bytes], bytes]) -> None:
    archive_file.write_bytes(change(archive_file.read_bytes()))
    refused(verify(archive_file), "archive-structure")


def test_an_empty_archive(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(archive.end_record(0, 0, 0))
    result = verify(path)
    refused(result, "missing-object")
    refused(result, "missing-file")


def test_members_that_overlap(tmp_path: Path) -> None:
    member = archive.Member(b"site/a", 0, 0, 0)
    again = archive.Member(b"site/b", 0, 0, 0)
    directory = archive.central_header(member) + archive.central_header(again)
    path = tmp_path / "x.zip"
    path.write_bytes(archive.local_header(member) + directory + archive.end_record(2, len(directory), member.end))
    refused(verify(path), "archive-structure")


@pytest.mark.parametrize("start", [b"\0" * 300, b"{}" * 300, b"\x7fELF" * 300, b"PK\x05\x06"])
def test_other_files_are_not_bundles(tmp_path: Path, start: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(start)
    refused(verify(path), "archive-structure")


@pytest.mark.parametrize(
    "start",
    [
        b"\x28\xb5\x2f\xfd",
        b"\xfd7zXZ\0",
        b"BZh9",
        b"7z\xbc\xaf\x27\x1c",
        b"Rar!\x1a\x07",
        b"\x04\x22\x4d\x18",
        b"LZIP\x01",
        b"\x1f\x9d\x90",
    ],
)
def test_other_archives_are_not_supported(tmp_path: Path, start: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(start + b"\0" * 600)
    refused(verify(path), "unsupported", 4)


# -- the site (72-74)


def test_a_page_edited_after_the_build(folder: Path) -> None:  # 73
    (folder / "site" / "index.html").write_bytes(b"<p>better numbers")
    reseal(folder)
    assert codes(verify(folder)) == ["digest-mismatch"]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("x.html", '<script src="https://cdn.example/x.js"></script>'),
        ("x.html", "<img alt=x src=//example.org/i.png>"),
        ("x.html", "<LINK rel='stylesheet' href='http://example.org/a.css'>"),
        ("x.html", '<iframe\nsrc = "https://example.org">'),
        ("x.css", "@import '//example.org/a.css';"),
        ("x.svg", '<svg><style>a{background:url( "https://example.org/b")}</style></svg>'),
    ],
)
def test_a_page_that_asks_elsewhere(folder: Path, page: str, text: str) -> None:  # 74
    (folder / "site" / page).write_text(text)
    manifest = canonical.loads((folder / "site.json").read_bytes())
    manifest["pages"][page] = canonical.digest(text.encode())
    (folder / "site.json").write_bytes(canonical.dumps(manifest))
    reseal(folder)
    assert codes(verify(folder)) == ["site-external"]


# -- the process (76)


def test_nothing_is_never_verified(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert verify(tmp_path / "empty").exit_code == 1
    (tmp_path / "file").write_bytes(b"")
    assert verify(tmp_path / "file").exit_code == 1
    with pytest.raises(InputError, match="no such file"):
        verify(tmp_path / "missing")
    (tmp_path / "dangling").symlink_to("missing")
    with pytest.raises(InputError, match="no such file"):
        verify(tmp_path / "dangling")
